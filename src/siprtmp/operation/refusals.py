"""Lines that anybody can have us write, by knocking: a flood of them is counted instead.

Own design: refusals are free for whoever is refused, so the log has as many as somebody can read.
"""

import logging
from collections.abc import Callable
from typing import Final

from rtmplite.net.clock import now
from rtmplite.net.server.log_rate_limit import ALL_BURST, ALL_RATE, Bucket, Sparing

EVENTS: Final = frozenset(("call-refused", "registration-refused", "refused"))

# Of each of these many more are told, but not the thousands a second to a client that is busy, or
# of phones that nobody has.  No other refusals crowd out the logins, which fail2ban reads.
LOGINS: Final = frozenset(("login-refused",))
CALLS: Final = frozenset(("call-start", "call-end", "proxy-start", "proxy-end"))
STREAMS: Final = frozenset(("publish-start", "publish-end", "play-start", "play-end"))
PHONES: Final = frozenset(("registered", "unregistered", "contact-lost", "contact-silent"))


class Refusals(Sparing):
    """Spares these events and warnings; all other lines pass, and so do errors.  Own design."""

    def __init__(self, clock: Callable[[], float] = now) -> None:
        super().__init__(clock)
        self._many = [
            (events, Bucket(clock(), ALL_BURST, ALL_RATE))
            for events in (LOGINS, CALLS, STREAMS, PHONES)
        ]

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be written.  Own design."""
        for events, bucket in self._many:
            if record.msg in events:
                left_out = bucket.take(self._clock())
                if left_out:
                    self.tell(record, left_out)
                return left_out is not None
        is_one = record.levelno == logging.WARNING or record.msg in EVENTS
        return not is_one or super().filter(record)

    def tell(self, record: logging.LogRecord, left_out: int) -> None:
        """Say how many as a value, for whoever reads events.  Own design."""
        record.values = {**getattr(record, "values", {}), "left_out": left_out}
