"""The commands of a rich client while a call is up, and what it hears of the phone meanwhile.

Implements RFC 4733 §2.5, RFC 3264 §8.4, RFC 3428 §4 and §7, and RFC 3515 §2.4 by way of
`Call`.

Own design: the commands `sendDTMF`, `hold`, `sendMessage` and `transfer`, and the calls `dtmf`,
`holded`, `receivedMessage` and `transferred`, of the client's API.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.messages import TEXT, InstantMessage, answer
from p2psip.ua.outside import outside_request
from p2psip.ua.requests.digest_client import DigestClient, Login
from p2psip.ua.transfers import Referral
from rtmplite.amf.values import Value
from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.wire.command import on_status
from siprtmp.calls import codec_names
from siprtmp.calls.call import Call, CallContext
from siprtmp.calls.observer import CallObserver
from siprtmp.calls.rich.line_state import State
from siprtmp.calls.rich.transferred import TransferredCall
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.sink import MediaSink

if TYPE_CHECKING:
    from siprtmp.calls.rich.line import Account, Line
    from siprtmp.calls.rich.sip_app import SipApplication

FAILED: Final = "NetConnection.Call.Failed"


class LineRequests(CallObserver, MediaSink, ABC):
    """The half of a `Line` that is about a call that is up: RFC 3261 §12.2."""

    connection: NetConnection
    account: "Account"
    _call: Call | None
    _home: "SipApplication"
    _transfer: TransferredCall | None
    contact: Uri
    context: CallContext
    remote: LiveStream
    state: State

    @abstractmethod
    def _destination(self, dest: Value, *, telephones: bool = False) -> Address: ...

    @abstractmethod
    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """Tell `accepted`: RFC 3261 §13.2.2.4."""

    @abstractmethod
    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        """Tell `rejected`: RFC 3261 §13.2.2.3."""

    @property
    @abstractmethod
    def payer(self) -> str:
        """The key that the client's calls and messages are counted under."""

    @abstractmethod
    def _login(self) -> Login | None: ...

    # -- commands -----------------------------------------------------------------------

    def _names(self, args: tuple[Value, ...]) -> tuple[bool, tuple[str, ...]]:
        names = tuple(arg for arg in args if isinstance(arg, str))
        return bool(names), codec_names.known(names)

    def _send_dtmf(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 4733 §2.5.1."""
        if self._call is not None and args and isinstance(args[0], str):
            self._call.press(args[0], now)

    def _hold(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3264 §8.4."""
        if self._call is not None:
            self._call.hold(not args or bool(args[0]), now)

    def _send_message(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3428 §4: within the call, or to somebody else."""
        text, dest = (*args, None, None)[:2]
        try:
            if not isinstance(text, str) or not text:
                raise RemoteError("Empty Message")
            if dest is not None:
                self._message_to(self._reader(dest), text, now)
            elif self._call is not None:
                self._call.message(text, now)
            else:
                raise RemoteError("Call/Transaction Does Not Exist", 481)
        except RemoteError as error:
            self.on_call_request_failed("sendMessage", f"{error.status} {error.reason}", now)
        except LocalError:
            self.on_call_request_failed("sendMessage", "513 Message Too Large", now)

    def _message_to(self, to: Address, text: str, now: float) -> None:
        context = self.context
        context.tolls.message(self.payer, to.uri, now)
        body, login = text.encode(errors="replace"), self._login()
        request = outside_request(
            context.random, "MESSAGE", to, self.account.address, body=body, content_type=TEXT
        )
        keyring = DigestClient(login, context.random) if login is not None else None
        request = context.agent.core.signed(request)
        context.messages.send(request, self._heard, now, keyring)

    def _reader(self, dest: Value) -> Address:
        """Return the address; refuse a number, as trunks take no messages: RFC 3261 §21.4.14."""
        address = self._destination(dest)
        if address.uri.scheme == "tel":
            raise RemoteError("Unsupported URI Scheme", 416)
        return address

    def _heard(self, response: Response, now: float) -> None:
        if response.status >= 300:
            reason = f"{response.status} {response.reason}"
            self.on_call_request_failed("sendMessage", reason, now)

    def _transfer_to(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3515 §2.4.1."""
        try:
            if self._call is None:
                raise RemoteError("Call/Transaction Does Not Exist", 481)
            self._call.transfer(self._reader(args[0] if args else None).uri, now)
        except RemoteError as error:
            self.on_call_transferred(error.status, error.reason, now)

    # -- the phone's wish that we call somebody -----------------------------------------

    def on_call_refer(self, referral: Referral, now: float) -> None:
        """Call somebody in place of the phone, if both are users of ours: RFC 3515 §2.4.2.

        Own design: anybody may call a client, and would then have it call numbers that cost
        money.  Raises RemoteError, 603 or what the new call fails with.
        """
        home, call = self._home, self._call
        is_wanted = (
            self.state is State.UP
            and self._transfer is None
            and call is not None
            and call.call is not None
            and home.is_local_domain(call.call.remote.uri)
            and home.is_local_domain(referral.target.uri)
        )
        if not is_wanted or call is None:
            raise RemoteError("Decline", 603)
        me, login = self.account.address, self._login()
        if self.context.trunks.plan(referral.target, me, self.contact, now).ways:
            raise RemoteError("Decline", 603)
        transfer = TransferredCall(cast("Line", self), referral)
        transfer.call.headers = referral.headers
        transfer.call.dial(referral.target, me, self.contact, call.names, now, credentials=login)
        self._transfer = transfer

    def take_over(self, call: Call, plan: MediaPlan, now: float) -> None:
        """Have a call that was asked for instead of the old one: RFC 3515 §2.4.2."""
        self._transfer, old, self._call = None, self._call, call
        if old is not None and old is not call:
            old.hang_up(now, "transferred")
        self.remote.end(now)  # which begins anew with the new call's sound
        self.on_call_up(plan, now)

    def on_transfer_failed(
        self, transfer: TransferredCall, status: int, reason: str, now: float
    ) -> None:
        """Stay in the old call, or tell that the only one has failed: RFC 3515 §2.4.5."""
        if transfer is self._transfer:
            self._transfer = None
        elif transfer.alone and transfer.call is self._call:
            self.on_call_failed(status, reason, now)

    def _goes_on(self, now: float) -> bool:
        """Whether the client has been transferred by a phone that has hung up since."""
        transfer, self._transfer = self._transfer, None
        if transfer is None:
            return False
        transfer.alone, self._call, self.state = True, transfer.call, State.INVITING
        self.remote.end(now)
        return True

    def _forget_transfer(self, now: float) -> None:
        if self._transfer is not None:
            self._transfer.give_up(now)
            self._transfer = None

    # -- messages to us -----------------------------------------------------------------

    def _take_message(self, server: ServerHandle, now: float) -> None:
        def told(message: InstantMessage) -> None:
            self.on_call_message(message, now)

        answer(server, server.request, told, self.context.agent.extensions, now)

    # -- CallObserver and MediaSink -----------------------------------------------------

    def on_call_held(self, held: bool, now: float) -> None:
        """Tell `holded`: RFC 3264 §8.4."""
        self.connection.call("holded", held)

    def on_digit(self, digit: str, now: float) -> None:
        """Tell `dtmf`: RFC 4733 §2.5.2.2."""
        self.connection.call("dtmf", digit)

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        """Tell `receivedMessage`: RFC 3428 §7."""
        self.connection.call("receivedMessage", plain(message.sender), message.text)

    def on_call_transferred(self, status: int, reason: str, now: float) -> None:
        """Tell `transferred`, and hang up when the other side has another call: RFC 3515 §2.4.5."""
        self.connection.call("transferred", f"{status} {reason}")
        if 200 <= status < 300 and self._call is not None:
            self._call.drop(now, "transferred")

    def on_call_request_failed(self, what: str, reason: str, now: float) -> None:
        """Tell a status, since the command has had its empty result: RTMP 1.0 §7.2.2."""
        status = on_status("error", FAILED, f"{what}: {reason}")
        self.connection.send_command(status)


def plain(address: Address) -> str:
    """An address without its tag, as clients show it: RFC 3261 §20.10."""
    return str(Address(address.uri, address.display))


LINE_REQUESTS: Final[Mapping[str, Callable[..., None]]] = {
    "hold": LineRequests._hold,
    "sendDTMF": LineRequests._send_dtmf,
    "sendMessage": LineRequests._send_message,
    "transfer": LineRequests._transfer_to,
}
