"""One phone call with sound: the SIP call and its media, which begin and end together.

Implements RFC 3261 §13 and §15 by way of `p2psip.ua`, and RFC 3264 §8 for what a
re-INVITE changes.

A sans-I/O machine.  A rich client's line and a stock tool's stream differ in what they tell their
clients; the call itself is the same for both, and is here: the offer, the media leg, the end, and
log lines for start, answer and end.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from p2psip.errors import RemoteError
from p2psip.sdp.session import SessionDescription
from p2psip.server.call_allowance import Ticket
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.stack.stack import ServerHandle
from p2psip.ua.call import UserAgentCall
from p2psip.ua.requests.digest_client import Login
from p2psip.ua.uas import IncomingCall
from rtmplite.live.sink import Sink
from siprtmp.calls import codec_names, failures
from siprtmp.calls.call_keys import CallKeys
from siprtmp.calls.call_requests import CallRequests
from siprtmp.calls.call_video import CallVideo
from siprtmp.calls.call_x_flv import CallXFlv
from siprtmp.calls.context import CallContext, CallUser, Origin
from siprtmp.calls.trunks import Dialling, Trunk
from siprtmp.media import sdp_map
from siprtmp.media.audio_stream import AudioStream
from siprtmp.media.sdp_map import AudioPlan, Endpoint, MediaPlan


class AudioCall(CallRequests):
    """A call with one audio leg, out (`dial`) or in (`take`, then `answer`).

    RFC 3261 §13; `user` is told of its progress.  After `on_call_failed`, `on_call_cancelled` or
    `on_call_over` nothing follows.  `leg`, while there is one, takes published messages.
    """

    def __init__(self, user: CallUser, facilities: CallContext) -> None:
        self.user, self.facilities = user, facilities
        self.call: UserAgentCall | None = None
        self._ringing: IncomingCall | None = None
        self._told: tuple[int, str] | None = None  # the last provisional response
        self.names: Sequence[str] = ()
        self.headers: Sequence[tuple[str, object]] = ()  # of the INVITE, for a transfer
        self.origin: Origin | None = None
        self._ticket: Ticket | None = None
        self.leg: AudioStream | None = None
        self.video, self.keys, self.x_flv = CallVideo(self), CallKeys(self), CallXFlv(self)
        self._peers: Collection[str] = ()
        self.made: list[str] = []
        self.way: Dialling | None = None
        self._came_by: Trunk | None = None
        self._holders: set[object] = set()
        self._endpoint: Endpoint | None = None
        self._offer: SessionDescription | None = None
        self._local: SessionDescription | None = None
        self._up_at: float | None = None
        self._plan: MediaPlan | None = None
        self._held = self.holds = False
        self._over = False
        self.said: Sink | None = None  # where all that is published goes as well
        self.is_source_proven = False  # that of the INVITE, before the ACK

    # -- out ----------------------------------------------------------------------------

    def dial(
        self,
        to: Address,
        from_: Address,
        contact: Uri,
        names: Sequence[str],
        now: float,
        *,
        unnamed: bool = False,
        credentials: Login | None = None,
    ) -> None:
        """Place a call offering the codecs named: RFC 3261 §13.2.1.

        Raises RemoteError (403, 404, 488, 503) if no INVITE can be sent.
        """
        self.names = names
        way = self.way = self.facilities.trunks.plan(to, from_, contact, now)
        to = way.to
        self._ticket = self._permit(way.checked, from_.uri, now)
        media = self.facilities.media
        peers = media.phone_hosts(to.uri, now) or (way.host,)
        try:
            endpoint = self._endpoint = self._offering(self._open(peers, now), now)
            self._offer = self._local = sdp_map.offer(names, endpoint, unnamed=unnamed)
            reached_at = partial(self._reached_at, peers=peers)
            self.call = way.invite(self, bytes(self._offer), now, reached_at, credentials)
        except RemoteError:
            self._close(now)
            raise
        self._begin(Origin("out", str(from_.uri), str(to.uri), f"RTMP:{self.user.host}", now))

    # -- in -----------------------------------------------------------------------------

    def take(
        self, server: ServerHandle, contact: Uri, now: float, *, credentials: Login | None = None
    ) -> bool:
        """Take an INVITE; False if it was refused at once with 488 or 503.

        RFC 3261 §13.3.1.  An offer without a codec that the gateway knows makes nothing ring.
        """
        request, peers = server.request, (server.flow.remote[0],)
        call = self.facilities.agent.incoming(
            server, self._reached_at(contact, peers), self, now, credentials=credentials
        )
        self.call = self._ringing = call
        self._came_by = self.facilities.trunks.called(server.request.uri)
        self._ticket = self.facilities.tolls.take(server)
        self._share = self.facilities.share(server, now)
        caller, callee, flow = str(request.from_.uri), str(request.uri), server.flow
        self._begin(Origin("in", caller, callee, f"{flow.transport}:{flow.remote[0]}", now))
        try:
            if call.remote_sdp:
                self._check(self._read(call.remote_sdp, now), peers)
            self._open(peers, now)
        except RemoteError as error:
            self.refuse(error.status, error.reason, now)
            return False
        return True

    def ring(self, now: float) -> None:
        """Send 180: RFC 3261 §13.3.1.1."""
        if self._ringing is not None:
            self._ringing.ring(now)

    def answer(self, names: Sequence[str], now: float, *, early: bool = False) -> None:
        """Send 200 with the codecs named that the offer has too: RFC 3261 §13.3.1.4.

        `early` sends a 183 instead, whose media the caller hears (RFC 3960 §3).
        An INVITE without an offer gets ours (RFC 3264 §5).  Raises RemoteError(488) when
        none is in common; the INVITE is then still to be refused.
        """
        call, endpoint = self._ringing, self._endpoint
        if call is None or endpoint is None:
            return
        self.names = names
        if call.remote_sdp:
            theirs = self._read(call.remote_sdp, now)
            endpoint = self._endpoint = self._answering(endpoint, theirs, now)
            try:
                self._local, plan = sdp_map.answer(theirs, names, endpoint)
            except RemoteError:
                self.note_lack(theirs)
                raise
            self._start(plan, now, early=True)
        else:
            endpoint = self._endpoint = self._offering(endpoint, now)
            offered = codec_names.brief(names)
            self._local = self._offer = sdp_map.offer(offered, endpoint)
        if early:
            call.ring(now, 183, bytes(self._local))
        else:
            call.accept(bytes(self._local), now)

    def refuse(self, status: int, reason: str, now: float) -> None:
        """Send a final failure: RFC 3261 §13.3.1.3.  The user, which asks for it, is not told."""
        if self._ringing is not None and not self._over:
            self._ringing.reject(status, reason, now)
            self._ringing.bye(now)  # if the 200 has been sent already
            self._end(now, f"{status} {reason}")

    # -- either way ---------------------------------------------------------------------

    @property
    def up_at(self) -> float | None:
        """When it was answered.  RFC 3261 §13.2.2.4."""
        return self._up_at

    @property
    def trunk_name(self) -> str | None:
        """The trunk that the call leaves by, or has come by.  Own design: for the operator."""
        if self._came_by is not None:
            return self._came_by.settings.name
        return self.way.trunk_name if self.way is not None else None

    @property
    def plan(self) -> AudioPlan | None:
        """The plan of the last answer for sound: RFC 3264 §7."""
        return self._plan.audio if self._plan is not None and self.leg is not None else None

    def give_to(self, user: CallUser) -> None:
        """Let another user hear of the call from now on, and its publisher be heard.

        Own design: for a transfer, and for a stream behind an announcement.
        """
        self.user = user
        if self.leg is not None:
            self.leg.ways.header, self.leg.ways.takes_opus = user.sound_header, user.takes_opus
        for leg in (self.leg, self.video.leg, self.x_flv.leg):
            if leg is not None:
                leg.give_to(user.on_tag)

    def hang_up(self, now: float, reason: str = "local", cause: str | None = None) -> None:
        """BYE, CANCEL or refuse, as the call's state demands: RFC 3261 §15.

        The user, which asks for it, is not told.  `cause` is for the Reason header: RFC 3326 §2.
        """
        if self.call is not None and not self._over:
            if self._ringing is not None:
                self._ringing.reject(*failures.refusal(reason), now)
            self.call.bye(now, cause)
            self._end(now, reason)

    def drop(self, now: float, reason: str, cause: str | None = None) -> None:
        """Hang up for a reason of the gateway's, and tell the user: RFC 3261 §15."""
        if not self._over:
            self.hang_up(now, reason, cause)
            self.user.on_call_over(reason, now)

    def publish_ended(self, now: float) -> None:
        """The publisher has ended; `user.on_drained` follows.  Own design: see `AudioStream`."""
        if self.said is not None:
            self.said.end(now)
        if self.leg is not None and self.leg.is_started:
            self.leg.publish_ended(now)
        else:
            self.user.on_drained(now)

    # -- CallHandler --------------------------------------------------------------------

    def on_ringing(
        self, call: UserAgentCall, status: int, reason: str, sdp: bytes | None, now: float
    ) -> None:
        """Start early media if the response has a description: RFC 3960 §3.

        A phone repeats a response to a repeated INVITE (RFC 3261 §17.2.1) and once a minute
        (RFC 3261 §13.3.1.1); the user is told once.
        """
        if sdp and self._offer is not None and self.leg is not None:
            try:
                plan = sdp_map.conclude(self._offer, self._read(sdp, now))
                self._start(plan, now, early=True)
            except RemoteError:
                self.log_event("early-media-unusable")
        if (status, reason) != self._told:
            self._told = status, reason
            self.user.on_call_ringing(status, reason, now)

    def on_accepted(self, call: UserAgentCall, sdp: bytes | None, now: float) -> None:
        """The answer is in (RFC 3261 §13.2.2.4), or our 200 is acknowledged (§13.3.1.4)."""
        plan = self._plan
        try:
            if self._offer is not None and (sdp or plan is None):
                plan = sdp_map.conclude(self._offer, self._read(sdp or b"", now))
            if plan is None:
                raise RemoteError("Not Acceptable Here", 488)
        except RemoteError as error:
            self._unusable(error, now)
            return
        self._up_at = now
        if self._share is not None:
            self._share.confirm()
        self._start(plan, now)  # again even if nothing changed: the media time-out begins here
        kind = "x-flv" if plan.x_flv is not None else ""
        if plan.video is not None:
            kind = ",".join(plan.video.names)
        pictures = {"video": kind} if kind else {}
        self.log_event("call-answer", codec=plan.audio.codec.name, **pictures)
        if not kind:
            ours = self._offer if self._offer is not None else self._local
            self.video.note_lack(ours, sdp or call.remote_sdp, is_offer=self._offer is not None)
        self.user.on_call_up(plan, now)
        self.facilities.on_up(self, now)

    def on_rejected(self, call: UserAgentCall, status: int, reason: str, now: float) -> None:
        """The callee did not take the call: RFC 3261 §13.2.2.3.

        An incoming call that was not answered in time (§13.3.1) ends for the user as if its caller
        had cancelled it.
        """
        if self._ringing is None:
            again = self.way.again(self, status, reason, now) if self.way else None
            if again is not None:
                self.call, self._told = again, None
            else:
                self._fail(status, reason, now)
        elif not self._over:
            self._end(now, f"{status} {reason}")
            self.user.on_call_cancelled(now)

    def on_cancelled(self, call: UserAgentCall, now: float) -> None:
        """The caller hung up first: RFC 3261 §9.2."""
        if not self._over:
            self._end(now, "cancelled")
            self.user.on_call_cancelled(now)

    def on_ended(self, call: UserAgentCall, reason: str, now: float) -> None:
        """The phone sent a BYE, or the dialog is lost: RFC 3261 §15.1.2."""
        if not self._over:
            self._end(now, reason)
            self.user.on_call_over(reason, now)

    # -- inside -------------------------------------------------------------------------

    def _permit(self, target: Uri, caller: Uri, now: float) -> Ticket:
        """Count a call against its user's limits; logs a refusal, and raises RemoteError.

        Own design: see `toll_guard`.
        """
        try:
            return self.facilities.tolls.begin(self.user.payer, target, now)
        except RemoteError as error:
            who = {"caller": str(caller), "callee": str(target)}
            source, reason = f"RTMP:{self.user.host}", f"{error.status} {error.reason}"
            self.log_event("call-refused", **who, source=source, reason=reason)
            raise

    def _begin(self, origin: Origin) -> None:
        """Enter the call into the list of calls and the log."""
        self.origin = origin
        self.facilities.calls.add(self)
        who = {"caller": origin.caller, "callee": origin.callee}
        by = {} if self.trunk_name is None else {"trunk": self.trunk_name}
        self.log_event("call-start", direction=origin.direction, **who, **by)
        self.facilities.on_begin(self, origin.at)

    def _start(self, plan: MediaPlan, now: float, *, early: bool = False) -> None:
        """Send media where a description says; before the ACK the INVITE's source is not proven.

        Own design: the sender of an INVITE may have forged its address, or named a third party.
        """
        self._plan = plan
        if self.leg is None or self._endpoint is None:
            return
        proven = self._ringing is None or self._up_at is not None or self.is_source_proven
        hosts = self._hosts(now)
        self.leg.ways.takes_opus = self.user.takes_opus
        self.leg.ways.wants_speex = codec_names.wants_speex(self.names)
        self.leg.start(plan.audio, now, hosts=hosts, early=early, proven=proven)
        self.video.start(plan.video, now, hosts, early, proven)
        self.x_flv.start(plan.x_flv, now, hosts, early, proven)
        if not self.x_flv.is_open:
            self._endpoint = replace(self._endpoint, x_flv=None)
        if self.video.leg is None:
            self._endpoint = replace(self._endpoint, video=None)

    def _unusable(self, error: RemoteError, now: float) -> None:
        """End a call whose answer has no usable audio, and tell the user: RFC 3264 §7."""
        if self.call is None or self._over:
            return
        self.call.bye(now)
        if self._ringing is None and self._up_at is None:
            self._fail(error.status, error.reason, now)
        else:
            self._end(now, f"{error.status} {error.reason}")
            self.user.on_call_over(error.reason, now)

    def _fail(self, status: int, reason: str, now: float) -> None:
        if not self._over:
            self._end(now, f"{status} {reason}")
            self.user.on_call_failed(status, reason, now)

    def _end(self, now: float, reason: str) -> None:
        self._over = True
        leg, video = self.leg, self.video.leg
        seconds = 0.0 if self._up_at is None else now - self._up_at
        self.log_event(
            "call-end",
            reason=reason,
            seconds=round(seconds, 1),
            sent=leg.sent if leg else 0,
            received=leg.received if leg else 0,
            **({"video_sent": video.sent, "video_received": video.received} if video else {}),
            **({"left_out": self.left_out} if self.left_out else {}),
        )
        self.facilities.calls.discard(self)
        self.facilities.on_end(self, reason, now)
        self._close(now)

    def _close(self, now: float) -> None:
        self.facilities.tolls.end(self._ticket)
        self.keys.close()
        if self.leg is not None:
            self.leg.close(now)
            self.facilities.media.close_leg(self.leg)
            self.leg = None
        self.video.close(now)
        self.x_flv.close(now)

    def log_event(self, what: str, **values: object) -> None:
        """Write a line about this call into the log.  Own design: see the page of log events."""
        call_id = self.call.id if self.call else "-"
        self.facilities.log.event(what, call=call_id, rtmp=self.user.log_id, **values)

    def log_warning(self, what: str, **values: object) -> None:
        """Write a warning about this call into the log.  Own design: as `log_event`."""
        call_id = self.call.id if self.call else "-"
        self.facilities.log.warning(what, call=call_id, rtmp=self.user.log_id, **values)
