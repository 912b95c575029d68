"""The states of a rich client's line.

Own design: they are in the words of the client's API.
"""

from enum import StrEnum


class State(StrEnum):
    """The state of the line's only call."""

    IDLE = "idle"
    INVITING = "inviting"
    INVITED = "invited"
    ANSWERED = "answered"  # by us; the caller's ACK has not arrived
    UP = "up"
