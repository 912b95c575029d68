"""The rich client's line: one RTMP connection is one single-line SIP user agent.

Own design: the command set is that of the original siprtmp, kept compatible so that its
clients work unchanged: clients send `invite`, `accept`, `reject` and `bye`, and are sent
`invited`, `ringing`, `accepted`, `rejected`, `cancelled` and `byed`.  On the SIP side these are
RFC 3261 §13, §9 and §15.  What either side asks for meanwhile is in `line_requests`.

A sans-I/O machine between a `NetConnection` and an `Call`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.registering.registration import Registration
from p2psip.ua.requests.digest_client import Login
from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError as RtmpError
from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.wire.command import Command
from siprtmp.calls import codec_names, failures
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.call import Call
from siprtmp.calls.context import KEY_FRAME_WANTED, UNSUITABLE
from siprtmp.calls.metadata import describe, watched
from siprtmp.calls.rich.line_requests import LINE_REQUESTS, LineRequests, plain
from siprtmp.calls.rich.line_state import State
from siprtmp.calls.rich.transferred import TransferredCall
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import MediaPlan

if TYPE_CHECKING:
    from siprtmp.calls.rich.sip_app import SipApplication


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


class Line(LineRequests):
    """One client with one identity and at most one call.

    It observes its call (RFC 3261 §13), and is the sink of what its client publishes.
    """

    def __init__(
        self,
        connection: NetConnection,
        account: Account,
        home: "SipApplication",
        remote: LiveStream,
        holder: Holder,
    ) -> None:
        super().__init__()
        self.connection, self.account, self._home = connection, account, home
        self.log_id, self.holder = connection.id, holder
        self.context = home.context
        self.contact = home.contact_for(account.identity, connection.id)
        self.state = State.IDLE
        self.remote = remote
        remote.on_players_changed = self._players_changed
        self.registration: Registration | None = None
        self._call: Call | None = None
        self._named = False
        self._transfer: TransferredCall | None = None
        self._publisher: ServerStream | None = None
        self.takes_opus = True  # if it names it

    # -- registering --------------------------------------------------------------------

    def connect(self, now: float, query: str = "") -> None:
        """Register, or admit the client at once if it has no password.

        RFC 3261 §10.2: `connect` is answered after the registrar has answered.  `query` is the
        text after a question mark in a stream's name.
        """
        reason = "" if self.is_proving else self._home.refusal(self, query, now)
        if reason:
            self._turn_away(f"403 Forbidden: {reason}", now)
        elif self.account.password:
            self.registration = self._home.register(self, now)
        else:
            self._enter(now)

    @property
    def is_proving(self) -> bool:
        """Whether the client has, or will have, proved its identity to a registrar."""
        return bool(self.account.password) and self._home.proves(self.account.identity)

    def on_registered(self, registration: Registration, expires: int, now: float) -> None:
        """The registrar accepted the registration or its refresh: RFC 3261 §10.2.4."""
        self._enter(now)

    def on_failed(self, registration: Registration, status: int, reason: str, now: float) -> None:
        """The registrar refused: RFC 3261 §10.2.7.  A line that was admitted stays."""
        if not self._home.has(self):
            self._turn_away(f"{status} {reason}", now)

    def _enter(self, now: float) -> None:
        if self._home.admit(self, now):
            self.connection.accept(now)
        else:
            self._turn_away("Already logged in.", now)

    def _turn_away(self, reason: str, now: float) -> None:
        """Reject the connect, or close a connection whose identity came with a stream's name."""
        self.connection.reject(reason, now)
        self.connection.close(now, reason, "NetConnection.Connect.Rejected")

    def close(self, now: float) -> None:
        """Hang up and unregister, as the connection has ended (RFC 3261 §10.2.2)."""
        self._forget_transfer(now)
        if self._call is not None:
            self._call.hang_up(now, "client gone")
            self._call = None
        if self.registration is not None:
            self._home.unregister(self.registration, now)
            self.registration = None
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
        """RFC 3261 §13.2.1."""
        if self.state is not State.IDLE:
            self.connection.call("rejected", failures.told(*failures.BUSY))
            return
        self._named, names = self._names(args[1:])
        if not self._named:
            names = sdp_map.default_names(self.account.narrowband)
        call = Call(self, self, self.context)
        self._call, self.state = call, State.INVITING
        try:
            to = self._destination(args[0] if args else None, telephones=True)
            call.dial(
                to,
                self.account.address,
                self.contact,
                names,
                now,
                unnamed=not self._named,
                credentials=self._login(),
            )
        except RemoteError as error:
            self.on_call_failed(error.status, error.reason, now)

    def _accept(self, args: tuple[Value, ...], now: float) -> None:
        """RFC 3261 §13.3.1.4."""
        call = self._call
        if self.state is not State.INVITED or call is None:
            return
        self._named, names = self._names(args)
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
        """RFC 3261 §15.1.1, or §9.1 while it rings."""
        if self._call is not None:
            self._call.hang_up(now, "client hung up")
            self._idle(now)

    def _destination(self, dest: Value, *, telephones: bool = False) -> Address:
        text = dest.strip() if isinstance(dest, str) else ""
        if not text:
            raise RemoteError("Bad destination")
        if "<" not in text and ":" not in text.partition("@")[0]:
            text = f"sip:{text}"
        address = Address.parse(text)
        if address.uri.scheme == "tel" and telephones:
            return address
        if address.uri.scheme not in ("sip", "sips"):
            raise RemoteError("Unsupported URI Scheme", 416)
        if address.uri.scheme == "sips":
            raise RemoteError("SIPS Not Supported", 480)
        if not address.uri.host:
            raise RemoteError("Bad destination")
        return Address(self._in_our_domain(address.uri), _printable(address.display))

    def _in_our_domain(self, uri: Uri) -> Uri:
        """A URI of the line's own domain with the port that `connect` named: RFC 3261 §19.1.1."""
        home = self.account.identity
        if uri.port is None and uri.host == home.host and not self._home.is_local_domain(uri):
            return uri.replace(port=home.port)
        return uri

    # -- a call for us ------------------------------------------------------------------

    def incoming(self, server: ServerHandle, now: float) -> None:
        """An INVITE for this identity (RFC 3261 §13.3.1): one call at a time, else 486.

        A MESSAGE is told to the client: RFC 3428 §7.
        """
        if server.request.method == "MESSAGE":
            self._take_message(server, now)
            return
        call = Call(self, self, self.context)
        if self.state is not State.IDLE:
            if call.take(server, self.contact, now):
                call.refuse(*failures.BUSY, now)  # RFC 3261 §13.3.1.3 [486-when-busy]
            return
        if not call.take(server, self.contact, now, credentials=self._login()):
            return
        # a call that `take` refused leaves the line free
        self._call, self.state = call, State.INVITED
        call.ring(now)
        request = server.request
        self.connection.call("invited", plain(request.from_), plain(request.to))

    def _login(self) -> Login | None:
        """The login for challenges, which is proven to the registrar alone: RFC 3261 §22.1.

        A callee could ask for it as well, and a caller when we send the BYE.
        """
        return self.registration.login if self.registration is not None else None

    # -- CallObserver and MediaSink -----------------------------------------------------

    @property
    def host(self) -> str:
        """The host of the client."""
        return self.connection.peer_address[0]

    @property
    def payer(self) -> str:
        """The line's identity if that is a user of ours, else the client's host."""
        return self._home.payer(self.connection, self.account.identity)

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        """Tell `ringing`: RFC 3261 §13.2.2.1."""
        self.connection.call("ringing", f"{status} {reason}")

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """Tell `accepted`, with the codec when the client named codecs: RFC 3261 §13.2.2.4."""
        self.state = State.UP
        if self._named and plan.x_flv is not None:
            self.connection.call("accepted", "default", "default")
        elif self._named:
            picture = plan.video.name if plan.video is not None else None
            sound = codec_names.reported(plan.audio.codec, self._call.names if self._call else ())
            self.connection.call("accepted", sound, picture)
        else:
            self.connection.call("accepted")

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        """Tell `rejected`: RFC 3261 §13.2.2.3."""
        self._idle(now)
        self.connection.call("rejected", failures.told(status, reason))

    def on_call_cancelled(self, now: float) -> None:
        """Tell `cancelled`: RFC 3261 §9.2."""
        call = self._call
        invite = call.call.invite if call and call.call else None
        self._idle(now)
        if invite is not None:
            self.connection.call("cancelled", plain(invite.from_), plain(invite.to))

    def on_call_over(self, reason: str, now: float) -> None:
        """Tell `byed` (RFC 3261 §15.1.2), unless the phone has transferred the client."""
        if self._goes_on(now):
            return
        self._idle(now)
        self.connection.call("byed")

    def takes(self, codec: str) -> bool:
        """Whether the client has named this codec of pictures."""
        return self._call is not None and codec in self._call.names

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Send sound or a picture from the phone to the players of `remote`: RTMP 1.0 §7.1.4."""
        if not self.remote.publishing:
            self._home.announce(self.remote, self._call, now)
        self.remote.write(type_id, timestamp, payload, now)

    def on_format(self, now: float) -> None:
        """Tell the players, if their stream has begun without it: FLV 10.1 §E.5."""
        if self.remote.publishing:
            describe(self.remote, self._call, now)

    def on_unsuitable(self, text: str) -> None:
        """Tell the publisher, which may not look into our log: RTMP 1.0 §7.2.2."""
        if self._publisher is not None:
            self._publisher.status(UNSUITABLE, text, "warning")

    def on_key_frame_wanted(self) -> None:
        """Ask the publisher for a key frame: RFC 5104 §3.5.1."""
        if self._publisher is not None:
            self._publisher.status(KEY_FRAME_WANTED, "The phone needs a key frame.")

    def on_hold_back(self, hold: bool) -> None:
        """Stop reading from the client, or read again."""
        if hold:
            self.connection.pause_reading()
        else:
            self.connection.resume_reading()

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
        """Send a message that the client publishes to the phone: RTMP 1.0 §7.1.4."""
        call = self._call
        publish = call.media.publish if call is not None else self._keep
        publish(type_id, timestamp, payload, now)

    def _keep(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        self.published.put(type_id, timestamp, payload)

    def end(self, now: float) -> None:
        """The client no longer publishes; the call stays.  RTMP 1.0 §7.2.2.3."""
        self._publisher = None
        self.published.clear()
        if self._call is not None:
            self._call.media.publish_ended(now)

    def _players_changed(self, remote: LiveStream, now: float) -> None:
        if self._call is not None:
            watched(self._call, remote, now)

    def _idle(self, now: float) -> None:
        self._forget_transfer(now)
        self._call, self.state = None, State.IDLE
        self.remote.end(now)


def _printable(text: str) -> str:
    """A client's text for a header field, without line breaks: RFC 3261 §7.3.1."""
    return "".join(letter for letter in text if letter.isprintable())[: failures.MAX_TEXT]


_COMMANDS: Final[Mapping[str, Callable[[Line, tuple[Value, ...], float], None]]] = {
    "invite": Line._invite,
    "accept": Line._accept,
    "reject": Line._reject,
    "bye": Line._bye,
    **LINE_REQUESTS,
}
