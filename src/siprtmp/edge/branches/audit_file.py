"""The file of the audit trail, in the folder of `--state`: a line of JSON for each entry.

Own design: when the file is full it takes the place of the one before, so that both together are
bounded.  A line that cannot be written is told in the log, once until one can be.
"""

import os
from pathlib import Path
from typing import Final

from p2psip.sip import strict_json
from siprtmp.operation.logs import Log

NAME: Final = "audit.jsonl"
LIMIT: Final = 4 << 20  # octets of a file
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE: Final = 0o600


class AuditFile:
    """Appends entries in this folder; the file is opened for each, which are few."""

    def __init__(self, folder: Path, log: Log, limit: int = LIMIT) -> None:
        self._path, self._log, self._limit = folder / NAME, log, limit
        self._has_failed = False

    def write(self, entry: dict[str, object]) -> None:
        """Append one."""
        line = strict_json.dumps(entry).encode() + b"\n"
        try:
            fd = os.open(self._path, _FLAGS, _MODE)
            try:
                os.write(fd, line)
                is_full = os.fstat(fd).st_size >= self._limit
            finally:
                os.close(fd)
            if is_full:
                os.replace(self._path, self._path.with_name(f"{NAME}.1"))
        except OSError as error:
            if not self._has_failed:
                self._log.warning("no-audit", file=self._path, reason=error.strerror)
            self._has_failed = True
        else:
            self._has_failed = False
