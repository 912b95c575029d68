"""How many media ports the calls of one host may hold.

Own design: an INVITE has a few hundred octets and a source that may be forged, and holds ports
until it is acknowledged, given up, or half a minute has passed.  So calls without an ACK share half
of all ports, and a host may hold as many of these as are free; likewise of all ports.  A reserve is
left for hosts that cannot be forged.  See `fair_pool`.

    >>> shares = PortShares(80)
    >>> calls = [shares.of("192.0.2.7") for _ in range(19)]
    >>> for call in calls[:18]: call.take()
    >>> calls[18].take()
    Traceback (most recent call last):
    p2psip.errors.LocalError: 192.0.2.7 holds too many ports
    >>> shares.of("192.0.2.8").take()
    >>> calls[0].confirm(), calls[1].confirm(), calls[18].take()
    (None, None, None)
"""

from p2psip.errors import LocalError
from p2psip.stack.fair_pool import Pool


class PortShares:
    """The ports of all calls: `pairs` are for streams of audio or video."""

    def __init__(self, pairs: int) -> None:
        self.all, self.waiting = Pool(pairs), Pool(pairs // 2)

    def of(self, host: str, *, is_known: bool = False) -> "PortShare":
        """The share of an incoming call; `is_known` if its host cannot be forged."""
        return PortShare(self, host, is_known=is_known)

    def unlimited(self) -> "PortShare":
        """The share of a call that this process has placed, or that a trunk brings."""
        return PortShare(self, "", is_known=True)


class PortShare:
    """The ports that one call holds, without its ACK until `confirm`."""

    def __init__(self, shares: PortShares, host: str, *, is_known: bool) -> None:
        self._shares, self._host, self._is_known = shares, host, is_known
        self._held, self._waits = 0, bool(host)

    def take(self) -> None:
        """Count one more pair.  Raises LocalError if that is more than the host may hold."""
        pools = [self._shares.all, *([self._shares.waiting] if self._waits else ())]
        if self._host and not all(
            pool.has_room(self._host, known=self._is_known) for pool in pools
        ):
            raise LocalError(f"{self._host} holds too many ports")
        for pool in pools:
            pool.add(self._host, 1)
        self._held += 1

    def give(self) -> None:
        """Count a pair no longer."""
        self._held -= 1
        self._shares.all.add(self._host, -1)
        if self._waits:
            self._shares.waiting.add(self._host, -1)

    def confirm(self) -> None:
        """The ACK has come: the host hears us.  RFC 3261 §13.3.1.4."""
        if self._waits:
            self._waits = False
            self._shares.waiting.add(self._host, -self._held)
