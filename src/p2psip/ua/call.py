"""A call between the answer and the hang-up, the same at both ends.

Implements RFC 3261 §12.2, §14 and §15, with INFO (RFC 6086 §4) and UPDATE (RFC 3311 §5).

`uac` and `uas` begin a call; here is what both do within the dialog: BYE, re-INVITE in either
direction, and the other requests of a peer.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from p2psip.dialog import acceptance
from p2psip.dialog.acceptance import Acceptance
from p2psip.dialog.dialog import Dialog
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import Whereabouts
from p2psip.stack.stack import ServerHandle
from p2psip.ua.authenticated_request import AuthenticatedRequest
from p2psip.ua.call_state import CallState, Timer
from p2psip.ua.dialog_response import dialog_response
from p2psip.ua.digest_client import DigestClient, copy_credentials
from p2psip.ua.owner import CallHandler
from p2psip.ua.reoffer import GONE, Reoffer
from p2psip.ua.request_validation import (
    ALLOW,
    SDP,
    RefusalError,
    offer_of,
    refuse_extensions,
    refuse_info_package,
    session,
)

if TYPE_CHECKING:
    from p2psip.ua.ua import UserAgent


class UserAgentCall(ABC):
    """One call of one user (§13).

    `invite` is the INVITE that began it; `remote` the other side; `local_sdp` and `remote_sdp`
    the session as last agreed; `dialog` is None until there is one.
    """

    direction: str

    def __init__(
        self,
        agent: "UserAgent",
        owner: CallHandler,
        contact: Uri,
        state: CallState,
        keyring: DigestClient | None = None,
    ) -> None:
        self.owner, self.contact, self.state = owner, contact, state
        self.dialog: Dialog | None = None
        self.local_sdp = b""
        self.remote_sdp: bytes | None = None
        self.invite: Request
        self.remote: Address
        self.agent, self._stack = agent, agent.stack
        self._keyring = keyring
        self._timers: dict[Timer, float] = {}
        # Our 2xx that waits for its ACK: to the first INVITE or to a later one.
        self._acceptance: Acceptance | None = None
        self._accepted: tuple[ServerHandle, Response] | None = None
        self._offered = False  # that 2xx holds an offer, so that the ACK brings the answer
        self._reoffer = Reoffer(self)
        self._question: AuthenticatedRequest | None = None
        self._bye_reason: str | None = None
        self._bye: AuthenticatedRequest | None = None
        self.whereabouts = Whereabouts(nat=agent.nat)

    @property
    def id(self) -> str:
        """The Call-ID (§8.1.1.4)."""
        return self.invite.call_id

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
        if self.state is CallState.UP:
            self._hang_up(now)
        elif self.state is CallState.ANSWERED:
            self._set_state(CallState.ENDING)

    def reinvite(self, sdp: bytes, now: float) -> None:
        """Make a new offer within the call, as soon as no other is under way (§14.1)."""
        if self.state in (CallState.UP, CallState.ANSWERED):
            self._reoffer.want(sdp)
            self._offer_if_possible(now)

    def info(self, content_type: str, body: bytes, now: float) -> None:
        """Send an INFO (RFC 6086 §4.2.1)."""
        if self.state is CallState.UP and self.dialog is not None:
            self.exchange(self.new_request("INFO", body, content_type), now)

    def ask(self, now: float) -> None:
        """Ask whether the peer is still there, by OPTIONS within the dialog (§11.1).

        `owner.on_alive` hears of any answer; 408 and 481 end the call (§12.2.1.2).
        """
        if self.is_up and (self._question is None or self._question.done):
            request = self.new_request("OPTIONS")
            headers = request.headers.append("Accept", SDP)
            self._question = self.exchange(request.replace(headers=headers), now)

    @property
    @abstractmethod
    def peer_host(self) -> str | None:
        """The host that the signalling comes from; None if it is this process (§18).

        Own design: media to the same host needs less proof that it is wanted.
        """

    # For the user agent

    def on_request(
        self, server: ServerHandle, request: Request, dialog: Dialog, now: float
    ) -> None:
        """Take a request within `dialog`, one of this call's (§12.2.2)."""
        try:
            dialog.check_order(request)
            self.owner.on_alive(self, now)
            refuse_extensions(request)
            match request.method:
                case "BYE":
                    self._on_bye(server, now)
                case "INVITE":
                    self._on_reinvite(server, request, now)
                case "UPDATE":
                    self._on_update(server, request, dialog, now)
                case "INFO":
                    refuse_info_package(request)
                    self.owner.on_info(self, request.content_type, request.body, now)
                    self._reply(server, 200, now)
                case "OPTIONS":
                    self._reply(server, 200, now, [("Accept", SDP)])
                case _:
                    raise RemoteError("Method Not Allowed", 405)
        except RefusalError as refusal:
            self._reply(server, refusal.status, now, refusal.headers, refusal.reason)
        except RemoteError as error:
            self._reply(server, error.status, now, reason=error.reason)

    def on_ack(self, ack: Request, now: float) -> None:
        """Take the ACK of our 2xx (§13.3.1.4); a repeated one changes nothing."""
        if self._accepted is None or self._acceptance is None:
            return
        if ack.cseq.number == self._accepted[0].request.cseq.number:
            self._perform(self._acceptance.acknowledge(now), now, session(ack))

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: the earliest timer of all."""
        times = [*self._timers.values(), self._reoffer.deadline]
        if self._acceptance is not None:
            times.append(self._acceptance.deadline)
        return min((at for at in times if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Act on passed deadlines.  Own design: the 2xx first, which may end the call."""
        if self._acceptance is not None:
            self._perform(self._acceptance.tick(now), now)
        for timer in [timer for timer, at in self._timers.items() if at <= now]:
            if self._timers.pop(timer, None) is not None:
                self._on_timer(timer, now)
        if self._reoffer.tick(now):
            self._offer_if_possible(now)
        self.reschedule()

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response to a request of ours within the dialog (§12.2.1.2)."""
        self.whereabouts.answered(exchange.sent_to)
        if response.cseq.method == "INVITE":
            self._reoffer.on_response(exchange, response, now)
            self._offer_if_possible(now)
        elif exchange is self._bye:
            if response.status >= 200:
                self._set_state(CallState.ENDED)
        elif response.status in GONE and self.state is CallState.UP:
            self._bye_reason = f"SIP;cause={response.status}"  # RFC 3326 §2
            self.lost(f"{response.status} {response.reason}", now)
        elif response.status != 503:  # 503 is our own, for no way to the peer: §8.1.3.1
            self.owner.on_alive(self, now)

    # Inside: requests and responses

    def new_request(self, method: str, body: bytes = b"", content_type: str = "") -> Request:
        """The next request within the dialog (§12.2.1.1)."""
        assert self.dialog is not None
        return self.agent.signed(self.dialog.request(method, body, content_type))

    def exchange(self, request: Request, now: float) -> AuthenticatedRequest:
        """Send a request within the dialog (§12.2.1.1); `on_response` hears the answer."""
        assert self.dialog is not None
        by = self.agent.opened(self, now)
        exchange = AuthenticatedRequest(self._stack, self, self.dialog.next_cseq, self._keyring, by)
        exchange.send(request, now)
        return exchange

    def _reply(
        self,
        server: ServerHandle,
        status: int,
        now: float,
        headers: Sequence[tuple[str, object]] = (),
        reason: str | None = None,
    ) -> None:
        server.reply(status, now, reason, [*headers, ("Allow", ALLOW)] if status != 481 else ())

    # Inside: the end

    def _hang_up(self, now: float) -> None:
        """Send the BYE, once; the session is over from here on (§15.1.1)."""
        self._set_state(CallState.ENDING)
        if self._bye is not None:
            return
        self._reoffer.abandon(now)
        request = self.new_request("BYE")
        if self._bye_reason:
            request = request.replace(headers=request.headers.append("Reason", self._bye_reason))
        self._bye = self.exchange(request, now)

    def lost(self, reason: str, now: float) -> None:
        """Give the dialog up as §12.2.1.2 says: with a BYE."""
        self._hang_up(now)
        self.owner.on_ended(self, reason, now)

    def _on_bye(self, server: ServerHandle, now: float) -> None:
        """Take the peer's BYE (§15.1.2)."""
        self._reply(server, 200, now)
        self._reoffer.abandon(now)
        self._end("BYE", now)

    def _end(self, reason: str, now: float) -> None:
        """End without a message, and tell the owner unless it has ended the call."""
        is_news = self.state in (CallState.UP, CallState.ANSWERED)
        self._set_state(CallState.ENDED)
        if is_news:
            self.owner.on_ended(self, reason, now)

    # Inside: 2xx and ACK

    def _accept(self, server: ServerHandle, sdp: bytes, offered: bool, now: float) -> None:
        """Answer an INVITE with 200, repeated until the ACK comes (§13.3.1.4)."""
        response = dialog_response(server, self.contact, 200, sdp)
        self._accepted, self._offered, self.local_sdp = (server, response), offered, sdp
        self._acceptance, todo = Acceptance.start(now, t1=self._stack.t1)
        self._perform(todo, now)

    def _perform(self, todo: acceptance.Todo, now: float, sdp: bytes | None = None) -> None:
        assert self._accepted is not None
        server, response = self._accepted
        for do in todo:
            match do:
                case acceptance.Do.SEND_2XX:
                    server.respond(response, now)
                case acceptance.Do.CONFIRMED:
                    self._acceptance = None
                    self._on_confirmed(sdp, now)
                case acceptance.Do.UNHEARD:
                    self._acceptance = None
                    self._on_unheard(now)
        self.reschedule()

    def _on_confirmed(self, sdp: bytes | None, now: float) -> None:
        """The ACK of our 2xx has come, with the answer if we made the offer."""
        if self._offered and sdp is not None:
            self.remote_sdp = sdp
        if self.state is CallState.ENDING:
            self._hang_up(now)  # the BYE that had to wait for the ACK: §15
            return
        first = self.state is CallState.ANSWERED
        self._set_state(CallState.UP)
        if first:
            self.owner.on_accepted(self, self.remote_sdp or b"", now)
        elif self._offered and sdp is not None:
            self.owner.on_answer(self, sdp, now)
        else:
            self.owner.on_confirmed(self, now)
        self._offer_if_possible(now)

    def _on_unheard(self, now: float) -> None:
        """No ACK has come for 64*T1: the session ends with a BYE (§13.3.1.4).

        Departs from RFC 3261 §13.3.1.4: no BYE if the caller never showed that it hears us: the
        INVITE's source may be forged.
        """
        if self._accepted is not None and not self._accepted[0].is_heard:
            self._end("no ACK", now)
        elif self.state is CallState.ENDING:
            self._hang_up(now)
        else:
            self.lost("no ACK", now)

    # Inside: new offers

    def _on_reinvite(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a re-INVITE of the peer (§14.2)."""
        if self.state is CallState.RINGING:
            share = int.from_bytes(self.agent.random(1), "big") % 11
            raise RefusalError(500, "Server Internal Error", [("Retry-After", share)])
        if self._acceptance is not None and not self._offered:
            # A peer that sends a re-INVITE has seen our 2xx; its ACK was lost or comes late.
            self._perform(self._acceptance.acknowledge(now), now)
        if self.state in (CallState.ENDING, CallState.ENDED):
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        if self._reoffer.under_way or self._acceptance or self.state is CallState.CALLING:
            raise RemoteError("Request Pending", 491)
        answer, offer = self._negotiate(request, now)
        self._accept(server, answer, offer is None, now)

    def _on_update(
        self, server: ServerHandle, request: Request, dialog: Dialog, now: float
    ) -> None:
        """Take an UPDATE: a new offer that needs no ACK (RFC 3311 §5.2)."""
        if offer_of(request) is None:
            dialog.refresh(request)
            server.respond(dialog_response(server, self.contact, 200, b""), now)
            return
        if self.state is CallState.RINGING or self._acceptance is not None:
            raise RefusalError(500, "Server Internal Error", [("Retry-After", 1)])
        if self._reoffer.under_way or self.state is not CallState.UP:
            raise RemoteError("Request Pending", 491)
        answer, _ = self._negotiate(request, now)
        self.local_sdp = answer
        server.respond(dialog_response(server, self.contact, 200, answer), now)
        self.owner.on_confirmed(self, now)

    def _negotiate(self, request: Request, now: float) -> tuple[bytes, bytes | None]:
        """Have the owner answer an offer; nothing changes if it refuses (§14.2)."""
        offer = offer_of(request)
        answer = self.owner.on_offer(self, offer, now)
        assert self.dialog is not None
        self.dialog.refresh(request)
        self._reoffer.overtaken()
        if offer is not None:
            self.remote_sdp = offer
        return answer, offer

    def agreed(self, offer: bytes, response: Response) -> None:
        """Take the 2xx to our new offer (§14.1)."""
        self.local_sdp, self.remote_sdp = offer, session(response) or self.remote_sdp

    def _offer_if_possible(self, now: float) -> None:
        """Send the wanted offer, unless an INVITE is under way in either direction (§14.1)."""
        if self.state is CallState.UP and self._acceptance is None:
            self._reoffer.proceed(now)
        self.reschedule()

    def acknowledge(self, invite: Request, number: int, now: float) -> Request:
        """Send the ACK of our re-INVITE's 2xx for the first time (§13.2.2.4)."""
        assert self.dialog is not None
        ack = copy_credentials(invite, self.dialog.ack(number), self._keyring)
        self.send_ack(ack, now)
        return ack

    def send_ack(self, ack: Request, now: float) -> None:
        """Send the ACK of a 2xx within the dialog, again for each repetition (§13.2.2.4)."""
        self._stack.send_ack(ack, now, self._stack.ways(ack, self.agent.opened(self, now)))

    # Inside: time

    @abstractmethod
    def _on_timer(self, timer: Timer, now: float) -> None:
        """Note that a timer has fired.  Own design: caller and callee have different timers."""

    def _set_state(self, state: CallState) -> None:
        self.state = state
        if state is CallState.ENDED:
            self._timers.clear()
            self._acceptance = None
            self.agent.forget(self)
        self.reschedule()

    def reschedule(self) -> None:
        """Tell the agent when this call is due.  Own design: one agenda for all calls."""
        self.agent.schedule(self, self.deadline)
