"""The calls that have begun and not ended, in a file beside the call records.

Own design: a gateway that is killed writes no record, so that a call begins with a line in this
file and the next gateway writes the record.  The file has a name of its own, and is locked for as
long as its process lives: an unlocked one was left behind.  It is empty while there is no call.
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, Final

SUFFIX: Final = ".begun"
MAX_LINES: Final = 1000  # beyond those of the calls that go on, before the file is written anew


class UnfinishedCalls:
    """The file of one process.  Raises OSError if none can be made beside `records`."""

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
        line = _line({"call": number, "record": values})
        self._lines[call] = number, line
        self._append(line)

    def forget(self, call: Hashable) -> None:
        """Forget a call, which has a record.  Raises OSError if that cannot be written."""
        number, _ = self._lines.pop(call, (None, b""))
        if number is not None:
            self._append(_line({"call": number}))

    def close(self) -> None:
        """Remove the file."""
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


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"
