"""Log lines, each with an event, its ids and its figures, as text or JSON.

Own design: `call-start call=... rtmp=...` in text, the same as one JSON object a line for
machines.  The SIP Call-ID and the RTMP connection's id stand in every line about a call, so
that either finds both sides.
"""

import logging
import re
from datetime import UTC, datetime
from typing import Final

from p2psip.sip import strict_json

LEVELS: Final = ("debug", "info", "warning", "error")
LIBRARY: Final = "library"  # the event of what the libraries log, which are sentences
_NAME: Final = re.compile("[a-z]+(?:-[a-z]+)*")
_PLAIN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:@/+<>,;"
)


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


class RunningLevel:
    """The level of the log, which changes while the gateway runs; see `LogLevel` of the tree."""

    levels: tuple[str, ...] = LEVELS

    def __init__(self, log: Log) -> None:
        self._log = log

    def get(self) -> str:
        return logging.getLevelName(logging.getLogger().level).lower()

    def set(self, level: str, by: str) -> None:
        """Write lines of this level and above from now on."""
        logging.getLogger().setLevel(level.upper())
        self._log.report("log-level", level=level, by=by)


def tag(**values: object) -> None:
    """Add these values to each line that this process writes from now on."""

    def add(record: logging.LogRecord) -> bool:
        record.values = {**getattr(record, "values", {}), **values}
        return True

    for handler in logging.getLogger().handlers:
        handler.addFilter(add)


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
