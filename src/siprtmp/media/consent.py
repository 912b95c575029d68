"""Whether the address that a description names wants to hear us.

Own design: whoever writes an SDP may write anybody's address into it, and would make of every
call a flood that somebody else receives.  ICE, which asks the address itself, no phone of ours
speaks; what an address sends us is as good an answer.
"""

from collections.abc import Collection
from typing import Final

GRACE: Final = 5.0  # s in which a third party is tried
EVERY: Final = 1.0  # s between packets to it: fewer than three for each that its caller sent
OCTETS: Final = 1000  # of payload to it in all, or a single packet


class Consent:
    """Leave to send to one call's media address.

    Own design: an address is trusted on the host that signals, once we know that this host is
    real; and once something came from it.  A third party, such as the media server of a PBX,
    mostly speaks at once.  If it waits for us, it hears a packet a second for `GRACE` seconds
    after the answer, and then no more until it is heard.  These are the seconds of the whole
    call, however many third parties it names one after another.
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
        """Take where an offer or answer wants media; `hosts` are those that we know are real.

        RFC 3264 §8.3.1.  `answered` is false while nobody has agreed to that description yet.
        """
        self._stop(now)
        if address is not None and address != self._address:
            self._address, self.is_heard = address, False
        self.is_open = self.is_heard or (address is not None and address[0] in hosts)
        if answered and address is not None and not self.is_open:
            self._since = now

    def hear(self, now: float) -> None:
        """Take that something valid came from there.  Own design: it is a party to the call."""
        self._stop(now)
        self.is_heard = self.is_open = True

    def spend(self, octets: int, now: float) -> bool:
        """Whether a third party that was not heard gets this packet.  Own design: see above."""
        is_time = self._since is not None and now < self._since + self._left and now >= self._next
        if not is_time or (octets > self._room and self._room < OCTETS):
            return False
        self._next, self._room = now + EVERY, self._room - octets
        return True

    def _stop(self, now: float) -> None:
        if self._since is not None:
            self._left = max(0.0, self._left - (now - self._since))
            self._since = None
