"""A browser as a client of an application of RTMP, such as `call` or `room`.

Own design: an application knows who publishes and plays as streams of a NetConnection (RTMP 1.0
§7.2).  A browser gets a connection of its own, whose messages are handed over as they are, without
chunks or flows.  So it has the rights, the limits and the refusals of every other client, and no
application knows of browsers.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from p2psip.errors import RemoteError
from rtmplite.amf.values import Value
from rtmplite.live.streams import LivePlayer, LiveStream, Registry, Viewer
from rtmplite.live.timestamp_rebase import ANSWER
from rtmplite.rtmp.message_transport import MessageTransport
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS, Application, NetConnection
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.control import Control
from rtmplite.rtmp.wire.message import Message
from siprtmp.calls.access.name_rights import HELD
from siprtmp.calls.home import BAD_NAME, NO_ROOM, NOT_FOUND

_STREAM: Final = 1  # the only one of such a connection
_SIP: Final = re.compile(r"([3-6]\d\d) ")  # how the text of a failed call begins
# What the statuses of SIP are by HTTP, where they are not the same or not told: RFC 3261 §21
_STATUSES: Final[Mapping[int, int]] = {403: 403, 404: 404, 486: 503, 488: 488, 503: 503}


class ClientBrowser(Protocol):
    """The browser of such a connection."""

    def told(self, code: str, now: float) -> None:
        """Hear a status of its stream that is no error."""

    def seat(self, live: LiveStream, viewer: Viewer, now: float) -> LivePlayer:
        """Take a place in the audience of the stream that it plays."""

    def is_silent(self, now: float) -> bool:
        """Whether it sends nothing, so that another may have its name."""

    def end(self, reason: str, now: float) -> None:
        """End, as the application has no use for it any more."""


class Applications(NamedTuple):
    """The applications of RTMP by name, and what their connections are made with."""

    find: Callable[[str], Application | None]
    registry: Registry
    random: Callable[[int], bytes]
    clock: Callable[[], float]


class BrowserClient(MessageTransport):
    """The connection of one browser to `app`, from `begin` to the end; `id` names it in the log.

    `name` is that of its stream; a query may follow it.
    """

    def __init__(
        self,
        browser: ClientBrowser,
        applications: Applications,
        source: tuple[str, int],
        app: str,
        name: str,
    ) -> None:
        find, registry, random, self._clock = applications
        self._app, self._name = app, name
        super().__init__(self._clock(), DEFAULT_LIMITS)
        self.peer_address, self._browser = source, browser
        self._connection = NetConnection(self, find, registry, random, self._clock())
        self.id = self._connection.id
        self._waiting: list[tuple[Command, int]] = []  # until the command before is decided
        self._refusal: RemoteError | None = None
        self._has_begun = False

    def begin(self, verb: str, codecs: list[Value], now: float) -> None:
        """Connect to the application, and publish or play.

        Raises RemoteError, with a status of HTTP, if that is refused at once.  A verdict may come
        later; a refusal ends the browser then.
        """
        properties: dict[str, Value] = {"app": self._app, "tcUrl": f"rtmp:///{self._app}"}
        self._give(Command("connect", 1.0, properties | {"fourCcList": codecs}), 0, now)
        self._give(Command(verb, 0.0, None, (self._name,)), _STREAM, now)
        if self._refusal is not None:
            raise self._refusal
        if self.closed:
            raise RemoteError(self.reason, 403)
        self._has_begun = True

    def publish(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Publish a message.  Raises the RemoteError of `rtmplite` if it cannot be taken."""
        self._connection.on_media(Message(type_id, timestamp, _STREAM, payload), now)

    def _give(self, command: Command, stream_id: int, now: float) -> None:
        self._waiting.append((command, stream_id))
        self.proceed(now)

    # -- MessageTransport ---------------------------------------------------------------

    def proceed(self, now: float) -> None:
        while self._waiting and self.reading and not (self.deciding or self.closed):
            command, stream_id = self._waiting.pop(0)
            if stream_id:  # which knows what the client has said at connect
                self._connection.add_stream(stream_id)
            self._connection.on_command(command, stream_id, now)

    def send_command(self, command: Command, stream_id: int = 0) -> None:
        information = command.args[-1] if command.args else None
        if command.name not in ("onStatus", "_error") or not isinstance(information, dict):
            return
        said = {name: str(information.get(name, "")) for name in ("level", "code", "description")}
        if said["level"] != "error":
            self._browser.told(said["code"], self._clock())
        elif self._has_begun:
            self._browser.end(said["description"], self._clock())
        else:
            self._refusal = refusal(said["code"], said["description"])

    def join(self, live: LiveStream, stream_id: int, viewer: Viewer, now: float) -> LivePlayer:
        return self._browser.seat(live, viewer, now)

    def send_control(self, message: Control) -> None:
        """Nothing: a browser has no word for it."""

    def send_media(self, type_id: int, timestamp: int, stream_id: int, payload: bytes) -> None:
        """Nothing: what is sent here are data for scripts of RTMP."""

    def send_shared(self, message: Message) -> None:
        """Nothing: browsers share no objects."""

    @property
    def queued(self) -> int:
        return 0

    @property
    def deadline(self) -> float | None:
        return None

    def tick(self, now: float) -> None:
        """Nothing is due."""

    def is_silent(self, now: float, answer: float = ANSWER) -> bool:
        return self._browser.is_silent(now)

    def _shut(self, now: float) -> None:
        if self._has_begun:
            self._browser.end(self.reason, now)


def refusal(code: str, description: str) -> RemoteError:
    """What a client by HTTP is told where one by RTMP hears this.

    >>> [refusal(BAD_NAME, text).status for text in ("503 Full", "a is already published.")]
    [503, 409]
    """
    if match := _SIP.match(description):
        number = int(match[1])
        status = _STATUSES.get(number, 400 if number < 500 else 503)
    elif code == NOT_FOUND or description == NO_ROOM:
        status = 404
    else:
        status = 409 if code == BAD_NAME or HELD in description else 403
    return RemoteError(description.rstrip("."), status)
