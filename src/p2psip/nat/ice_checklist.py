"""The pairs of a local and a remote candidate that ICE checks, in the order of their priority.

Implements RFC 8445 §6.1.2, RFC 6544 §6.2 for those of TCP, and RFC 8838 §10 for pairs that come one
by one.

Own design: a list has one component, since all lines of a browser, and RTCP, share one flow; RTCP
at a port of its own has a list of its own.
"""

import ipaddress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from p2psip.nat.ice_candidate import HostPort, IceBase, IceCandidate, TcpType

MAX_PAIRS: Final = 100  # Source: §6.1.2.5
_DIRECTIONS: Final = (  # RFC 6544 §3 [active-with-passive]
    (None, None),
    (TcpType.ACTIVE, TcpType.PASSIVE),
    (TcpType.PASSIVE, TcpType.ACTIVE),
)


class PairState(Enum):
    """What is known of a pair: §6.1.2.6."""

    FROZEN = auto()
    WAITING = auto()
    IN_PROGRESS = auto()
    SUCCEEDED = auto()
    FAILED = auto()


@dataclass(slots=True, eq=False)
class IcePair:
    """A pair, the address `base` that its checks leave from, and how far they are: §6.1.2.

    `nominates` has our next check nominate it, and `is_asked_for` tells that the peer's has.
    `seen` is the candidate that the peer sees us at: §7.2.5.3.1.
    """

    local: IceCandidate
    base: IceBase
    remote: IceCandidate
    state: PairState = PairState.FROZEN
    nominates: bool = False
    is_asked_for: bool = False
    seen: IceCandidate | None = None

    @property
    def foundation(self) -> tuple[str, str]:
        """Those of its candidates: §6.1.2.6."""
        return self.local.foundation, self.remote.foundation

    def priority(self, *, controlling: bool) -> int:
        """The same number at both ends: §6.1.2.3."""
        # §6.1.2.3 [pair-priority-by-formula]
        ours, theirs = self.local.priority, self.remote.priority
        g, d = (ours, theirs) if controlling else (theirs, ours)
        return min(g, d) << 32 | max(g, d) << 1 | (g > d)


class IceChecklist:
    """All pairs of a session, `most` of them at a time: §6.1.2.1."""

    def __init__(self, most: int = MAX_PAIRS) -> None:
        self._most = most
        self.pairs: list[IcePair] = []

    def find(self, base: IceBase, to: HostPort) -> IcePair | None:
        """The pair of two addresses: §7.3.1.4."""
        return next((e for e in self.pairs if e.base == base and e.remote.address == to), None)

    def add(
        self, local: IceCandidate, base: IceBase, remote: IceCandidate, *, controlling: bool
    ) -> IcePair | None:
        """Pair two candidates: §6.1.2.2; None if they do not suit, are paired, or are too many.

        A pair waits if none of its foundation is tried at present: §6.1.2.6.
        """
        # §6.1.2.4 [reflexive-is-its-base]
        if not suit(local, remote) or self.find(base, remote.address) is not None:
            return None
        pair = IcePair(local, base, remote)
        if not self._make_room(pair, controlling=controlling):
            return None
        same = [each for each in self.pairs if each.foundation == pair.foundation]
        if not any(e.state in (PairState.WAITING, PairState.IN_PROGRESS) for e in same):
            pair.state = PairState.WAITING
        self.pairs.append(pair)
        self.pairs.sort(key=lambda each: each.priority(controlling=controlling), reverse=True)
        return pair

    def next(self, *, controlling: bool) -> IcePair | None:
        """The pair to check next, of the highest priority: §6.1.4.2, or None."""
        ranked = sorted(
            self.pairs, key=lambda each: each.priority(controlling=controlling), reverse=True
        )
        waiting = next((each for each in ranked if each.state is PairState.WAITING), None)
        if waiting is not None:
            return waiting
        busy = {each.foundation for each in ranked if each.state is PairState.IN_PROGRESS}
        return next(
            (e for e in ranked if e.state is PairState.FROZEN and e.foundation not in busy), None
        )

    def hopeful(self) -> list[IcePair]:
        """The pairs that work, or may work yet, the best first: §8.1.1."""
        left = (each for each in self.pairs if each.state is not PairState.FAILED)
        return sorted(left, key=lambda each: each.priority(controlling=True), reverse=True)

    def valid(self) -> IcePair | None:
        """The best pair that works: §7.2.5.3."""
        return next((e for e in self.hopeful() if e.state is PairState.SUCCEEDED), None)

    def succeeded(self, pair: IcePair) -> None:
        """Note that a check of a pair was answered, and try those like it: §7.2.5.3.3."""
        pair.state = PairState.SUCCEEDED
        for each in self.pairs:
            if each.foundation == pair.foundation and each.state is PairState.FROZEN:
                each.state = PairState.WAITING  # §7.2.5.3.3 [unfreezes-its-foundation]

    @property
    def is_exhausted(self) -> bool:
        """Whether there is nothing more to check: §6.1.2.1."""
        return all(each.state is PairState.FAILED for each in self.pairs)

    def _make_room(self, pair: IcePair, *, controlling: bool) -> bool:
        """Have a place for a pair more: RFC 8838 §10."""
        if len(self.pairs) < self._most:  # §6.1.2.5 [pairs-are-limited] [limit-of-100]
            return True
        rank = pair.priority(controlling=controlling)
        # RFC 8838 §10 [failed-pairs-make-room] [lower-pairs-make-room]
        gone = next((e for e in self.pairs if e.state is PairState.FAILED), None) or next(
            (
                each
                for each in reversed(self.pairs)
                if each.state in (PairState.FROZEN, PairState.WAITING)
                and each.priority(controlling=controlling) < rank
            ),
            None,
        )
        if gone is not None:
            self.pairs.remove(gone)
        return gone is not None


def suit(local: IceCandidate, remote: IceCandidate) -> bool:
    """Whether two candidates may be a pair: §6.1.2.2."""
    if local.is_tcp is not remote.is_tcp or (local.tcp_type, remote.tcp_type) not in _DIRECTIONS:
        return False
    if local.component != remote.component or local.version != remote.version:
        return False
    ours, theirs = (ipaddress.ip_address(each.host) for each in (local, remote))
    # §6.1.2.2 [link-local-with-link-local]
    return ours.version == 4 or ours.is_link_local == theirs.is_link_local
