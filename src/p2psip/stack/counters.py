"""Figures of a stack, for whoever watches it."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """What the stack has seen since it began.  Own design: figures for `/status`."""

    requests: int = 0
    responses: int = 0
    repeated: int = 0  # requests that a transaction absorbed
    malformed: int = 0
    stray: int = 0
    refused: int = 0  # for want of room
