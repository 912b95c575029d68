"""A call that we make.

Implements RFC 3261 §13.2 and §9.1.

    owner.invite -> INVITE -> 1xx: on_ringing -> 2xx: ACK, on_accepted -> ... BYE
                           |                  -> 3xx-6xx, silence: on_rejected
                           +-- bye: CANCEL    -> a 2xx that crossed it: ACK and BYE
"""

from typing import TYPE_CHECKING, Final

from p2psip.dialog.dialog import Dialog, DialogId
from p2psip.errors import RemoteError
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.causes import NO_ANSWER
from p2psip.stack.stack import ServerHandle
from p2psip.transaction.flow import LOCAL
from p2psip.ua.authenticated_request import AuthenticatedRequest
from p2psip.ua.call import UserAgentCall
from p2psip.ua.call_state import CallState, Timer
from p2psip.ua.digest_client import DigestClient, copy_credentials
from p2psip.ua.owner import CallHandler
from p2psip.ua.request_validation import session

if TYPE_CHECKING:
    from p2psip.ua.ua import UserAgent

MAX_EARLY: Final = 16  # early dialogs of one INVITE that are kept
MAX_FORKS: Final = 64  # dialogs of one INVITE in all; a 2xx beyond them is not even acknowledged


class OutgoingCall(UserAgentCall):
    """A call from its INVITE on (§13.2)."""

    direction = "out"

    def __init__(
        self,
        agent: "UserAgent",
        owner: CallHandler,
        contact: Uri,
        invite: Request,
        keyring: DigestClient | None,
    ) -> None:
        super().__init__(agent, owner, contact, CallState.CALLING, keyring)
        self.invite, self.remote, self.local_sdp = invite, invite.to, invite.body
        self._cseq = invite.cseq.number
        self._dialogs: dict[DialogId, Dialog] = {}
        self._fork_acks: dict[DialogId, Request] = {}
        self._exchange_of_invite = AuthenticatedRequest(self._stack, self, self._next_cseq, keyring)

    @property
    def peer_host(self) -> str | None:
        """The host that the INVITE was sent to, whose answer made the call (§18.1.1)."""
        flow = self._exchange_of_invite.sent_to
        return None if flow is None or flow.transport == LOCAL else flow.remote[0]

    def start(self, now: float) -> None:
        """Send the INVITE (§13.2.1)."""
        self._timers[Timer.ANSWER] = now + self.agent.answer_timeout
        self._exchange_of_invite.send(self.invite, now)
        self.reschedule()

    def bye(self, now: float, reason: str | None = None) -> None:
        """Hang up: by CANCEL before the answer (§9.1), else by BYE (§15)."""
        super().bye(now, reason)
        if self.state is CallState.CALLING:
            self._give_up(now)

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take a response to the INVITE (§13.2.2) or to a later request (§12.2.1.2)."""
        self.whereabouts.answered(exchange.sent_to)
        if exchange is not self._exchange_of_invite:
            super().on_response(exchange, response, now)
        elif response.status < 200:
            self._on_provisional(response, now)
        elif response.status < 300:
            self._on_success(response, now)
        else:
            self._on_failure(response, now)

    def _next_cseq(self) -> int:
        self._cseq += 1
        return self._cseq

    def _give_up(self, now: float) -> None:
        self._timers.clear()
        self._set_state(CallState.ENDING)
        self._exchange_of_invite.cancel(now)

    def _dialog_of(self, response: Response) -> Dialog | None:
        """The dialog of a response, a new one if its tag is new (§12.1.2)."""
        key = DialogId.at_client(response)
        limit = MAX_EARLY if response.status < 200 else MAX_FORKS
        if key not in self._dialogs and len(self._dialogs) < limit:
            dialog = Dialog.of_client(self._exchange_of_invite.request, response)
            self._dialogs[key] = dialog
            self.agent.remember(self, dialog)
        return self._dialogs.get(key)

    def _on_provisional(self, response: Response, now: float) -> None:
        """Take progress, which may begin an early dialog (§13.2.2.1)."""
        if response.status == 100 or self.state is not CallState.CALLING:
            return
        if response.to.tag is not None:
            self.dialog = self._dialog_of(response) or self.dialog
        sdp = session(response)
        self.owner.on_ringing(self, response.status, response.reason, sdp, now)

    def _on_success(self, response: Response, now: float) -> None:
        """Acknowledge a 2xx; the first one makes the call, others are hung up (§13.2.2.4)."""
        key = DialogId.at_client(response)
        if key in self._fork_acks:
            self._stack.send_ack(self._fork_acks[key], now)
            return
        dialog = self._dialog_of(response)
        if dialog is None:
            return
        dialog.confirm(response)
        request = self._exchange_of_invite.request
        # built as §13.2.2.4 says: RFC 3261 §17.1.1.3 [2xx-ack-by-core]
        ack = copy_credentials(request, dialog.ack(request.cseq.number), self._keyring)
        self._fork_acks[key] = ack
        self._stack.send_ack(ack, now)
        if self.state is CallState.CALLING:
            self._establish(dialog, response, now)
        elif self.state is CallState.ENDING and self._bye is None:
            self.dialog = dialog  # the answer crossed our CANCEL
            self._drop_dialogs(dialog)
            self._hang_up(now)
        else:
            self._hang_up_fork(dialog, now)

    def _establish(self, dialog: Dialog, response: Response, now: float) -> None:
        self._timers.clear()
        self.dialog, self.remote = dialog, dialog.remote
        self._drop_dialogs(dialog)
        self._set_state(CallState.UP)
        self.remote_sdp = session(response)
        self.owner.on_accepted(self, self.remote_sdp or b"", now)

    def _hang_up_fork(self, dialog: Dialog, now: float) -> None:
        """End the dialog of a second phone that was picked up (§13.2.2.4)."""
        self.agent.release(dialog)
        bye = self.agent.signed(dialog.request("BYE"))
        AuthenticatedRequest(self._stack, _Nobody(), dialog.next_cseq, self._keyring).send(bye, now)

    def _on_failure(self, response: Response, now: float) -> None:
        """Take the refusal, which ends all early dialogs (§13.2.2.3, §12.3)."""
        before = self.state
        self._drop_dialogs(None)
        self._set_state(CallState.ENDED)
        if before is CallState.CALLING:
            self.owner.on_rejected(self, response.status, response.reason, now)

    def _drop_dialogs(self, kept: Dialog | None) -> None:
        for dialog in self._dialogs.values():
            if dialog is not kept:
                self.agent.release(dialog)

    def _on_bye(self, server: ServerHandle, now: float) -> None:
        """Take a BYE; before the answer it is refused (§15)."""
        if self.state is CallState.CALLING:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        super()._on_bye(server, now)

    def _on_timer(self, timer: Timer, now: float) -> None:
        """Give up after `answer_timeout`, the only timer before the answer."""
        self._give_up(now)
        self.owner.on_rejected(self, 480, NO_ANSWER, now)


class _Nobody:
    """The user of a fork's BYE, whose result is of no interest."""

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Do nothing.  Own design: any answer ends the fork."""
