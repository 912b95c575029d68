"""The checks of an agent of ICE that wait for an answer.

Implements RFC 8445 §7.2.4 and §14.3, and RFC 6544 §7.1 for those of TCP.
"""

from dataclasses import dataclass

from p2psip.nat.ice_candidate import HostPort, IceBase
from p2psip.nat.ice_checklist import IcePair
from p2psip.nat.stun import StunMessage
from p2psip.nat.stun_client import RTO, TI, ClientTransaction


@dataclass(slots=True, eq=False)
class IceCheck:
    """A check under way: §7.2.4; one that is `cancelled` is not sent again, and cannot fail."""

    transaction: ClientTransaction
    pair: IcePair
    controlling: bool
    nominates: bool
    cancelled: bool = False


class IceChecks:
    """All checks under way, by their transactions: §7.2.4."""

    def __init__(self) -> None:
        self._of: dict[bytes, IceCheck] = {}

    def add(
        self, request: StunMessage, pair: IcePair, now: float, gap: float, *, controlling: bool
    ) -> None:
        """Note a request by a pair; `gap` is the shortest time until it is sent again."""
        # RFC 6544 §7.1 [checks-are-sent-once]
        ti = TI if pair.local.is_tcp else None
        transaction = ClientTransaction(request, now, max(RTO, gap), ti=ti)  # §14.3 [rto-500-ms]
        check = IceCheck(transaction, pair, controlling, pair.nominates)
        self._of[request.transaction_id] = check

    def find(self, response: StunMessage) -> IceCheck | None:
        """The check that a response is for: §7.2.5."""
        return self._of.get(response.transaction_id)

    def end(self, check: IceCheck) -> None:
        """Forget a check, which has its answer: §7.2.5."""
        self._of.pop(check.transaction.request.transaction_id, None)

    def cancel(self, pair: IcePair) -> None:
        """Have the checks of a pair neither sent again nor fail: §7.3.1.4."""
        for check in self._of.values():
            check.cancelled = check.cancelled or check.pair is pair

    def by(self, base: IceBase, to: HostPort) -> list[IceCheck]:
        """The checks between two addresses: RFC 6544 §7.1."""
        return [e for e in self._of.values() if (e.pair.base, e.pair.remote.address) == (base, to)]

    def clear(self) -> None:
        """Forget all: §8.1.2."""
        self._of.clear()

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: §7.2.4."""
        return min((check.transaction.deadline for check in self._of.values()), default=None)

    def tick(self, now: float) -> tuple[list[IceCheck], list[IceCheck]]:
        """Take the time; the checks to send again, and those that had no answer: §7.2.5.2.3."""
        due = [e for e in self._of.values() if e.transaction.tick(now) and not e.cancelled]
        failed = [e for e in self._of.values() if e.transaction.failed]
        for check in failed:
            self.end(check)
        return due, failed
