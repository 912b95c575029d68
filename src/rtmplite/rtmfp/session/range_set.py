"""A set of sequence numbers, kept as ranges.

Implements RFC 7016 §3.6.3: SEQUENCE_SET, and CSN of §3.6.3.3.

    >>> seen = RangeSet()
    >>> for number in (1, 2, 5, 4, 7):
    ...     seen.add(number)
    >>> seen.csn, list(seen.ranges())
    (2, [(0, 2), (4, 5), (7, 7)])
    >>> seen.forward(3)
    >>> seen.csn, seen.gaps
    (5, 1)
"""

from bisect import bisect_right
from collections.abc import Iterator


class RangeSet:
    """A set of numbers from 0 on, as ranges: §3.6.3.

    `csn` is the highest number below which none is missing, `gaps` how many holes are above it.
    Own design: time and memory grow with the gaps, not with the numbers.
    """

    __slots__ = ("_firsts", "_lasts", "csn")

    def __init__(self) -> None:
        self.csn = 0
        self._firsts: list[int] = []  # of the ranges above csn, ascending and apart
        self._lasts: list[int] = []

    @property
    def gaps(self) -> int:
        """Count the holes above `csn`: §3.6.3.2."""
        return len(self._firsts)

    def __contains__(self, number: int) -> bool:
        if number <= self.csn:
            return True
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last number of each range, ascending: §3.6.3.4.3."""
        yield 0, self.csn
        yield from zip(self._firsts, self._lasts, strict=True)

    def would_part(self, number: int) -> bool:
        """Whether `number` would be a range of its own: `SessionLimits.gaps` limits those."""
        if number <= self.csn + 1:
            return False
        at = bisect_right(self._firsts, number)
        follows = at > 0 and number <= self._lasts[at - 1] + 1
        return not follows and not (at < len(self._firsts) and self._firsts[at] == number + 1)

    def holes(self, first: int, last: int) -> list[range]:
        """List the gaps from `first` to `last`, as ascending ranges."""
        first = max(first, self.csn + 1)
        at = bisect_right(self._firsts, first)
        if at and self._lasts[at - 1] >= first:
            first = self._lasts[at - 1] + 1
        found = []
        while at < len(self._firsts) and self._firsts[at] <= last:
            found.append(range(first, self._firsts[at]))
            first = self._lasts[at] + 1
            at += 1
        if first <= last:
            found.append(range(first, last + 1))
        return found

    def add(self, number: int) -> None:
        """Add one number: §3.6.3.2."""
        if number <= self.csn:
            return
        if number == self.csn + 1:
            self._advance(number)
            return
        at = bisect_right(self._firsts, number)
        if at and number <= self._lasts[at - 1] + 1:
            self._lasts[at - 1] = max(number, self._lasts[at - 1])
            at -= 1
        elif at < len(self._firsts) and self._firsts[at] == number + 1:
            self._firsts[at] = number
        else:
            self._firsts.insert(at, number)
            self._lasts.insert(at, number)
        if at + 1 < len(self._firsts) and self._firsts[at + 1] == self._lasts[at] + 1:
            del self._firsts[at + 1], self._lasts[at]

    def forward(self, number: int) -> None:
        """Add everything from 0 to `number`, a Forward Sequence Number: §3.6.3.2."""
        if number > self.csn:
            self._advance(number)

    def _advance(self, csn: int) -> None:
        """Raise the CSN, and merge the ranges that it reaches."""
        while self._firsts and self._firsts[0] <= csn + 1:
            csn = max(csn, self._lasts[0])
            del self._firsts[0], self._lasts[0]
        self.csn = csn
