"""A line of JSON for each call that has ended, appended to the file of `--call-records`.

Own design: for billing and for graphs, by other programs.  A line is written in one piece at the
call's end; other tools may rotate the file, since it is opened again when it has moved.  A call
that the gateway did not live to end gets its line at the next start: see `unfinished_calls`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from p2psip.net.clock import wallclock
from p2psip.sip import strict_json
from siprtmp.calls.call import Call
from siprtmp.calls.quality import figures_of
from siprtmp.edge.unfinished_calls import UnfinishedCalls, left_behind
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.logs import Log

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_MODE: Final = 0o640  # both sides of each call are in it
GONE: Final = "gateway gone"  # the reason of calls whose end nobody has seen


class CallRecords:
    """Writes the lines, also of calls that a gateway before has left behind.

    Raises ConfigError if the file cannot be written to at the start.
    """

    def __init__(self, path: Path, log: Log, offset: Callable[[], float] = wallclock) -> None:
        self._path, self._log, self._offset = path, log, offset
        self._failed: set[Path] = set()
        self._begun: UnfinishedCalls | None = None
        try:
            os.close(self._open())
        except OSError as error:
            raise ConfigError(f"--call-records {path}: {error.strerror}") from None
        try:
            for known in left_behind(path):
                self._append({**known, "reason": GONE})
            self._begun = UnfinishedCalls(path)
        except OSError as error:
            self._log.warning("no-call-record", file=path.parent, reason=error.strerror)

    def begin(self, call: Call, now: float) -> None:
        """Note a call that begins, or is answered, lest the gateway does not live to end it."""
        if self._begun is not None:
            with self._telling(self._begun.path):
                self._begun.note(call, _known(call, now, self._offset()))

    def write(self, call: Call, reason: str, now: float) -> None:
        """Append the record of a call that ends; a disk that is full is logged once."""
        with self._telling(self._path):
            self._append(record(call, reason, now, self._offset()))
        if self._begun is not None:
            with self._telling(self._begun.path):
                self._begun.forget(call)

    def close(self) -> None:
        """End with the gateway, which has ended its calls."""
        if self._begun is not None:
            self._begun.close()

    def _append(self, values: dict[str, object]) -> None:
        fd = self._open()
        try:
            os.write(fd, strict_json.dumps(values).encode() + b"\n")
        finally:
            os.close(fd)

    @contextmanager
    def _telling(self, file: Path) -> Iterator[None]:
        """Log that a file cannot be written, once until it can."""
        try:
            yield
        except OSError as error:
            if file not in self._failed:
                self._log.warning("no-call-record", file=file, reason=error.strerror)
            self._failed.add(file)
        else:
            self._failed.discard(file)

    def _open(self) -> int:
        return os.open(self._path, _FLAGS, _MODE)


def record(call: Call, reason: str, now: float, offset: float) -> dict[str, object]:
    """What is kept of a call; `offset` turns the time of machines into that of clocks."""
    up_at = call.up_at
    return {
        **_known(call, now, offset),
        "end": _utc(offset + now),
        "seconds": round(now - up_at, 1) if up_at is not None else 0.0,
        "reason": reason,
        **figures_of(call),
        "transcoding": call.statistics.transcoded,
    }


def _known(call: Call, now: float, offset: float) -> dict[str, object]:
    """What is known of a call before its end; the members that follow have no value yet."""
    origin, up_at, plan = call.origin, call.up_at, call.plan
    return {
        "begin": _utc(offset + (origin.at if origin is not None else now)),
        "answered": _utc(offset + up_at) if up_at is not None else None,
        "end": None,
        "seconds": None,
        "reason": None,
        "id": call.call.id if call.call is not None else "",
        "direction": origin.direction if origin is not None else "",
        "caller": origin.caller if origin is not None else "",
        "callee": origin.callee if origin is not None else "",
        "source": origin.source if origin is not None else "",
        "rtmp": call.user.log_id,
        "trunk": call.trunk_name,
        "codec": plan.audio.codec.name if plan is not None else None,
    }


def _utc(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
