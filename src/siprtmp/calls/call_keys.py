"""The keys of a call by INFO, for phones that take no telephone events.

Own design: a phone that has not agreed on telephone events gets an INFO for each key, of the type
application/dtmf-relay, which no RFC describes (Field §"Keys by INFO"): "Signal=5" and
"Duration=100", in milliseconds.  Such INFOs are heard too, and the others of `KEY_TYPES`, in each
form that is known of any: a key or its code (RFC 4733 §3.2), alone or behind a name, or the octets
of a telephone event.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from siprtmp.media.keys import SECONDS
from siprtmp.media.transport import Timed, Waker

DTMF_RELAY: Final = "application/dtmf-relay"
EVENTS: Final = ("audio/telephone-event", "application/telephone-event")
DIGITS_OF_NORTEL: Final = "application/vnd.nortelnetworks.digits"  # "p=Digit-Collection", "d=5"
KEY_TYPES: Final = (DTMF_RELAY, "application/dtmf", *EVENTS, DIGITS_OF_NORTEL)
GAP: Final = 0.25  # s from one INFO to the next, so that none overtakes another
MAX_WAITING: Final = 64  # keys, as `event_sender` has it


class InfoKeys:
    """Presses keys one after another: RFC 6086 §4.2.1.

    `send(content_type, body, now)` sends an INFO; `waker` makes a timer.
    """

    def __init__(
        self, send: Callable[[str, bytes, float], None], waker: Callable[[Timed], Waker]
    ) -> None:
        self._send, self._make_waker = send, waker
        self._waiting: deque[str] = deque()
        self._waker: Waker | None = None
        self._at: float | None = None

    def press(self, digits: str, now: float) -> None:
        """Press keys, the first at once: RFC 6086 §4.2.1."""
        self._waiting.extend(digits[: MAX_WAITING - len(self._waiting)])
        if self._waiting and self._at is None:
            self._at = now
        if self._waker is None:
            self._waker = self._make_waker(self)
        self._waker.set()

    def close(self) -> None:
        """Press no more keys: RFC 3261 §15."""
        self._waiting.clear()
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None

    @property
    def deadline(self) -> float | None:
        """When to call `tick`."""
        return self._at

    def tick(self, now: float) -> None:
        """Send the INFO that is due."""
        if self._at is None or self._at > now:
            return
        self._at = now + GAP if self._waiting else None
        if self._waiting:
            body = f"Signal={self._waiting.popleft()}\r\nDuration={SECONDS * 1000:.0f}\r\n"
            self._send(DTMF_RELAY, body.encode(), now)
