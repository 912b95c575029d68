"""The states and timers of a call.

Implements RFC 3261 §13 and §15.
"""

from enum import StrEnum


class CallState(StrEnum):
    """The state of a call.  Own design: one for dialog and session together (§13, §15)."""

    CALLING = "calling"  # we call; no final answer yet
    RINGING = "ringing"  # we are called, and have not answered
    ANSWERED = "answered"  # we have answered, and wait for the ACK
    UP = "up"
    ENDING = "ending"  # over for the user; the network still has to be told
    ENDED = "ended"


class Timer(StrEnum):
    """The timers of a call.  Own design: the names; the sections are where each is used."""

    ANSWER = "answer"  # the end of ringing, as we have it
    EXPIRES = "expires"  # the end of ringing, as the caller has it: §13.3.1
    PROGRESS = "progress"  # the next 1xx: §13.3.1.1
