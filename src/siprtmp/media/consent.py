"""Consent of an address in a description to be sent media.

Own design: the sender of an SDP may name any third party's address, and would have the gateway
flood that party.  ICE asks the address itself, but the phones served here do not speak it.  A
packet that arrives from the address is as good an answer.
"""

from collections.abc import Collection
from typing import Final

GRACE: Final = 5.0  # s in which a third party is tried
EVERY: Final = 1.0  # s between packets to it: fewer than three for each that its caller sent
OCTETS: Final = 1000  # of payload to it in all, or a single packet


class Consent:
    """Decides whether packets may be sent to a call's media address.

    An address is trusted on the host that signals, once that host is proven not to be forged, and
    any address from which a packet has come.  A third party, such as the media server of a PBX,
    mostly sends at once.  If it waits for us, it gets a packet a second for `GRACE` seconds after
    the answer, and then none until it sends.  These seconds are counted for the whole call, over
    all third parties that it names.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.is_heard = False
        self._address: tuple[str, int] | None = None
        self._left, self._room = GRACE, OCTETS
        self._since: float | None = None  # when the grace in use began
        self._next = float("-inf")

    def point(
        self,
        address: tuple[str, int] | None,
        hosts: Collection[str],
        now: float,
        *,
        answered: bool,
    ) -> None:
        """Take the media address of a description, agreed on if `answered`; `hosts` are proven."""
        self._stop(now)
        if address is not None and address != self._address:
            self._address, self.is_heard = address, False
        self.is_open = self.is_heard or (address is not None and address[0] in hosts)
        if answered and address is not None and not self.is_open:
            self._since = now

    def hear(self, now: float) -> None:
        """Note that a valid packet came from the address, which so takes part in the call."""
        self._stop(now)
        self.is_heard = self.is_open = True

    def spend(self, octets: int, now: float) -> bool:
        """Whether to send this packet to a third party that has not sent any."""
        is_time = self._since is not None and now < self._since + self._left and now >= self._next
        if not is_time or (octets > self._room and self._room < OCTETS):
            return False
        self._next, self._room = now + EVERY, self._room - octets
        return True

    def _stop(self, now: float) -> None:
        if self._since is not None:
            self._left = max(0.0, self._left - (now - self._since))
            self._since = None
