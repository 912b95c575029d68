"""The limits of a player that is too slow for a live stream.

Own design: all players of a stream share its bytes, and no player waits for another.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlowConsumerPolicy:
    """Limits a slow player; sizes in bytes beyond the system's buffers, times in s.

    With more than `skip` unsent a player gets nothing until a key frame comes while less than half
    of that is unsent.  With more than `limit`, or `seconds` after it began to skip, it is closed.
    """

    skip: int = 512 * 1024
    limit: int = 4 * 1024 * 1024
    seconds: float = 10.0
