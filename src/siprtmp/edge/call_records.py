"""A line of JSON for each call that has ended, appended to the file of `--call-records`.

Own design: for billing and for graphs, by other programs.  A line is written in one piece at the
call's end; other tools may rotate the file, since it is opened again for each.

A gateway that is killed writes no record.  So a call that begins is a line in a second file beside
the records, and the next gateway writes the record of those that have not ended.  That file has a
name of its own, and is locked for as long as its process lives: an unlocked one was left behind.
It is empty while there is no call.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from p2psip.net.clock import wallclock
from p2psip.sip import strict_json
from siprtmp.calls.call import Call
from siprtmp.calls.quality import figures_of
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.logs import Log

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_MODE: Final = 0o640  # both sides of each call are in it
SUFFIX: Final = ".begun"
MAX_LINES: Final = 1000  # beyond those of the calls that go on, before the file is written anew
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
                self._begun.note(call, _known(call, self._offset()))

    def write(self, call: Call, reason: str, now: float) -> None:
        """Append the record of a call that ends; a disk that is full is logged once."""
        with self._telling(self._path):
            self._append(record(call, reason, now, self._offset()))
        if self._begun is not None:
            with self._telling(self._begun.path):
                self._begun.forget(call)

    def close(self) -> None:
        if self._begun is not None:
            self._begun.close()

    def _append(self, values: dict[str, object]) -> None:
        fd = self._open()
        try:
            os.write(fd, _json_line(values))
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
        **_known(call, offset),
        "end": _utc(offset + now),
        "seconds": round(now - up_at, 1) if up_at is not None else 0.0,
        "reason": reason,
        **figures_of(call),
        "transcoding": call.statistics.transcoded,
    }


def _known(call: Call, offset: float) -> dict[str, object]:
    """What is known of a call before its end; the members that follow have no value yet."""
    up_at, plan = call.up_at, call.plan
    return {
        "begin": _utc(offset + call.origin.at),
        "answered": _utc(offset + up_at) if up_at is not None else None,
        "end": None,
        "seconds": None,
        "reason": None,
        "id": call.call.id if call.call is not None else "",
        **call.origin.facts,
        "rtmp": call.user.log_id,
        "trunk": call.trunk_name,
        "codec": plan.audio.codec.name if plan is not None else None,
    }


def _utc(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json_line(values: dict[str, Any]) -> bytes:
    return strict_json.dumps(values).encode() + b"\n"


class UnfinishedCalls:
    """The calls that go on, in the file of one process beside `records`.

    Raises OSError if it cannot be made.
    """

    def __init__(self, records: Path) -> None:
        self._lines: dict[Hashable, tuple[int, bytes]] = {}
        self._next, self._written = 0, 0
        while True:
            self._fd, name = tempfile.mkstemp(SUFFIX, f"{records.name}.", records.parent)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if os.fstat(self._fd).st_nlink:
                break
            os.close(self._fd)  # another gateway took it for one left behind
        self.path = Path(name)

    def note(self, call: Hashable, values: dict[str, object]) -> None:
        """Keep what is known of a call by now.  Raises OSError if it cannot be written."""
        number = self._lines[call][0] if call in self._lines else self._next
        self._next = max(self._next, number + 1)
        line = _json_line({"call": number, "record": values})
        self._lines[call] = number, line
        self._append(line)

    def forget(self, call: Hashable) -> None:
        """Forget a call, which has a record.  Raises OSError if that cannot be written."""
        number, _ = self._lines.pop(call, (None, b""))
        if number is not None:
            self._append(_json_line({"call": number}))

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._fd)

    def _append(self, line: bytes) -> None:
        self._written += 1
        if not self._lines or self._written > len(self._lines) + MAX_LINES:
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            line = b"".join(each for _, each in self._lines.values())
            self._written = len(self._lines)
        os.write(self._fd, line)


def left_behind(records: Path) -> Iterator[dict[str, object]]:
    """Give the values of each call whose gateway has ended without a record, once.

    A file goes when all its calls were given.  Raises OSError if one cannot be read.
    """
    with os.scandir(records.parent) as entries:
        paths = [Path(entry) for entry in entries]
    for path in paths:
        if path.name.startswith(f"{records.name}.") and path.suffix == SUFFIX:
            yield from _taken(path)


def _taken(path: Path) -> Iterator[dict[str, object]]:
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # its gateway lives
        if os.fstat(fd).st_nlink:
            yield from _unended(file.read()).values()
            path.unlink()


def _unended(data: bytes) -> dict[int, dict[str, object]]:
    calls: dict[int, dict[str, object]] = {}
    for line in data.splitlines():
        try:
            step = json.loads(line)
        except ValueError:  # the last one, cut short
            continue
        calls.pop(step["call"], None)
        if "record" in step:
            calls[step["call"]] = step["record"]
    return calls
