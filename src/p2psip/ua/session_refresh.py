"""The session timer of a call: its headers, its refreshes, and the end of a call that is dead.

Implements RFC 4028 §7, §9 and §10.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from p2psip.dialog import session_timer
from p2psip.dialog.session_timer import LEAST, SessionExpires, SessionTimer
from p2psip.errors import RemoteError
from p2psip.sip.grammar import number
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest, AuthenticatedRequestUser
from p2psip.ua.requests.extensions import Extensions, listed
from p2psip.ua.requests.request_validation import RefusalError

OPTION: Final = "timer"  # Source: RFC 4028 §7.1
EXPIRED: Final = "session expired"
MOST: Final = 86_400  # s, the most that a 422 can make us ask for
WITHOUT_UPDATE: Final = frozenset({405, 501})  # Field §"Other words for a refusal"


class Do(StrEnum):
    """Orders to the call (RFC 4028 §7.4, §10)."""

    REFRESH = "refresh sent"
    REFRESH_BY_INVITE = "re-INVITE sent"
    EXPIRED = "BYE sent"


class SessionRefresh:
    """Keeps the session of a call refreshed by either side, if both know how (RFC 4028 §7).

    `interval` is how many seconds the session is to last without a refresh, None for no timer;
    `exchange` the last refresh by UPDATE.

    Not done: RFC 3261 §14 [random-interval]: a refresh comes when RFC 4028 §10 says, and calls
    begin at times of their own.
    Departs from RFC 4028 §11.2 [asked-by-tls] [asked-by-sips] [sips-contact]: a timer is offered by
    whatever transport and scheme a call has, since most peers have no TLS, and go missing too.
    """

    def __init__(self, extensions: Extensions, interval: int | None, now: float) -> None:
        self._extensions, self._timer = extensions, SessionTimer(now)
        self._wish = interval if OPTION in extensions.options else None
        self._least = 0  # the largest Min-SE that was heard
        self.exchange: AuthenticatedRequest | None = None
        self._refused: int | None = None  # the status of the last refresh, if it failed

    @property
    def is_on(self) -> bool:
        """Whether a session timer runs (RFC 4028 §7.2)."""
        return self._timer.is_on

    # Our requests

    def ask(self, request: Request) -> Request:
        """Add the terms in force, or our own, to an INVITE or UPDATE (RFC 4028 §7.1, §7.4)."""
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
        require = self._extensions.require(OPTION) if supported else []
        return [*require, ("Session-Expires", terms)]

    # Refreshes

    @property
    def deadline(self) -> float | None:
        """When to call `tick` (RFC 4028 §10)."""
        return self._timer.deadline

    def tick(self, now: float) -> Sequence[Do]:
        """Refresh the session, or end a call whose peer does not (RFC 4028 §10)."""
        is_refresh = session_timer.Do.REFRESH
        return [Do.REFRESH if do is is_refresh else Do.EXPIRED for do in self._timer.tick(now)]

    def refresh(
        self, leg: CallLeg, user: AuthenticatedRequestUser, contact: Uri, now: float
    ) -> Do | None:
        """Refresh the session by UPDATE without an offer, if the peer takes it (RFC 4028 §7.4)."""
        if not leg.allows("UPDATE"):
            return Do.REFRESH_BY_INVITE
        if self.exchange is None or self.exchange.done:
            # RFC 4028 §7.4 [by-update] [update-without-offer]
            request = self.ask(leg.shared.new_request("UPDATE", contact=contact))
            self.exchange = leg.shared.exchange(user, request, now)
        return None

    def on_response(self, response: Response, now: float) -> Do | None:
        """Take the final answer to a refresh by UPDATE (RFC 4028 §10)."""
        repeated, self._refused = response.status == self._refused, None
        if response.status < 300:
            self.accepted(response, now)
            return None
        if self.may_ask_longer(response):
            return Do.REFRESH  # RFC 4028 §10 [heeds-the-status]
        self._refused = response.status
        if response.status in WITHOUT_UPDATE and not repeated:
            return Do.REFRESH_BY_INVITE
        self._timer.failed(now)
        return None

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
