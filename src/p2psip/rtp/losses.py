"""The packets of a stream that are missing, and when to ask for each.

Implements RFC 4585 §6.2.1, on the side of the receiver.

    >>> losses = Losses()
    >>> for sequence in (1, 2, 5):
    ...     losses.heard(sequence, now=0.0)
    >>> losses.due(now=0.0, pause=0.1), losses.due(now=0.01, pause=0.1)
    ([], [3, 4])
    >>> losses.heard(3, now=0.1)
    >>> losses.due(now=0.11, pause=0.1), losses.due(now=0.6, pause=0.1), losses.deadline
    ([4], [], None)

Own design: a packet may only be late, so that it is asked for after `GRACE`; a request may be lost
as well, so that it is repeated; and no packet is worth more than `give_up_after`.
"""

from typing import Final

GRACE: Final = 0.01  # s: more than packets of one burst overtake each other
GIVE_UP_AFTER: Final = 0.5  # s: a picture that is later is stale
MAX_MISSING: Final = 128  # packets at a time: repeating does not mend a longer loss


class Losses:
    """The gaps of one source, `recovered` or `given_up`, by extended numbers: RFC 3550 §A.1."""

    def __init__(self, give_up_after: float = GIVE_UP_AFTER) -> None:
        self._give_up_after = give_up_after
        self._next: int | None = None
        self._missing: dict[int, tuple[float, float]] = {}  # when it was missed, when to ask
        self._asked: set[int] = set()
        self.recovered = self.given_up = 0

    def heard(self, sequence: int, now: float) -> None:
        """Take the number of a packet, as `Source.heard` answers it: RFC 3550 §A.1."""
        if sequence == self._next or self._next is None:
            self._next = sequence + 1
        elif sequence > self._next:
            self._miss(range(self._next, sequence), now)
            self._next = sequence + 1
        elif self._missing.pop(sequence, None) is not None and sequence in self._asked:
            self._asked.remove(sequence)
            self.recovered += 1

    def is_missing(self, sequence: int) -> bool:
        """Whether a packet has been asked for, and has not come: RFC 4585 §6.2.1."""
        return sequence in self._asked

    @property
    def has_missing(self) -> bool:
        """Whether a packet is missing that may still come: RFC 4585 §6.2.1."""
        return bool(self._missing)

    def went_on(self, packets: int) -> None:
        """Count packets that were heard elsewhere, each the next: RFC 3550 §A.1."""
        if self._next is not None:
            self._next += packets

    @property
    def deadline(self) -> float | None:
        """When to call `due`, None while nothing is missing."""
        return min((at for _, at in self._missing.values()), default=None)

    def due(self, now: float, pause: float) -> list[int]:
        """List the numbers to ask for now, in order; each again after `pause` s."""
        for sequence in [
            n for n, (at, _) in self._missing.items() if now - at >= self._give_up_after
        ]:
            self._give_up(sequence)
        wanted = [n for n, (_, due) in self._missing.items() if due <= now]
        for sequence in wanted:
            self._missing[sequence] = self._missing[sequence][0], now + max(pause, GRACE)
        self._asked.update(wanted)
        return wanted

    def restart(self) -> None:
        """Go on with another source, whose first number is the next: RFC 3550 §8.2."""
        self._forget()
        self._next = None

    def _forget(self) -> None:
        for sequence in list(self._missing):
            self._give_up(sequence)

    def _miss(self, gap: range, now: float) -> None:
        if len(gap) > MAX_MISSING:
            self._forget()
            self.given_up += len(gap)
            return
        self._missing.update(dict.fromkeys(gap, (now, now + GRACE)))
        while len(self._missing) > MAX_MISSING:
            self._give_up(next(iter(self._missing)))

    def _give_up(self, sequence: int) -> None:
        del self._missing[sequence]
        self._asked.discard(sequence)
        self.given_up += 1
