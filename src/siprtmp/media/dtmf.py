"""The keys of a call: those that a client presses, and those that its phone presses.

Implements RFC 4733 §2.5 by way of `EventSender` and `EventReceiver`.

A sans-I/O machine.  Keys go in the stream of the audio, which is left out meanwhile: a phone that
hears the tone as well would count it twice: Field §"Sound under a key".
"""

import re
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.payload.dtmf import DIGITS, TelephoneEvent, digit_of, event_of
from p2psip.rtp.payload.event_receiver import EventBegan, EventReceiver
from p2psip.rtp.payload.event_sender import EventPress, EventSender
from siprtmp.media.sdp_map import AudioPlan

CLOCK_RATE: Final = 8000  # of audio and events, unless agreed otherwise
_SIGNAL: Final = re.compile(  # possessive, or a body of blanks would take its square in time
    r"(?:^|[\r\n])[ \t]*+(?:(?:Signal|d)[ \t]*+=[ \t]*+)?"
    r"\"?([0-9A-D*#]|1[0-6])\"?[ \t]*+(?=[\r\n]|$)",
    re.IGNORECASE,
)
SECONDS: Final = 0.1  # of a key; Own design: twice what a receiver of tones needs


class DtmfKeys:
    """Sends, by its `sender`, and hears the keys of one call: RFC 4733 §2.5."""

    def __init__(self) -> None:
        self.sender, self._receiver = EventSender(CLOCK_RATE), EventReceiver()

    def press(self, digits: str, plan: AudioPlan | None, now: float) -> bool:
        """Queue keys; False if the phone takes no such events: RFC 4733 §2.5.1.1."""
        codes = [event_of(digit) for digit in digits]
        if plan is None or plan.media.telephone_event is None or not plan.media.sends:
            return False
        if not plan.media.events.issuperset(codes):  # RFC 4733 §2.5.1.1 [only-events-listed]
            return False
        if not self.sender.busy:
            self.sender = EventSender(plan.media.event_clock)  # RFC 4733 §2.3.5
        for code in codes:
            try:
                self.sender.press(EventPress(code, SECONDS), now)
            except LocalError:
                break  # more than anybody waits for
        return True

    def heard(self, timestamp: int, payload: bytes, now: float) -> list[str]:
        """Return the keys that begin with a report of the phone; a malformed report counts as lost.

        They reach RTMP by `MediaSink.on_digit`.
        """
        try:
            events = self._receiver.heard(timestamp, payload, now)
        except RemoteError:
            return []
        began = [event for event in events if isinstance(event, EventBegan)]
        return [event.digit for event in began if event.digit is not None]


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
