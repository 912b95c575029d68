"""A line of JSON for each call that has ended, appended to the file of `--call-records`.

Own design: for billing and for graphs, by other programs.  A line is written in one piece at the
call's end; other tools may rotate the file, since it is opened again when it has moved.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from p2psip.net.clock import wallclock
from siprtmp.calls.call import AudioCall
from siprtmp.calls.quality import figures_of
from siprtmp.operation import strict_json
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.logs import Log

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_MODE: Final = 0o640  # both sides of each call are in it


class CallRecords:
    """Writes the lines.  Raises ConfigError if the file cannot be written to at the start."""

    def __init__(self, path: Path, log: Log, offset: Callable[[], float] = wallclock) -> None:
        self._path, self._log, self._offset = path, log, offset
        self._failed = False
        try:
            os.close(self._open())
        except OSError as error:
            raise ConfigError(f"--call-records {path}: {error.strerror}") from None

    def write(self, call: AudioCall, reason: str, now: float) -> None:
        """Append the record of a call that ends; a disk that is full is logged once."""
        line = strict_json.dumps(record(call, reason, now, self._offset())).encode() + b"\n"
        try:
            fd = self._open()
            try:
                os.write(fd, line)
            finally:
                os.close(fd)
        except OSError as error:
            if not self._failed:
                self._log.warning("no-call-record", file=self._path, reason=error.strerror)
            self._failed = True
        else:
            self._failed = False

    def _open(self) -> int:
        return os.open(self._path, _FLAGS, _MODE)


def record(call: AudioCall, reason: str, now: float, offset: float) -> dict[str, object]:
    """What is kept of a call; `offset` turns the time of machines into that of clocks."""
    origin, up_at = call.origin, call.up_at
    return {
        "begin": _utc(offset + (origin.at if origin is not None else now)),
        "end": _utc(offset + now),
        "seconds": round(now - up_at, 1) if up_at is not None else 0.0,
        "reason": reason,
        "id": call.call.id if call.call is not None else "",
        "direction": origin.direction if origin is not None else "",
        "caller": origin.caller if origin is not None else "",
        "callee": origin.callee if origin is not None else "",
        "source": origin.source if origin is not None else "",
        "rtmp": call.user.log_id,
        "trunk": call.way.trunk_name if call.way is not None else None,
        **figures_of(call),
    }


def _utc(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
