"""Keeps persistent shared objects in files, which are read and written in threads.

Own design: a file is replaced as a whole, so that a crash leaves the former content or the new one.
"""

import logging
import os
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import gevent

from rtmplite.errors import RemoteError
from rtmplite.net.clock import now
from rtmplite.net.workers import Workers
from rtmplite.rtmp.wire.shared_object import SharedObject
from rtmplite.vod.recorder import MAX_NAME, file_name

log = logging.getLogger(__name__)

SUFFIX: Final = ".so"
DELAY: Final = 1.0  # s, in which more changes come for the same write
MAX_FILE: Final = 16 * 1024 * 1024  # bytes, far more than we write


class SharedFiles:
    """A `Store` of files below `folder`, replaced once on the disk; broken ones are renamed."""

    def __init__(self, folder: Path, workers: Workers | None = None, delay: float = DELAY) -> None:
        self._folder, self._workers, self._delay = folder, workers or Workers(), delay
        self._unsaved: dict[str, Callable[[], bytes]] = {}
        self._writing: dict[str, bytes] = {}
        self._timer: gevent.Greenlet[..., None] | None = None

    def load(self, key: str, then: Callable[[bytes | None, float], None]) -> None:
        """Read in a thread, unless the content still waits to be written."""
        if (content := self._unsaved.get(key)) is not None:
            then(content(), now())
        elif key in self._writing:
            then(self._writing[key], now())
        else:
            self._workers.run(partial(self._read, key), lambda data: then(data, now()))

    def save(self, key: str, content: Callable[[], bytes]) -> None:
        """Write in a thread, within `delay` seconds."""
        self._unsaved[key] = content
        if self._timer is None:
            self._timer = gevent.spawn_later(self._delay, self._flush)

    def stop(self, seconds: float = 5.0) -> None:
        """Write everything now, and wait for that, `seconds` at most."""
        if self._timer is not None:
            self._timer.kill()
        end = now() + seconds
        while (self._unsaved or self._writing) and now() < end:
            self._flush()
            self._workers.wait(end - now())

    def _flush(self) -> None:
        self._timer = None
        for key in list(self._unsaved):
            if key in self._writing:  # two writers of one file; it comes next
                continue
            self._writing[key] = data = self._unsaved.pop(key)()
            self._workers.run(partial(self._write, key, data), self._written)

    def _written(self, key: str) -> None:
        del self._writing[key]
        if self._unsaved and self._timer is None:
            self._timer = gevent.spawn_later(self._delay, self._flush)

    def _path(self, key: str) -> Path:
        scope, _, name = key.partition("?")
        return self._folder / _short(scope) / (_short(name) + SUFFIX)

    def _read(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE)
            SharedObject.read(data)
        except FileNotFoundError:
            return None
        except (OSError, RemoteError) as error:
            log.warning("%s cannot be read: %s", path, error)
            self._put_aside(path)
            return None
        return data

    def _put_aside(self, path: Path) -> None:
        try:
            path.replace(path.with_suffix(".broken"))
        except OSError as error:
            log.warning("%s cannot be put aside: %s", path, error)

    def _write(self, key: str, data: bytes) -> str:
        path = self._path(key)
        partly = path.with_suffix(".new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partly.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partly.replace(path)
        except OSError as error:
            log.warning("%s cannot be written: %s", path, error)
        return key


def _short(name: str) -> str:
    """A file name that is short enough and that no other name has."""
    short = file_name(name)
    if len(short) < MAX_NAME:
        return short
    return sha256(name.encode(errors="surrogatepass")).hexdigest()
