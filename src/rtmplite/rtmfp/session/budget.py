"""How much memory all the sessions of an endpoint may take together.

Own design: RFC 7016 §5 asks for limits to what others can make us hold.  Those of one session,
times the number of sessions, would be more than any host has.  When much is taken receiving flows
offer smaller windows, then no session begins any more; when it is too much the host that takes the
most loses the session that does.  So does one that would bring the others to that by itself.

    >>> budget = SessionBudget(1000)
    >>> budget.used = 500
    >>> budget.window(64), budget.is_tight
    (64, False)
    >>> budget.used = 800
    >>> budget.window(64), budget.is_tight, budget.is_over
    (0, True, False)
"""

from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Protocol

from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.rtmfp.wire.address import Address

LOOK_SECONDS: Final = 2.0  # between looks whether a host has more than its share


class BudgetedSession(Protocol):
    """What the budget needs of a session: `counted` is the part of its `memory` in `used`.

    Own design: the host in `address` is what sessions are added up by.
    """

    address: Address
    counted: int

    @property
    def memory(self) -> int:
        """Bytes of memory that the session takes now."""

    def abort(self, now: float, reason: str) -> None:
        """Close the session at once."""


class SessionBudget:
    """The bytes that sessions `used`, of `limit`; what one takes is noted by `count`.

    Above half of the limit windows shrink, and no host may have more than a quarter of it; above
    three quarters it `is_tight`: nothing new begins, and of what comes out of turn nothing is kept.
    Several endpoints may share one.  `evicted`
    counts the sessions that were too much for it.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.used, self.evicted = limit, 0, 0
        self._sessions: dict[BudgetedSession, None] = {}
        self._easy, self._tight = limit // 2, limit * 3 // 4
        self._share, self._enough = limit // 4, limit * 7 // 8
        self._look_at = -inf

    @property
    def is_tight(self) -> bool:
        """Whether nothing new is to begin.  Own design: see `SessionBudget`."""
        return self.used > self._tight

    @property
    def is_over(self) -> bool:
        """Whether more is used than may be.  Own design: see `excess`."""
        return self.used > self.limit

    def window(self, capacity: int) -> int:
        """Give the part of a receiving flow's buffer that it may use: RFC 7016 §3.6.3.5."""
        if self.used <= self._easy:
            return capacity
        return capacity * max(0, self._tight - self.used) // (self._tight - self._easy)

    def count(self, session: BudgetedSession) -> None:
        """Note what a session takes now.  Own design: whenever something has happened in it."""
        size = session.memory
        self.used += size - session.counted
        session.counted = size

    def add(self, session: BudgetedSession) -> None:
        """Begin to count a session.  Own design: it may have to go for any other's sake."""
        self._sessions[session] = None

    def discard(self, session: BudgetedSession) -> None:
        """Count a session no more, which has ended.  Own design."""
        self.used -= session.counted
        session.counted = 0
        self._sessions.pop(session, None)

    def excess(self, now: float) -> list[BudgetedSession]:
        """Choose whom to close: of the host that takes the most the session that does, and so on.

        Own design: many small sessions of one host do not outlive a large one of another.  To look
        at all of them takes its time, so it is not always done, and when too much is used so many
        are closed that there is room for a while.
        """
        is_over = self.is_over
        if not is_over and (self.used <= self._easy or now < self._look_at):
            return []
        self._look_at = now + LOOK_SECONDS
        by_host: dict[str, list[BudgetedSession]] = {}
        for session in sorted(self._sessions, key=lambda each: each.counted):
            by_host.setdefault(rate_limit_key(session.address[0]), []).append(session)
        hosts = [(-sum(each.counted for each in found), host) for host, found in by_host.items()]
        heapify(hosts)
        chosen: list[BudgetedSession] = []
        left = self.used
        while hosts and left > (self._enough if is_over else self._easy):
            if not is_over and -hosts[0][0] <= self._share:
                break
            total, host = heappop(hosts)
            worst = by_host[host].pop()
            left -= worst.counted
            chosen.append(worst)
            if by_host[host]:
                heappush(hosts, (total + worst.counted, host))
        return chosen
