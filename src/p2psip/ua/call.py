"""A call between the answer and the hang-up, the same at both ends.

Implements RFC 3261 §12.2, §14 and §15, with INFO (RFC 6086 §4).

`uac` and `uas` begin a call; here is what both do within the dialog: BYE, new offers, and the other
requests of either side.  The parts have modules of their own: `answered_invite` for our 2xx and its
ACK, `peer_offers` and `reoffer` for new offers of the peer and of ours.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from p2psip.dialog.dialog import Dialog
from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import Whereabouts
from p2psip.stack.stack import ServerHandle
from p2psip.ua.answered_invite import AnsweredInvite
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.call_state import CallState, Timer
from p2psip.ua.dialog_response import dialog_response
from p2psip.ua.messages import DialogMessages
from p2psip.ua.owner import CallHandler
from p2psip.ua.peer_offers import PeerOffers
from p2psip.ua.reoffer import GONE, Reoffer
from p2psip.ua.replaces import Replaces
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import DigestClient, copy_credentials
from p2psip.ua.requests.request_validation import SDP, is_optional
from p2psip.ua.session_refresh import SessionRefresh
from p2psip.ua.transfers import Transfers

if TYPE_CHECKING:
    from p2psip.ua.ua import UserAgent

FOR_THE_OWNER: Final = ("INFO", "MESSAGE", "REFER")  # requests within a call that its owner hears

TOLD: Final = ("INFO", "MESSAGE")  # requests of the owner whose refusal it hears of


class UserAgentCall(ABC):
    """One call of one user (§13).

    `invite` is the INVITE that began it; `remote` the other side; `leg` is None until there is a
    dialog.
    """

    direction: str

    def __init__(
        self,
        agent: "UserAgent",
        owner: CallHandler,
        contact: Uri,
        state: CallState,
        now: float,
        keyring: DigestClient | None = None,
    ) -> None:
        self.owner, self.contact, self.state = owner, contact, state
        self.leg: CallLeg | None = None
        self.invite: Request
        self.remote: Address
        self.agent, self._stack = agent, agent.stack
        self.keyring = keyring
        self.answered = AnsweredInvite(self)
        self.whereabouts = Whereabouts(nat=agent.nat)
        self.refresher = SessionRefresh(self, now)
        self._timers: dict[Timer, float] = {}
        self._reoffer, self.offers = Reoffer(self), PeerOffers(self)
        self._transfers, self._messages = Transfers(self), DialogMessages(self)
        self._question: AuthenticatedRequest | None = None
        self._bye_reason: str | None = None
        self._bye: AuthenticatedRequest | None = None
        self._on: dict[str, Callable[[ServerHandle, Request, CallLeg, float], None]] = {
            "BYE": self._on_bye,
            "INVITE": self.offers.on_reinvite,
            "UPDATE": self.offers.on_update,
            "INFO": self._on_info,
            "MESSAGE": self._messages.on_request,
            "REFER": self._transfers.on_refer,
        }

    @property
    def id(self) -> str:
        """The Call-ID (§8.1.1.4)."""
        return self.invite.call_id

    @property
    def dialog(self) -> Dialog | None:
        """The dialog, None until there is one (§12.1)."""
        return self.leg.dialog if self.leg is not None else None

    @property
    def local_sdp(self) -> bytes:
        """Our description, as agreed last or as offered first (RFC 3264 §4)."""
        return (self.leg.session.local if self.leg is not None else self.invite.body) or b""

    @property
    def remote_sdp(self) -> bytes | None:
        """The peer's description, as agreed last or as offered first (RFC 3264 §4)."""
        return self.leg.session.remote if self.leg is not None else None

    @property
    def is_inviting(self) -> bool:
        """Whether a new offer of ours waits for its final response (§14.1)."""
        return self._reoffer.under_way

    @property
    def is_up(self) -> bool:
        """Whether the call has been answered and not ended (§13, §15)."""
        return self.state is CallState.UP

    # For the owner

    def bye(self, now: float, reason: str | None = None) -> None:
        """Hang up, in the way that the state of the call asks for (§15).

        `reason` is a value for the Reason header (RFC 3326 §2).  The session is over at once;
        if we were called and the ACK has not come, the BYE is sent later (§15).
        """
        self._bye_reason = reason
        if self.state is CallState.UP:  # §15 [only-in-a-dialog]
            self._hang_up(now)
        elif self.state is CallState.ANSWERED:
            self._set_state(CallState.ENDING)  # §15 [bye-waits-for-the-ack]

    def reinvite(self, sdp: bytes, now: float) -> None:
        """Make a new offer within the call, as soon as no other is under way (§14.1).

        Before the answer of the call it is made by UPDATE if a session was agreed on already and
        the peer takes that (RFC 3311 §5.1), else once the call is up.
        """
        if self.state not in (CallState.ENDING, CallState.ENDED):
            self._reoffer.want(sdp)
            self.offer_if_possible(now)

    def info(self, content_type: str, body: bytes, now: float, package: str | None = None) -> None:
        """Send an INFO, of an Info Package or of the old kind (RFC 6086 §4.2.1).

        Raises LocalError for a package that the peer does not receive.
        """
        if self.state is not CallState.UP or self.leg is None:
            return  # RFC 6086 §4.2.1 [only-in-a-call]
        # RFC 6086 §4.2.1 [legacy-names-none] [no-recv-info]
        request = self.new_request("INFO", body, content_type)
        if package is not None:
            # RFC 6086 §4.2.1 [only-in-a-call], §5.2.2 [waits-for-the-list]
            if not self.leg.receives(package):
                raise LocalError(f"the peer does not receive Info Package {package!r}")
            # RFC 6086 §4.2.1 [names-its-package]
            request = request.replace(headers=request.headers.append("Info-Package", package))
        self.exchange(request, now)

    def message(self, text: str, now: float) -> None:
        """Send an instant message within the call (RFC 3428 §4); `owner.on_refused` may hear of it.

        It waits for the answers to those before it, and is not sent if the call ends meanwhile.
        Raises LocalError for one that is too large, and if too many wait (RFC 3428 §8).
        """
        if self.is_up:
            self._messages.send(text, now)

    def refer(self, target: Uri, now: float, replaces: Replaces | None = None) -> None:
        """Ask the peer to call `target`, in place of a call of ours with it (RFC 3515 §2.4.1).

        `owner.on_transfer` hears what becomes of it.  Raises LocalError if it cannot be asked now.
        """
        self._transfers.refer(target, now, replaces)

    def ask(self, now: float) -> None:
        """Ask whether the peer is still there.

        By a refresh of the session if it has a timer and the peer takes UPDATE (RFC 4028 §7.4),
        else by OPTIONS within the dialog (§11.1).  `owner.on_alive` hears of any answer; 408 and
        481 end the call (§12.2.1.2).
        """
        if self.is_up and self.refresher.is_on and self.leg and self.leg.allows("UPDATE"):
            self.refresher.refresh(now)
        elif self.is_up and (self._question is None or self._question.done):
            request = self.new_request("OPTIONS")
            # §11 [asks-within-a-call], §11.1 [options-say-accept]
            headers = request.headers.append("Accept", SDP)
            self._question = self.exchange(request.replace(headers=headers), now)

    @property
    @abstractmethod
    def peer_host(self) -> str | None:
        """The host that the signalling comes from; None if it is this process (§18).

        Own design: media to the same host needs less proof that it is wanted.
        """

    # For the user agent

    def on_request(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take a request within one of this call's dialogs (§12.2.2)."""
        handler = self._on.get(request.method)
        if handler is None:
            raise RemoteError("Method Not Allowed", 405)
        if self.state is CallState.ENDING and request.method in FOR_THE_OWNER:
            # the session is over as soon as our BYE is sent: §15.1.1
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        handler(server, request, leg, now)

    def on_ack(self, ack: Request, now: float) -> None:
        """Take the ACK of our 2xx (§13.3.1.4); a repeated one changes nothing."""
        self.answered.on_ack(ack, now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: the earliest timer of all."""
        parts = (self._reoffer, self.answered, self.refresher)
        times = [*self._timers.values(), *(part.deadline for part in parts)]
        return min((at for at in times if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Act on passed deadlines.  Own design: the 2xx first, which may end the call."""
        self.answered.tick(now)
        for timer in [timer for timer, at in self._timers.items() if at <= now]:
            if self._timers.pop(timer, None) is not None:
                self._on_timer(timer, now)
        self.refresher.tick(now)
        if self._reoffer.tick(now):
            self.offer_if_possible(now)
        self.reschedule()

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response to a request of ours within the dialog (§12.2.1.2)."""
        self.whereabouts.answered(exchange.answered_by)
        self.refresher.on_response(exchange, response, now)
        if self._reoffer.is_for(exchange, response):
            self._reoffer.on_response(exchange, response, now)
            self.offer_if_possible(now)
        elif exchange is self._bye:
            if response.status >= 200:
                self._set_state(CallState.ENDED)  # §15.1.1 [gone-is-over]
        elif response.status in GONE and self.state is CallState.UP:
            self._bye_reason = f"SIP;cause={response.status}"  # RFC 3326 §2 [any-status]
            # RFC 3261 §12.2.1.2 [gone-ends-the-dialog] [silence-ends-the-dialog]
            self.lost(f"{response.status} {response.reason}", now)
        elif response.status != 503:  # 503 is our own, for no way to the peer: §8.1.3.1
            # RFC 6086 §4.2.1 [469-keeps-the-call]
            self.owner.on_alive(self, now)
        self._messages.on_response(exchange, response, now)
        if response.status >= 300 and exchange.request.method in TOLD:
            self.owner.on_refused(self, exchange.request, response, now)

    # Inside: requests and responses

    def new_request(self, method: str, body: bytes = b"", content_type: str = "") -> Request:
        """The next request within the dialog (§12.2.1.1)."""
        assert self.leg is not None
        return self.leg.shared.new_request(method, body, content_type)

    def exchange(self, request: Request, now: float) -> AuthenticatedRequest:
        """Send a request within the dialog (§12.2.1.1); `on_response` hears the answer."""
        assert self.leg is not None
        return self.leg.shared.exchange(self, request, now)

    # Inside: the end

    def _hang_up(self, now: float) -> None:
        """Send the BYE, once; the session is over from here on (§15.1.1)."""
        self._set_state(CallState.ENDING)  # §15.1.1 [over-with-our-bye]
        self.refresher.off(now)
        if self._bye is not None:
            return
        self._reoffer.abandon(now)
        request = self.new_request("BYE")
        if self._bye_reason:
            # RFC 3326 §2 [reason-of-a-bye] [one-reason-per-protocol]
            request = request.replace(headers=request.headers.append("Reason", self._bye_reason))
        self._bye = self.exchange(request, now)

    def lost(self, reason: str, now: float) -> None:
        """Give the dialog up as §12.2.1.2 says: with a BYE."""
        self._hang_up(now)
        self.owner.on_ended(self, reason, now)

    def _on_bye(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take the peer's BYE (§15.1.2)."""
        leg.shared.reply(server, 200, now)  # §15.1.2 [2xx-for-the-bye]; §8.2.6.1 [final-at-once]
        self._reoffer.abandon(now)
        # §15 [bye-ends-the-session], §15.1.2 [bye-ends-the-session]
        self._end("BYE", now)

    def _on_info(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take an INFO (RFC 6086 §4.2.2).

        Not done: RFC 6086 §4.3.1 [multipart-bodies]: the owner hears a body of several parts whole,
        and takes it apart by `parse_multipart` or refuses it with 415.
        """
        package = self.agent.extensions.info_package(request)
        try:
            self.owner.on_info(self, request.content_type, request.body, now, package)
        except RemoteError as error:
            # §8.2.3 [415-for-the-body]: what its sender calls optional is not refused
            if error.status != 415 or not is_optional(request):
                raise
        # RFC 6086 §4.2.2 [200-otherwise], §4.3.2 [bodies-in-requests-only]
        leg.shared.reply(server, 200, now)

    def _end(self, reason: str, now: float) -> None:
        """End without a message, and tell the owner unless it has ended the call."""
        self.refresher.off(now)
        is_news = self.state in (CallState.UP, CallState.ANSWERED)
        self._set_state(CallState.ENDED)
        if is_news:
            self.owner.on_ended(self, reason, now)

    # Inside: 2xx and ACK

    def accept_invite(self, server: ServerHandle, sdp: bytes, now: float) -> None:
        """Answer an INVITE with 200, repeated until the ACK comes (§13.3.1.4)."""
        terms = self.refresher.answer(server.request, now)
        # RFC 3311 §5.1 [one-contact]
        response = dialog_response(server, self.contact, self.agent.extensions, 200, sdp, terms)
        self.answered.send(server, response, now)

    def on_confirmed(self, sdp: bytes | None, now: float) -> None:
        """The ACK of our 2xx has come, with the answer if we made the offer (§13.3.1.4)."""
        assert self.leg is not None
        offered = not self.leg.session.is_stable
        if offered:
            self.leg.session.they_answer(sdp)
        if self.state is CallState.ENDING:
            self._hang_up(now)  # the BYE that had to wait for the ACK: §15
            return
        first = self.state is CallState.ANSWERED
        self._set_state(CallState.UP)
        if first:
            self.owner.on_accepted(self, self.remote_sdp or b"", now)
        elif offered and sdp is not None:
            self.owner.on_answer(self, sdp, now)
        else:
            self.owner.on_confirmed(self, now)
        self.offer_if_possible(now)

    def on_unheard(self, now: float) -> None:
        """No ACK has come for 64*T1: the session ends with a BYE (§13.3.1.4).

        Departs from RFC 3261 §13.3.1.4: no BYE if the caller never showed that it hears us: the
        INVITE's source may be forged.
        """
        if not self.answered.is_heard:
            self._end("no ACK", now)
        elif self.state is CallState.ENDING:
            self._hang_up(now)
        else:
            # §13.3.1.4 [ends-without-an-ack], §14.2 [bye-without-an-ack]
            self.lost("no ACK", now)

    # Inside: new offers

    def overtaken(self) -> None:
        """Take that the peer's offer came before ours (RFC 3264 §8)."""
        self._reoffer.overtaken()

    def offer_if_possible(self, now: float) -> None:
        """Send the wanted offer, unless an INVITE is under way in either direction (§14.1).

        Departs from RFC 3261 §14.1: the ACK of a refusal is not waited for.  A peer that has not
        heard the refusal answers with 491, and the offer is made again.
        """
        is_early = self.state in (CallState.CALLING, CallState.RINGING)
        # §14.1 [one-invite-at-a-time] [waits-for-theirs]
        if is_early or (self.is_up and not self.answered.is_waiting):
            self._reoffer.proceed(now)
        self.reschedule()

    def acknowledge(self, invite: Request, number: int, now: float) -> Request:
        """Send the ACK of our re-INVITE's 2xx for the first time (§13.2.2.4)."""
        assert self.leg is not None
        # §13.2.2.4 [same-credentials]
        ack = copy_credentials(invite, self.leg.dialog.ack(number), self.keyring)
        self.leg.shared.send_ack(ack, now)  # §13.2.2.4 [ack-for-each]
        return ack

    # Inside: time

    @abstractmethod
    def _on_timer(self, timer: Timer, now: float) -> None:
        """Note that a timer has fired.  Own design: caller and callee have different timers."""

    def _set_state(self, state: CallState) -> None:
        self.state = state
        if state is CallState.ENDED:
            self._timers.clear()
            self.answered.forget()
            self.agent.forget(self)
        self.reschedule()

    def reschedule(self) -> None:
        """Tell the agent when this call is due.  Own design: one agenda for all calls."""
        self.agent.schedule(self, self.deadline)
