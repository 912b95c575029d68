"""How much may be on its way: enough to fill the path, and hardly more than that.

Implements Field §"RTWebSocket pace".  TCP loses nothing, so a queue in the network shows in the
round trip alone.  What is held back here can still be abandoned, or give way to what is urgent.

    >>> pace = Pace()
    >>> pace.ask(10.0)                  # begins to measure; the acknowledgement window to ask for
    2800
    >>> pace.sent(65536)
    >>> pace.has_room
    False
    >>> pace.acknowledged(65536, 10.02)
    >>> pace.has_room, pace.threshold   # 65536 bytes in 20 ms would fill 70 ms with 229,376
    (True, 229376)
"""

from collections import deque
from math import inf
from typing import Final

LEAST: Final = 64 * 1024  # bytes that may always be on their way
MOST: Final = 8 << 20  # bytes, whatever was measured
ADDED_DELAY: Final = 0.05  # s of queue in the network
EPOCH: Final = 60.0  # s for which one least round trip stands ...
EPOCHS: Final = 5  # ... and how many of them are looked at
SHORTEST: Final = 0.0001  # s
MIN_ACK_WINDOW: Final = 2800  # bytes, two packets: Field §"RTWebSocket acknowledgements"
MAX_ACK_WINDOW: Final = 11200  # bytes, eight of them
ACKS_IN_FLIGHT: Final = 4  # how often to have what is on its way acknowledged


class Pace:
    """The bytes of data frames `in_flight`, and the `threshold` that ends sending.

    Own design: one measurement at a time, from the moment something is sent until that has been
    acknowledged.  Both ends of TCP work ahead, so the least of all round trips of five minutes is
    taken for that of an empty path.
    """

    def __init__(self) -> None:
        self.in_flight, self.threshold = 0, LEAST
        self._sent = 0
        self._begun = 0.0
        self._goal: int | None = None  # what has to be acknowledged for a measurement
        self._from = 0
        self._least: deque[tuple[float, float]] = deque(maxlen=EPOCHS)  # since when, seconds

    @property
    def has_room(self) -> bool:
        """Whether more may be sent: Field §"RTWebSocket pace"."""
        return self.in_flight < self.threshold

    def ask(self, now: float) -> int | None:
        """Begin to measure, unless that goes on: give the acknowledgement window to ask for.

        Call it before data are sent.
        """
        if self._goal is not None:
            return None
        self._goal, self._begun = self._sent + 1, now
        # Field §"RTWebSocket pace" [asks-for-acks]
        return min(MAX_ACK_WINDOW, max(MIN_ACK_WINDOW, self.in_flight // ACKS_IN_FLIGHT))

    def sent(self, size: int) -> None:
        """Count bytes of a data frame that leaves: Field §"RTWebSocket pace"."""
        self._sent += size
        self.in_flight += size

    def acknowledged(self, size: int, now: float) -> None:
        """Count what has arrived, and measure: Field §"RTWebSocket pace"."""
        self.in_flight -= size
        if self._goal is None or self._sent - self.in_flight < self._goal:
            return
        took, carried = max(SHORTEST, now - self._begun), self._sent - self._from
        self._goal, self._from = None, self._sent
        self._note(took, now)
        if carried >= LEAST:  # else it says nothing of the path: nobody wanted to send more
            fills = carried / took * (self._base + ADDED_DELAY)
            # Field §"RTWebSocket pace" [path-plus-a-little]
            self.threshold = min(MOST, max(LEAST, round(fills)))

    @property
    def _base(self) -> float:
        return min((least for _, least in self._least), default=inf)

    def _note(self, took: float, now: float) -> None:
        if not self._least or now - self._least[-1][0] > EPOCH:
            self._least.append((now, took))
        else:
            since, least = self._least[-1]
            self._least[-1] = since, min(least, took)
