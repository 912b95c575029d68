"""A call for scripts: answer, talk, hang up, wait for the end.

Implements RFC 3261 §13 to §15, and RFC 3515 §2.4, for one user, by a `UserAgentCall` for the
signalling and an `AudioStream` for the audio.
"""

import logging
from collections.abc import Callable
from typing import Final

import gevent
from gevent.event import AsyncResult, Event

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipDriver
from p2psip.net.media.port_pool import NoPortsError
from p2psip.net.phone.audio import AudioHandler, AudioStream, EventHandler
from p2psip.net.waiting import result_of
from p2psip.rtp.extended_report import VoipMetrics
from p2psip.rtp.payload.event_receiver import EventBegan, HeardEvent
from p2psip.rtp.session import Statistics
from p2psip.sdp.offer_answer import Codec
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.ua.call import CallHandler
from p2psip.ua.replaces import Replaces, found_at
from p2psip.ua.transfers import Referral
from p2psip.ua.ua import CallState, IncomingCall
from p2psip.ua.ua import UserAgentCall as Signalling

ACK_SECONDS: Final = 40.0  # longer than 64*T1, after which the call is given up: §13.3.1.4
DIGIT_SECONDS: Final = 0.1  # Own design: no shorter than any exchange recognises
InfoHandler = Callable[[str | None, str, bytes], object]
HUNG_UP: Final = "hung up"
log: Final = logging.getLogger(__name__)


class Call:
    """One call; `Agent.call` makes it, or `Agent.on_call` is given it.

    `on_audio(payload, timestamp)` is called with each payload, in order, `timestamp` in RTP ticks.
    `on_digit(digit, seconds)` is called for each key that the other side presses (RFC 4733 §3.2):
    when it goes down with None, and when it is up again with the time that it was down.
    `on_ringing(status, reason)` is told of 18x answers, and `on_ended(reason)` once of the end,
    whichever side brought it about.  `on_info(package, content_type, body)` is given what an INFO
    of the other side has, `package` None for one of the old kind (RFC 6086 §4.2.2); a RemoteError
    refuses it.  All are called in the hub and must not wait.
    `on_transfer(target)`, in the hub, tells whether to follow a wish of the other side that we call
    somebody else (RFC 3515 §2.4.2); no wish is followed unless it is set.  `on_transferred(call)`
    is given the call that takes this one's place, in a greenlet of its own; unless it is set, that
    call is hung up.  `referral` is the wish that had us place this call.  `asserted` is the caller
    as a trusted proxy asserts it (RFC 3325 §8).  `remote` is the other side, `reason` tells why the
    call has ended ("" before).
    """

    def __init__(
        self,
        driver: SipDriver,
        open_audio: Callable[[AudioHandler, EventHandler], AudioStream],
        on_change: Callable[["Call"], object],
        follow: Callable[[Referral], "Call"],
    ) -> None:
        self.on_transfer: Callable[[Address], bool] = lambda target: False
        self.on_transferred: Callable[[Call], object] = lambda call: call.hangup()
        self.on_audio: AudioHandler = lambda payload, timestamp: None
        self.on_digit: Callable[[str, float | None], object] = lambda digit, seconds: None
        self.on_ringing: Callable[[int, str], object] = lambda status, reason: None
        self.on_ended: Callable[[str], object] = lambda reason: None
        self.on_info: InfoHandler = lambda package, content_type, body: None
        self.reason = ""
        self.asserted: Address | None = None
        self._driver, self._on_change, self._follow = driver, on_change, follow
        self.referral: Referral | None = None  # that had us place this call
        self._transfer: AsyncResult[None] = AsyncResult()
        self._reoffered: AsyncResult[None] = AsyncResult()
        self._answered: AsyncResult[None] = AsyncResult()
        self._ended = Event()
        self._audio = open_audio(
            lambda payload, timestamp: self.on_audio(payload, timestamp), self._heard_event
        )
        self._audio.when_lost(lambda error: self.hangup())
        self._audio.when_moved(self._tell_address)
        driver.machines.append(self._audio)
        self._sip: Signalling | None = None
        self._answer = b""
        self._concluding = False  # the offer is ours, and its answer has not come

    @property
    def id(self) -> str:
        """The Call-ID: §8.1.1.4."""
        return self._signalling.id

    @property
    def direction(self) -> str:
        """The direction: "out" for a call that we made, else "in"."""
        return self._signalling.direction

    @property
    def remote(self) -> Address:
        """The other side: §20.20, §20.39."""
        return self._signalling.remote

    @property
    def state(self) -> str:
        """The state of the call, one of `CallState`."""
        return self._signalling.state

    @property
    def is_up(self) -> bool:
        return self._signalling.is_up and not self.is_over

    @property
    def is_over(self) -> bool:
        return self._ended.is_set()

    @property
    def is_held(self) -> bool:
        """Whether the other side has put us on hold: RFC 3264 §8.4."""
        return self._audio.held

    @property
    def is_encrypted(self) -> bool:
        """Whether the audio is encrypted: RFC 4568 §5.1, or RFC 5763 §5 by DTLS."""
        return self._audio.encrypted

    @property
    def is_by_ice(self) -> bool:
        """Whether both sides have ICE, so that it chooses the way of the audio: RFC 8839 §4.2.5."""
        return self._audio.is_by_ice

    @property
    def codec(self) -> Codec | None:
        """The codec to send; None before both sides have agreed."""
        return self._audio.codec

    @property
    def ptime(self) -> int:
        """How many ms of audio the other side wants in a packet: RFC 8866 §6.4."""
        return self._audio.ptime

    @property
    def statistics(self) -> Statistics | None:
        """The figures of the audio so far: RFC 3550 §6.4.4.  None before both have agreed."""
        return self._audio.statistics

    @property
    def remote_metrics(self) -> VoipMetrics | None:
        """How the other side hears us: RFC 3611 §4.7.  None before it has told."""
        return self._audio.remote_metrics

    # -- for scripts --------------------------------------------------------------------

    def answer(self, timeout: float = ACK_SECONDS) -> None:
        """Pick up a call that rings here, and wait for the ACK (§13.3.1.4).

        Raises RemoteError if the caller has gone, TimeoutError, LocalError if it is not ringing.
        """
        sip = self._signalling
        if self.is_over:
            raise RemoteError("Request Terminated", 487)
        if not isinstance(sip, IncomingCall):
            raise LocalError("only a call that comes in can be answered")
        self._driver.run(sip.accept, self._answer, monotonic())
        self._audio.connect()
        self.wait_answered(timeout)

    def reject(self, status: int = 486, reason: str = "Busy Here") -> None:
        """Refuse a call that rings here (§13.3.1.3); does nothing if it no longer rings."""
        sip = self._signalling
        if not isinstance(sip, IncomingCall):
            raise LocalError("only a call that comes in can be refused")
        if sip.state is CallState.RINGING:
            self._driver.run(sip.reject, status, reason, monotonic())
            self._end(f"{status} {reason}", RemoteError(reason, status))

    def hangup(self, reason: str | None = None) -> None:
        """End the call in any state (§15); `reason` is for the Reason header (RFC 3326 §2)."""
        if not self.is_over:
            self._driver.run(self._signalling.bye, monotonic(), reason)
            self._end(HUNG_UP, RemoteError("Request Terminated", 487))

    def hold(self, on: bool = True, timeout: float = 30.0) -> None:
        """Put the other side on hold, and wait until it has agreed: RFC 3264 §8.4.

        Does nothing unless the call is up.  Raises RemoteError with the SIP status if the other
        side refuses, which leaves the session as it was, and TimeoutError.
        """
        if not self.is_up:
            return
        before = self._audio.direction
        # RFC 8839 §4.4.1.1.1 [hold-is-no-address]
        self._audio.direction = "sendonly" if on else "sendrecv"
        try:
            self._reoffer(timeout)
        except RemoteError:
            self._audio.direction = before
            raise

    def _reoffer(self, timeout: float, *, restarts: bool = False) -> None:
        self._reoffered = AsyncResult()
        offer = self._audio.offer(restarts=restarts)
        self._driver.run(self._signalling.reinvite, offer, monotonic())
        result_of(self._reoffered, timeout, "no answer to the new offer")

    def resume(self, timeout: float = 30.0) -> None:
        """Take the other side off hold, as `hold` put it there: RFC 3264 §8.4."""
        self.hold(False, timeout)

    def restart_ice(self, timeout: float = 30.0) -> None:
        """Look for a way to the other side anew, and wait until it has agreed: RFC 8445 §9.

        Audio goes by the old way meanwhile.  Does nothing unless the call is up, or without ICE.
        Raises RemoteError with the SIP status if the other side refuses, TimeoutError.
        """
        if self.is_up and self.is_by_ice:
            self._reoffer(timeout, restarts=True)

    def transfer(self, target: "str | Call", timeout: float = 60.0) -> None:
        """Have the other side call `target`, a URI or the peer of another call of ours.

        RFC 3515 §2.4, and RFC 3891 §4 for a call, whose place the new one takes.  Waits until that
        call is answered; this one goes on until it is hung up.  Raises RemoteError with the SIP
        status if the transfer is refused or fails, TimeoutError, LocalError.
        """
        replaces = None
        if isinstance(target, Call):
            dialog = target._signalling.dialog
            if dialog is None or not target.is_up:
                raise LocalError("only a call that is up can be transferred to")
            uri, replaces = found_at(dialog), Replaces.of(dialog)
        else:
            uri = _uri(target)
        self._transfer = AsyncResult()
        self._driver.run(self._signalling.refer, uri, monotonic(), replaces)
        result_of(self._transfer, timeout, "the transfer was not finished")

    @property
    def is_ready(self) -> bool:
        """Whether audio gets through, which a relay has to consent to first: RFC 8656 §11.1."""
        return not self.is_over and self._audio.is_ready

    def send_audio(self, payload: bytes, timestamp: int | None = None) -> bool:
        """Send one payload now (see `AudioStream.send`); False when nothing may be sent."""
        return not self.is_over and self._audio.send(payload, timestamp)

    def send_digits(self, digits: str, seconds: float = DIGIT_SECONDS) -> bool:
        """Press keys one after another, each for `seconds`: RFC 4733 §2.5.1.

        Returns at once; audio is left out meanwhile.  False if nothing may be sent, or the other
        side understands no such events.  Raises LocalError for a character other than a key.
        """
        return not self.is_over and self._audio.press(digits, seconds)

    def send_info(self, package: str | None, content_type: str, body: bytes) -> bool:
        """Send an INFO of an Info Package, or of the old kind with None: RFC 6086 §4.2.1.

        Returns at once; False unless the call is up.  LocalError if the peer takes no such package.
        """
        if self.is_up:
            self._driver.run(self._signalling.info, content_type, body, monotonic(), package)
        return self.is_up

    def wait_answered(self, timeout: float | None = None) -> None:
        """Wait until the call is up.  Raises RemoteError with the SIP status if it has failed.

        Raises TimeoutError after `timeout` seconds; the call is then as before.
        """
        result_of(self._answered, timeout, "no answer")

    def wait_ended(self, timeout: float | None = None) -> bool:
        """Wait for the end of the call; False if it has not ended within `timeout` seconds."""
        return self._ended.wait(timeout)

    # -- for the agent ------------------------------------------------------------------

    def dial(self, invite: Callable[[bytes, CallHandler], Signalling]) -> None:
        """Begin a call: `invite(offer, handler)` sends the INVITE (§13.2.1)."""
        self._concluding = True
        try:
            self._sip = self._driver.run(invite, self._audio.offer(), _CallEvents(self))
        except BaseException:
            self.discard()
            raise

    def take(self, accept: Callable[[CallHandler], IncomingCall]) -> bool:
        """Begin to ring for an INVITE (§13.3.1); False if its offer was refused at once."""
        try:
            self._sip = sip = accept(_CallEvents(self))
        except RemoteError:
            self.discard()
            raise
        try:
            self._concluding = sip.remote_sdp is None
            self._answer = (
                self._audio.offer()
                if sip.remote_sdp is None
                else self._audio.answer(sip.remote_sdp)
            )
        except RemoteError as error:
            self.reject(error.status, error.reason)
            return False
        sip.ring(monotonic())
        return True

    def discard(self) -> None:
        """Give back the ports of a call that never began.  Own design."""
        self._end("never began", RemoteError("Request Terminated", 487))

    def is_of(self, sip: Signalling) -> bool:
        """Whether this is the call of that signalling.  Own design."""
        return self._sip is sip

    def replaces(self, other: "Call") -> bool:
        """Whether the INVITE of this call asks for the place of another one (RFC 3891 §3)."""
        replaced = self._sip.replaced if isinstance(self._sip, IncomingCall) else None
        return replaced is not None and other.is_of(replaced)

    def yield_to(self, other: "Call") -> None:
        """Answer a call that takes this one's place, and end this one (RFC 3891 §3)."""
        try:
            other.answer()
        except (RemoteError, TimeoutError) as error:
            log.info("call %s: %s", other.id, error)
            return
        self._end("replaced", RemoteError("Request Terminated", 487))
        self.on_transferred(other)

    def _tell_address(self) -> None:
        """Offer the address that ICE has chosen: RFC 8839 §4.3.4."""
        if not self.is_over:
            self._driver.run(self._signalling.reinvite, self._audio.offer(), monotonic())

    @property
    def _signalling(self) -> Signalling:
        if self._sip is None:
            raise LocalError("the call has not begun")
        return self._sip

    def _heard_event(self, event: HeardEvent, clock_rate: int) -> None:
        if event.digit is not None:
            seconds = None if isinstance(event, EventBegan) else event.duration / clock_rate
            self.on_digit(event.digit, seconds)

    # -- from the owner -----------------------------------------------------------------

    def _accepted(self, sdp: bytes) -> None:
        try:
            if self._concluding:
                self._concluding = False
                if sdp or self._audio.codec is None:  # else a reliable 18x has brought the answer
                    self._audio.conclude(sdp)
        except RemoteError as error:
            self._signalling.bye(monotonic())
            self._end(str(error), error)
            return
        self._answered.set(None)
        self._progress(200, "OK")
        self._on_change(self)

    def _progress(self, status: int, reason: str) -> None:
        if self.referral is not None:
            self.referral.progress(status, reason, monotonic())

    def _refer(self, referral: Referral) -> None:
        if not self.on_transfer(referral.target):
            raise RemoteError("Decline", 603)
        gevent.spawn(self._hand_over, referral)

    def _hand_over(self, referral: Referral) -> None:
        new = followed(self._driver, self._follow, referral)
        if new is not None:  # else this call goes on, and its other side is told
            self.on_transferred(new)

    def _end(self, reason: str, error: RemoteError) -> None:
        if self.is_over:
            return
        self.reason = reason
        self._driver.machines.remove(self._audio)
        self._audio.close()
        self._ended.set()
        for waiting in (self._answered, self._reoffered):
            if not waiting.ready():
                waiting.set_exception(error)
        self._on_change(self)
        self.on_ended(reason)


class _CallEvents(CallHandler):
    """Passes the events of the signalling to a `Call` (§13 to §15)."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def on_ringing(
        self, call: Signalling, status: int, reason: str, sdp: bytes | None, now: float
    ) -> None:
        if sdp is not None:
            try:
                self._call._audio.conclude(sdp)  # early media: §13.2.1
            except RemoteError as error:
                log.info("early media of %s: %s", call.id, error)
        self._call._progress(status, reason)
        self._call.on_ringing(status, reason)

    def on_refer(self, call: Signalling, referral: Referral, now: float) -> None:
        self._call._refer(referral)

    def on_transfer(self, call: Signalling, status: int, reason: str, now: float) -> None:
        if status >= 300:
            self._call._transfer.set_exception(RemoteError(reason, status))
        elif status >= 200:
            self._call._transfer.set(None)

    def on_accepted(self, call: Signalling, sdp: bytes, now: float) -> None:
        self._call._accepted(sdp)

    def on_rejected(self, call: Signalling, status: int, reason: str, now: float) -> None:
        self._call._progress(status, reason)
        self._call._end(f"{status} {reason}", RemoteError(reason, status))

    def on_cancelled(self, call: Signalling, now: float) -> None:
        self._call._end("CANCEL", RemoteError("Request Terminated", 487))

    def on_ended(self, call: Signalling, reason: str, now: float) -> None:
        self._call._end(reason, RemoteError(reason, 487))

    def on_offer(self, call: Signalling, sdp: bytes | None, now: float) -> bytes:
        audio = self._call._audio
        # RFC 8839 §7.5 [no-offer-restarts]
        return audio.offer(restarts=True) if sdp is None else audio.answer(sdp)

    def on_answer(self, call: Signalling, sdp: bytes, now: float) -> None:
        try:
            self._call._audio.conclude(sdp)
        except RemoteError as error:
            call.bye(now)
            self._call._end(str(error), error)
        else:
            self._call._reoffered.set(None)

    def on_confirmed(self, call: Signalling, now: float) -> None:
        """Look for a way to the peer, if it is another one; the session is in force: §14.2."""
        self._call._audio.connect()

    def on_alive(self, call: Signalling, now: float) -> None:
        """Do nothing: a script has time limits of its own."""

    def on_reoffer_failed(self, call: Signalling, status: int, reason: str, now: float) -> None:
        """Take the refusal of `Call.hold`: the session stays as it was: §14.1."""
        self._call._reoffered.set_exception(RemoteError(reason, status))

    def on_info(
        self, call: Signalling, content_type: str, body: bytes, now: float, package: str | None
    ) -> None:
        self._call.on_info(package, content_type, body)


def followed(
    driver: SipDriver, follow: Callable[[Referral], Call], referral: Referral
) -> Call | None:
    """Place the call that a peer asks for: RFC 3515 §2.4.2.  None if it fails; the peer is told."""
    try:
        call = follow(referral)
        call.wait_answered()
    except RemoteError:
        return None
    except (LocalError, NoPortsError) as error:
        log.warning("a call that was asked for: %s", error)
        driver.run(referral.progress, 503, "Service Unavailable", monotonic())
        return None
    return call


def _uri(text: str) -> Uri:
    try:
        return Uri.parse(text if text.lower().startswith(("sip:", "sips:")) else f"sip:{text}")
    except RemoteError as error:
        raise LocalError(f"{text!r} is not an address: {error.reason}") from None
