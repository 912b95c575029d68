"""Figures of a stack, for `/status`."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """The messages that a stack has received since it began.  Own design: for `/status`."""

    requests: int = 0
    responses: int = 0
    repeated: int = 0  # requests that a transaction absorbed
    malformed: int = 0
    stray: int = 0
    refused: int = 0  # for want of room
