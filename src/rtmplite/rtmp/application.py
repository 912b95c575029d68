"""The interface between a server's protocol and the application that decides.

Own design: the commands of RTMP 1.0 §7.2 leave every decision to "the server".  Nothing here may
block: an application that needs time answers later, by the same methods.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.rtmp.wire.command import Command

if TYPE_CHECKING:
    from rtmplite.rtmp.netconnection import NetConnection
    from rtmplite.rtmp.netstream import ServerStream

MAX_NAME: Final = 4096  # characters of a stream's name, with keys and tokens
ANY: Final = -2.0  # what is live, else what is recorded: RTMP 1.0 §7.2.2.1
LIVE_ONLY: Final = -1.0  # RTMP 1.0 §7.2.2.1
TO_THE_END: Final = -1.0  # RTMP 1.0 §7.2.2.1


@dataclass(frozen=True, slots=True)
class PlayRequest:
    """The further arguments of play: RTMP 1.0 §7.2.2.1.

    `start` is in ms, or `ANY` or `LIVE_ONLY`; `duration` is in ms, or `TO_THE_END`.  Without
    `reset` the stream is appended to the playlist of this client.
    """

    start: float = ANY
    duration: float = TO_THE_END
    reset: bool = True

    @classmethod
    def parse(cls, args: tuple[Value, ...]) -> "PlayRequest":
        """Parse the arguments after the name; a wrong one counts as absent: Field §"Play times".

        RTMP 1.0 §7.2.2.1 gives seconds, the unit of scripts; clients send ms, and the two special
        values with or without the factor.
        """
        start, duration, reset = [*args, None, None, None][:3]
        begin, length = _number(start, ANY), _number(duration, TO_THE_END)
        if begin < 0:
            begin = LIVE_ONLY if begin in (LIVE_ONLY, 1000 * LIVE_ONLY) else ANY
        return cls(begin, length if length >= 0 else TO_THE_END, reset is None or bool(reset))


class Playback(Protocol):
    """Plays a recorded stream to one client.  Own design: a live stream needs no such object."""

    def pause(self, paused: bool, at: float, now: float) -> None:
        """Pause or go on; `at` is the client's time in ms: RTMP 1.0 §7.2.2.8."""

    def seek(self, milliseconds: float, now: float) -> None:
        """Go on from a time of the client's: RTMP 1.0 §7.2.2.7."""

    def select(self, now: float, *, audio: bool | None = None, video: bool | None = None) -> None:
        """Switch a medium off or on: RTMP 1.0 §7.2.2.4, §7.2.2.5."""

    def play2(self, options: Mapping[str, Value], now: float) -> None:
        """Go over to another stream, by NetStreamPlayOptions: RTMP 1.0 §7.2.2.2."""

    def buffer(self, milliseconds: int, now: float) -> None:
        """Take the length of the client's buffer: RTMP 1.0 §7.1.7."""

    def stop(self, now: float) -> None:
        """Stop without a word: the client is gone, or plays another stream."""


class Application(Protocol):
    """The part of a server that decides; one object may serve any number of connections.

    Own design: the methods are the requests of a client that RTMP 1.0 §7.2 lets a server refuse.
    """

    def on_connect(self, connection: "NetConnection", now: float) -> None:
        """Lead to `accept` or `reject`, now or later: RTMP 1.0 §7.2.1.1.

        Nothing more is read from that client until then.
        """

    def on_command(self, connection: "NetConnection", command: Command, now: float) -> None:
        """Take a call that RTMP 1.0 §7.2.1 does not define (RTMP 1.0 §7.2.1.2).

        Answer with `connection.result` or `connection.error`.
        """

    def on_publish(
        self, connection: "NetConnection", stream: "ServerStream", name: str, now: float
    ) -> None:
        """Lead to `stream.accept_publish` or `stream.reject_publish`: RTMP 1.0 §7.2.2.6."""

    def on_play(
        self, connection: "NetConnection", stream: "ServerStream", name: str, now: float
    ) -> None:
        """Lead to `stream.accept_play` or `stream.reject_play`: RTMP 1.0 §7.2.2.1."""

    def on_disconnect(self, connection: "NetConnection", now: float) -> None:
        """Note that the connection has ended, after its streams; once for each `on_connect`."""


class OpenApplication:
    """Base of applications: it accepts every client, and refuses to publish and to play.

    Own design: a subclass defines what it offers, mostly `on_publish` and `on_play`.
    """

    def on_connect(self, connection: "NetConnection", now: float) -> None:
        """Accept every client: RTMP 1.0 §7.2.1.1."""
        connection.accept(now)

    def on_command(self, connection: "NetConnection", command: Command, now: float) -> None:
        """Answer an unknown call by an error: RTMP 1.0 §7.2.1.2."""
        reason = RemoteError(f"No such call: {command.name}")
        connection.error(command.transaction_id, reason)

    def on_publish(
        self, connection: "NetConnection", stream: "ServerStream", name: str, now: float
    ) -> None:
        """Refuse: RTMP 1.0 §7.2.2.6."""
        stream.reject_publish("NetStream.Publish.BadName", "Nobody publishes here.", now)

    def on_play(
        self, connection: "NetConnection", stream: "ServerStream", name: str, now: float
    ) -> None:
        """Refuse: RTMP 1.0 §7.2.2.1."""
        stream.reject_play("NetStream.Play.StreamNotFound", "Nothing is played here.", now)

    def on_disconnect(self, connection: "NetConnection", now: float) -> None:
        """Do nothing: every stream has stopped before."""


@runtime_checkable
class HasLengths(Protocol):
    """An application whose streams may be recorded and then have a length.

    Own design: clients ask by getStreamLength, which RTMP 1.0 does not define.
    """

    def on_length(
        self,
        connection: "NetConnection",
        path: str,
        query: str,
        answer: Callable[[float, float], None],
        now: float,
    ) -> None:
        """Call `answer(seconds, now)` once; `seconds` is 0 if there is no recording.

        `query` is what followed a question mark in the name.
        """


class InvalidApplication(OpenApplication):
    """Refuses every client, and tells it the names of the applications there are.

    Own design: RTMP 1.0 §7.2.1.1 has a client name an application and no way to ask for the names.
    """

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    def on_connect(self, connection: "NetConnection", now: float) -> None:
        """Answer connect by NetConnection.Connect.InvalidApp: RTMP 1.0 §7.2.1.1."""
        name, names = connection.app.partition("/")[0], ", ".join(sorted(self._names()))
        description = f"No such application: {name[:40]}; there are: {names}"
        connection.reject(description, now, "NetConnection.Connect.InvalidApp")


def applications(by_name: "Mapping[str, Application]") -> "Callable[[str], Application]":
    """Make a server connection's lookup of applications; other names are refused with a list.

    Own design: `by_name` is looked at for each connection, so it may change later.
    """
    invalid = InvalidApplication(by_name.keys)
    return lambda name: by_name.get(name, invalid)


def _number(value: Value, default: float) -> float:
    """Read a time that a client sent; `default` for NaN and numbers beyond 32 bits."""
    return value if isinstance(value, float) and abs(value) < 1 << 32 else default
