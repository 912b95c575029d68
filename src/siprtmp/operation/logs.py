"""Log lines, each with an event, its ids and its figures, as text or JSON.

Own design: `call-start call=... rtmp=...` in text, the same as one JSON object a line for
machines.  The SIP Call-ID and the RTMP connection's id stand in every line about a call, so
that either finds both sides.  Lines that any stranger can cause are counted in a flood instead of
written: to be refused costs a client nothing, and the log is for a person to read.
"""

import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from p2psip.sip import strict_json
from rtmplite.net.clock import now
from rtmplite.net.server.log_rate_limit import ALL_BURST, ALL_RATE, Bucket, LogRateLimit

LIBRARY: Final = "library"  # the event of what the libraries log, which are sentences
_NAME: Final = re.compile("[a-z]+(?:-[a-z]+)*")
_PLAIN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:@/+<>,;"
)
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


class Log:
    """A logger whose messages are an event and its values."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def event(self, what: str, **values: object) -> None:
        """Write one INFO line; secrets are never among the values."""
        if self._logger.isEnabledFor(logging.INFO):
            self._logger.info(what, extra={"values": values})

    def report(self, what: str, **values: object) -> None:
        """Write one INFO line at any --log-level, for a request of the operator."""
        place = ("(asked for)", 0, what, (), None)
        self._logger.handle(
            self._logger.makeRecord(
                self._logger.name, logging.INFO, *place, extra={"values": values}
            )
        )

    def warning(self, what: str, **values: object) -> None:
        """Write one WARNING line; secrets are never among the values."""
        self._logger.warning(what, extra={"values": values})


class TextFormatter(logging.Formatter):
    """Formats `time level logger event key=value ...`, with quoted values where needed."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, also if a peer put line breaks into a name."""
        event, values = _event(record)
        pairs = "".join(f" {k}={_quoted(str(v))}" for k, v in values.items())
        at = f"{_at(record)} {record.levelname.lower():7} {record.name}"
        return f"{at} {event}{pairs}{_trace(self, record)}"


class JsonFormatter(logging.Formatter):
    """Formats a JSON object: `time`, `level`, `logger`, `event`, then the values."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        event, values = _event(record)
        entry: dict[str, object] = {
            "time": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": event,
            **values,
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return strict_json.dumps(entry)


def configure(level: str, form: str, *filters: logging.Filter) -> None:
    """Send the log to stderr in the format `form`, except the records that `filters` drop.

    Standard output has the ready line alone.
    """
    handler = logging.StreamHandler()
    for each in filters:
        handler.addFilter(each)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _event(record: logging.LogRecord) -> tuple[str, dict[str, object]]:
    """The name of an event and its values; the sentence of a library is the `text` of one."""
    values: dict[str, object] = getattr(record, "values", {})
    message = record.getMessage()
    if _NAME.fullmatch(message):
        return message, values
    return LIBRARY, {"text": " ".join(message.splitlines()), **values}


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _quoted(text: str) -> str:
    return text if text and _PLAIN.issuperset(text) else strict_json.dumps(text)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    return "\n" + formatter.formatException(record.exc_info) if record.exc_info else ""


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
