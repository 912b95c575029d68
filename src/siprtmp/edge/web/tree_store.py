"""The persistent resources in an SQLite file of the folder `--state`.

Implements Resources §7.

Own design: while the file cannot be written (see `p2psip.net.sqlite_file`), changes are owed to it,
the last of each resource.
"""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from p2psip.net.sqlite_file import RETRY_SECONDS, open_file, set_aside, transaction
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.operation.logs import Log
from siprtmp.web.resources.entity import Entity
from siprtmp.web.resources.mode import Mode
from siprtmp.web.resources.nodes import Held
from siprtmp.web.resources.path import Path, read_path, write_path

if TYPE_CHECKING:
    from siprtmp.edge.web.tree_redis import RedisLog

FILE: Final = "resources.sqlite"
MAX_OWED: Final = 40_000  # resources
MAX_PAGES: Final = 65_536  # of 4096 octets: more than the limits of a tree can fill
_SCHEMA: Final = """
CREATE TABLE resource (
    path TEXT PRIMARY KEY NOT NULL, type TEXT NOT NULL, entity BLOB NOT NULL,
    owner TEXT, grp TEXT, mode TEXT
) WITHOUT ROWID;
"""
_KEEP: Final = "INSERT OR REPLACE INTO resource VALUES (?, ?, ?, ?, ?, ?)"


def open_store(folder: FilePath, log: Log) -> "SqliteStore":
    """Open the file in the folder `--state`.  Raises ConfigError if it is another program's."""

    def tell(what: str, reason: str) -> None:
        if reason:
            log.warning(what, file=FILE, reason=reason)
        else:
            log.event(what, file=FILE)

    try:
        return SqliteStore(folder / FILE, tell)
    except LocalError as error:
        raise ConfigError(f"--state: {error}") from None


def open_log(url: str, log: Log) -> "RedisLog":
    """Open the Redis of `--tree-redis`.  Raises ConfigError for a URL that is none."""
    try:
        from siprtmp.edge.web.tree_redis import RedisLog
    except ImportError:
        raise ConfigError(needs_extra("--tree-redis", "redis")) from None

    def tell(what: str, reason: str) -> None:
        if reason:
            log.warning(what, reason=reason)
        else:
            log.event(what)

    try:
        return RedisLog(url, tell)
    except LocalError as error:
        raise ConfigError(f"--tree-redis: {error}") from None


class SqliteStore:
    """A `Store` in the file `path`, for one process at a time.

    `tell(what, reason)` reports "state-unwritable", "state-written" and "state-set-aside".  Raises
    LocalError for a file that another program or a later version has made.
    """

    def __init__(
        self,
        path: FilePath,
        tell: Callable[[str, str], None],
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._path, self._tell, self._clock = path, tell, clock
        self._retry_at = 0.0
        self._owed: dict[Path, Held | None] = {}
        self._db: sqlite3.Connection | None = None
        try:
            try:
                self._db = open_file(self._path, (_SCHEMA,), MAX_PAGES)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                set_aside(self._path)
                self._tell("state-set-aside", str(error))
                self._db = open_file(self._path, (_SCHEMA,), MAX_PAGES)
        except (sqlite3.Error, OSError) as error:
            self._tell("state-unwritable", str(error))

    def load(self) -> Iterable[tuple[Path, Held]]:
        """What is kept, parents before their children."""
        if self._db is None:
            return []
        found = []
        for path, media_type, octets, owner, group, mode in self._db.execute(
            "SELECT path, type, entity, owner, grp, mode FROM resource"
        ):
            with suppress(RemoteError):  # a row that we cannot have written is ignored
                own = Mode.parse(mode) if mode else None
                held = Held(Entity.read(media_type, octets), owner, group, own)
                found.append((read_path(path), held))
        return sorted(found, key=lambda each: len(each[0]))

    def keep(self, path: Path, held: Held | None) -> None:
        """Write what a resource holds now, or that it is no more, with all that is owed."""
        was_behind = bool(self._owed)
        self._owed.pop(path, None)
        self._owed[path] = held
        if len(self._owed) > MAX_OWED:
            del self._owed[next(iter(self._owed))]
        if was_behind and self._clock() < self._retry_at:
            return
        try:
            if self._db is None:
                self._db = open_file(self._path, (_SCHEMA,), MAX_PAGES)
            self._write(self._db)
        except (sqlite3.Error, OSError, LocalError) as error:
            self._retry_at = self._clock() + RETRY_SECONDS
            if not was_behind:
                self._tell("state-unwritable", str(error))
            return
        self._owed.clear()
        if was_behind:
            self._tell("state-written", "")

    def _write(self, db: sqlite3.Connection) -> None:
        with transaction(db):
            for path, held in self._owed.items():
                if held is None:
                    db.execute("DELETE FROM resource WHERE path = ?", (write_path(path),))
                else:
                    mode = None if held.mode is None else str(held.mode)
                    entity = held.entity
                    row = (entity.type, entity.octets, held.owner, held.group, mode)
                    db.execute(_KEEP, (write_path(path), *row))

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None
