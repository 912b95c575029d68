"""The rich client's line: one RTMP connection is one single-line SIP user agent.

Implements RFC 4733 §2.5, RFC 3264 §8.4, RFC 3428 §4 and §7, and RFC 3515 §2.4 by way of `Call`.

Own design: the command set is that of the original siprtmp, kept compatible so that its
clients work unchanged: clients send `invite`, `accept`, `reject` and `bye`, and are sent
`invited`, `ringing`, `accepted`, `rejected`, `cancelled` and `byed`.  On the SIP side these are
RFC 3261 §13, §9 and §15.  While a call is up there are the commands `sendDTMF`, `hold`,
`sendMessage` and `transfer`, and the calls `dtmf`, `holded`, `receivedMessage` and `transferred`.

A sans-I/O machine between a `NetConnection` and a `Call`.  `sip_app` admits it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.messages import TEXT, InstantMessage, answer
from p2psip.ua.outside import outside_request
from p2psip.ua.registering.registration import Registration
from p2psip.ua.requests.digest_client import DigestClient, Login
from p2psip.ua.transfers import Referral
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError as RtmpError
from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.command import Command, on_status
from siprtmp.calls import codec_names, failures
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.call import Call
from siprtmp.calls.home import CallHome, hold_back
from siprtmp.calls.rich.transferred import TransferredCall
from siprtmp.calls.stream_user import StreamUser
from siprtmp.calls.trunks import Invitation
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import MediaPlan

FAILED: Final = "NetConnection.Call.Failed"


class State(StrEnum):
    """The state of the line's only call, in the words of the client's API."""

    IDLE = "idle"
    INVITING = "inviting"
    INVITED = "invited"
    ANSWERED = "answered"  # by us; the caller's ACK has not arrived
    UP = "up"


@dataclass(frozen=True, slots=True)
class Account:
    """The arguments of `connect`: the identity, and the login that proves it.

    `user` is the authentication user (the identity's own when not given);
    an empty password means no REGISTER.
    """

    identity: Uri
    user: str = ""
    password: str = ""
    display: str = ""
    narrowband: bool = False

    @property
    def address(self) -> Address:
        """From and To of our own requests: RFC 3261 §20.20."""
        return Address(self.identity, _printable(self.display))

    def __repr__(self) -> str:
        """The identity alone: a password never reaches a log or a traceback."""
        return f"Account({self.identity})"


class Line(StreamUser):
    """One client with one identity and at most one call.

    It observes its call (RFC 3261 §13), and is the sink of what its client publishes.
    """

    def __init__(
        self,
        connection: NetConnection,
        account: Account,
        home: CallHome,
        remote: LiveStream,
        holder: Holder,
    ) -> None:
        super().__init__(home.context, remote)
        self.connection, self.account, self._home = connection, account, home
        self.log_id, self.holder = connection.id, holder
        self.contact = home.contact(account.identity.user or "", connection.id)
        self.state = State.IDLE
        self.registration: Registration | None = None
        self._named = False
        self._transfer: TransferredCall | None = None
        self.takes_opus = True  # if it names it

    def close(self, now: float) -> None:
        self._forget_transfer(now)
        if self._call is not None:
            self._call.hang_up(now, "client gone")
            self._call = None
        self.remote.end(now)

    # -- commands -----------------------------------------------------------------------

    def command(self, command: Command, now: float) -> None:
        """Execute a command (RTMP 1.0 §7.2.1.2), after an empty result."""
        handler = _COMMANDS.get(command.name)
        if handler is None:
            reason = RtmpError(f"No such call: {command.name}")
            self.connection.error(command.transaction_id, reason)
            return
        if command.transaction_id:
            self.connection.send_command(Command("_result", command.transaction_id, None, ()))
        handler(self, command.args, now)

    def _invite(self, args: tuple[Value, ...], now: float) -> None:
        if self.state is not State.IDLE:
            self.connection.call("rejected", failures.told(*failures.BUSY))
            return
        self._named, names = _names(args[1:])
        if not self._named:
            names = sdp_map.default_names(self.account.narrowband)
        call = Call(self, self, self.context)
        self._call, self.state = call, State.INVITING
        try:
            to = self._destination(args[0] if args else None, telephones=True)
            call.dial(replace(self._invitation(to, names), unnamed=not self._named), now)
        except RemoteError as error:
            self.on_call_failed(error.status, error.reason, now)

    def _invitation(self, to: Address, names: Sequence[str]) -> Invitation:
        return Invitation(to, self.account.address, self.contact, names, login=self._login())

    def _accept(self, args: tuple[Value, ...], now: float) -> None:
        call = self._call
        if self.state is not State.INVITED or call is None:
            return
        self._named, names = _names(args)
        if not self._named:
            names = sdp_map.speex_names(self.account.narrowband)
        try:
            call.answer(names, now)
        except RemoteError as error:
            call.refuse(error.status, error.reason, now)
            self.on_call_over(error.reason, now)
        else:
            self.state = State.ANSWERED

    def _reject(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3261 §13.3.1.3; a status that is no failure becomes 603."""
        if self.state is not State.INVITED or self._call is None:
            return
        self._call.refuse(*failures.asked(args[0] if args else None), now)
        self._idle(now)

    def _bye(self, args: tuple[Value, ...], now: float) -> None:
        if self._call is not None:
            self._call.hang_up(now, "client hung up")
            self._idle(now)

    def _destination(self, dest: Value, *, telephones: bool = False) -> Address:
        """Read the address of a command; without `telephones` a number is refused.

        A URI of the line's own domain has the port that `connect` named: RFC 3261 §19.1.1.  Trunks
        take no messages: RFC 3261 §21.4.14.
        """
        address, own = destination(dest), self.account.identity
        uri = address.uri
        if uri.scheme == "tel" and not telephones:
            raise RemoteError("Unsupported URI Scheme", 416)
        if uri.port is None and uri.host == own.host and not self._home.is_local_domain(uri):
            return Address(uri.replace(port=own.port), address.display)
        return address

    # -- a call for us ------------------------------------------------------------------

    def incoming(self, server: ServerHandle, now: float) -> None:
        """An INVITE for this identity (RFC 3261 §13.3.1): one call at a time, else 486.

        A MESSAGE is told to the client: RFC 3428 §7.
        """
        if server.request.method == "MESSAGE":
            told, extensions = partial(self.on_call_message, now=now), self.context.agent.extensions
            answer(server, server.request, told, extensions, now)
            return
        call = Call(self, self, self.context)
        if self.state is not State.IDLE:
            if call.take(server, self.contact, now):
                call.refuse(*failures.BUSY, now)  # RFC 3261 §13.3.1.3 [486-when-busy]
            return
        if not call.take(server, self.contact, now, login=self._login()):
            return
        # a call that `take` refused leaves the line free
        self._call, self.state = call, State.INVITED
        call.ring(now)
        request = server.request
        self.connection.call("invited", _plain(request.from_), _plain(request.to))

    def _login(self) -> Login | None:
        """The login for challenges, which is proven to the registrar alone: RFC 3261 §22.1.

        A callee could ask for it as well, and a caller when we send the BYE.
        """
        return self.registration.login if self.registration is not None else None

    # -- commands of a call that is up ---------------------------------------------------

    def _send_dtmf(self, args: tuple[Value, ...], now: float) -> None:
        if self._call is not None and args and isinstance(args[0], str):
            self._call.press(args[0], now)

    def _hold(self, args: tuple[Value, ...], now: float) -> None:
        if self._call is not None:
            self._call.hold(not args or bool(args[0]), now)

    def _send_message(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3428 §4: within the call, or to somebody else."""
        text, dest = (*args, None, None)[:2]
        try:
            if not isinstance(text, str) or not text:
                raise RemoteError("Empty Message")
            if dest is not None:
                self._message_to(self._destination(dest), text, now)
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
        digest_client = DigestClient(login, context.random) if login is not None else None
        request = context.agent.core.signed(request)
        context.messages.send(request, self._heard, now, digest_client)

    def _heard(self, response: Response, now: float) -> None:
        if response.status >= 300:
            reason = f"{response.status} {response.reason}"
            self.on_call_request_failed("sendMessage", reason, now)

    def _transfer_to(self, args: tuple[Value, ...], now: float) -> None:
        try:
            if self._call is None:
                raise RemoteError("Call/Transaction Does Not Exist", 481)
            self._call.transfer(self._destination(args[0] if args else None).uri, now)
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
        wanted = self._invitation(referral.target, call.names)
        if self.context.trunks.plan(wanted, now).trunks:
            raise RemoteError("Decline", 603)
        transfer = TransferredCall(self, referral, self._take_over, self._on_transfer_failed)
        transfer.call.dial(replace(wanted, headers=referral.headers), now)
        self._transfer = transfer

    def _take_over(self, call: Call, plan: MediaPlan, now: float) -> None:
        """Have a call that was asked for instead of the old one: RFC 3515 §2.4.2."""
        self._transfer, old, self._call = None, self._call, call
        if old is not None and old is not call:
            old.hang_up(now, "transferred")
        self.remote.end(now)  # which begins anew with the new call's audio
        self.on_call_up(plan, now)

    def _on_transfer_failed(
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

    # -- CallObserver and MediaSink -----------------------------------------------------

    @property
    def host(self) -> str:
        return self.connection.peer_address[0]

    @property
    def payer(self) -> str:
        """The line's identity if that is a user of ours, else the client's host."""
        return self._home.payer(self.connection.client, self.account.identity, "")

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        self.connection.call("ringing", f"{status} {reason}")

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """Tell `accepted`, with the codec when the client named codecs: RFC 3261 §13.2.2.4."""
        self.state = State.UP
        if self._named and plan.x_flv is not None:
            self.connection.call("accepted", "default", "default")
        elif self._named:
            video = plan.video.name if plan.video is not None else None
            audio = codec_names.reported(plan.audio.codec, self._call.names if self._call else ())
            self.connection.call("accepted", audio, video)
        else:
            self.connection.call("accepted")

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        self._idle(now)
        self.connection.call("rejected", failures.told(status, reason))

    def on_call_cancelled(self, now: float) -> None:
        call = self._call
        invite = call.call.invite if call and call.call else None
        self._idle(now)
        if invite is not None:
            self.connection.call("cancelled", _plain(invite.from_), _plain(invite.to))

    def on_call_over(self, reason: str, now: float) -> None:
        """Tell `byed` (RFC 3261 §15.1.2), unless the phone has transferred the client."""
        if self._goes_on(now):
            return
        self._idle(now)
        self.connection.call("byed")

    def on_call_held(self, held: bool, now: float) -> None:
        self.connection.call("holded", held)

    def on_digit(self, digit: str, now: float) -> None:
        self.connection.call("dtmf", digit)

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        self.connection.call("receivedMessage", _plain(message.sender), message.text)

    def on_call_transferred(self, status: int, reason: str, now: float) -> None:
        """Tell `transferred`, and hang up when the other side has another call: RFC 3515 §2.4.5."""
        self.connection.call("transferred", f"{status} {reason}")
        if 200 <= status < 300 and self._call is not None:
            self._call.drop(now, "transferred")

    def on_call_request_failed(self, what: str, reason: str, now: float) -> None:
        """Tell a status, since the command has had its empty result: RTMP 1.0 §7.2.2."""
        status = on_status("error", FAILED, f"{what}: {reason}")
        self.connection.send_command(status)

    def takes(self, codec: str) -> bool:
        return self._call is not None and codec in self._call.names

    def on_hold_back(self, hold: bool) -> None:
        hold_back(self.connection, hold)

    # -- streams ------------------------------------------------------------------------

    def publish(self, stream: ServerStream, now: float) -> None:
        """Any published stream is `local`, the last one if there are several.

        Own design, as the original; RTMP 1.0 §7.2.2.6.
        """
        if self._publisher is not None:
            self._publisher.unpublish(now)
        self._publisher = stream
        stream.accept_publish(self, now)

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if self._call is not None:
            self._call.publish(type_id, timestamp, payload, now)
        else:
            self.published.put(type_id, timestamp, payload)

    def end(self, now: float) -> None:
        """The client no longer publishes; the call stays.  RTMP 1.0 §7.2.2.3."""
        self._publisher = None
        self.published.clear()
        if self._call is not None:
            self._call.publish_ended(now)

    def _idle(self, now: float) -> None:
        self._forget_transfer(now)
        self._call, self.state = None, State.IDLE
        self.remote.end(now)


def destination(dest: Value) -> Address:
    """Read the address that a command names.  Raises RemoteError for one that cannot be called."""
    text = dest.strip() if isinstance(dest, str) else ""
    if not text:
        raise RemoteError("Bad destination")
    if "<" not in text and ":" not in text.partition("@")[0]:
        text = f"sip:{text}"
    address = Address.parse(text)
    if address.uri.scheme == "tel":
        return address
    if address.uri.scheme not in ("sip", "sips"):
        raise RemoteError("Unsupported URI Scheme", 416)
    if address.uri.scheme == "sips":
        raise RemoteError("SIPS Not Supported", 480)
    if not address.uri.host:
        raise RemoteError("Bad destination")
    return Address(address.uri, _printable(address.display))


def _names(args: tuple[Value, ...]) -> tuple[bool, tuple[str, ...]]:
    names = tuple(arg for arg in args if isinstance(arg, str))
    return bool(names), codec_names.known(names)


def _plain(address: Address) -> str:
    """An address without its tag, as clients show it: RFC 3261 §20.10."""
    return str(Address(address.uri, address.display))


def _printable(text: str) -> str:
    """A client's text for a header field, without line breaks: RFC 3261 §7.3.1."""
    return "".join(letter for letter in text if letter.isprintable())[: failures.MAX_TEXT]


_COMMANDS: Final[Mapping[str, Callable[[Line, tuple[Value, ...], float], None]]] = {
    "invite": Line._invite,
    "accept": Line._accept,
    "reject": Line._reject,
    "bye": Line._bye,
    "hold": Line._hold,
    "sendDTMF": Line._send_dtmf,
    "sendMessage": Line._send_message,
    "transfer": Line._transfer_to,
}
