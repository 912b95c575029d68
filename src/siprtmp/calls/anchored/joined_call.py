"""A call between two phones that neither of them has begun: first one is called, then the other.

Own design: what operators know as click-to-call.  RFC 3725 §4.1 has the two phones send media to
each other by their descriptions; here it passes through the gateway, as between the sides of an
`AnchoredCall`, so that phones without a codec in common hear each other, and both can be ended,
held and recorded as every other call of ours.
"""

from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from siprtmp.calls import codec_names
from siprtmp.calls.anchored.anchored_call import OTHER_SIDE, STOCK, Side
from siprtmp.calls.call import Call
from siprtmp.calls.home import CallHome
from siprtmp.calls.trunks import Invitation
from siprtmp.media.sdp_map import MediaPlan

PLAIN: Final = ("pcmu", "pcma")  # pass from phone to phone as they are


class JoinedCall:
    """Two calls of ours, which begin one after the other and end together.

    Both count for `payer`; `source` tells the operator from where they were asked for.
    """

    def __init__(self, home: CallHome, payer: str, source: str) -> None:
        self._home, self.source = home, source
        self._first, self._second = Side(self, home, "join"), Side(self, home, "join")
        self._first.payer = self._second.payer = payer

    def place(self, caller: Address, callee: Address, now: float) -> Call:
        """Call the caller, and then the callee in its name; the caller's call.

        Raises RemoteError as `Call.dial` does.
        """
        self._caller, self._callee = caller, callee
        self._dial(self._first, caller, self._home.caller, (), now)
        return self._first.call

    def _dial(
        self, side: Side, to: Address, from_: Address, first: tuple[str, ...], now: float
    ) -> None:
        contact = self._home.contact(from_.uri.user or "", "")
        names = dict.fromkeys((*first, *codec_names.possible(STOCK), "dtmf"))
        side.call.dial(Invitation(to, from_, contact, tuple(names)), now)

    # -- what the sides tell ------------------------------------------------------------

    def rings(self, now: float) -> None:
        """Nothing: the caller hears silence until the callee answers."""

    def up(self, side: Side, plan: MediaPlan, now: float) -> None:
        """Call the callee once the caller has answered; then each hears the other."""
        first, second = self._first, self._second
        if side is second:
            first.show(second, now)
            second.show(first, now)
            return
        passing = tuple(codec.name for codec, _ in plan.audio.sending if codec.name in PLAIN)
        is_ours = self._home.is_local_domain(self._caller.uri)
        from_ = self._caller if is_ours else self._home.caller
        try:
            self._dial(second, self._callee, from_, passing, now)
        except RemoteError as error:
            self.failed(second, error.status, error.reason, now)

    def failed(self, side: Side, status: int, reason: str, now: float) -> None:
        """Hang up the caller if the callee has not answered."""
        if side is self._second:
            self._first.call.hang_up(now, f"{status} {reason}")

    def over(self, side: Side, now: float) -> None:
        """End the other side as well: RFC 3261 §15."""
        other = self._second if side is self._first else self._first
        other.call.hang_up(now, OTHER_SIDE)
