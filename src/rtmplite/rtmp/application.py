"""What a server application must be able to do, and what it can be given.

Own design: the commands of RTMP 1.0 §7.2 leave every decision to "the server"; this is the line
between the part of it that knows the protocol and the part that decides.  Nothing here may block:
an application that needs time answers later, by the same methods.
"""

from collections.abc import Callable, Mapping
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
    `reset` the stream is put at the end of what this client plays.
    """

    start: float = ANY
    duration: float = TO_THE_END
    reset: bool = True

    @classmethod
    def parse(cls, args: tuple[Value, ...]) -> "PlayRequest":
        """Read what follows the name; anything odd reads as if it were absent: Field §"Play times".

        RTMP 1.0 §7.2.2.1 gives seconds, which is what a script says; on the wire are ms, the two
        special values with or without the factor.
        """
        start, duration, reset = [*args, None, None, None][:3]
        begin, length = _number(start, ANY), _number(duration, TO_THE_END)
        if begin < 0:
            begin = LIVE_ONLY if begin in (LIVE_ONLY, 1000 * LIVE_ONLY) else ANY
        return cls(begin, length if length >= 0 else TO_THE_END, reset is None or bool(reset))


class Playback(Protocol):
    """Own design: what plays a recorded stream to one client; a live one needs no such thing."""

    def pause(self, paused: bool, at: float, now: float) -> None:
        """Stop or go on; `at` is the client's time in ms: RTMP 1.0 §7.2.2.8."""

    def seek(self, milliseconds: float, now: float) -> None:
        """Go on from there: RTMP 1.0 §7.2.2.7."""

    def select(self, now: float, *, audio: bool | None = None, video: bool | None = None) -> None:
        """Switch a medium off or on: RTMP 1.0 §7.2.2.4, §7.2.2.5."""

    def play2(self, options: Mapping[str, Value], now: float) -> None:
        """Go over to another stream, by NetStreamPlayOptions: RTMP 1.0 §7.2.2.2."""

    def buffer(self, milliseconds: int, now: float) -> None:
        """The client wants to have so much in hand: RTMP 1.0 §7.1.7."""

    def stop(self, now: float) -> None:
        """The client is gone, or plays something else.  Own design: say nothing more."""


class Application(Protocol):
    """Own design: the deciding half of a server; one may serve any number of connections."""

    def on_connect(self, connection: "NetConnection", now: float) -> None:
        """Lead to `accept` or `reject`, now or later: RTMP 1.0 §7.2.1.1.

        Until then nothing else of that client is looked at.
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
        """The connection is gone, whoever ended it; its streams have ended before.

        Own design: it follows every `on_connect`, once.
        """


class OpenApplication:
    """The part of an application that lets everybody in and knows no calls.  Own design."""

    def on_connect(self, connection: "NetConnection", now: float) -> None:
        """Let everybody in: RTMP 1.0 §7.2.1.1."""
        connection.accept(now)

    def on_command(self, connection: "NetConnection", command: Command, now: float) -> None:
        """There are no other calls: RTMP 1.0 §7.2.1.2."""
        reason = RemoteError(f"No such call: {command.name}")
        connection.error(command.transaction_id, reason)

    def on_disconnect(self, connection: "NetConnection", now: float) -> None:
        """Own design: nothing was kept; every stream has stopped before."""


@runtime_checkable
class HasLengths(Protocol):
    """Own design: an application whose streams may be recorded, and have a length then."""

    def on_length(
        self,
        connection: "NetConnection",
        path: str,
        query: str,
        answer: Callable[[float, float], None],
        now: float,
    ) -> None:
        """Call `answer` with seconds, 0 if there is no such recording, and the time, once.

        `query` is what followed a question mark in the name.
        """


def _number(value: Value, default: float) -> float:
    """A time as a client sent it; NaN and what is beyond 32 bits are no times."""
    return value if isinstance(value, float) and abs(value) < 1 << 32 else default
