"""Audio that a packet pump passes on in place of a stream, packet by packet, until something else.

Own design: of a thousand packets of a call hardly one needs more than the next sequence number, a
time and a header of RTMP.  Those may be handled elsewhere (`siprtmp.pump`, in C), by the `Terms`
that a stream gives; every other packet comes to the stream, which first takes back what was counted
meanwhile.  So the stream is always right when anybody looks, and stays the specification.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from siprtmp.media.translate.rtp_to_flv import Passing

AGAIN: Final = 10  # packets after which a stream that could not be offloaded is tried again


class Players(NamedTuple):
    """Where the messages go: the template of a header, the longest body, and the outlets.

    `header` is that of a chunk of type 0 without time and length (RTMP 1.0 §5.3.1.2.1);
    `returned(time)` is to be told when the stream goes on itself, with the time of the last message
    in ms, or None.
    """

    header: bytes
    longest: int
    outlets: tuple[Any, ...]
    returned: Callable[[int | None], None]


class Counted(NamedTuple):
    """What a pump has counted, as `Source` (RFC 3550 §A.1 and §A.8) and `MediaClock` have it."""

    packets: int
    octets: int
    jitter: float
    timestamp: int
    heard_at: float
    media_timestamp: int
    ticks: int
    last_ms: int

    @property
    def arrival(self) -> tuple[float, int, float]:
        """What `Source.went_on` takes: RFC 3550 §A.8."""
        return self.jitter, self.timestamp, self.heard_at


class Flow(Protocol):
    """The packets of one transport, while a pump handles them."""

    def reclaim(self) -> tuple[Any, ...] | None:
        """Handle no packets from now on, and give what `Counted` has."""


class Offloading:
    """Whether a pump has the packets of one stream now, and since when.

    `is_wanted` is false where there is no pump.  `next_try` is the extended sequence number from
    which it is worth asking again.
    """

    def __init__(self, is_wanted: bool) -> None:
        self.is_wanted, self.next_try = is_wanted, 0
        self._flow: Flow | None = None
        self._players: Players | None = None

    @property
    def is_active(self) -> bool:
        """Whether the pump has them."""
        return self._flow is not None

    def begin(
        self,
        offload: Callable[..., Flow | None],
        players: Players,
        passing: Passing,
        source: Sequence[object],
        clock: Sequence[object],
    ) -> bool:
        """Offload a stream by what its source, its clock and its players have; whether that is."""
        flow = offload(
            players.outlets, players.header, players.longest, passing.head, passing.check,
            *source[:2], tuple(source[2:]), tuple(clock),
        )  # fmt: skip
        if flow is None:
            players.returned(None)
            return False
        self._flow, self._players = flow, players
        return True

    def end(self) -> Counted | None:
        """Have the packets again, and what was counted; None if there was nothing."""
        flow, players = self._flow, self._players
        self._flow = self._players = None
        if flow is None or players is None:
            return None
        seen = flow.reclaim()
        counted = Counted(*seen) if seen is not None else None
        if counted is None or not counted.packets:
            players.returned(None)
            return None
        players.returned(counted.last_ms)
        return counted
