"""Log lines that any stranger can cause: in a flood they are counted instead of written.

Own design: to be refused costs a client nothing, so the log has only as many lines as a person can
read.
"""

import logging
from collections.abc import Callable
from typing import Final

from rtmplite.net.clock import now
from rtmplite.net.server.log_rate_limit import ALL_BURST, ALL_RATE, Bucket, LogRateLimit

EVENTS: Final = frozenset(("call-refused", "message-refused", "registration-refused", "refused"))

# Of each of these groups many more are written, but not thousands a second.  Refused logins have a
# group of their own, so that other refusals never hide them from fail2ban.
LOGINS: Final = frozenset(("login-refused",))
CALLS: Final = frozenset(("call-start", "call-end", "proxy-start", "proxy-end"))
STREAMS: Final = frozenset(
    (
        *("publish-start", "publish-end", "play-start", "play-end"),
        *("call-wait", "room-enter", "room-leave"),
    )
)
PHONES: Final = frozenset(("registered", "unregistered", "contact-lost", "contact-silent"))


class FloodFilter(LogRateLimit):
    """Drops such events and warnings in a flood; other lines and errors pass."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        super().__init__(clock)
        self._many = [
            (events, Bucket(clock(), ALL_BURST, ALL_RATE))
            for events in (LOGINS, CALLS, STREAMS, PHONES)
        ]

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record."""
        for events, bucket in self._many:
            if record.msg in events:
                left_out = bucket.take(self._clock())
                if left_out:
                    self.tell(record, left_out)
                return left_out is not None
        is_one = record.levelno == logging.WARNING or record.msg in EVENTS
        return not is_one or super().filter(record)

    def tell(self, record: logging.LogRecord, left_out: int) -> None:
        """Add the number of dropped lines to a record, as the value `left_out`."""
        record.values = {**getattr(record, "values", {}), "left_out": left_out}
