"""Notices a phone that shows no more sign of life.

Own design: a call whose phone has vanished would last for ever.  Its RTP, its RTCP and its answers
to SIP requests are signs of life; what we send is none.
"""

from enum import Enum
from typing import Final

ANSWER_SECONDS: Final = 30.0  # s for a phone to answer: before Timer F ends the call for 408


class Silence(Enum):
    """What a silent phone is due for."""

    QUIET = "to be asked whether it is there"
    DEAD = "to be hung up"


class SilenceWatch:
    """Has a silent phone asked, and ends the call of one that does not answer.

    `timeout` in seconds; `deadline` is when to call `check`, None while nothing is expected of the
    phone.  `heard` is the time of the last sign of life; the media path sets it directly.
    """

    def __init__(self, timeout: float, now: float) -> None:
        self._timeout, self._answer_time = timeout, min(timeout / 2, ANSWER_SECONDS)
        self.heard = now
        self.deadline: float | None = None
        self._asked = False

    def begin(self, now: float) -> None:
        """Expect signs of life from now on."""
        self.deadline = now + self._timeout - self._answer_time

    def alive(self, now: float) -> None:
        """Take a sign of life."""
        self.heard, self._asked = max(now, self.heard), False

    def check(self, now: float) -> Silence | None:
        """What is due, when `deadline` has come."""
        end_at = self.heard + self._timeout
        ask_at = end_at - self._answer_time
        if ask_at > now:
            self._asked, self.deadline = False, ask_at
        elif not self._asked:  # also after a stall beyond the end
            self._asked, self.deadline = True, max(end_at, now + self._answer_time)
            return Silence.QUIET
        elif end_at > now:
            self.deadline = end_at
        else:
            self.deadline = None
            return Silence.DEAD
        return None
