"""One name of the RTMP application `call`: its publisher, its players, and its phone call.

Own design: see `call_app`.  RFC 3261 §13 happens behind `Call`; the stream side is
RTMP 1.0 §7.2.2.

The states of a call and the keys of its phone are data messages `onStatus`, with an information
object as RTMP 1.0 §7.2.2 describes it.  Its code begins with NetStream.Call: the form in which
Flash Media Server tells a player of NetStream.Data.Start.  A command onStatus would not do:
GStreamer gives up a publication when another one than NetStream.Publish.Start answers it, and a
phone rings before that.

H.264 is what every player has.  Another video codec is answered where the publisher sends it, or
where a client has said at connect that it can do something with it, by E-RTMP v2 §"Enhancing
NetConnection connect Command"; a player that says nothing is not sent what it may not know.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final
from urllib.parse import unquote

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.requests.digest_client import Login
from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.auth.credentials import fields
from rtmplite.flv.enhanced import four_cc_text
from rtmplite.live.streams import LiveStream
from rtmplite.rtmp.netstream import ServerStream
from siprtmp.calls import codec_names, failures
from siprtmp.calls.access.admission import Holder
from siprtmp.calls.call import Call
from siprtmp.calls.home import BAD_NAME, CallHome, hold_back
from siprtmp.calls.metadata import DATA
from siprtmp.calls.stream_user import StreamUser
from siprtmp.calls.trunks import Invitation
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.sink import DiscardPacer
from siprtmp.media.translate.video_tag import FOUR_CCS, H264

APP: Final = "call"
MIXED: Final = "mixed"  # the application that plays both sides of its call
SIP_USER, SIP_PASSWORD = "sip-user", "sip-pass"  # in the query of a stream's name
TEL: Final = "tel:"  # how the name of a number begins that is dialled: RFC 3966 §3
ON_STATUS: Final = "onStatus"


class CallStatus(StrEnum):
    """The codes: RTMP 1.0 §7.2.2."""

    RINGING = "NetStream.Call.Ringing"
    ANSWERED = "NetStream.Call.Answered"
    HELD = "NetStream.Call.Held"
    RESUMED = "NetStream.Call.Resumed"
    DIGIT = "NetStream.Call.Digit"
    ENDED = "NetStream.Call.Ended"


class NamedCall(StreamUser):
    """One name: at most one publisher, any number of players, at most one call.

    It observes its call and takes what the phone sends; it is the sink of its publisher.  `forget`
    is called when it has neither publisher, players nor call.
    """

    def __init__(
        self,
        name: str,
        home: CallHome,
        remote: LiveStream,
        forget: Callable[["NamedCall"], None],
    ) -> None:
        super().__init__(home.context, remote)
        self.name, self._home, self._forget = name, home, forget
        self.log_id = f"call/{name}"
        self._is_up, self._payer = False, ""
        self._hears: Call | None = None  # the call, once it can take audio
        self._rings: Call | None = None  # the call, until a page has answered it
        self._void = DiscardPacer(self.on_hold_back, self.context.media.waker)
        self.holder: Holder | None = None  # none if only a route of the operator has named it

    @property
    def dials(self) -> bool:
        """Whether publishing places a call, to the address that the name is."""
        return is_dialled(self.name)

    @property
    def is_busy(self) -> bool:
        return self._publisher is not None or self._call is not None

    # -- the publisher ------------------------------------------------------------------

    def publish(self, stream: ServerStream, now: float) -> None:
        """Take a publisher, if there is none: RTMP 1.0 §7.2.2.6.

        Own design: a publisher that dials gets NetStream.Publish.Start when the phone answers,
        so that no audio is lost and none is old.  Pings until then keep tools from timing out.
        """
        if self._publisher is not None or (self.dials and self._call is not None):
            stream.reject_publish(BAD_NAME, f"{self.name} is already published.", now)
            return
        self._publisher = stream
        self.note()
        self.log_id = stream.client.id
        if not self.dials:
            stream.accept_publish(self, now)
            if self._rings is not None:
                self._answer(self._rings, now)
            elif self._call is None:
                source = f"RTMP:{self.host}"
                log = self.context.log
                log.event("call-wait", rtmp=self.log_id, name=self.name, source=source)
            return
        stream.connection.transport.hold_on()
        stream.on_withdrawn = self.end
        try:
            self._dial(now)
        except RemoteError as error:
            self.on_call_failed(error.status, error.reason, now)

    def place(self, caller: Address, to: Address, payer: str, now: float) -> Call:
        """Call somebody as `caller`, the user of this name, which the client has proved.

        It counts for `payer`.  Raises RemoteError, 409 if the name has a call.
        """
        if self.dials or self._call is not None:
            raise RemoteError("The name has a call", 409)
        call = self._call = Call(self, self, self.context)
        self._payer = payer
        home = self._home
        contact = home.contact(self.name, self.log_id)
        try:
            call.dial(Invitation(to, caller, contact, codec_names.offered()), now)
        except RemoteError:
            self._finished(now)
            raise
        self.note()
        return call

    def vouches(self, call_id: str) -> bool:
        """Whether this is the call that has been placed for the name: RFC 3261 §22.3."""
        call = self._call.call if self._call is not None and self._payer else None
        return call is not None and call.id == call_id

    def note(self) -> None:
        """Tell the other workers what this name is used for."""
        self._home.neighbours.has_name(self.name, self.holder, is_busy=self.is_busy)

    def release(self, newcomer: tuple[str, bool], now: float) -> None:
        """Let go of a publisher that is lost, for `newcomer`, which wants the name.

        A call that it had dialled ends; one that has come in goes on.
        """
        publisher = self._publisher
        if publisher is None or not publisher.yields_to(newcomer, now):
            return
        self._publisher = None
        publisher.replaced(now)
        self._void.stop()
        self.published.clear()
        if self.dials:
            self._hang_up(now)
        self.note()

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Send a published message to the phone, or drop it at the pace of a call without one.

        RTMP 1.0 §7.1.4.  Own design: see `DiscardPacer`.
        """
        hears = self._hears
        if hears is not None:
            hears.publish(type_id, timestamp, payload, now)
        elif type_id != DATA:
            self._void.put(timestamp / 1000, now)
            self.published.put(type_id, timestamp, payload)

    def end(self, now: float) -> None:
        """Hang up when the audio published so far has been sent.  RTMP 1.0 §7.2.2.3."""
        self._void.stop()
        self._publisher = None
        self.published.clear()
        self.note()
        if self._call is None:
            self._forget_if_idle(now)
        elif self._is_up:
            self._call.publish_ended(now)
        else:
            self._hang_up(now)

    def _dial(self, now: float) -> None:
        home = self._home
        is_number = self.name.startswith(TEL)
        to = Address(Uri.parse(self.name if is_number else f"sip:{self.name}"))
        if not is_number and not (to.uri.host and to.uri.user):
            raise RemoteError("Bad destination")
        call = Call(self, self, self.context)
        self._call = call
        query = self._publisher.query if self._publisher is not None else ""
        caller, login = caller_of(query, to.uri, home.caller)
        contact = home.contact(caller.uri.user or APP, self.log_id)
        offered = codec_names.offered(query)
        call.dial(Invitation(to, caller, contact, offered, login=login), now)

    def _hang_up(self, now: float) -> None:
        if self._call is not None:
            self._call.hang_up(now, "unpublished")
            self._finished(now)

    # -- a call for the name ------------------------------------------------------------

    def incoming(self, server: ServerHandle, now: float) -> None:
        """Answer a call at once, since a stock tool cannot decide.  RFC 3261 §13.3.1.4."""
        contact = self._home.contact(self.name, self.name)
        call = Call(self, self, self.context)
        if call.take(server, contact, now):
            self.adopt(call, now)
        else:
            self._forget_if_idle(now)

    def ring(self, server: ServerHandle, now: float) -> None:
        """Let a call ring until a page of the user publishes, which answers it.

        RFC 3261 §13.3.1.1.  A page that publishes already is called as any other publisher is.
        """
        call = Call(self, self, self.context)
        if not call.take(server, self._home.contact(self.name, self.name), now):
            self._forget_if_idle(now)
        elif self.is_busy:
            self.adopt(call, now)
        else:
            self._call = self._rings = call
            self.note()
            call.ring(now)

    def adopt(self, call: Call, now: float) -> None:
        """Answer a call that rings, and that another user had until now, unless there is one."""
        if self._call is not None:
            call.refuse(*failures.BUSY, now)
            return
        call.give_to(self, self)
        self._call = call
        self.note()
        self._answer(call, now)

    def _answer(self, call: Call, now: float) -> None:
        self._rings = None
        try:
            others = ["aac", *beside_h264(self.published.gop.codec, self._publisher, self.remote)]
            call.answer(codec_names.answered(others), now)
        except RemoteError as error:
            call.refuse(error.status, error.reason, now)
            self._finished(now)
        else:
            self._hear_if_possible()

    # -- CallObserver and MediaSink -----------------------------------------------------

    @property
    def host(self) -> str:
        publisher = self._publisher
        return publisher.client.host if publisher is not None else ""

    @property
    def payer(self) -> str:
        """The one that has placed its call; else the user its publisher has proved, or its host."""
        if self._payer:
            return self._payer
        home, publisher = self._home, self._publisher
        return home.payer(publisher.client, None, publisher.query) if publisher else ""

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        self._tell(CallStatus.RINGING, f"{status} {reason}", now)

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """Let the publisher start: RTMP 1.0 §7.2.2.6, RFC 3261 §13.2.2.4."""
        self._is_up = True
        self._hear_if_possible()
        if self._publisher is not None and self.dials:
            self._publisher.connection.transport.held_on()
            self._publisher.accept_publish(self, now)
        self._tell(CallStatus.ANSWERED, plan.audio.codec.name, now)

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        self._finished(now, failures.REJECTED, failures.told(status, reason))

    def on_call_cancelled(self, now: float) -> None:
        self._finished(now)

    def on_call_over(self, reason: str, now: float) -> None:
        """The phone hung up: end a publish that dialled; a waiting one stays.  RFC 3261 §15."""
        self._finished(now, failures.OVER, reason)

    def on_call_held(self, held: bool, now: float) -> None:
        self._tell(CallStatus.HELD if held else CallStatus.RESUMED, "", now)

    def on_digit(self, digit: str, now: float) -> None:
        self._tell(CallStatus.DIGIT, digit, now)

    def takes(self, codec: str) -> bool:
        """Whether a player has said so, unless all get what is made for them."""
        makes = self.context.media.video_transcoding is not None
        return not makes and is_taken(self.remote, codec)

    def on_key_frame_wanted(self) -> None:
        """Ask the publisher once it has begun: one that dials begins with the answer."""
        if self._is_up or not self.dials:
            super().on_key_frame_wanted()

    def on_hold_back(self, hold: bool) -> None:
        if self._publisher is not None:
            hold_back(self._publisher.connection, hold)

    def on_drained(self, now: float) -> None:
        if self._publisher is None:
            self._hang_up(now)

    def _finished(self, now: float, code: str = failures.OVER, description: str = "") -> None:
        self._call, self._hears, self._rings, self._is_up, self._payer = None, None, None, False, ""
        self.remote.end(now)
        publisher = self._publisher
        if publisher is not None and self.dials:
            self._publisher = None
            publisher.connection.transport.held_on()
            publisher.end_publish(code, description, now)
        else:
            self._tell(CallStatus.ENDED, description, now)
        self.note()
        self._forget_if_idle(now)

    def _tell(self, status: CallStatus, description: str, now: float) -> None:
        tell(self._publisher, self.remote, status, description, now)

    def _hear_if_possible(self) -> None:
        """Send the publisher's audio to the phone from now on, if its answer is known."""
        if self._call is not None and self._call.plan is not None:
            self._hears = self._call
            self._void.stop()

    def _players_changed(self, remote: LiveStream, now: float) -> None:
        super()._players_changed(remote, now)
        self._forget_if_idle(now)

    def _forget_if_idle(self, now: float) -> None:
        if self._publisher is None and self._call is None and not self.remote.players:
            self._forget(self)


def is_dialled(name: str) -> bool:
    """Whether a name is an address to call, and not one that waits to be called."""
    return "@" in name or name.startswith(TEL)


def caller_of(query: str, to: Uri, default: Address) -> tuple[Address, Login | None]:
    """The From of a call to `to`, and its login; `default` without one.

    Own design: a stock tool has a URL and nothing else.  `?sip-user=NAME&sip-pass=PASSWORD` has it
    call as NAME of the callee's own domain, and answer that server's challenges (RFC 3261 §22); the
    password is proven to no other server.  Raises RemoteError for a name that cannot go into a
    header.
    """
    given = fields(query)
    user, password = (unquote(given.get(name, "")) for name in (SIP_USER, SIP_PASSWORD))
    if not (user and password) or to.scheme == "tel":
        return default, None
    if not user.isprintable():  # it goes into a header: RFC 3261 §7.3.1
        raise RemoteError("Not a login name")
    server = to.replace(user=None, headers=())
    return Address(server.replace(user=user, params=())), Login(user, password, server)


def tell(
    publisher: ServerStream | None,
    remote: LiveStream,
    status: CallStatus,
    description: str,
    now: float,
) -> None:
    """Tell the publisher, and the players if the phone has said anything: RTMP 1.0 §7.1.2.

    The stream begins with the first audio or video, whose metadata comes first.
    """
    information: dict[str, Value] = {
        "level": "status",
        "code": status.value,
        "description": description,
    }
    if publisher is not None:
        publisher.data(ON_STATUS, information)
    if remote.publishing:
        remote.write(DATA, remote.timestamp, amf0.encode(ON_STATUS, information), now)


def is_taken(remote: LiveStream, codec: str) -> bool:
    return any(_supports(each, codec) for each in remote.viewers)


def beside_h264(sent: str, publisher: ServerStream | None, remote: LiveStream) -> list[str]:
    """The codecs to answer a phone with: the one that is `sent`, and those that players take.

    A publisher that has sent nothing yet may have said what it can send.
    """
    return [
        name
        for name in FOUR_CCS
        if name != H264
        and (name == sent or is_taken(remote, name) or (not sent and _supports(publisher, name)))
    ]


def _supports(end: object, codec: str) -> bool:
    if not isinstance(end, ServerStream):
        return False
    return end.client.capabilities.supports(four_cc_text(FOUR_CCS[codec]))
