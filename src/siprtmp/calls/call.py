"""One SIP call and its media, which begin and end together.

Implements RFC 3261 §13 to §15, RFC 3428 §4 and §7, RFC 3515 §2.4, and RFC 6086 §4.2.2, by way of
`p2psip.ua`.

Own design: a sans-I/O machine.  Lines, names, rooms and files differ in what they do with a call;
the call is the same for all, and tells a `CallObserver`.  Its media are a `MediaSession`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.jsep import is_of_browser
from p2psip.sdp.sdes_transport import SrtpTerms
from p2psip.server.call_allowance import Ticket
from p2psip.server.port_shares import PortShare, PortShares
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.call import UserAgentCall
from p2psip.ua.messages import InstantMessage, Messages
from p2psip.ua.requests.digest_client import Login
from p2psip.ua.transfers import Referral
from p2psip.ua.ua import UserAgent
from p2psip.ua.uas import IncomingCall
from siprtmp.calls import failures, srtp_use
from siprtmp.calls.call_info import DTMF_RELAY, CallInfo
from siprtmp.calls.call_log import CallLog, Origin
from siprtmp.calls.descriptions import Descriptions
from siprtmp.calls.observer import CallEvent, CallObserver
from siprtmp.calls.srtp_use import Privacy
from siprtmp.calls.toll_guard import Tolls
from siprtmp.calls.trunks import Dialling, Invitation, Trunks
from siprtmp.media.browser_transport import BrowserLeg
from siprtmp.media.dtmf import keys_in
from siprtmp.media.negotiation import Negotiation
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.session import MediaSession, MediaStatistics, PeerFormat, Publish
from siprtmp.media.sink import MediaSink
from siprtmp.media.transcode.video_transcoder import VideoTranscoders
from siprtmp.media.transport import Timed, Waker
from siprtmp.operation.logs import Log

RELAY_LOST: Final = "relay lost"  # the TURN server was restarted, or does not answer
NO_PORT: Final = "No Media Port"  # of --rtp-ports, or no descriptor for one
DEAD: Final = 'SIP;cause=408;text="Media Timeout"'  # Reason of the BYE: RFC 3326 §2


class Call:
    """A call, out (`dial`) or in (`take`, then `answer`): RFC 3261 §13.

    `user` is told of its progress; after `on_call_failed`, `on_call_cancelled` or `on_call_over`
    nothing follows.  `publish` takes what is published (see `MediaSession`), at any time; it is
    another function after most events, so ask for it each time.
    """

    publish: Publish
    origin: Origin  # once it has begun

    def __init__(self, user: CallObserver, sink: MediaSink, context: "CallContext") -> None:
        self.user, self.context = user, context
        self.call: UserAgentCall | None = None
        self.log = CallLog(context.log, context.count_unsuitable, self._whose)
        self.media = media = MediaSession(self, self.log, sink)
        self.publish_ended, self.record = media.publish_ended, media.record
        self.mute = media.mute
        self.request_key_frame = media.request_key_frame
        self._ringing: IncomingCall | None = None
        self._told: tuple[int, str] | None = None  # the last provisional response
        self.names: Sequence[str] = ()
        self._ticket: Ticket | None = None
        self._share: PortShare | None = None  # of an incoming call
        self.descriptions = Descriptions(media, self.log, context.hosts_of)
        self._infos = CallInfo(media, self._info, context.media.waker)
        self.dialling: Dialling | None = None
        self.trunk_name: str | None = None  # of the trunk that it leaves by, or has come by
        self.up_at: float | None = None  # when it was answered: RFC 3261 §13.2.2.4
        self._over = False

    def dial(self, wanted: Invitation, now: float) -> None:
        """Offer the codecs named: RFC 3261 §13.2.1.  Raises RemoteError (403, 404, 488, 503)."""
        context, self.names, self.descriptions.are_proven = self.context, wanted.names, True
        dialling = self.dialling = context.trunks.plan(wanted, now)
        caller, callee = str(wanted.from_.uri), str(dialling.to.uri)
        origin = Origin("out", caller, callee, self.user.source, now)
        try:
            self._ticket = context.tolls.begin(self.user.payer, dialling.checked, now)
        except RemoteError as error:
            self.log.refused(origin, dialling.checked, error)
            raise
        peers = context.phone_hosts(dialling.to.uri, now) or (dialling.host,)
        context.agree(self.media.terms, dialling, now)
        try:
            context.open(self, peers, now, self._share)
            offer = self.media.offer(now, unnamed=wanted.unnamed)
            reached_at = partial(context.reached_at, peers=peers)
            self.call = dialling.invite(context.agent, self, offer, now, reached_at)
            self.trunk_name = dialling.trunk_name
        except RemoteError:
            self._close(now)
            raise
        self._begin(origin)

    def take(
        self, server: ServerHandle, contact: Uri, now: float, *, login: Login | None = None
    ) -> bool:
        """Take an INVITE (RFC 3261 §13.3.1); False if it was refused at once with 488 or 503."""
        context, request, flow = self.context, server.request, server.flow
        peers = (flow.remote[0],)
        here = context.reached_at(contact, peers)
        call = context.agent.incoming(server, here, self, now, credentials=login)
        self.call = self._ringing = call
        trunk = context.trunks.called(request.uri)
        self.trunk_name = trunk.settings.name if trunk is not None else None
        self._ticket, self._share = context.tolls.take(server), context.share(server, now)
        source = f"{flow.transport}:{flow.remote[0]}"
        self.media.terms.is_browser = context.comes_from_browser(call.remote_sdp)
        self.media.terms.srtp = context.terms_by(srtp_use.of_request(request, flow))
        self._begin(Origin("in", str(request.from_.uri), str(request.uri), source, now))
        try:
            self.descriptions.check(call, context.media.host_for(peers), now)
            context.open(self, peers, now, self._share)
        except RemoteError as error:
            self.refuse(error.status, error.reason, now)
            return False
        return True

    def ring(self, now: float) -> None:
        if self._ringing is not None:
            self._ringing.ring(now)
            self._tell(CallEvent.RINGING, now)

    def answer(self, names: Sequence[str], now: float, *, early: bool = False) -> None:
        """Send 200 with the codecs named that the offer has too: RFC 3261 §13.3.1.4.

        `early` sends a 183 instead (RFC 3960 §3).  An INVITE without an offer gets ours (RFC 3264
        §5).  Raises RemoteError(488) without a codec in common; it is then still to be refused.
        """
        call = self._ringing
        if call is None or not self.media.is_open:
            return
        self.names = names
        ours = self.descriptions.first(call, names, now)
        if early:
            call.ring(now, 183, ours)
        else:
            call.accept(ours, now)

    def refuse(self, status: int, reason: str, now: float) -> None:
        """Send a final failure: RFC 3261 §13.3.1.3.  The user, which asks for it, is not told."""
        if self._ringing is not None and not self._over:
            self._ringing.reject(status, reason, now)
            self._ringing.bye(now)  # if the 200 has been sent already
            self._end(now, f"{status} {reason}")

    def hang_up(self, now: float, reason: str = "local", cause: str | None = None) -> None:
        """BYE, CANCEL or refuse, as the call's state demands: RFC 3261 §15.

        The user, which asks for it, is not told.  `cause` is for the Reason header: RFC 3326 §2.
        """
        if self.call is not None and not self._over:
            if self._ringing is not None:
                self._ringing.reject(*failures.refusal(reason), now)
            self.call.bye(now, cause)
            self._end(now, reason)

    def drop(self, now: float, reason: str = RELAY_LOST, cause: str | None = None) -> None:
        """Hang up for a reason of the gateway's, and tell the user: RFC 3261 §15."""
        if not self._over:
            self.hang_up(now, reason, cause)
            self.user.on_call_over(reason, now)

    def give_to(self, user: CallObserver, sink: MediaSink) -> None:
        self.user = user
        self.media.give_to(sink)

    # -- within the call ----------------------------------------------------------------

    def hold(self, on: bool, now: float) -> None:
        """Put the phone on hold, or take it off: RFC 3264 §8.4.

        Own design: the publisher is not heard from then on, whatever the phone answers.
        """
        call, media = self.call, self.media
        if call is not None and call.is_up and media.is_open and on != media.terms.holds:
            media.hold(on)
            call.reinvite(self.on_offer(call, None, now), now)

    def press(self, text: str, now: float) -> None:
        """Press the keys in a text one after another: RFC 4733 §2.5.1, or RFC 6086 §4.2.1."""
        digits = keys_in(text)
        if self.call is not None and self.call.is_up and not self.media.press(digits, now):
            self._infos.press(digits, now)

    def message(self, text: str, now: float) -> None:
        """Send an instant message: RFC 3428 §4.  Raises RemoteError, and LocalError if too long."""
        self._up().message(text, now)

    def transfer(self, target: Uri, now: float) -> None:
        """Ask the phone to call `target` instead: RFC 3515 §2.4.1.  Raises RemoteError."""
        try:
            self._up().refer(target, now)
        except LocalError:
            raise RemoteError("Request Pending", 491) from None

    def _up(self) -> UserAgentCall:
        if self.call is None or not self.call.is_up:
            raise RemoteError("Call/Transaction Does Not Exist", 481)
        return self.call

    @property
    def is_muted(self) -> bool:
        """Whether the phone does not hear what is published."""
        return self.media.is_muted

    @property
    def holds(self) -> bool:
        """Whether we have the phone on hold: RFC 3264 §8.4."""
        return self.media.terms.holds

    @property
    def is_of_browser(self) -> bool:
        """Whether its media have the transport of a browser: RFC 5763 §5."""
        return self.media.terms.is_browser

    @property
    def dtls_suite(self) -> str:
        """The suite of the keys that a browser has agreed on, "" without: RFC 5764 §4.2."""
        leg = self.media.envelope
        return leg.suite if isinstance(leg, BrowserLeg) else ""

    @property
    def plan(self) -> MediaPlan | None:
        return self.media.terms.plan

    @property
    def format(self) -> PeerFormat | None:
        """What players get of the phone, see `MediaSession`: FLV 10.1 §E.5."""
        return self.media.format

    @property
    def statistics(self) -> MediaStatistics:
        return self.media.statistics

    # -- CallHandler -------------------------------------------------------------------

    def on_ringing(
        self, call: UserAgentCall, status: int, reason: str, sdp: bytes | None, now: float
    ) -> None:
        """Start early media (RFC 3960 §3); a response that is repeated is told once."""
        self.descriptions.early(call, sdp, now)
        if (status, reason) != self._told:
            self._told = status, reason
            self._tell(CallEvent.RINGING, now)
            self.user.on_call_ringing(status, reason, now)

    def on_accepted(self, call: UserAgentCall, sdp: bytes | None, now: float) -> None:
        """The answer is in (RFC 3261 §13.2.2.4), or our 200 is acknowledged (§13.3.1.4)."""
        try:
            plan = self.descriptions.settle(call, sdp, now)
        except RemoteError as error:
            self._unusable(error, now)
            return
        self.up_at = now
        if self._share is not None:
            self._share.confirm()
        self._tell(CallEvent.ANSWERED, now)
        self.user.on_call_up(plan, now)
        if not self._over:
            self.context.on_up(self, now)

    def on_rejected(self, call: UserAgentCall, status: int, reason: str, now: float) -> None:
        """The callee did not take it (RFC 3261 §13.2.2.3), or we have not in time (§13.3.1)."""
        if self._ringing is None:
            again, dialling = None, self.dialling
            if dialling is not None:
                again = dialling.again(call.id, status, reason, now, self.log)
                self.trunk_name = dialling.trunk_name
            if again is None:
                self._fail(status, reason, now)
            else:
                self.call, self._told = again, None
        else:
            self._finish(f"{status} {reason}", self.user.on_call_cancelled, now)

    def on_cancelled(self, call: UserAgentCall, now: float) -> None:
        self._finish("cancelled", self.user.on_call_cancelled, now)

    def on_ended(self, call: UserAgentCall, reason: str, now: float) -> None:
        self._finish(reason, partial(self.user.on_call_over, reason), now)

    def on_offer(self, call: UserAgentCall, sdp: bytes | None, now: float) -> bytes:
        """Answer a re-INVITE (RFC 3264 §8); RemoteError leaves all as it was (RFC 3261 §14.2)."""
        ours = self.descriptions.again(call, sdp, now)
        self._tell_hold(now)
        return ours

    def on_confirmed(self, call: UserAgentCall, now: float) -> None:
        """Our answer to a new offer is acknowledged (RFC 3261 §14.2): follow the peer's address."""
        self.descriptions.confirmed(call, now)

    def on_alive(self, call: UserAgentCall, now: float) -> None:
        """A SIP message is a sign of life, also of a phone without audio: RFC 3261 §12.2."""
        self.media.alive(now)

    def on_answer(self, call: UserAgentCall, sdp: bytes | None, now: float) -> None:
        """The answer in the ACK or 200 of a re-INVITE: RFC 3261 §14.2."""
        if not sdp:
            return
        try:
            self.descriptions.concluded(call, sdp, now)
        except RemoteError as error:
            self._unusable(error, now)  # Field §"Refusals by port 0"
        else:
            self._tell_hold(now)

    def on_reoffer_failed(self, call: UserAgentCall, status: int, reason: str, now: float) -> None:
        self.user.on_call_request_failed("hold", f"{status} {reason}", now)

    def on_info(
        self, call: UserAgentCall, content_type: str, body: bytes, now: float, package: str | None
    ) -> None:
        """Take a key of the phone, or what it says about video: RFC 6086 §4.2.2, RFC 5168 §4."""
        self._infos.take(content_type, body, now)

    def on_message(self, call: UserAgentCall, message: InstantMessage, now: float) -> None:
        is_read = self._tell(CallEvent.MESSAGE, now, message.text)
        try:
            self.user.on_call_message(message, now)
        except RemoteError:
            if not is_read:
                raise

    def on_transfer(self, call: UserAgentCall, status: int, reason: str, now: float) -> None:
        self._tell(CallEvent.TRANSFERRED, now, f"{status} {reason}")
        self.user.on_call_transferred(status, reason, now)

    def on_refer(self, call: UserAgentCall, referral: Referral, now: float) -> None:
        self.user.on_call_refer(referral, now)

    def on_refused(
        self, call: UserAgentCall, request: Request, response: Response, now: float
    ) -> None:
        reason = f"{response.status} {response.reason}"
        if request.method == "MESSAGE":
            self.user.on_call_request_failed("sendMessage", reason, now)
        elif request.content_type == DTMF_RELAY:
            self.user.on_call_request_failed("sendDTMF", reason, now)

    # -- SessionOwner -------------------------------------------------------------------

    def on_publish_changed(self, publish: Publish) -> None:
        """Have published messages go there, without a call between."""
        self.publish = publish

    def on_digit(self, digit: str, now: float) -> None:
        self._tell(CallEvent.DIGIT, now, digit)
        self.media.sink.on_digit(digit, now)

    def on_quiet(self, now: float) -> None:
        """Ask a silent phone whether it is still there: RFC 3261 §11."""
        if self.call is not None:
            self.call.ask(now)

    def on_silence(self, now: float) -> None:
        """End the call of a phone that has vanished, which would last for ever."""
        self.drop(now, "media timeout", DEAD)

    def on_key_frame_needed(self, now: float) -> None:
        self._infos.ask_key_frame(now)

    # -- inside -------------------------------------------------------------------------

    def _whose(self) -> dict[str, object]:
        return {"call": self.call.id if self.call is not None else "-", "rtmp": self.user.log_id}

    def _begin(self, origin: Origin) -> None:
        self.origin = origin
        self.context.calls.add(self)
        self.log.begin(origin, self.trunk_name)
        self.context.on_begin(self, origin.at)
        self._tell(CallEvent.BEGUN, origin.at)

    def _tell_hold(self, now: float) -> None:
        if (held := self.descriptions.news_of_hold()) is not None:
            self._tell(CallEvent.HELD if held else CallEvent.RESUMED, now)
            self.user.on_call_held(held, now)

    def _tell(self, event: CallEvent, now: float, text: str = "") -> bool:
        return self.context.on_event(self, event, text, now)

    def _info(self, content_type: str, body: bytes, now: float) -> None:
        if self.call is not None:
            self.call.info(content_type, body, now)

    def _unusable(self, error: RemoteError, now: float) -> None:
        """End a call whose answer has no usable audio, and tell the user: RFC 3264 §7."""
        if self.call is None or self._over:
            return
        self.call.bye(now)
        if self._ringing is None and self.up_at is None:
            self._fail(error.status, error.reason, now)
        else:
            told = partial(self.user.on_call_over, error.reason)
            self._finish(f"{error.status} {error.reason}", told, now)

    def _fail(self, status: int, reason: str, now: float) -> None:
        self._finish(f"{status} {reason}", partial(self.user.on_call_failed, status, reason), now)

    def _finish(self, reason: str, told: Callable[[float], None], now: float) -> None:
        if not self._over:
            self._end(now, reason)
            told(now)

    def _end(self, now: float, reason: str) -> None:
        self._over = True
        seconds = 0.0 if self.up_at is None else now - self.up_at
        self.log.end(reason, seconds, self.media.statistics)
        self.context.calls.discard(self)
        self.context.on_end(self, reason, now)
        self._tell(CallEvent.ENDED, now, reason)
        self._close(now)

    def _close(self, now: float) -> None:
        self.context.tolls.end(self._ticket)
        self._infos.close()
        self.media.close(now)


class MediaEdge(Protocol):
    """Opens sessions; `MediaSide` is the real one.  `shares` divides its ports among hosts."""

    shares: PortShares

    @property
    def media_host(self) -> str:
        """The address that peers outside know us by: RFC 8866 §5.7."""

    @property
    def video_transcoding(self) -> VideoTranscoders | None:
        """How video is decoded and encoded, None if it is not."""

    def host_for(self, peers: Collection[str]) -> str:
        """The address of ours that peers at these hosts can reach: RFC 8866 §5.7."""

    def open(
        self,
        session: MediaSession,
        lost: Callable[..., object],
        peers: Collection[str],
        now: float,
        share: PortShare | None = None,
    ) -> None:
        """Open a session with peers at these hosts; `lost(now)` is called if its way breaks.

        That of a browser is told why: `lost(now, reason)`.
        Raises LocalError when no port is left, or none for `share`, whose ports these are.
        """

    def waker(self, machine: Timed) -> Waker:
        """A timer for a machine."""


@dataclass(slots=True)
class CallContext:
    """The services that all calls of the gateway share.

    `share(server, now)` is the share of ports for an INVITE; None if the call may have any.
    `phone_hosts(user, now)` are the hosts that the phones of a user of ours registered from, and
    `privacy_to(uri, now)` tells who could read what is sent there; `srtp` is the word of `--srtp`.
    `on_event(call, event, text, now)` is told what happens to any call, and tells whether
    somebody reads a message.
    `has_browsers` says that there is a port for their media, and `is_browser(uri, now)` whether
    the phones of a user are all in browsers.
    """

    agent: UserAgent
    media: MediaEdge
    random: Callable[[int], bytes]
    log: Log
    tolls: Tolls
    calls: set[Call] = field(default_factory=set)
    trunks: Trunks = field(default_factory=Trunks)
    unsuitable: int = 0  # what could not be carried, of calls and rooms, since the start
    on_begin: Callable[[Call, float], None] = lambda call, now: None
    on_up: Callable[[Call, float], object] = lambda call, now: None
    on_end: Callable[[Call, str, float], None] = lambda call, reason, now: None
    on_event: Callable[[Call, CallEvent, str, float], bool] = lambda *about: False
    share: Callable[[ServerHandle, float], PortShare | None] = lambda server, now: None
    phone_hosts: Callable[[Uri, float], Collection[str]] = lambda user, now: ()
    srtp: str = "auto"
    privacy_to: Callable[[Uri, float], Privacy] = lambda uri, now: srtp_use.of_uri(uri)
    has_browsers: bool = False
    is_browser: Callable[[Uri, float], bool] = lambda uri, now: False
    messages: Messages = field(init=False)

    def count_unsuitable(self) -> None:
        self.unsuitable += 1

    def __post_init__(self) -> None:
        self.messages = Messages(self.agent.core)

    def open(
        self, call: Call, peers: Collection[str], now: float, share: PortShare | None = None
    ) -> None:
        """Have ports for the media of a call.  Raises RemoteError(503)."""
        call.media.terms.names = call.names
        try:
            self.media.open(call.media, call.drop, peers, now, share)
        except LocalError as error:
            raise RemoteError(NO_PORT, 503) from error

    def terms_by(self, privacy: Privacy) -> SrtpTerms:
        """What we want of SRTP where the signalling is as private as this: RFC 4568 §8.3."""
        return srtp_use.srtp_terms(self.srtp, privacy, self.random)

    def agree(self, terms: Negotiation, dialling: Dialling, now: float) -> None:
        """Set what we want of the media of a call that is to be placed: RFC 4568 §8.3."""
        ways, wanted = dialling.ways, dialling.wanted.browser
        are_browsers = all(self.is_browser(each, now) for each in ways)
        terms.is_browser = self.has_browsers and (are_browsers if wanted is None else wanted)
        terms.srtp = self.terms_by(min(self.privacy_to(each, now) for each in ways))

    def comes_from_browser(self, offer: bytes | None) -> bool:
        """Whether we can answer this offer as one of a browser: RFC 5763 §5."""
        return self.has_browsers and offer is not None and is_of_browser(offer)

    def hosts_of(self, call: UserAgentCall, now: float) -> Collection[str]:
        """The hosts that the signalling comes from: the peer, or phones behind our own proxy."""
        host, media = call.peer_host, self.media
        if host is not None:
            return (host,)
        return (media.media_host, *self.phone_hosts(call.remote.uri, now))

    def reached_at(self, contact: Uri, peers: Collection[str]) -> Uri:
        """Our Contact for peers at these hosts: RFC 3261 §8.1.1.8."""
        if self.media.host_for(peers) == self.media.media_host:
            return contact
        transport = (contact.param("transport") or "udp").upper()
        here = self.agent.stack.contact(None, transport, next(iter(peers)))
        return contact.replace(host=here.host, port=here.port)
