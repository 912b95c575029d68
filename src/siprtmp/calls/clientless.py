"""The user of a call that no RTMP client takes part in: a room's phone, or one that hears a file.

Own design: what only a client could do is declined, and what only a client could be told is not
told.  RFC 3261 §13 is behind most events, as with `CallUser`.
"""

from p2psip.errors import RemoteError
from p2psip.ua.messages import InstantMessage
from p2psip.ua.transfers import Referral
from siprtmp.calls.call import AudioCall
from siprtmp.media.sdp_map import MediaPlan
from siprtmp.media.translate.sound_header import SoundHeader


class Clientless:
    """A `CallUser` of incoming calls; its heirs do what they are for."""

    log_id: str

    def __init__(self) -> None:
        self.sound_header, self.takes_opus = SoundHeader(), False

    @property
    def host(self) -> str:
        """No client has asked for this call."""
        return ""

    @property
    def payer(self) -> str:
        """Nobody pays for a call that came in."""
        return ""

    def takes(self, codec: str) -> bool:
        """No player has said anything."""
        return False

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        """Not of an incoming call: RFC 3261 §13.2.2.1."""

    def on_call_up(self, plan: MediaPlan, now: float) -> None:
        """The caller has the answer: RFC 3261 §13.3.1.4."""

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        """Not of an incoming call: RFC 3261 §13.2.2.3."""

    def on_call_cancelled(self, now: float) -> None:
        """The caller gave up: RFC 3261 §9.2."""

    def on_call_over(self, reason: str, now: float) -> None:
        """The caller hung up: RFC 3261 §15."""

    def on_call_held(self, held: bool, now: float) -> None:
        """Go on: nobody else is to be told.  RFC 3264 §8.4."""

    def on_call_digit(self, digit: str, now: float) -> None:
        """Ignore keys: RFC 4733 §2.5.2.2."""

    def on_call_message(self, message: InstantMessage, now: float) -> None:
        """Refuse a message, which nobody would read: RFC 3428 §7."""
        raise RemoteError("Method Not Allowed", 405)

    def on_call_refer(self, call: AudioCall, referral: Referral, now: float) -> None:
        """Decline a transfer: RFC 3515 §2.4.2."""
        raise RemoteError("Decline", 603)

    def on_call_transferred(self, status: int, reason: str, now: float) -> None:
        """Nobody is transferred: RFC 3515 §2.4.5."""

    def on_call_request_failed(self, what: str, reason: str, now: float) -> None:
        """Nothing is asked for: RFC 3261 §12.2."""

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Drop what the caller says: RTMP 1.0 §7.1.4."""

    def on_unsuitable(self, text: str) -> None:
        """Nobody could publish another codec; the log has it."""

    def on_key_frame_wanted(self) -> None:
        """Nobody could make one: RFC 5104 §3.5.1."""

    def on_hold_back(self, hold: bool) -> None:
        """Nobody is to be held back."""

    def on_drained(self, now: float) -> None:
        """Nothing has ended."""
