"""The role of an agent of ICE: which of the two ends nominates.

Implements RFC 8445 §6.1.1, §7.1.3 and §7.3.1.1.
"""

from collections.abc import Callable

from p2psip.nat.ice_credentials import IceType
from p2psip.nat.stun import StunMessage


class IceRole:
    """The role to begin with, which a conflict may change: §6.1.1; agents of one stream share it.

    `tie_breaker` decides conflicts; each lost conflict brings a new one.
    """

    def __init__(self, random: Callable[[int], bytes], *, controlling: bool) -> None:
        self.controlling, self.tie_breaker = controlling, random(8)

    def attribute(self) -> tuple[int, bytes]:
        """The attribute of a check that tells the role: §7.1.3."""
        # §7.1.3 [controlling-says-so] [controlled-says-so]
        kind = IceType.ICE_CONTROLLING if self.controlling else IceType.ICE_CONTROLLED
        return kind, self.tie_breaker

    def stays(self, request: StunMessage) -> bool | None:
        """Whether the peer has the same role and has to give way: §7.3.1.1; None without conflict.

        If the peer keeps it, `switch` takes the other role.
        """
        theirs = request.get(self.attribute()[0])
        # §7.3.1.1 [larger-tie-breaker-controls]
        return None if theirs is None else (self.tie_breaker >= theirs) is self.controlling

    def switch(self) -> None:
        """Take the other role: §7.3.1.1."""
        self.controlling = not self.controlling
