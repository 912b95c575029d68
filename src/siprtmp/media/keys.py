"""The keys of a call: those that a client presses, and those that its phone presses.

Implements RFC 4733 §2.5, between a leg and `EventSender` and `EventReceiver`.

A sans-I/O machine.  Keys go in the stream of the sound, which is left out meanwhile: a phone that
hears the tone as well would count it twice: Field §"Sound under a key".
"""

import re
from collections.abc import Callable
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.payload.dtmf import DIGITS, TelephoneEvent, digit_of, event_of
from p2psip.rtp.payload.event_receiver import EventBegan, EventReceiver
from p2psip.rtp.payload.event_sender import EventPress, EventSender
from p2psip.rtp.session import RtpSession
from siprtmp.media.consent import Consent
from siprtmp.media.leg_interfaces import Wire
from siprtmp.media.sdp_map import AudioPlan

CLOCK_RATE: Final = 8000  # of sound and events, unless agreed otherwise
_SIGNAL: Final = re.compile(  # possessive, or a body of blanks would take its square in time
    r"(?:^|[\r\n])[ \t]*+(?:(?:Signal|d)[ \t]*+=[ \t]*+)?"
    r"\"?([0-9A-D*#]|1[0-6])\"?[ \t]*+(?=[\r\n]|$)",
    re.IGNORECASE,
)
SECONDS: Final = 0.1  # of a key; Own design: twice what a receiver of tones needs


class EventPath:
    """The part of a leg that sends telephone events, and leaves out sound: RFC 4733 §2.5.1.2.

    It also decides whether anything may be sent: see `Consent`.
    """

    _session: RtpSession | None
    _plan: AudioPlan | None
    _wire: Wire
    _consent: Consent
    _closed: bool
    _origin: int
    _started: float
    _mutes: frozenset[object] = frozenset()
    _sends = False  # whether sound is sent without further questions

    def mute(self, asker: object, on: bool) -> None:
        """Leave out the publisher's sound while any asker wants it.  RFC 4733 §2.5.1.2."""
        self._mutes = self._mutes | {asker} if on else self._mutes - {asker}
        self._heed_consent()

    def timestamp(self, now: float) -> int:
        """The RTP timestamp that sound of this moment would have: RFC 4733 §2.5.1.2."""
        session = self._session
        if session is not None and session.last_sent is not None:
            return session.timestamp(now)
        rate = session.send_rate if session is not None else CLOCK_RATE
        return self._origin + int((now - self._started) * rate) & 0xFFFFFFFF

    def send_event(self, payload: bytes, timestamp: int, marker: bool, now: float) -> None:
        """Send a report of an event, if the phone takes media: RFC 4733 §2.5.1.2."""
        plan, session = self._plan, self._session
        number = plan.media.telephone_event if plan is not None else None
        if plan is None or session is None or number is None or self._closed:
            return
        if self._may_send and (self._consent.is_open or self._consent.spend(len(payload), now)):
            # RFC 4733 §2.5.1.2 [same-base-as-audio]
            self._wire.send_rtp(session.send_about(number, payload, timestamp, marker, now))

    @property
    def _may_send(self) -> bool:
        """Whether the phone takes media, and packets get through to it: RFC 3264 §5.1."""
        return self._plan is not None and self._plan.media.sends and self._wire.is_ready

    def _heed_consent(self) -> None:
        self._sends = self._may_send and self._consent.is_open and not self._mutes

    def _tries(self, octets: int, now: float) -> bool:
        """Whether to send a packet to a third party that has sent none: see `Consent`."""
        return self._may_send and not self._mutes and self._consent.spend(octets, now)


class Keys:
    """Sends and hears the keys of one call: RFC 4733 §2.5.

    `on_digit(digit, now)` is called at the beginning of each key of the phone.
    """

    def __init__(self, leg: EventPath, on_digit: Callable[[str, float], None]) -> None:
        self._leg, self._on_digit = leg, on_digit
        self._sender, self._receiver = EventSender(CLOCK_RATE), EventReceiver()

    def press(self, digits: str, plan: AudioPlan | None, now: float) -> bool:
        """Queue keys; False if the phone takes no such events: RFC 4733 §2.5.1.1."""
        codes = [event_of(digit) for digit in digits]
        if plan is None or plan.media.telephone_event is None or not plan.media.sends:
            return False
        if not plan.media.events.issuperset(codes):  # RFC 4733 §2.5.1.1 [only-events-listed]
            return False
        if not self._sender.busy:
            self._sender = EventSender(plan.media.event_clock)  # RFC 4733 §2.3.5
        for code in codes:
            try:
                self._sender.press(EventPress(code, SECONDS), now)
            except LocalError:
                break  # more than anybody waits for
        self._leg.mute(self, self._sender.busy)
        return True

    def heard(self, timestamp: int, payload: bytes, now: float) -> None:
        """Take a report of the phone: RFC 4733 §2.5.2.2.  A malformed one counts as lost."""
        try:
            events = self._receiver.heard(timestamp, payload, now)
        except RemoteError:
            return
        for event in events:
            if isinstance(event, EventBegan) and event.digit is not None:
                self._on_digit(event.digit, now)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: RFC 4733 §2.5.1.2."""
        return self._sender.deadline

    def tick(self, now: float) -> None:
        """Send the report that is due: RFC 4733 §2.5.1.2."""
        leg = self._leg
        for timestamp, marker, payload in self._sender.tick(now, leg.timestamp(now)):
            leg.send_event(payload, timestamp, marker, now)
        leg.mute(self, self._sender.busy)


def keys_in(text: str) -> str:
    """The keys in a text, such as a number with spaces; the rest is left out: RFC 4733 §3.2."""
    return "".join(letter for letter in text.upper() if letter in DIGITS)


def key_of(body: bytes) -> str | None:
    """Read the key in the body of an INFO; None for the code of a flash (RFC 4733 §3.2).

    Raises RemoteError.  Field §"Keys by INFO".

    >>> key_of(b"Signal=11\\r\\nDuration=160\\r\\n"), key_of(b"d=5"), key_of(b"7")
    ('#', '5', '7')
    >>> key_of(bytes.fromhex("0b0a0320"))
    '#'
    """
    found = _SIGNAL.search(body.decode("latin-1"))
    if found is not None:
        return digit_of(int(found[1])) if len(found[1]) == 2 else found[1].upper()
    try:
        event = TelephoneEvent.parse(body)
    except RemoteError:
        raise RemoteError("Bad Key") from None
    if event.event > len(DIGITS):  # the flash is the one behind the keys
        raise RemoteError("Bad Key")
    return event.digit
