"""The session timer of a call: its headers, its refreshes, and the end of a call that is dead.

Implements RFC 4028 §7, §9 and §10.
"""

from typing import TYPE_CHECKING, Final

from p2psip.dialog import session_timer
from p2psip.dialog.session_timer import LEAST, SessionExpires, SessionTimer
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.grammar import number
from p2psip.sip.message import Request, Response
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.extensions import listed
from p2psip.ua.requests.request_validation import RefusalError

if TYPE_CHECKING:
    from p2psip.ua.call import UserAgentCall

OPTION: Final = "timer"  # Source: RFC 4028 §7.1
EXPIRED: Final = "session expired"
MOST: Final = 86_400  # s, the most that a 422 can make us ask for
WITHOUT_UPDATE: Final = frozenset({405, 501})  # Field §"Other words for a refusal"


class SessionRefresh:
    """Keeps the session of a call refreshed by either side, if both know how (RFC 4028 §7).

    Not done: RFC 3261 §14 [random-interval]: a refresh comes when RFC 4028 §10 says, and calls
    begin at times of their own.
    Departs from RFC 4028 §11.2 [asked-by-tls] [asked-by-sips] [sips-contact]: a timer is offered by
    whatever transport and scheme a call has, since most peers have no TLS, and go missing too.
    """

    def __init__(self, call: "UserAgentCall", now: float) -> None:
        self._call, self._timer = call, SessionTimer(now)
        has_it = OPTION in call.agent.extensions.options
        self._wish = call.agent.session_interval if has_it else None
        self._least = 0  # the largest Min-SE that was heard
        self._exchange: AuthenticatedRequest | None = None
        self._refused: int | None = None  # the status of the last refresh, if it failed

    @property
    def is_on(self) -> bool:
        """Whether a session timer runs (RFC 4028 §7.2)."""
        return self._timer.is_on

    # Our requests

    def ask(self, request: Request) -> Request:
        """The INVITE or UPDATE with our wish, or with the terms in force (RFC 4028 §7.1, §7.4)."""
        if self._wish is None:
            return request
        headers = request.headers.without("Session-Expires", "Min-SE")
        if self._timer.is_on:
            # RFC 4028 §7.4 [terms-in-force] [keeps-the-interval] [keeps-the-refresher]
            refresher = "uac" if self._timer.state is session_timer.State.WE_REFRESH else "uas"
            terms = SessionExpires(max(self._timer.interval, self._least, LEAST), refresher)
        else:
            # RFC 4028 §7.1 [leaves-the-refresher-open] [no-less-than-min-se], §4 [half-an-hour]
            terms = SessionExpires(max(self._wish, self._least))
        headers = headers.append("Session-Expires", terms)
        if self._least:  # RFC 4028 §7.4 [repeats-min-se] [repeats-min-se-of-422] [largest-min-se]
            headers = headers.append("Min-SE", self._least)
        return request.replace(headers=headers)

    def may_ask_longer(self, response: Response) -> bool:
        """Whether a 422 asks for an interval that we accept (RFC 4028 §7.3)."""
        try:
            least = _min_se(response)
        except RemoteError:
            return False
        if response.status != 422 or not self._least < least <= MOST or self._wish is None:
            return False
        self._least = least
        return True

    def accepted(self, response: Response, now: float) -> None:
        """Take the terms of a 2xx to an INVITE or UPDATE of ours (RFC 4028 §7.2)."""
        # RFC 4028 §7.2 [looks-for-the-terms] [unasked-terms] [refresher-as-told]
        terms = _terms(response)
        if terms is None or self._wish is None:
            self.off(now)
            return
        self._timer.agree(terms, refreshes=terms.refresher != "uas", now=now)
        self._call.reschedule()

    # The peer's requests

    def check(self, request: Request) -> None:
        """Refuse an interval that is too short, with 422 (RFC 4028 §9): RefusalError."""
        text = request.headers.get("Session-Expires")
        if text is None or self._wish is None or not _supports(request):
            return
        if SessionExpires.parse(text).interval < LEAST:
            # RFC 4028 §9 [422-with-min-se] [no-less-than-90]
            raise RefusalError(422, "Session Interval Too Small", [("Min-SE", LEAST)])

    def answer(self, request: Request, now: float) -> list[tuple[str, object]]:
        """The headers of our 2xx, whose terms are in force from now on (RFC 4028 §9)."""
        if self._wish is None:
            return []
        text, supported = request.headers.get("Session-Expires"), _supports(request)
        wanted = SessionExpires.parse(text) if text is not None else None
        self._least = max(self._least, _min_se(request))
        terms = session_timer.answer(wanted, _min_se(request), self._wish, supported=supported)
        refreshes = terms is not None and terms.refresher == "uas"
        self._timer.agree(terms, refreshes=refreshes, now=now)
        if terms is None:
            return []
        # RFC 3261 §8.2.4 [only-what-it-supports] [says-what-it-applied]
        # RFC 4028 §9 [requires-timer] [requires-timer-of-uas]
        require = self._call.agent.extensions.require(OPTION) if supported else []
        return [*require, ("Session-Expires", terms)]

    # Refreshes

    @property
    def deadline(self) -> float | None:
        """When to call `tick` (RFC 4028 §10)."""
        return self._timer.deadline

    def tick(self, now: float) -> None:
        """Refresh the session, or end a call whose peer does not (RFC 4028 §10)."""
        for do in self._timer.tick(now):
            if do is session_timer.Do.REFRESH:
                self.refresh(now)
            else:
                self._call.lost(EXPIRED, now)

    def refresh(self, now: float) -> None:
        """Refresh the session: by UPDATE without an offer if possible (RFC 4028 §7.4).

        Else by a re-INVITE with the description in force.

        Departs from RFC 6337 §5.3: that description is offered as it was agreed on, also while the
        peer holds us, since RFC 4028 §7.4 wants a refresh to change nothing.
        """
        call = self._call
        assert call.leg is not None
        if not call.leg.allows("UPDATE"):
            call.reinvite(call.local_sdp, now)  # RFC 4028 §7.4 [says-nothing-changed]
        elif self._exchange is None or self._exchange.done:
            # RFC 4028 §7.4 [by-update] [update-without-offer]
            request = call.new_request("UPDATE")
            # RFC 3261 §12.2.1.1 [refresh-has-a-contact] [same-contact]
            headers = request.headers.append("Contact", Address(call.contact))
            self._exchange = call.exchange(self.ask(request.replace(headers=headers)), now)

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take the answer to a request of ours that was a refresh by UPDATE (RFC 4028 §10)."""
        if exchange is not self._exchange or response.status < 200:
            return
        repeated, self._refused = response.status == self._refused, None
        if response.status < 300:
            assert self._call.leg is not None
            # RFC 3261 §12.2.1.2 [2xx-moves-the-target]
            self._call.leg.dialog.refresh(response)
            self.accepted(response, now)
        elif self.may_ask_longer(response):
            self.refresh(now)  # RFC 4028 §10 [heeds-the-status]
        elif response.status in WITHOUT_UPDATE and not repeated:
            self._refused = response.status
            self._call.reinvite(self._call.local_sdp, now)
        else:
            self._refused = response.status
            self._timer.failed(now)
        self._call.reschedule()

    def off(self, now: float) -> None:
        """Refresh no more, since the call ends (RFC 4028 §10)."""
        self._timer.agree(None, refreshes=False, now=now)


def _supports(request: Request) -> bool:
    return OPTION in (listed(request, "Supported") or ())


def _min_se(message: Request | Response) -> int:
    text = message.headers.get("Min-SE")
    return number(text.partition(";")[0].strip(), session_timer.MAX_SECONDS) if text else 0


def _terms(response: Response) -> SessionExpires | None:
    """The terms of a 2xx, None if there are none that can be read (RFC 4028 §7.2)."""
    try:
        return SessionExpires.parse(response.headers["Session-Expires"])
    except (KeyError, RemoteError):
        return None
