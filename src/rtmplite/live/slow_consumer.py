"""How slow a player may be.

Own design: whoever plays a live stream shares its bytes with all others, and nobody waits for one.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SlowConsumerPolicy:
    """How slow a player may be; sizes in bytes beyond what the system buffers, times in s.

    Own design: memory and delay are bounded.  Over `skip` a player gets nothing until a key frame
    finds it below half of that; over `limit`, or `seconds` after it began to skip, it is closed.
    """

    skip: int = 512 * 1024
    limit: int = 4 * 1024 * 1024
    seconds: float = 10.0
