"""The keys of a call, by the way that its phone understands.

Implements RFC 4733 §2.5 by way of `media.keys`.

Own design: a phone that has not agreed on telephone events gets an INFO for each key, of the type
application/dtmf-relay, which no RFC describes (Field §"Keys by INFO"): "Signal=5" and
"Duration=100", in milliseconds.  Such INFOs are heard too, and the others of `KEY_TYPES`, in each
form that is known of any: a key or its code (RFC 4733 §3.2), alone or behind a name, or the octets
of a telephone event.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from siprtmp.calls.context import Waker
from siprtmp.media.keys import SECONDS, key_of, keys_in

if TYPE_CHECKING:
    from siprtmp.calls.call import AudioCall

DTMF_RELAY: Final = "application/dtmf-relay"
EVENTS: Final = ("audio/telephone-event", "application/telephone-event")
DIGITS_OF_NORTEL: Final = "application/vnd.nortelnetworks.digits"  # "p=Digit-Collection", "d=5"
KEY_TYPES: Final = (DTMF_RELAY, "application/dtmf", *EVENTS, DIGITS_OF_NORTEL)
GAP: Final = 0.25  # s from one INFO to the next, so that none overtakes another
MAX_WAITING: Final = 64  # keys, as `event_sender` has it


class CallKeys:
    """Presses and hears the keys of one call: RFC 4733 §2.5."""

    def __init__(self, call: "AudioCall") -> None:
        self._call = call
        self._infos: deque[str] = deque()
        self._info_at: float | None = None
        self._waker: Waker | None = None

    def press(self, text: str, now: float) -> None:
        """Press the keys in a text one after another: RFC 4733 §2.5.1, or RFC 6086 §4.2.1."""
        call, digits = self._call, keys_in(text)
        if call.leg is None or call.call is None or not call.call.is_up:
            return
        if not call.leg.press(digits, now):
            self._infos.extend(digits[: MAX_WAITING - len(self._infos)])
            if self._infos and self._info_at is None:
                self._info_at = now
        if self._waker is None:
            self._waker = call.facilities.media.waker(self)
        self._waker.set()

    def on_info(self, body: bytes, now: float) -> None:
        """Take an INFO of one of `KEY_TYPES`: RFC 6086 §4.2.2.  Raises RemoteError."""
        if digit := key_of(body):
            self._heard(digit, now)

    def close(self) -> None:
        """Press no more keys: RFC 3261 §15."""
        self._infos.clear()
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None

    @property
    def deadline(self) -> float | None:
        """When to call `tick`: RFC 4733 §2.5.1.2."""
        return self._info_at

    def tick(self, now: float) -> None:
        """Send what is due: RFC 4733 §2.5.1.2."""
        if self._info_at is not None and self._info_at <= now:
            self._info_at = now + GAP if self._infos else None
            if self._infos and self._call.call is not None:
                body = f"Signal={self._infos.popleft()}\r\nDuration={SECONDS * 1000:.0f}\r\n"
                self._call.call.info(DTMF_RELAY, body.encode(), now)

    def _heard(self, digit: str, now: float) -> None:
        self._call.user.on_call_digit(digit, now)
