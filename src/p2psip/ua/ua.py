"""The user agent core: all calls of all users of one element.

Implements RFC 3261 §8, §12 and §13.

It finds the call of a request, begins new calls, and keeps the time for all.  Each user brings a
contact, an owner and credentials of its own.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from p2psip.dialog.dialog import Dialog, DialogId
from p2psip.dialog.session_timer import INTERVAL
from p2psip.dialog.subscription import EventName
from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.fair_pool import Pool
from p2psip.stack.request_origin import PeerAddresses
from p2psip.stack.stack import Flow, Recipient, ServerHandle, Stack
from p2psip.transaction.flow import rate_limit_key
from p2psip.ua.call import CallHandler, UserAgentCall
from p2psip.ua.call_events import CallState
from p2psip.ua.core import SharedDialog, UserAgentCore, invite_key
from p2psip.ua.offers import OVER
from p2psip.ua.outside import outside_request
from p2psip.ua.replaces import OPTION as REPLACES
from p2psip.ua.replaces import wanted_by
from p2psip.ua.requests.digest_client import DigestClient, Login
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import SDP, RefusalError, refuse_accept
from p2psip.ua.subscriptions import EXPIRES, REFER, ServedSubscription
from p2psip.ua.transfers import LIFETIME, Referral
from p2psip.ua.uac import OutgoingCall
from p2psip.ua.uas import IncomingCall

__all__ = [
    "CallHandler",
    "CallState",
    "IncomingCall",
    "Login",
    "OutgoingCall",
    "UserAgent",
    "UserAgentCall",
]


MAX_SERVED: Final = 250  # subscriptions of others at a time; one host has less than half


class UserAgent:
    """The user agents of one stack (§8).

    `random(n)` gives n random bytes; `answer_timeout` is how many seconds a call may ring.  With
    `nat` requests go to the address a caller called from, whatever its Contact says.
    `extensions` are announced to every peer; `session_interval` is how many seconds a call lasts
    without a refresh (RFC 4028 §4), None for no session timer.  `max_redirects` is
    how many other addresses of a 3xx are called (§8.1.3.4).  `may_replace(call, server)` tells
    whether the sender of an INVITE may take the place of a call's peer (RFC 3891 §3); nobody may
    unless it is set.
    """

    def __init__(
        self,
        stack: Stack,
        *,
        random: Callable[[int], bytes],
        answer_timeout: float = 60.0,
        nat: bool = False,
        extensions: Extensions | None = None,
        session_interval: int | None = INTERVAL,
        max_redirects: int = 0,
    ) -> None:
        self.stack = stack
        has, seconds = extensions or Extensions(), session_interval
        self.core = UserAgentCore(stack, random, answer_timeout, nat, has, seconds, max_redirects)
        self.may_replace: Callable[[UserAgentCall, ServerHandle], bool] = lambda call, server: False
        self._subscriptions = Pool(MAX_SERVED)

    @property
    def extensions(self) -> Extensions:
        """What the user agents can do (§8.1.1.9)."""
        return self.core.extensions

    def route_by(
        self,
        bound: Callable[[Uri, Uri, float], Sequence[Flow]],
        follows: Callable[[Request], bool],
    ) -> None:
        """Have these tell the ways to the other sides (§12.2.1.1): see `UserAgentCore`."""
        self.core.bound, self.core.follows = bound, follows

    @property
    def dialogs(self) -> int:
        """The number of dialogs in memory.  Own design: a figure for `/status`."""
        return len(self.core.dialogs)

    @property
    def calls(self) -> int:
        """The number of calls in memory.  Own design: a figure for `/status`."""
        return len(self.core.calls)

    def invite(
        self,
        to: Address,
        from_: Address,
        contact: Uri,
        sdp: bytes,
        handler: CallHandler,
        now: float,
        *,
        credentials: Login | None = None,
        route: Sequence[Uri] = (),
        headers: Sequence[tuple[str, object]] = (),
        call_id: str | None = None,
    ) -> UserAgentCall:
        """Call somebody (§13.2.1): `sdp` is the offer, `route` the proxies to pass (§8.1.2).

        With b"" the callee makes the offer, and `handler.on_offer` answers it.  `handler` is never
        called before this returns.
        """
        # §12.1.2 [sips-for-sips]
        # §8.1.1.8 [sips-for-sips], RFC 5630 §5.1.1 [sips-contact-for-sips]
        # RFC 5630 §5.1.1.2 [sip-contact-for-sip]
        secure = "sips" in (to.uri.scheme, *(each.scheme for each in route[:1]))
        contact = self.stack.contact_by(contact, to.uri.param("transport"), secure=secure)
        # RFC 3891 §6.2 [requires-replaces]
        is_replacing = any(name == "Replaces" for name, _ in headers)
        applied = [REPLACES] if is_replacing and REPLACES in self.extensions.options else []
        # §12.1.2 [contact-in-the-request], §13.2.1 [says-allow] [says-info]
        # §13.2.1 [says-supported]
        request = outside_request(
            self.core.random,
            "INVITE",
            to,
            from_,
            route=route,
            # §8.1.1.8 [one-contact], §8.1.1.9 [says-what-it-can]
            # RFC 3311 §4 [invite-allows-update]
            headers=[
                ("Contact", Address(contact)),
                *self.extensions.of_invite(*applied),
                *headers,
            ],
            body=sdp,
            content_type=SDP,
            call_id=call_id,
        )
        request = self.core.signed(request)
        # §22.3 [not-across-dialogs]
        digest_client = DigestClient(credentials, self.core.random) if credentials else None
        call = OutgoingCall(self.core, handler, contact, request, digest_client, now)
        call.start(now)
        return call

    def incoming(
        self,
        server: ServerHandle,
        contact: Uri,
        handler: CallHandler,
        now: float,
        *,
        credentials: Login | None = None,
    ) -> IncomingCall:
        """Take an INVITE for a user of ours (§13.3.1).

        Raises RemoteError for one that cannot become a call; it is answered in any case.
        """
        request = server.request
        digest_client = DigestClient(credentials, self.core.random) if credentials else None
        try:
            self.extensions.refuse_unknown(request)
            refuse_accept(request)
            contact = self._contact_by(contact, server)
            # RFC 3891 §3 [left-unchanged]
            replaced = self._replaced(server) if REPLACES in self.extensions.options else None
            call = IncomingCall(self.core, handler, contact, server, digest_client, now, replaced)
        except RefusalError as refusal:
            server.reply(refusal.status, now, refusal.reason, refusal.headers)
            raise
        call.start(now)
        return call

    def _replaced(self, server: ServerHandle) -> UserAgentCall | None:
        """The call that an INVITE asks to replace, None if it asks for none (RFC 3891 §3).

        Raises RemoteError to refuse it: 400, 481, 486, 603, or 403 if its sender may not.
        Departs from RFC 3891 §8 [proven-senders-only]: a phone knows no passwords of its callers;
        it is left to `may_replace` how much of a proof it wants, and without one nobody may.
        """
        wanted = wanted_by(server.request)
        if wanted is None:
            return None
        call = self._call_in(DialogId(wanted.call_id, wanted.to_tag, wanted.from_tag))
        if call is None or call.state is CallState.RINGING:
            # RFC 3891 §3 [no-match-for-two]
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        if call.state in OVER:
            raise RemoteError("Decline", 603)  # RFC 3891 §3 [603-when-over]
        if wanted.early_only and call.state is not CallState.CALLING:
            raise RemoteError("Busy Here", 486)
        if not self.may_replace(call, server):
            raise RemoteError("Forbidden", 403)  # RFC 3891 §3 [only-who-may]
        return call

    def _call_in(self, dialog: DialogId) -> UserAgentCall | None:
        """The call whose dialog this is, None if there is none (§12)."""
        found = self.core.dialogs.get(dialog)
        for usage in found.usages if found is not None else ():
            if isinstance(usage, UserAgentCall):
                return usage
        return None

    def recipient(self, request: Request) -> Recipient | None:
        """Give the recipient of a request in a dialog (§12.2.2), or merged (§8.2.2.2)."""
        found = self.core.dialogs.get(DialogId.at_server(request))
        if found is not None:
            return Recipient(found.on_request, True, found.peer_addresses.peer(found.dialog))
        # RFC 6665 §4.1.2.4 [notify-may-be-first]; RFC 3515 §2.4.4 [notify-may-be-first]
        # RFC 6665 §4.1.4 [any-notifier]
        begun = self.core.awaited.get((request.call_id, request.to.tag or ""))
        if begun is not None and begun.takes(request):
            return Recipient(begun.on_request, True)
        # §8.2.2.2 [looks-for-copies]
        if request.to.tag is None and invite_key(request) in self.core.invites:
            return Recipient(self._on_copy)
        return None

    def on_stray(self, server: ServerHandle, request: Request, now: float) -> None:
        """Refuse a request within a dialog that is not ours (§12.2.2)."""
        server.reply(481, now)  # §15.1.2 [481-without-a-dialog], §12.2.2 [481-for-unknown]

    def _on_copy(self, server: ServerHandle, request: Request, now: float) -> None:
        """Refuse the same INVITE again, forked and merged (§8.2.2.2)."""
        server.reply(482, now)  # §8.2.2.2 [482-for-a-copy]

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Take the ACK of a 2xx (§13.3.1.4); an unexpected one is dropped."""
        call = self._call_in(DialogId.at_server(request))
        if call is not None:
            call.on_ack(request, now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: one timer queue for all calls and subscriptions."""
        return self.core.timer_queue.deadline

    def tick(self, now: float) -> None:
        """Act on passed deadlines of any usage.  Own design: one timer queue for all."""
        for usage in self.core.timer_queue.due(now):
            if not self.stack.guarded(usage.tick, now) and isinstance(usage, UserAgentCall):
                self.stack.guarded(usage.bye, now)

    def serve(self, server: ServerHandle, contact: Uri, now: float) -> ServedSubscription:
        """Accept a SUBSCRIBE outside of a dialog (RFC 6665 §4.2.1.2); `tell` it the state at once.

        Raises RemoteError for one without Contact or Event, and with 503 when there are too many.
        """
        request = server.request
        # RFC 6665 §4.2.1.1 [489-for-unknown]
        event = EventName.parse(request.headers.get("Event", ""))
        if event.package == REFER:
            raise RemoteError("Forbidden", 403)  # RFC 3515 §2.4.4 [403-without-a-refer]
        asked = EXPIRES if request.expires is None else request.expires
        expires = min(asked, EXPIRES)  # RFC 6665 §4.2.1.1 [no-longer-than-asked]
        contact = self._contact_by(contact, server)
        subscription = self._subscribed(server, contact, event, expires, now)
        # RFC 6665 §4.2.1.1 [waits-for-nobody]; RFC 3261 §12.1.1 [adds-a-contact]
        # RFC 6665 §3.1.1 [200-has-expires], §8.3.1 [200-not-202]
        server.reply(200, now, None, [("Expires", expires), ("Contact", Address(contact))])
        return subscription

    def referred(
        self,
        server: ServerHandle,
        contact: Uri,
        allow: Callable[[Referral], object],
        now: float,
    ) -> Referral:
        """Accept a REFER outside of a call (RFC 3515 §2.4.2), unless `allow` raises RemoteError.

        The caller is to follow it, and to tell it of the progress.  Raises RemoteError as `serve`
        does, and for a REFER without one target that can be called.
        """
        referral = Referral(server.request)
        allow(referral)  # RFC 3515 §2.4.2 [asks-the-user]
        contact = self._contact_by(contact, server)
        event = EventName(REFER, str(server.request.cseq.number))
        subscription = self._subscribed(server, contact, event, LIFETIME, now)
        # RFC 3515 §2.4.2 [202-in-time]; RFC 3261 §12.1.1 [adds-a-contact]
        server.reply(202, now, None, [("Contact", Address(contact))])
        referral.serve(subscription, now)  # RFC 3515 §2.4.2 [subscribes-the-peer]
        return referral

    def _subscribed(
        self, server: ServerHandle, contact: Uri, event: EventName, expires: int, now: float
    ) -> ServedSubscription:
        """The subscription in the new dialog that a request begins (RFC 6665 §4.2.1.2)."""
        host = rate_limit_key(server.flow.remote[0])
        if not self._subscriptions.has_room(host):
            raise RemoteError("Too Many Subscriptions", 503)
        dialog = Dialog.of_server(server.request, server.to_tag)
        peer_addresses = PeerAddresses(nat=self.core.nat)
        peer_addresses.heard(server.request, server.flow)
        shared = SharedDialog(self.core, dialog, peer_addresses)
        # One that was to end at once takes a place until its last NOTIFY is done, or a flood of
        # them would fill our memory.
        free = partial(self._subscriptions.add, host, -1)
        served = ServedSubscription(self.core, shared, contact, event, expires, now, free)
        self._subscriptions.add(host, 1)
        return served

    def _contact_by(self, contact: Uri, server: ServerHandle) -> Uri:
        """The Contact for the sender of a request, who may speak one transport (§8.1.1.8)."""
        secure = _wants_sips(server.request)
        flow = server.flow
        return self.stack.contact_by(contact, flow.transport, secure=secure, peer=flow.remote[0])


def _wants_sips(request: Request) -> bool:
    """Whether a request that begins a dialog asks for a SIPS URI as our Contact (§12.1.1)."""
    first = request.record_routes[:1] or request.contacts[:1]
    # §12.1.1 [sips-for-sips], RFC 5630 §5.1.2 [sips-contact-for-sips]
    return "sips" in (request.uri.scheme, *(each.uri.scheme for each in first))
