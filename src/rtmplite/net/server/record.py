"""Records published streams, each as a file in a folder of its application.

Own design: every stream is recorded from its beginning, or only the streams that an operator asks
for, from the last key frame on.  Bytes are collected for `FLUSH` seconds, then a thread appends
them.  A server that is killed loses these, and leaves a file that plays and has its length, but for
the last seconds.  A disk that fails or falls behind interrupts the recording, never the stream: the
file is cut behind its last whole tag, and goes on with a key frame once it can be written again.
"""

import errno
import fcntl
import logging
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import gevent

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.index import Index, load_index, scan
from rtmplite.flv.video import is_key_frame
from rtmplite.live.streams import DATA, VIDEO, LiveStream, Registry
from rtmplite.net.clock import now
from rtmplite.net.descriptors import FILES, is_scarce
from rtmplite.net.server.files import FileSource
from rtmplite.net.workers import Workers
from rtmplite.vod.recorder import Recorder, can_continue, file_name

log = logging.getLogger(__name__)

FLUSH: Final = 0.2  # s, the most that a killed server loses
RENEW: Final = 5.0  # s, after which a file's length and size are written anew
MAX_BEHIND: Final = 16 * 1024 * 1024  # bytes that may wait for a disk
FAREWELL: Final = 3.0  # s for the last bytes when the server stops, within `last_resort`
RETRY: Final = 5.0  # s, after which a recording that was interrupted is tried again
AGAIN: Final = 1024 * 1024  # bytes that a disk must have room for before it is tried again
TRIES: Final = 1000  # names of one stream in one second

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Recordings:
    """Records streams of `registry` below `folder`, until `stop`: all, or those that are started.

    `on_change(recording)` is called when one has begun or ended, and when its file is there.
    """

    def __init__(
        self,
        folder: Path,
        registry: Registry,
        workers: Workers | None = None,
        *,
        records_all: bool = True,
    ) -> None:
        self.folder, self.workers = folder, workers or Workers()
        self.interrupted = 0  # how often the disk has failed a recording
        self.on_change: Callable[[StreamRecording], object] = lambda recording: None
        self._running: dict[LiveStream, StreamRecording] = {}
        self._files: dict[_File, None] = {}
        if records_all:
            registry.on_begin.append(self._begin)
        self._timer: Any = gevent.get_hub().loop.timer(FLUSH, FLUSH)
        self._timer.start(self._flush)

    @property
    def active(self) -> int:
        """The number of files that are being written."""
        return len(self._files)

    @property
    def running(self) -> "list[StreamRecording]":
        """The recordings of streams that are being published."""
        return [*self._running.values()]

    def record(self, live: LiveStream, now: float) -> "StreamRecording":
        """Record this publication, from its last key frame on if there was one.

        Raises LocalError if it is recorded already.
        """
        if live in self._running:
            raise LocalError(f"{live.app}/{live.name} is recorded already")
        recording = self._running[live] = StreamRecording(self, live, is_late=live.has_begun)
        live.recorded = True
        live.tap(recording)
        self.on_change(recording)
        for message in live.kept:
            recording.write(*message, now)
        return recording

    def stop(self) -> None:
        """End all recordings, and wait up to `FAREWELL` seconds for the disk."""
        for file in list(self._files):
            file.end(0.0)
        self.workers.wait(FAREWELL)
        self._timer.stop()
        self._timer.close()

    def forget(self, file: "_File") -> None:
        """Remove a file that is closed."""
        self._files.pop(file, None)

    def over(self, recording: "StreamRecording") -> None:
        """Note that a recording has ended."""
        if self._running.get(recording.live) is recording:
            del self._running[recording.live]
            self.on_change(recording)

    def begin(self, recording: "StreamRecording", failed: "_File | None" = None) -> "_File":
        """Start another file for a stream, or go on with one that the disk has failed."""
        file = _File(self, recording, failed)
        self._files[file] = None
        return file

    def _begin(self, live: LiveStream, now: float) -> None:
        if not live.is_copy:
            self.record(live, now)

    def _flush(self) -> None:
        for file in list(self._files):
            file.flush()


class StreamRecording:
    """The `Sink` of one stream: one file after another, also after the disk has failed.

    `is_late` says that the publication has begun before, so that its headers come first.
    """

    def __init__(self, recordings: Recordings, live: LiveStream, *, is_late: bool = False) -> None:
        self.live, self.is_over = live, False
        self._recordings, self._is_late = recordings, is_late
        self._file: _File | None = None

    @property
    def path(self) -> Path | None:
        """The file that is written, once there is one."""
        return self._file.path if self._file is not None and self._file.is_open else None

    @property
    def seconds(self) -> float:
        """The length of this file, in seconds."""
        return 0.0 if self._file is None else self._file.duration / 1000

    @property
    def size(self) -> int:
        """The octets of this file by now."""
        return 0 if self._file is None else self._file.size

    @property
    def is_interrupted(self) -> bool:
        """Whether the disk has failed, and nothing is written until it can be."""
        return self._file is not None and self._file.has_failed

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        before = self._file
        goes_on = before is not None and before.may_go_on and self._begins(type_id, payload)
        if before is None and self._is_late and not self._begins(type_id, payload):
            return
        if before is None or before.is_full or goes_on:
            opening = self.live.opening() if before is not None or self._is_late else []
            if before is not None:
                before.end(now)
            self._file = self._recordings.begin(self, before if goes_on else None)
            for each, header in opening:
                self._file.write(each, timestamp, header, now)
        assert self._file is not None
        self._file.write(type_id, timestamp, payload, now)

    def _begins(self, type_id: int, payload: bytes) -> bool:
        """Whether a decoder can begin with a message: FLV 10.1 §E.4.3.1."""
        return VIDEO not in self.live.kinds or (type_id == VIDEO and is_key_frame(payload))

    def changed(self) -> None:
        """Tell that the file is there, or has failed."""
        self._recordings.on_change(self)

    def stop(self, now: float) -> None:
        """End the recording, while the publication goes on."""
        self.live.untap(self)
        self.live.recorded = False
        self.end(now)

    def end(self, now: float) -> None:
        self.is_over = True
        if self._file is not None:
            self._file.end(now)
        self._recordings.over(self)


class _File:
    """One recording: its messages and bytes that wait; `failed` is a file to go on with."""

    def __init__(
        self,
        recordings: Recordings,
        recording: StreamRecording,
        failed: "_File | None" = None,
    ) -> None:
        self._recordings, self._workers = recordings, recordings.workers
        self._recording, live = recording, recording.live
        folder = recordings.folder / file_name(live.app)
        self.path: Path = (
            failed.path if failed is not None else folder / f"{file_name(live.name)}.flv"
        )
        self._is_retry = failed is not None  # until something was written
        self._retry_at = 0.0
        self._messages: list[tuple[int, int, bytes]] = []
        self._output: list[bytes] = []
        self._behind = 0
        self._recorder: Recorder | None = None
        self._fd = -1
        self._busy, self._ended, self._failed = True, False, False
        self._renew_at, self._told = now() + RENEW, 0  # the size that was last written
        self._closed = False  # its descriptor, which from then on may be another file's
        continued = live.kind == "append" or self._is_retry
        job = partial(_open, self.path, continued, AGAIN if self._is_retry else 0)
        self._workers.run(job, self._opened)

    @property
    def may_go_on(self) -> bool:
        """Whether it was interrupted, and it is time to try again."""
        return self._failed and self._closed and now() >= self._retry_at

    @property
    def is_full(self) -> bool:
        return self._recorder is not None and self._recorder.is_full

    @property
    def is_open(self) -> bool:
        return self._recorder is not None

    @property
    def has_failed(self) -> bool:
        return self._failed

    @property
    def duration(self) -> int:
        return 0 if self._recorder is None else self._recorder.duration

    @property
    def size(self) -> int:
        return 0 if self._recorder is None else self._recorder.size

    def write(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        if self._failed or self._ended:
            return
        if self._recorder is None:
            self._messages.append((type_id, timestamp, payload))
            size = len(payload)
        else:
            data = self._recorder.write(type_id, timestamp, payload)
            self._output.append(data)
            size = len(data)
        self._behind += size
        if self._behind > MAX_BEHIND:
            self._fail(f"the disk is {self._behind} bytes behind")

    def flush(self) -> None:
        """Let a thread append the collected bytes, unless one is at work."""
        if self._closed or self._busy:
            return
        last = self._ended or self._failed
        patches: list[tuple[int, bytes]] = []
        if self._recorder is not None and not self._failed:
            patches = self._recorder.patches() if last else self._growth(self._recorder)
        if not (self._output or patches or last):
            return
        output, self._output = self._output, []
        self._busy = True
        failed_path = self.path if self._failed else None
        job = partial(_write, self._fd, output, patches, last, failed_path)
        self._workers.run(job, partial(self._written, last))

    def _growth(self, recorder: Recorder) -> list[tuple[int, bytes]]:
        """The places of length and size to write anew, every `RENEW` seconds if they changed."""
        moment = now()
        if moment < self._renew_at or recorder.size == self._told:
            return []
        self._renew_at, self._told = moment + RENEW, recorder.size
        return recorder.growth()

    def end(self, now: float) -> None:
        self._ended = True
        self.flush()

    def _opened(self, found: "tuple[int, Path, Index | None] | OSError") -> None:
        self._busy = False
        if isinstance(found, OSError):
            self._closed = True
            self._fail(found.strerror or str(found))
            self._recordings.forget(self)
            return
        self._fd, self.path, before = found
        self._recorder = Recorder(before)
        messages, self._messages = self._messages, []
        if self._is_retry and before is not None and messages and messages[0][0] == DATA:
            del messages[0]  # the file has its metadata, and ffmpeg takes others for text
        self._output = [self._recorder.write(*message) for message in messages]
        if not self._is_retry:
            log.info("recording %s", self.path)
        self.flush()
        self._recording.changed()

    def _written(self, last: bool, done: "tuple[int, OSError | None]") -> None:
        size, error = done
        self._busy, self._behind = False, max(0, self._behind - size)
        if error is not None and not self._failed:
            self._fail(error.strerror or str(error))
            last = False  # the file is still to be mended
        elif size and self._is_retry:
            self._is_retry = False
            log.info("recording %s goes on", self.path)
        if last:
            self._closed = True
            self._recordings.forget(self)
            if self._recorder is not None and not self._failed:
                seconds, size = self._recorder.duration / 1000, self._recorder.size
                log.info("recorded %s, %.1f s, %d bytes", self.path, seconds, size)
        elif self._ended or self._failed:
            self.flush()

    def _fail(self, reason: str) -> None:
        if not self._is_retry:
            self._recordings.interrupted += 1
            log.error(
                "recording %s is interrupted: %s; tried again every %d s", self.path, reason, RETRY
            )
        self._failed, self._retry_at = True, now() + RETRY
        self._messages, self._output, self._behind = [], [], 0
        self._recording.changed()


def _open(path: Path, continued: bool, room: int) -> tuple[int, Path, Index | None] | OSError:
    """In a thread: continue the file at `path` if wanted and possible, else make a new one.

    A file that is still being written is locked; no file is ever overwritten.  `room` are the bytes
    that must fit on the disk.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if room:
            _seek_room(path.parent, room)
        if continued and (found := _continue(path)) is not None:
            return found[0], path, found[1]
        for name in _names(path):
            try:
                fd = os.open(name, _NEW, 0o644)
            except FileExistsError:
                continue
            if is_scarce(fd, FILES):
                os.close(fd)
                os.unlink(name)
                return OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd, name, None
        return FileExistsError(f"{TRIES} recordings of that name and second")
    except OSError as error:
        return error


def _seek_room(folder: Path, room: int) -> None:
    """Raise OSError if so many bytes cannot be written; a file without a name is tried."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as trial:
        _all(trial.write, bytes(room))


def _names(path: Path) -> Iterator[Path]:
    yield path
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    yield path.with_name(f"{path.stem}-{when}{path.suffix}")
    for number in range(2, TRIES):
        yield path.with_name(f"{path.stem}-{when}-{number}{path.suffix}")


def _continue(path: Path) -> tuple[int, Index] | None:
    """Open a recording at the end of its last whole tag; None if it is not one of ours."""
    try:
        fd = os.open(path, _OLD)
    except OSError:
        return None
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            index = load_index(FileSource(fd))
            if can_continue(index):
                os.ftruncate(fd, index.end)
                os.lseek(fd, 0, os.SEEK_END)
                return fd, index
    except (OSError, RemoteError) as error:
        log.info("%s is not continued: %s", path, error)
    os.close(fd)
    return None


def _write(
    fd: int,
    output: list[bytes],
    patches: list[tuple[int, bytes]],
    last: bool,
    failed_path: Path | None,
) -> tuple[int, OSError | None]:
    """In a thread: append, write patches, close; gives the size appended, and the error if any.

    After an error the file stays open; the next call has its path, mends it and closes it.
    """
    data = b"".join(output)
    try:
        if failed_path is not None:
            _mend(fd, failed_path)
        else:
            _all(partial(os.write, fd), data)
            _patch(fd, patches)
    except OSError as error:
        if failed_path is None:
            return 0, error
        log.warning("%s is not mended: %s", failed_path, error)
    if last:
        os.close(fd)
    return len(data), None


def _mend(fd: int, path: Path) -> None:
    """In a thread: keep whole tags and describe them, without new room; or remove the file."""
    try:
        index = scan(FileSource(fd))  # the metadata may list the key frames of an earlier part
    except RemoteError:
        os.unlink(path)
        return
    if not index.kinds:
        os.unlink(path)
        return
    os.ftruncate(fd, index.end)
    _patch(fd, Recorder(index).patches())


def _patch(fd: int, patches: list[tuple[int, bytes]]) -> None:
    for at, patch in patches:
        if os.pwrite(fd, patch, at) != len(patch):
            raise OSError(errno.ENOSPC, "a description is cut short")


def _all(write: Callable[[memoryview], int], data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[write(view) :]
