"""The lines of the log that are about a call, for those who look at the call.

Own design: a handler of the gateway's log beside that which writes it, so that both have the same
lines, at the level of the log.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from siprtmp.operation.logs import TextFormatter

Row = dict[str, object]
NAME: Final = "siprtmp"
CALL: Final = "call"  # the value that names one


class CallLines(logging.Handler):
    """Gives `take` each line about a call: Call-ID, event, values, and a function that writes it.

    It is a handler from `start` to `stop`.
    """

    def __init__(self, take: Callable[[str, str, Row, Callable[[], str]], object]) -> None:
        super().__init__()
        self._take, self._form = take, TextFormatter()

    def start(self) -> None:
        """Hear the log from now on."""
        logging.getLogger(NAME).addHandler(self)

    def stop(self) -> None:
        """Hear it no longer.  Idempotent."""
        logging.getLogger(NAME).removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        values: Row = getattr(record, "values", {})
        if CALL in values:
            write = partial(self._form.format, record)
            self._take(str(values[CALL]), str(record.msg), values, write)
