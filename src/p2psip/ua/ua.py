"""The user agent core: all calls of all users of one element.

Implements RFC 3261 §8, §12 and §13.

It finds the call of a request, begins new calls, and keeps the time for all.  Each user brings a
contact, an owner and credentials of its own.
"""

from collections.abc import Callable, Sequence

from p2psip.dialog.dialog import Dialog, DialogId
from p2psip.sip.address import Address
from p2psip.sip.build import MAX_FORWARDS
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import Peer
from p2psip.stack.stack import Flow, ServerHandle, Stack
from p2psip.transaction.table import Agenda
from p2psip.ua.call import UserAgentCall
from p2psip.ua.call_state import CallState
from p2psip.ua.digest_client import DigestClient, Login
from p2psip.ua.owner import CallHandler
from p2psip.ua.request_validation import ALLOW, SDP, RefusalError, refuse_accept, refuse_extensions
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


_Origin = tuple[str, int, str, str]


class UserAgent:
    """The user agents of one stack (§8).

    `random(n)` gives n random bytes; `answer_timeout` is how many seconds a call may ring.  With
    `nat` requests go to the address a caller called from, whatever its Contact says.
    """

    def __init__(
        self,
        stack: Stack,
        *,
        random: Callable[[int], bytes],
        answer_timeout: float = 60.0,
        nat: bool = False,
    ) -> None:
        self.stack, self.random, self.answer_timeout = stack, random, answer_timeout
        self.nat = nat
        self.bound: Callable[[Uri, Uri, float], Sequence[Flow]] = lambda user, target, now: ()
        self._agenda = Agenda[UserAgentCall]()
        self._dialogs: dict[DialogId, tuple[UserAgentCall, Dialog]] = {}
        self._calls: dict[UserAgentCall, None] = {}
        # INVITEs not answered yet, by the parts that a copy on another path has too: §8.2.2.2.
        self._ringing: dict[_Origin, IncomingCall] = {}
        stack.expect(lambda request, flow, now: self.matches(request))

    @property
    def dialogs(self) -> int:
        """The number of dialogs in memory.  Own design: a figure for `/status`."""
        return len(self._dialogs)

    @property
    def calls(self) -> int:
        """The number of calls in memory.  Own design: a figure for `/status`."""
        return len(self._calls)

    def invite(
        self,
        to: Address,
        from_: Address,
        contact: Uri,
        sdp: bytes,
        owner: CallHandler,
        now: float,
        *,
        credentials: Login | None = None,
        route: Sequence[Uri] = (),
        headers: Sequence[tuple[str, object]] = (),
        call_id: str | None = None,
    ) -> UserAgentCall:
        """Call somebody (§13.2.1): `sdp` is the offer, `route` the proxies to pass (§8.1.2).

        `owner` is never called before this returns.
        """
        fields: list[tuple[str, object]] = [("Route", Address(uri)) for uri in route]
        fields += [
            ("Max-Forwards", MAX_FORWARDS),
            ("From", from_.with_tag(self.random(6).hex())),
            ("To", to.replace(params=())),
            ("Call-ID", call_id or self.random(12).hex()),
            ("CSeq", "1 INVITE"),
            ("Contact", Address(contact := _by(to.uri.param("transport"), contact))),
            ("Allow", ALLOW),
            ("Content-Type", SDP),
            *headers,
        ]
        # A URI in a header may carry parts that a Request-URI must not (§19.1.1).
        target = to.uri.replace(headers=()).without_params("method")
        request = self.signed(Request("INVITE", target, Headers(fields), sdp))
        keyring = DigestClient(credentials, self.random) if credentials else None
        call = OutgoingCall(self, owner, contact, request, keyring)
        self._calls[call] = None
        call.start(now)
        return call

    def incoming(
        self,
        server: ServerHandle,
        contact: Uri,
        owner: CallHandler,
        now: float,
        *,
        credentials: Login | None = None,
    ) -> IncomingCall:
        """Take an INVITE for a user of ours (§13.3.1).

        Raises RemoteError for one that cannot become a call; it is answered in any case.
        """
        request = server.request
        keyring = DigestClient(credentials, self.random) if credentials else None
        try:
            refuse_extensions(request)
            refuse_accept(request)
            contact = _by(server.flow.transport, contact)
            call = IncomingCall(self, owner, contact, server, keyring)
        except RefusalError as refusal:
            server.reply(refusal.status, now, refusal.reason, refusal.headers)
            raise
        self._calls[call] = None
        self._ringing[_origin(request)] = call
        call.start(now)
        return call

    def matches(self, request: Request) -> bool:
        """Whether a request is within a dialog of ours (§12.2.2), or a merged INVITE (§8.2.2.2)."""
        if DialogId.at_server(request) in self._dialogs:
            return True
        return request.to.tag is None and _origin(request) in self._ringing

    def peer_of(self, request: Request) -> Peer | None:
        """The peer that may send this request, None if it is in no dialog of ours (§12.2.2)."""
        found = self._dialogs.get(DialogId.at_server(request))
        return found[0].whereabouts.peer(found[1]) if found is not None else None

    def on_request(self, server: ServerHandle, request: Request, now: float) -> None:
        """Take a request within a dialog (§12.2.2), from its peer (`peer_of`)."""
        found = self._dialogs.get(DialogId.at_server(request))
        if found is not None:
            call, dialog = found
            call.whereabouts.heard(request, server.flow)
            call.on_request(server, request, dialog, now)
        elif request.to.tag is None and _origin(request) in self._ringing:
            server.reply(482, now)  # the same INVITE, forked and merged: §8.2.2.2
        else:
            server.reply(481, now)

    def on_ack(self, request: Request, flow: Flow, now: float) -> None:
        """Take the ACK of a 2xx (§13.3.1.4); an unexpected one is dropped."""
        found = self._dialogs.get(DialogId.at_server(request))
        if found is not None:
            found[0].on_ack(request, now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`.  Own design: one agenda for all calls."""
        return self._agenda.deadline

    def tick(self, now: float) -> None:
        """Act on passed deadlines of any call.  Own design: one agenda for all calls."""
        for call in self._agenda.due(now):
            if not self.stack.guarded(call.tick, now):
                self.stack.guarded(call.bye, now)

    # For the calls

    def opened(self, call: UserAgentCall, now: float) -> list[Flow]:
        """The connections that a call's peer has opened, those it registered by first.

        As RFC 5626 §5.3 has it of flows.
        """
        assert call.dialog is not None
        bound = self.bound(call.dialog.remote.uri, call.dialog.target, now)
        return [*bound, *call.whereabouts.by]

    def signed(self, request: Request) -> Request:
        """The request with the name of our software (§20.41)."""
        return request.replace(headers=request.headers.append("User-Agent", self.stack.user_agent))

    def remember(self, call: UserAgentCall, dialog: Dialog) -> None:
        """Let requests within `dialog` reach its call (§12.2.2)."""
        self._dialogs[dialog.id] = call, dialog

    def release(self, dialog: Dialog) -> None:
        """Forget a dialog (§12.3)."""
        self._dialogs.pop(dialog.id, None)

    def schedule(self, call: UserAgentCall, at: float | None) -> None:
        """Say when a call is due.  Own design: one agenda for all calls."""
        self._agenda.set(call, at if call in self._calls else None)

    def forget(self, call: UserAgentCall) -> None:
        """Drop a call that has ended (§12.3)."""
        self._calls.pop(call, None)
        self._ringing.pop(_origin(call.invite), None)
        if call.dialog is not None:
            self.release(call.dialog)


def _by(transport: str | None, contact: Uri) -> Uri:
    """The Contact for a peer at that transport: by TCP it may speak nothing else (§8.1.1.8)."""
    return contact.with_params(transport="tcp") if (transport or "").upper() == "TCP" else contact


def _origin(request: Request) -> _Origin:
    """The parts that are equal in all copies of one request (§8.2.2.2).

    A request to another user is no copy: each user has a user agent, and a proxy may call many.
    """
    return request.call_id, request.cseq.number, request.from_.tag or "", str(request.uri)
