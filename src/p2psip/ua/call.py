"""A call between the answer and the hang-up, the same at both ends.

Implements RFC 3261 §12.2, §14 and §15, with INFO (RFC 6086 §4).

`uac` and `uas` begin a call.  Its parts, from `offers` to `transfers`, take events and say what is
to be done within the dialog; the call alone does it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from p2psip.dialog import acceptance
from p2psip.dialog.dialog import Dialog, DialogId
from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import PeerAddresses
from p2psip.stack.stack import ServerHandle
from p2psip.ua import offers, session_refresh
from p2psip.ua.call_events import CallEvents, CallState, Timer
from p2psip.ua.call_leg import CallLeg
from p2psip.ua.core import SharedDialog, UserAgentCore, invite_key
from p2psip.ua.dialog_response import AnsweredInvite, dialog_response
from p2psip.ua.messages import DialogMessages, received
from p2psip.ua.offers import GONE, OVER, Offers
from p2psip.ua.replaces import Replaces
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.requests.request_validation import SDP, is_optional, offer_of, session
from p2psip.ua.session_refresh import EXPIRED, SessionRefresh
from p2psip.ua.transfers import Transfers

# The methods of the INVITE usage.  Source: RFC 5057 §4.1
METHODS: Final = frozenset({"INVITE", "BYE", "UPDATE", "INFO", "PRACK", "MESSAGE", "REFER"})
FOR_THE_OWNER: Final = ("INFO", "MESSAGE", "REFER")  # requests within a call that its owner hears
TOLD: Final = ("INFO", "MESSAGE")  # requests of the owner whose refusal it hears of

CallHandler: TypeAlias = CallEvents["UserAgentCall"]


class UserAgentCall(ABC):
    """One call of one user (§13): `invite` began it, and `leg` is its dialog, None before one."""

    direction: str

    def __init__(
        self,
        core: UserAgentCore,
        handler: CallHandler,
        contact: Uri,
        state: CallState,
        now: float,
        digest_client: DigestClient | None = None,
    ) -> None:
        self.handler, self.contact, self.state = handler, contact, state
        self.leg: CallLeg | None = None
        self.invite: Request
        self.remote: Address
        self._core, self._digest_client = core, digest_client
        self._peer_addresses = PeerAddresses(nat=core.nat)
        self._legs: dict[DialogId, CallLeg] = {}
        self._timers: dict[Timer, float] = {}
        self._answered: AnsweredInvite | None = None  # by our latest 2xx
        self.refresher = SessionRefresh(core.extensions, core.session_interval, now)
        self._offers = Offers(core.random, is_caller=self.direction == "out")
        self._messages = DialogMessages(self)
        self._transfers = Transfers(
            core, contact, digest_client, lambda *told: self.handler.on_transfer(self, *told)
        )
        self._question: AuthenticatedRequest | None = None
        self._bye_reason: str | None = None
        self._bye: AuthenticatedRequest | None = None
        self._on: dict[str, Callable[[ServerHandle, Request, CallLeg, float], None]] = {
            "BYE": self._on_bye,
            "INVITE": self._on_reinvite,
            "UPDATE": self._on_update,
            "INFO": self._on_info,
            "MESSAGE": self._on_message,
            "REFER": self._on_refer,
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
    def is_up(self) -> bool:
        """Whether the call has been answered and not ended (§13, §15)."""
        return self.state is CallState.UP

    # For the owner

    def bye(self, now: float, reason: str | None = None) -> None:
        """Hang up; `reason` is a value for the Reason header (RFC 3326 §2).

        The session is over at once; if we have no ACK yet, the BYE is sent later (§15).
        """
        self._bye_reason = reason
        if self.state is CallState.UP:  # §15 [only-in-a-dialog]
            self._hang_up(now)
        elif self.state is CallState.ANSWERED:
            self._set_state(CallState.ENDING)  # §15 [bye-waits-for-the-ack]

    def reinvite(self, sdp: bytes, now: float) -> None:
        """Make a new offer within the call, as soon as no other is under way (§14.1).

        Before the call is up that is by UPDATE, if possible (RFC 3311 §5.1).
        """
        if self.state not in OVER:
            self._offers.want(sdp)
            self.offer_if_possible(now)

    def info(self, content_type: str, body: bytes, now: float, package: str | None = None) -> None:
        """Send an INFO: see `CallLeg.info_request` (RFC 6086 §4.2.1)."""
        if self.is_up and self.leg is not None:  # RFC 6086 §4.2.1 [only-in-a-call]
            self.exchange(self.leg.info_request(content_type, body, package), now)

    def message(self, text: str, now: float) -> None:
        """Send an instant message within the call (RFC 3428 §4), once those before have an answer.

        `on_refused` hears of a refusal.  LocalError if it is too large, or too many wait (§8).
        """
        if self.is_up and self.leg is not None:
            self._messages.send(text.encode(errors="replace"), self.leg.shared, now)

    def refer(self, target: Uri, now: float, replaces: Replaces | None = None) -> None:
        """Ask the peer to call `target`, in a call's place (RFC 3515 §2.4.1).  LocalError."""
        if not self.is_up or self.leg is None:
            raise LocalError("the call cannot be transferred now")
        self._transfers.refer(self.leg, target, replaces, now)

    def ask(self, now: float) -> None:
        """Ask whether the peer is still there: `handler.on_alive` hears of any answer.

        By a refresh of the session if possible (RFC 4028 §7.4), else by OPTIONS (§11.1).
        """
        if not self.is_up or self.leg is None:
            return
        if self.refresher.is_on and self.leg.allows("UPDATE"):
            self._perform_refresh(session_refresh.Do.REFRESH, now)
        elif self._question is None or self._question.done:
            self._question = self.exchange(self.leg.options_request(), now)

    @property
    @abstractmethod
    def peer_host(self) -> str | None:
        """The host that the signalling comes from; None if it is this process (§18).

        Own design: media to the same host needs less proof that it is wanted.
        """

    # Usage

    def takes(self, request: Request) -> bool:
        """Whether a request is one of a call (RFC 5057 §4.1)."""
        return request.method in METHODS

    def on_alive(self, now: float) -> None:
        """Pass on that the peer is there (§12.2.2)."""
        self.handler.on_alive(self, now)

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request within one of this call's dialogs (§12.2.2)."""
        handler = self._on.get(request.method)
        if handler is None:
            raise RemoteError("Method Not Allowed", 405)
        if self.state is CallState.ENDING and request.method in FOR_THE_OWNER:
            # the session is over as soon as our BYE is sent: §15.1.1
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        handler(server, request, self._legs[DialogId.at_server(request)], now)

    def on_ack(self, ack: Request, now: float) -> None:
        """Take the ACK of our 2xx (§13.3.1.4); a repeated one changes nothing."""
        if self._answered is not None:
            todo = self._answered.on_ack(ack.cseq.number, now)
            self._perform_2xx(todo, now, session(ack))

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: the earliest timer of all."""
        parts = (self._offers, self._answered, self.refresher)
        times = [*self._timers.values(), *(part.deadline for part in parts if part is not None)]
        return min((at for at in times if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Act on passed deadlines.  Own design: the 2xx first, which may end the call."""
        if self._answered is not None:
            self._perform_2xx(self._answered.tick(now), now)
        for timer in [timer for timer, at in self._timers.items() if at <= now]:
            if self._timers.pop(timer, None) is not None:
                self._on_timer(timer, now)
        for do in self.refresher.tick(now):
            self._perform_refresh(do, now)
        self._perform_offer(self._offers.tick(now), now)
        self.reschedule()

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response to a request of ours within the dialog (§12.2.1.2)."""
        self._peer_addresses.answered(exchange.answered_by)
        is_final = response.status >= 200
        if is_final and exchange is self.refresher.exchange:
            if response.status < 300 and self.leg is not None:
                self.leg.dialog.refresh(response)  # RFC 3261 §12.2.1.2 [2xx-moves-the-target]
            self._perform_refresh(self.refresher.on_response(response, now), now)
        if exchange is self._offers.exchange or response.cseq.method == "INVITE":
            self._on_reoffered(exchange, response, now)
            self.offer_if_possible(now)
        elif exchange is self._bye:
            if is_final:
                self._set_state(CallState.ENDED)  # §15.1.1 [gone-is-over]
        elif response.status in GONE and self.state is CallState.UP:
            self._bye_reason = f"SIP;cause={response.status}"  # RFC 3326 §2 [any-status]
            # RFC 3261 §12.2.1.2 [gone-ends-the-dialog] [silence-ends-the-dialog]
            self._lost(f"{response.status} {response.reason}", now)
        elif response.status != 503:  # 503 is our own, for no way to the peer: §8.1.3.1
            self.handler.on_alive(self, now)  # RFC 6086 §4.2.1 [469-keeps-the-call]
        if is_final and self.is_up and self.leg is not None:
            self._messages.on_response(exchange, self.leg.shared, now)
        if response.status >= 300 and exchange.request.method in TOLD:
            self.handler.on_refused(self, exchange.request, response, now)

    # Inside: requests and responses

    def _new_leg(self, dialog: Dialog) -> CallLeg:
        """Begin the usage of a dialog (§12.1)."""
        shared = SharedDialog(self._core, dialog, self._peer_addresses, self._digest_client)
        shared.attach(self)
        self._legs[dialog.id] = leg = CallLeg(shared)
        return leg

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
        self._perform_offer(self._offers.abandon(), now)
        assert self.leg is not None
        self._bye = self.exchange(self.leg.bye_request(self._bye_reason), now)

    def _lost(self, reason: str, now: float) -> None:
        """Give the dialog up as §12.2.1.2 says: with a BYE."""
        self._hang_up(now)
        self.handler.on_ended(self, reason, now)

    def _on_bye(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take the peer's BYE (§15.1.2)."""
        leg.shared.reply(server, 200, now)  # §15.1.2 [2xx-for-the-bye]; §8.2.6.1 [final-at-once]
        self._perform_offer(self._offers.abandon(), now)
        self._end("BYE", now)  # §15 [bye-ends-the-session], §15.1.2 [bye-ends-the-session]

    def _on_info(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take an INFO (RFC 6086 §4.2.2)."""
        package = self._core.extensions.info_package(request)
        try:
            self.handler.on_info(self, request.content_type, request.body, now, package)
        except RemoteError as error:
            # §8.2.3 [415-for-the-body]: what its sender calls optional is not refused
            if error.status != 415 or not is_optional(request):
                raise
        # RFC 6086 §4.2.2 [200-otherwise], §4.3.2 [bodies-in-requests-only]
        leg.shared.reply(server, 200, now)

    def _on_message(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take a MESSAGE of the peer (RFC 3428 §7)."""
        self.handler.on_message(self, received(request), now)
        server.reply(200, now)  # RFC 3428 §7

    def _on_refer(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take a REFER of the peer (RFC 3515 §2.4.2), which the owner allows or refuses."""
        referral = self._transfers.wanted(request)
        self.handler.on_refer(self, referral, now)  # RFC 3515 §2.4.2 [asks-the-user]
        self._transfers.follow(referral, server, leg, now)

    def _end(self, reason: str, now: float) -> None:
        """End without a message, and tell the owner unless it has ended the call."""
        self.refresher.off(now)
        is_news = self.state in (CallState.UP, CallState.ANSWERED)
        self._set_state(CallState.ENDED)
        if is_news:
            self.handler.on_ended(self, reason, now)

    # Inside: 2xx and ACK

    @property
    def _waits_for_ack(self) -> bool:
        """Whether the ACK of our latest 2xx has not come (§13.3.1.4)."""
        return self._answered is not None and self._answered.is_waiting

    def _response_to(
        self, server: ServerHandle, sdp: bytes, headers: Sequence[tuple[str, object]] = ()
    ) -> Response:
        """A 200 that names our Contact (§12.1.1)."""
        # RFC 3311 §5.1 [one-contact]
        return dialog_response(server, self.contact, self._core.extensions, 200, sdp, headers)

    def _accept_invite(self, server: ServerHandle, sdp: bytes, now: float) -> None:
        """Answer an INVITE with 200, repeated until the ACK comes (§13.3.1.4)."""
        response = self._response_to(server, sdp, self.refresher.answer(server.request, now))
        self._answered = AnsweredInvite(server, response, now, self._core.stack.t1)
        self.reschedule()

    def _perform_2xx(self, todo: acceptance.Todo, now: float, sdp: bytes | None = None) -> None:
        """Do what `AnsweredInvite` orders; `sdp` is what the ACK has brought (§13.3.1.4)."""
        if acceptance.Do.CONFIRMED in todo:
            self._on_confirmed(sdp, now)
        elif acceptance.Do.UNHEARD in todo:
            self._on_unheard(now)
        self.reschedule()

    def _on_confirmed(self, sdp: bytes | None, now: float) -> None:
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
            self.handler.on_accepted(self, self.remote_sdp or b"", now)
        elif offered and sdp is not None:
            self.handler.on_answer(self, sdp, now)
        else:
            self.handler.on_confirmed(self, now)
        self.offer_if_possible(now)

    def _on_unheard(self, now: float) -> None:
        """No ACK has come for 64*T1: the session ends with a BYE (§13.3.1.4).

        Departs from RFC 3261 §13.3.1.4: no BYE if the caller never showed that it hears us: the
        INVITE's source may be forged.
        """
        if self._answered is not None and not self._answered.is_heard:
            self._end("no ACK", now)
        elif self.state is CallState.ENDING:
            self._hang_up(now)
        else:
            self._lost("no ACK", now)  # §13.3.1.4 [ends-without-an-ack], §14.2 [bye-without-an-ack]

    # Inside: new offers of the peer

    def _on_reinvite(
        self, server: ServerHandle, request: Request, leg: CallLeg, now: float
    ) -> None:
        """Take a re-INVITE of the peer (§14.2)."""
        self.refresher.check(request)
        if self._answered is not None and leg.session.is_stable:
            # A peer that sends a re-INVITE has seen our 2xx; its ACK was lost or comes late.
            self._perform_2xx(self._answered.on_ack(None, now), now)
        self._offers.check_reinvite(self.state, is_waiting=self._waits_for_ack)
        sdp = self._settle(request, leg, offer_of(request), now)
        self._accept_invite(server, sdp, now)

    def _on_update(self, server: ServerHandle, request: Request, leg: CallLeg, now: float) -> None:
        """Take an UPDATE, whose offer needs no ACK (RFC 3311 §5.2)."""
        offer, answer = offer_of(request), b""
        self.refresher.check(request)
        if offer is not None:
            self._offers.check_update(self.state, leg.session, is_waiting=self._waits_for_ack)
            answer = self._settle(request, leg, offer, now)
        else:
            leg.refresh(request)
        terms = self.refresher.answer(request, now) if self.is_up else ()
        server.respond(self._response_to(server, answer, terms), now)
        self.reschedule()
        if answer:
            self.handler.on_confirmed(self, now)

    def _settle(self, request: Request, leg: CallLeg, offer: bytes | None, now: float) -> bytes:
        """Answer the offer of a request, or make one if it has none (§14.2)."""
        if offer is not None:
            sdp = self._take_offer(leg, offer, now)
        else:
            sdp = self.handler.on_offer(self, None, now)
            leg.session.we_offer(sdp)
            self._offers.overtaken()
        # §12.2.2 [contact-moves-the-target], RFC 6086 §5.2.4 [refusal-keeps-the-list]
        leg.refresh(request)
        return sdp

    def _take_offer(self, leg: CallLeg, offer: bytes, now: float) -> bytes:
        """Have the owner answer an offer (RFC 3264 §4); after a RemoteError nothing has changed."""
        # §14.2 [follows-the-change]
        answer = partial(self.handler.on_offer, self, offer, now)
        return self._offers.they_offer(leg.session, offer, answer)

    # Inside: new offers of ours, and refreshes

    def offer_if_possible(self, now: float) -> None:
        """Send the wanted offer, unless an INVITE is under way in either direction (§14.1).

        Departs from RFC 3261 §14.1: the ACK of a refusal is not waited for.  A peer that has not
        heard the refusal answers with 491, and the offer is made again.
        """
        is_early = self.state in (CallState.CALLING, CallState.RINGING)
        # §14.1 [one-invite-at-a-time] [waits-for-theirs]
        if is_early or (self.is_up and not self._waits_for_ack):
            self._perform_offer(self._offers.proceed(self.leg, is_up=self.is_up), now)
        self.reschedule()

    def _perform_offer(
        self, do: offers.Do | None, now: float, response: Response | None = None
    ) -> None:
        """Do what `Offers` orders; `response` is the one that the order came of (§14.1)."""
        match do:
            case offers.Do.WRITE:
                self._rewrite_offer(now)
            case offers.Do.SEND:
                self._send_offer(now)
            case offers.Do.TRY:
                self.offer_if_possible(now)
            case offers.Do.CANCEL if self._offers.exchange is not None:
                self._offers.exchange.cancel(now)
            case _ if response is None or self.state in OVER:
                pass
            case offers.Do.LOST:
                self._lost(f"{response.status} {response.reason}", now)
            case offers.Do.REFUSED:
                self.handler.on_reoffer_failed(self, response.status, response.reason, now)
            case offers.Do.ANSWERED:
                self.handler.on_answer(self, session(response) or b"", now)

    def _rewrite_offer(self, now: float) -> None:
        """Have the owner write the offer for the session in force, and send it (RFC 3264 §8)."""
        try:
            self._offers.want(self.handler.on_offer(self, None, now))
        except RemoteError as error:
            self._offers.wanted = None
            self.handler.on_reoffer_failed(self, error.status, error.reason, now)
            return
        self._send_offer(now)

    def _send_offer(self, now: float) -> None:
        """Send the wanted offer in a re-INVITE, or in an UPDATE before the answer (§14.1)."""
        sdp, leg = self._offers.wanted, self.leg
        assert sdp is not None and leg is not None
        # RFC 3311 §5.1 [reinvite-once-up] [by-either-side]
        method = "INVITE" if self.is_up else "UPDATE"
        request = leg.shared.new_request(method, sdp, SDP, self.contact)
        leg.session.we_offer(sdp)
        request = self.refresher.ask(request) if self.is_up else request
        self._offers.sent(self.exchange(request, now), leg, now + self._core.answer_timeout)

    def _on_reoffered(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response to an offer of ours, or the 2xx of one once more (§14.1)."""
        is_good, is_update = 200 <= response.status < 300, exchange.request.method == "UPDATE"
        if is_good and not is_update and self.leg is not None:
            self.leg.acknowledge(exchange.request, response, now)
        if exchange is not self._offers.exchange or response.status < 200:
            return
        leg = self._offers.leg
        again = leg is self.leg and self.is_up and self.refresher.may_ask_longer(response)
        if is_good and is_update and leg is not None:
            leg.refresh(response)  # §12.2.1.2 [2xx-moves-the-target]
        elif is_good:
            self.refresher.accepted(response, now)
        do = self._offers.on_response(response, self.leg, now, again=again)
        self._perform_offer(do, now, response)

    def _perform_refresh(self, do: session_refresh.Do | None, now: float) -> None:
        """Do what `SessionRefresh` orders (RFC 4028 §10).

        Departs from RFC 6337 §5.3: in a re-INVITE the description is offered as it was agreed on,
        also while the peer holds us, since RFC 4028 §7.4 wants a refresh to change nothing.
        """
        if do is session_refresh.Do.REFRESH and self.leg is not None:
            do = self.refresher.refresh(self.leg, self, self.contact, now)
        if do is session_refresh.Do.REFRESH_BY_INVITE:
            self.reinvite(self.local_sdp, now)  # RFC 4028 §7.4 [says-nothing-changed]
        elif do is session_refresh.Do.EXPIRED:
            self._lost(EXPIRED, now)
        self.reschedule()

    # Inside: time

    @abstractmethod
    def _on_timer(self, timer: Timer, now: float) -> None:
        """Note that a timer has fired.  Own design: caller and callee have different timers."""

    def _set_state(self, state: CallState) -> None:
        self.state = state
        if state is CallState.ENDED:
            self._timers.clear()
            self._answered = None
            self._core.calls.pop(self, None)
            self._core.invites.discard(invite_key(self.invite))
            if self.leg is not None:
                self.leg.shared.detach(self)  # §12.3: unless the dialog has another use
        self.reschedule()

    def reschedule(self) -> None:
        """Say when this call is due.  Own design: one timer queue for all calls."""
        self._core.timer_queue.set(self, self.deadline if self in self._core.calls else None)
