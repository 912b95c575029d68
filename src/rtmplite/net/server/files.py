"""Recorded files for playing: found by name below one folder, opened and read in threads."""

import errno
import logging
import os
import stat
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.flv.index import Index, load_index
from rtmplite.net.clock import now
from rtmplite.net.deadline_timer import DeadlineTimer
from rtmplite.net.descriptors import FILES, is_scarce
from rtmplite.net.workers import Workers
from rtmplite.vod.playback import FilePlayback
from rtmplite.vod.playlist import Recording
from rtmplite.vod.recorder import file_name

log = logging.getLogger(__name__)

SUFFIX: Final = ".flv"
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe would keep a thread waiting


class FileSource:
    """Reads an open file at any place, by its descriptor, which the caller closes."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    @property
    def size(self) -> int:
        """The size of the file in bytes, now."""
        return os.fstat(self.fd).st_size

    def read(self, at: int, size: int) -> bytes:
        """Read `size` bytes from `at` on; fewer only at the end of the file."""
        return os.pread(self.fd, size, at) if size > 0 and at >= 0 else b""


class Files:
    """A `Library` of the FLV files below `folder`, under their names without the ending.

    A recording is also found under the name it was published by: application, slash, stream.  Files
    in a folder that `hidden` has, by its name in small letters or its path, are not found, however
    they are spelled or linked to; `on_hidden` is called with the name that was asked for.
    """

    def __init__(
        self,
        folder: Path,
        workers: Workers | None = None,
        *,
        hidden: Collection[str] = (),
        on_hidden: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._folder, self._workers = folder, workers or Workers()
        self._hidden, self._on_hidden = hidden, on_hidden

    def open(self, name: str, then: Callable[[Recording | None, float], None]) -> None:
        """Find a file and its index in a thread; `then` gets None if there is none."""

        def found(what: tuple[int, Index] | bool) -> None:
            then(None if isinstance(what, bool) else _OpenFile(self._workers, *what), now())
            if what is True:
                self._on_hidden(name)

        self._workers.run(partial(self._find, name), found)

    def _find(self, name: str) -> tuple[int, Index] | bool:
        """In a thread: a file and its index; true if it is hidden, false if there is none."""
        for path in self._places(name):
            if self._is_hidden(path):
                return True
            try:
                fd = os.open(path, _OPEN)
            except OSError:
                continue
            try:
                if is_scarce(fd, FILES):
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    return fd, load_index(FileSource(fd))
            except (OSError, RemoteError) as error:
                log.warning("%s cannot be played: %s", path, error)
            os.close(fd)
        return False

    def _is_hidden(self, path: Path) -> bool:
        """Whether a folder on the path or behind its links is hidden, in any spelling."""
        if not self._hidden:
            return False
        root = self._folder.resolve()
        folders = [each for each in path.parents if each.is_relative_to(root)]
        return any(
            each.name.rstrip(". ").casefold() == name or _is_same(each, each.parent / name)
            for each in folders
            for name in self._hidden
        )

    def _places(self, name: str) -> Iterator[Path]:
        """The paths that a name may mean: as it stands, or as the recorder spells it."""
        name = name.removeprefix("flv:").removesuffix(SUFFIX)
        parts = name.split("/")
        if not all(parts) or not {".", ".."}.isdisjoint(parts) or "\0" in name:
            return
        app, _, stream = name.partition("/")
        root = self._folder.resolve()
        for path in (root / f"{name}{SUFFIX}", root / file_name(app) / f"{file_name(stream)}.flv"):
            try:
                real = path.resolve()
            except (OSError, RuntimeError, ValueError):
                continue
            if real.is_relative_to(root):  # a link may lead elsewhere
                yield real


class _OpenFile:
    """A `Recording` in an open file, which is closed when its last read is done."""

    def __init__(self, workers: Workers, fd: int, index: Index) -> None:
        self.index = index
        self._workers, self._source = workers, FileSource(fd)
        self._reading, self._closed = 0, False

    def read(self, at: int, size: int, then: Callable[[bytes, float], None]) -> None:
        self._reading += 1
        self._workers.run(partial(self._read, at, size), partial(self._done, then))

    def close(self) -> None:
        self._closed = True
        self._close_unread()

    def _read(self, at: int, size: int) -> bytes:
        try:
            return self._source.read(at, size)
        except OSError as error:
            log.warning("cannot read a recording: %s", error)
            return b""

    def _done(self, then: Callable[[bytes, float], None], data: bytes) -> None:
        self._reading -= 1
        if self._closed:
            self._close_unread()
        else:
            then(data, now())

    def _close_unread(self) -> None:
        if not self._reading and self._source.fd >= 0:
            os.close(self._source.fd)
            self._source.fd = -1


def _is_same(folder: Path, other: Path) -> bool:
    try:
        return folder.samefile(other)
    except (OSError, ValueError):
        return False


class Alarms:
    """Wakes playbacks at their deadlines; call an instance when a deadline has changed."""

    def __init__(self) -> None:
        self._timers: dict[FilePlayback, DeadlineTimer] = {}

    def __call__(self, playback: FilePlayback) -> None:
        """Set the timer of a playback, or forget a playback that waits for nothing."""
        if playback.deadline is None:
            if (timer := self._timers.pop(playback, None)) is not None:
                timer.cancel()
            return
        if playback not in self._timers:
            self._timers[playback] = DeadlineTimer(partial(self._ring, playback))
        self._timers[playback].set(playback.deadline, now())

    def _ring(self, playback: FilePlayback) -> None:
        try:
            playback.tick(now())
        except Exception:
            log.exception("playback of %s fails", playback.stream.path)
            self._timers.pop(playback, None)
            playback.stream.connection.abort("internal error", now())
            return
        self(playback)
