"""Where a call stands, and what it waits for.

Implements RFC 3261 §13 and §15.
"""

from enum import StrEnum


class CallState(StrEnum):
    """Where a call stands.  Own design: one name for dialog and session together (§13, §15)."""

    CALLING = "calling"  # we call; no final answer yet
    RINGING = "ringing"  # we are called, and have not answered
    ANSWERED = "answered"  # we have answered, and wait for the ACK
    UP = "up"
    ENDING = "ending"  # over for the user; the network still has to be told
    ENDED = "ended"


class Timer(StrEnum):
    """What a call waits for; own design, the sections are where each is used."""

    ANSWER = "answer"  # somebody to pick up
    EXPIRES = "expires"  # the same, as long as the caller said: §13.3.1
    PROGRESS = "progress"  # the next 1xx: §13.3.1.1
