"""What a call says by INFO: keys, and wishes for a key frame.

Implements RFC 6086 §4.2 for requests of the old kind, and RFC 5168 §4 for phones that take no RTCP
feedback: Field §"Key frames by INFO".

Own design: a phone that has not agreed on telephone events gets an INFO for each key, of the type
application/dtmf-relay, which no RFC describes (Field §"Keys by INFO"): "Signal=5" and
"Duration=100", in milliseconds.  Such INFOs are heard too, and the others of `KEY_TYPES`, in each
form that is known of any: a key or its code (RFC 4733 §3.2), alone or behind a name, or the octets
of a telephone event.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from p2psip.ua.requests.request_validation import RefusalError
from siprtmp.media.dtmf import SECONDS, key_of
from siprtmp.media.session import MediaSession
from siprtmp.media.transport import Timed, Waker

DTMF_RELAY: Final = "application/dtmf-relay"
EVENTS: Final = ("audio/telephone-event", "application/telephone-event")
DIGITS_OF_NORTEL: Final = "application/vnd.nortelnetworks.digits"  # "p=Digit-Collection", "d=5"
KEY_TYPES: Final = (DTMF_RELAY, "application/dtmf", *EVENTS, DIGITS_OF_NORTEL)
GAP: Final = 0.25  # s from one INFO to the next, so that none overtakes another
MAX_WAITING: Final = 64  # keys, the limit of `event_sender`


MEDIA_CONTROL: Final = "application/media_control+xml"  # Source: RFC 5168 §7.1
FAST_UPDATE: Final = (
    b'<?xml version="1.0" encoding="utf-8"?><media_control><vc_primitive><to_encoder>'
    b"<picture_fast_update/></to_encoder></vc_primitive></media_control>"
)
INFO_TYPES: Final = ", ".join((*KEY_TYPES, MEDIA_CONTROL))


class CallInfo:
    """Sends and reads the INFOs of one call: RFC 6086 §4.2.

    What the phone says goes to the session; `send(content_type, body, now)` sends an INFO, and
    `waker` makes a timer.
    """

    def __init__(
        self,
        media: MediaSession,
        send: Callable[[str, bytes, float], None],
        waker: Callable[[Timed], Waker],
    ) -> None:
        self._media, self._send, self._make_waker = media, send, waker
        self._waiting: deque[str] = deque()
        self._waker: Waker | None = None
        self._at: float | None = None
        self._refuses_updates = False

    def take(self, content_type: str, body: bytes, now: float) -> None:
        """Take an INFO of the phone: RFC 6086 §4.2.2, RFC 5168 §4.

        Raises RemoteError for any other body, so that the phone may try another way.
        """
        if content_type in KEY_TYPES and body:
            if digit := key_of(body):
                self._media.on_digit(digit, now)
        elif content_type == MEDIA_CONTROL:
            self._refuses_updates |= b"general_error" in body
            if b"picture_fast_update" in body:
                self._media.want_key_frame(now)
        elif body:
            # RFC 3261 §8.2.3 [415-for-the-body] [415-says-accept]
            raise RefusalError(415, "Unsupported Media Type", [("Accept", INFO_TYPES)])

    def ask_key_frame(self, now: float) -> None:
        """Ask the phone for a key frame, unless it has refused that: RFC 5168 §4."""
        if not self._refuses_updates:  # RFC 5168 §6 [no-more-after-an-error]
            self._send(MEDIA_CONTROL, FAST_UPDATE, now)

    def press(self, digits: str, now: float) -> None:
        self._waiting.extend(digits[: MAX_WAITING - len(self._waiting)])
        if self._waiting and self._at is None:
            self._at = now
        if self._waker is None:
            self._waker = self._make_waker(self)
        self._waker.set()

    def close(self) -> None:
        self._waiting.clear()
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None

    @property
    def deadline(self) -> float | None:
        return self._at

    def tick(self, now: float) -> None:
        if self._at is None or self._at > now:
            return
        self._at = now + GAP if self._waiting else None
        if self._waiting:
            body = f"Signal={self._waiting.popleft()}\r\nDuration={SECONDS * 1000:.0f}\r\n"
            self._send(DTMF_RELAY, body.encode(), now)
