"""The memory that one session, and all sessions of an endpoint, may take at the most.

Own design: RFC 7016 §5 asks for limits and names few numbers.  The limit of one session, times the
number of sessions, is more than a host has.  When more than half of the budget for all is used,
receiving flows offer smaller windows, and a host that uses more than a quarter loses its largest
session; above three quarters no session begins any more; above the limit the host that uses the
most loses its largest session.

    >>> budget = SessionBudget(1000)
    >>> budget.used = 500
    >>> budget.window(64), budget.is_tight
    (64, False)
    >>> budget.used = 800
    >>> budget.window(64), budget.is_tight, budget.is_over
    (0, True, False)
"""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Protocol

from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.rtmfp.wire.address import Address

LOOK_SECONDS: Final = 2.0  # between two checks whether a host uses more than its share


class BudgetedSession(Protocol):
    """The part of a session that the budget uses; `counted` is the part of its `memory` in `used`.

    Own design: sessions are added up by the host in `address`.
    """

    address: Address
    counted: int

    @property
    def memory(self) -> int:
        """Bytes of memory that the session takes now."""

    def abort(self, now: float, reason: str) -> None:
        """Close the session at once."""


class SessionBudget:
    """The bytes that all sessions have `used`, of `limit`; `count` updates the part of one session.

    Above three quarters the budget `is_tight`: no session begins, and no flow keeps a fragment that
    comes out of turn.  Several endpoints may share a budget.  `evicted` counts the sessions that
    were closed because of it.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.used, self.evicted = limit, 0, 0
        self._sessions: dict[BudgetedSession, None] = {}
        self._easy, self._tight = limit // 2, limit * 3 // 4
        self._share, self._enough = limit // 4, limit * 7 // 8
        self._look_at = -inf

    @property
    def is_tight(self) -> bool:
        """Whether no session may begin."""
        return self.used > self._tight

    @property
    def is_over(self) -> bool:
        """Whether more than the limit is used."""
        return self.used > self.limit

    def window(self, capacity: int) -> int:
        """Give the bytes of a receiving flow's `capacity` that it may use: RFC 7016 §3.6.3.5."""
        if self.used <= self._easy:
            return capacity
        return capacity * max(0, self._tight - self.used) // (self._tight - self._easy)

    def count(self, session: BudgetedSession) -> None:
        """Update the part of a session, as after every packet."""
        size = session.memory
        self.used += size - session.counted
        session.counted = size

    def add(self, session: BudgetedSession) -> None:
        """Make a session one that `excess` may choose."""
        self._sessions[session] = None

    def discard(self, session: BudgetedSession) -> None:
        """Forget a session that has ended, and its part."""
        self.used -= session.counted
        session.counted = 0
        self._sessions.pop(session, None)

    def excess(self, now: float) -> list[BudgetedSession]:
        """Choose the sessions to close: repeatedly the largest session of the largest host.

        So a host gains nothing by many small sessions.  To look at all sessions takes time:
        shares are checked every two seconds only, and when the limit is passed so many sessions
        are chosen that an eighth of it is free again.
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


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The limits of one session, and the consequence of exceeding each.

    `datagram_bytes` the largest datagram sent, until `mtu_probes` find that a larger one passes
    `mtu_probes`     larger sizes to try, ascending; only for sockets that forbid fragmentation
    `queued_bytes`   bytes that wait in all sending flows; more: the session is aborted
    `flight_span`    sequence numbers between a flow's oldest unacknowledged and its newest sent
                     fragment; more: nothing new is sent on that flow
    `flows`          receiving flows, lingering ones included; more: the session is aborted
    `metadata_bytes` length of a receiving flow's metadata; more: the flow is rejected
    `buffer_bytes`   BUFFER_CAPACITY of a receiving flow (RFC 7016 §3.6.3.5); a fragment beyond is
                     forgotten as if it were lost
    `session_buffer_bytes`  the same of all receiving flows together
    `message_bytes`  length of one received message; more: the flow is rejected
    `gaps`           holes in the numbers of a receiving flow; a fragment that would make one more
                     is forgotten as if it were lost
    `keepalive`      seconds without a packet after which a Ping asks the far end for one
    `silence_timeout`  seconds without a packet after which the session is aborted:
                     RFC 7016 §3.5.4.1
    """

    datagram_bytes: int = 1192
    mtu_probes: tuple[int, ...] = ()
    queued_bytes: int = 16 << 20
    flight_span: int = 8192
    flows: int = 1024
    metadata_bytes: int = 1024
    buffer_bytes: int = 1 << 20
    session_buffer_bytes: int = 8 << 20
    message_bytes: int = 4 << 20
    gaps: int = 256
    keepalive: float = 25.0
    silence_timeout: float = 120.0
