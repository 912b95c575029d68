"""One connection of a relay: it connects, creates a stream, and publishes or plays on it.

It goes in chunks or in flows, as the URL says; its link sees no difference.

Implements RTMP 1.0 §7.2.1.1, RTMP 1.0 §7.2.1.3 and the first steps of RTMP 1.0 §7.2.2 from the
client's side.  What it all is for, and what follows from its end, is for its link to know.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from rtmplite.amf.values import Value
from rtmplite.auth.adobe import proven
from rtmplite.errors import LocalError, RemoteError
from rtmplite.live.streams import Outlet
from rtmplite.rtmfp.netconnection.client import ClientFlowTransport
from rtmplite.rtmp.client import ClientChunkTransport, NetClient, Target, redirection
from rtmplite.rtmp.message_transport import ConnectionLimits, MessageTransport, text
from rtmplite.rtmp.reconnect import requested
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message

_CONNECT: Final = 1.0  # the transaction id: RTMP 1.0 §7.2.1.1
_OVER: Final = ("NetStream.Play.UnpublishNotify", "NetStream.Play.Stop", "NetStream.Play.Complete")


class RelayOwner(Protocol):
    """The link that owns a session.  Own design: `link.Link` is one."""

    def prepare(self, session: "RelaySession") -> None:
        """Make the calls before createStream."""

    def ask(self, session: "RelaySession") -> None:
        """Publish or play: RTMP 1.0 §7.2.2."""

    def on_running(self, session: "RelaySession", now: float) -> None:
        """Note that the server has begun to publish or to play."""

    def on_media(self, session: "RelaySession", message: Message, now: float) -> None:
        """Take a message of the stream that is played: RTMP 1.0 §7.2.2.1."""

    def on_eof(self, session: "RelaySession", now: float) -> None:
        """Note that the stream that is played has ended: RTMP 1.0 §7.1.7."""

    def on_asked_to_move(self, session: "RelaySession", target: Target, now: float) -> None:
        """Note that the server asks to reconnect: E-RTMP v2 §"Reconnect Request"."""

    def on_end(self, session: "RelaySession", now: float) -> None:
        """Note that the connection has ended; `reason` says why."""


class RelaySession(NetClient):
    """A client's connection whose events go straight to its link; `open_session` makes it.

    Own design: `since` is when it began to publish or play, None before; `next_target` is where the
    server has sent us instead, if it has, or the same place with what it asks for, and `stream_id`
    what it has given us.
    """

    def __init__(
        self,
        transport: MessageTransport,
        owner: RelayOwner,
        start_code: str,
        target: Target,
        random: Callable[[int], bytes],
    ) -> None:
        super().__init__(transport, target)
        self._owner, self._start_code, self._random = owner, start_code, random
        self.stream_id, self._create = 0, 0.0
        self.since: float | None = None
        self.next_target: Target | None = None

    def outlet(self) -> Outlet:
        """Give the outlet for a live stream that is published there: RTMP 1.0 §7.2.2.6."""
        return self.transport.outlet(self.stream_id)

    def on_media(self, message: Message, now: float) -> None:
        """Pass media on to the link: RTMP 1.0 §7.2.2.1."""
        self._owner.on_media(self, message, now)

    def on_stream_eof(self, stream_id: int, now: float) -> None:
        """Tell the link that playback has ended: RTMP 1.0 §7.1.7."""
        self._owner.on_eof(self, now)

    def on_command(self, command: Command, stream_id: int, now: float) -> None:
        """Take an answer or a status, and make the next call: RTMP 1.0 §7.2.1.1, §7.2.1.3."""
        super().on_command(command, stream_id, now)  # over RTMFP there is more to it
        self.events()  # nobody asks for them
        number, first = command.transaction_id, command.args[0] if command.args else None
        if command.name == "_error" and number in (_CONNECT, self._create):
            self._refused(first, now)
        elif command.name == "_result" and number == _CONNECT:
            self._owner.prepare(self)
            self._create = self.call("createStream")
        elif command.name == "_result" and number == self._create:
            if not isinstance(first, float) or not 0 < first < 1 << 32:
                self.abort("createStream gives no stream", now)
                return
            self.stream_id = int(first)
            self._owner.ask(self)
        elif command.name == "onStatus" and isinstance(first, dict):
            self._on_status(command, first, stream_id, now)

    def _on_status(
        self, command: Command, information: dict[str, Value], stream_id: int, now: float
    ) -> None:
        code = text(information.get("code"))
        if not stream_id:
            self._asked(command, now)
        elif information.get("level") == "error":
            self._refused(information, now)
        elif code == self._start_code and self.since is None:
            self.since = now
            self._owner.on_running(self, now)
        elif code in _OVER:
            self._owner.on_eof(self, now)

    def _asked(self, command: Command, now: float) -> None:
        """Take a status of the connection: E-RTMP v2 §"NetConnection Commands"."""
        try:
            url = requested(command, self.target.tc_url)
        except RemoteError:  # it names no place
            return
        if url is not None and (target := redirected(self.target, url)) is not None:
            self._owner.on_asked_to_move(self, target, now)

    def _refused(self, information: Value, now: float) -> None:
        """Take a refusal: Field §"Redirects", or for a user Field §"authmod=adobe"."""
        url, words = redirection(information), _words(information)
        try:
            if url is not None:
                self.next_target = redirected(self.target, url)
            elif self.since is None:
                self.next_target = proven(self.target, words, self._random)
        except RemoteError as error:
            words = str(error)
        self.abort(words, now)

    def on_ended(self, now: float) -> None:
        """Tell the link that the connection has ended."""
        self._owner.on_end(self, now)


class ChunkSession(RelaySession):
    """One over the chunk stream: RTMP 1.0 §7.2."""

    transport: ClientChunkTransport


class FlowSession(RelaySession):
    """One over RTMFP: RFC 7425 §5.3."""

    transport: ClientFlowTransport


def open_session(
    owner: RelayOwner,
    start_code: str,
    target: Target,
    random: Callable[[int], bytes],
    now: float,
    limits: ConnectionLimits,
) -> ChunkSession | FlowSession:
    """Begin a connection as the URL of `target` wants it.  Own design: RFC 7425 §6.1."""
    if target.by_datagrams:
        return FlowSession(ClientFlowTransport(now, limits), owner, start_code, target, random)
    transport = ClientChunkTransport(random, now, limits, digest=False)
    return ChunkSession(transport, owner, start_code, target, random)


def redirected(target: Target, url: str) -> Target | None:
    """Give the target of the same stream at another server, None if `url` is wrong.

    Own design: nor for one without TLS if `target` has it; RTMFP is encrypted, and does not tell
    who the other end is.  The URL may name the stream or not.
    """
    try:
        found, named = Target.parse(url, stream=False), Target.parse(url)
    except LocalError:
        return None
    if target.secure and not found.secure:
        return None
    name = target.stream.partition("?")[0]
    if named.stream.partition("?")[0] == name:
        found = named
    stream = found.stream if "?" in found.stream else target.stream
    return replace(found.as_user_of(target), stream=stream)


def _words(information: Value) -> str:
    """The code and description of an information object, for the log."""
    if not isinstance(information, dict):
        return "refused"
    words = [text(information.get(key)) for key in ("code", "description")]
    return ": ".join(word for word in words if word) or "refused"
