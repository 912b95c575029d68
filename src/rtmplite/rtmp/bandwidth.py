"""Obeys Set Peer Bandwidth: how much may be sent before the peer acknowledges it.

Implements RTMP 1.0 §5.4.5 with the Acknowledgements of RTMP 1.0 §5.4.3.  Servers in use send
dynamic limits only, which limit nothing, so a connection has a `Throttle` only after a hard or a
soft limit.

    >>> throttle = Throttle(1000)
    >>> throttle.push(bytes(900)), throttle.push(bytes(900)), throttle.push(b"last")
    (None, None, None)
    >>> [len(data) for data in throttle.ready()]
    [900, 900]
    >>> throttle.acknowledged(900), throttle.ready()
    (None, [b'last'])
"""

from collections import deque
from collections.abc import Iterable
from typing import Final

from rtmplite.rtmp.wire.control import LimitType, SetPeerBandwidth

# Own design: a peer that limits us and never acknowledges would get nothing more, so its limit is
# ignored after that time.
ACK_TIMEOUT: Final = 5.0  # s

_CIRCLE: Final = 1 << 32  # bytes, where sequence numbers begin again: RTMP 1.0 §5.4.3


class Throttle:
    """Holds messages back until the peer has acknowledged enough: §5.4.5.

    Messages are sent whole, so up to one of them goes beyond `window` bytes.  Bytes under way when
    the limit comes count as arrived.  Own design: see the members without a section.
    """

    def __init__(self, window: int, acknowledged: int = 0) -> None:
        self.window, self.size = window, 0  # bytes, `size` being those that wait
        self.stuck_since: float | None = None
        self.has_heard = False  # whether the peer does acknowledge, by numbers that go on
        self._is_hard = True
        self._unacknowledged, self._acknowledged = 0, acknowledged
        self._waiting = deque[bytes]()

    @classmethod
    def begun(cls, message: SetPeerBandwidth, acknowledged: int) -> "Throttle | None":
        """Make one for a first limit; one that is dynamic is ignored (§5.4.5).

        `acknowledged` is the sequence number of the newest Acknowledgement.
        """
        if message.limit_type == LimitType.DYNAMIC:  # §5.4.5 [dynamic-limit]
            return None
        throttle = cls(message.size, acknowledged)
        throttle._is_hard = message.limit_type == LimitType.HARD
        return throttle

    def limit(self, message: SetPeerBandwidth) -> None:
        """Obey another limit: §5.4.5."""
        match message.limit_type:
            case LimitType.HARD:
                # §5.4.5 [hard-limit] [dynamic-limit]
                self.window, self._is_hard = message.size, True
            case LimitType.SOFT:
                self.window = min(self.window, message.size)  # §5.4.5 [soft-limit]
                self._is_hard = False  # §5.4.5 [dynamic-limit]
            case LimitType.DYNAMIC if self._is_hard:
                self.window = message.size  # §5.4.5 [dynamic-limit]

    def acknowledged(self, sequence_number: int) -> None:
        """Learn how many bytes have arrived: RTMP 1.0 §5.4.3.

        Own design: peers begin to count before or after the handshake; differences are the same.
        The same number again tells nothing: some servers say how many bytes have come since the
        last one, and are waited for no longer than those that are silent.
        """
        arrived = (sequence_number - self._acknowledged) % _CIRCLE
        self._acknowledged, self.has_heard = sequence_number, arrived > 0
        if self.has_heard:
            self.stuck_since = None
        self._unacknowledged = max(0, self._unacknowledged - arrived)

    def push(self, data: bytes) -> None:
        """Queue whole messages, first in, first out."""
        self._waiting.append(data)
        self.size += len(data)

    def ready(self) -> list[bytes]:
        """Take the messages from the queue that may be sent now (§5.4.5)."""
        out = []
        while self._waiting and self._unacknowledged < self.window:  # §5.4.5 [window-limits]
            out.append(self._waiting.popleft())
            self._unacknowledged += len(out[-1])  # §5.4.5 [window-limits]
        self.size -= sum(map(len, out))
        return out

    def passed(self, size: int) -> None:
        """Count an Acknowledgement, which is sent at once; else both ends might wait."""
        self._unacknowledged += size

    def drain(self) -> Iterable[bytes]:
        """Give all that waits, to be sent before the connection closes."""
        waiting, self._waiting, self.size = self._waiting, deque(), 0
        return waiting

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; 0 if the wait for an acknowledgement has not begun to count."""
        if not self.size or self.has_heard:
            return None
        return 0.0 if self.stuck_since is None else self.stuck_since + ACK_TIMEOUT

    def tick(self, now: float) -> bool:
        """Whether the peer has not acknowledged for `ACK_TIMEOUT`, and does not do so by now."""
        if self.deadline is None:
            return False
        self.stuck_since = now if self.stuck_since is None else self.stuck_since
        return now >= self.stuck_since + ACK_TIMEOUT
