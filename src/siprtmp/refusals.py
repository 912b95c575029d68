"""Lines that anybody can have us write, by knocking: a flood of them is counted instead.

Own design: refusals are free for whoever is refused, so the log has as many as somebody can read.
"""

import logging
from typing import Final

from rtmplite.net.sparing import Sparing

EVENTS: Final = frozenset(("call-refused", "registration-refused", "login-refused", "refused"))


class Refusals(Sparing):
    """Spares these events and warnings; all other lines pass, and so do errors.  Own design."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be written.  Own design."""
        is_one = record.levelno == logging.WARNING or record.msg in EVENTS
        return not is_one or super().filter(record)

    def tell(self, record: logging.LogRecord, left_out: int) -> None:
        """Say how many as a value, for whoever reads events.  Own design."""
        record.values = {**getattr(record, "values", {}), "left_out": left_out}
