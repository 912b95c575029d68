"""The choice which calls between phones are anchored: `--anchor`.

Own design: see `anchored_call`.  A call that both sides' media can do without us stays with the
proxy, which costs nothing but its signalling.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from p2psip.sdp.jsep import is_of_browser
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import WEB
from siprtmp.calls.anchored.anchored_call import AnchoredCall
from siprtmp.calls.home import CallHome
from siprtmp.calls.neighbours import Phone
from siprtmp.calls.trunks import LINE_PARAM

AUTO, ALWAYS, NEVER = "auto", "always", "never"
TOKEN_OCTETS: Final = 12  # drawn, so that no client of ours can take another's name


class Anchors:
    """All calls that are anchored, by the tokens of their Contacts.

    `word` is that of the setting, and `phones(user, now)` are those of a user of ours.
    """

    def __init__(
        self,
        home: CallHome,
        word: str,
        phones: Callable[[Uri, float], Sequence[Phone]],
        clock: Callable[[], float],
    ) -> None:
        self._home, self._word, self._phones, self._clock = home, word, phones, clock
        self._calls: dict[str, AnchoredCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def find(self, request: Request) -> Callable[[ServerHandle, float], None] | None:
        """What takes an INVITE, None for one that the proxy is to send on: RFC 3261 §16.5."""
        has_offer = request.method == "INVITE" and request.body and not self.vouches(request)
        if self._word == NEVER or not has_offer or not self._home.is_local_domain(request.uri):
            return None
        bound = self._phones(request.uri, self._clock())
        callees = {phone.transport in WEB for phone in bound if not phone.is_own}
        everybody = {is_of_browser(request.body), *callees}
        if not callees or (True in everybody and not self._home.context.has_browsers):
            return None
        if self._word == AUTO and len(everybody) == 1:
            return None
        return partial(self._take, callees)

    def vouches(self, request: Request) -> bool:
        """Whether a request is of an anchored call, whose caller is proven: RFC 3261 §22.3."""
        tokens = (contact.uri.param(LINE_PARAM) for contact in request.contacts)
        return any(token in self._calls for token in tokens)

    def _take(self, callees: set[bool], server: ServerHandle, now: float) -> None:
        token = self._home.context.random(TOKEN_OCTETS).hex()
        gone = partial(self._calls.pop, token, None)
        self._calls[token] = call = AnchoredCall(self._home, server.request, token, gone)
        call.incoming(server, callees, now)
