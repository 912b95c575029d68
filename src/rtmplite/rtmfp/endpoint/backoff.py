"""When an unanswered hello or keying is sent again.

Implements RFC 7016 §3.5.1.1.1.
"""

from typing import Final

BACKOFF_STEP: Final = 1.5  # seconds; §3.5.1.1.1 [hello-backoff] [keying-backoff]


class HandshakeBackoff:
    """When to send again: at once, after 1.5 seconds, and after pauses that grow by 1.5 each time.

    §3.5.1.1.1: at 0, 1.5, 4.5, 9, 15, 22.5 and so on.
    """

    __slots__ = ("_interval", "due")

    def __init__(self, now: float) -> None:
        self.due = now
        self._interval = 0.0

    def is_due(self, now: float) -> bool:
        """Tell whether to send now, and if so set the next time: §3.5.1.1.1."""
        if now < self.due:
            return False
        # §3.5.1.1.1 [hello-backoff] [keying-backoff]
        self._interval += BACKOFF_STEP
        self.due = now + self._interval  # §3.5.1.1.1 [hello-backoff] [keying-backoff]
        return True
