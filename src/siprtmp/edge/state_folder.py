"""The folder of `--state`, for registrations and the operator's socket, and its lock.

Own design: one running gateway has the folder, by a lock that the system releases when the process
ends, also by kill -9.  Files that the holder of the lock finds there are those of a process that
has ended.
"""

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Final

from siprtmp.operation.arguments import ConfigError

CONTROL_SOCKET: Final = "control.sock"  # where a running gateway takes the operator's orders

_TAKEN: Final = (errno.EWOULDBLOCK, errno.EACCES)


class StateFolder:
    """A folder that is locked until `close`, made with mode 0700 if it is missing.

    Raises ConfigError, one line, if it cannot be made or written to, if other users may write to
    it, or if another gateway has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise ConfigError(f"--state {path}: {error.strerror}") from None
        try:
            self._take()
        except ConfigError:
            os.close(self._lock)
            raise

    def close(self) -> None:
        os.close(self._lock)

    def _take(self) -> None:
        """Check that only its owner can write to it, and lock it."""
        mode = stat.S_IMODE(os.fstat(self._lock).st_mode)
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigError(f"--state {self.path}: other users may write to it; chmod go-w")
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise ConfigError(f"--state {self.path}: {os.strerror(errno.EACCES)}")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                reason = "another running gateway uses it"
            else:
                reason = f"cannot be locked: {error.strerror}"
            raise ConfigError(f"--state {self.path}: {reason}") from None
