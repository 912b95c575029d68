"""The bindings of a registrar in an SQLite file, which outlives the process.

Own design: RFC 3261 §10.3 leaves the storage to the implementation.  One row is one binding; its
expiry is in wall clock time, the only clock that the next process shares.

While the file cannot be written (see `sqlite_file`), the registrar continues from memory;
afterwards all bindings are written again, some with each change.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.net.sqlite_file import RETRY_SECONDS, open_file, set_aside, transaction
from p2psip.server.domains import Aor
from p2psip.server.gruu import SECRET
from p2psip.server.location import Binding, flow_of, flow_text
from p2psip.sip.address import Address
from p2psip.sip.grammar import bytes_of, text_of
from p2psip.transaction.flow import LOCAL

MAX_PAGES: Final = 65_536  # of 4096 octets: 256 MiB, more than the registrar's limits can fill
SLICE: Final = 50  # users written again with each change
PURGE: Final = 20  # expired rows removed with each change, which adds no more than ten

_SCHEMA: Final = """
CREATE TABLE binding (
    user BLOB NOT NULL, domain BLOB NOT NULL, contact BLOB NOT NULL,
    call_id BLOB NOT NULL, cseq INTEGER NOT NULL,
    expires_at REAL NOT NULL, -- Unix time
    source TEXT NOT NULL,     -- transport, far end and near end of its REGISTER
    is_proven INTEGER NOT NULL,
    proven TEXT               -- the flow by which the contact has answered, if it had to
);
CREATE INDEX binding_of_user ON binding (user, domain);
CREATE INDEX binding_by_age ON binding (expires_at);
"""
_SINCE_2: Final = """
ALTER TABLE binding ADD COLUMN reg_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE binding ADD COLUMN path BLOB NOT NULL DEFAULT x'';
"""
_SINCE_3: Final = """
ALTER TABLE binding ADD COLUMN gruu TEXT NOT NULL DEFAULT '';
CREATE TABLE secret (value BLOB NOT NULL);
"""
SCHEMAS: Final = (_SCHEMA, _SINCE_2, _SINCE_3)  # of version 1 and those since
_COLUMNS: Final = (
    "user, domain, contact, call_id, cseq, expires_at, source, is_proven, proven, reg_id, path, "
    "gruu"
)
_INSERT: Final = f"INSERT INTO binding ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PURGE: Final = """
DELETE FROM binding WHERE rowid IN
    (SELECT rowid FROM binding WHERE expires_at < ? ORDER BY expires_at LIMIT ?)
"""

_Row = tuple[bytes, bytes, bytes, bytes, int, float, str, int, str | None, int, bytes, str]


class SqliteLocation:
    """A `LocationStore` in the file `path`, for one process at a time.

    `tell(what, reason)` reports "state-unwritable" when the file cannot be written any more,
    "state-written" when it can again, "state-set-aside" when a damaged file was replaced by a new
    one.  Raises LocalError for a file that another program or a later version has made, and leaves
    it as it is.  `clock` gives Unix time.
    """

    def __init__(
        self,
        path: Path,
        tell: Callable[[str, str], None],
        *,
        clock: Callable[[], float] = time.time,
        max_pages: int = MAX_PAGES,
    ) -> None:
        self.secret = b""
        self._path, self._tell, self._clock = path, tell, clock
        self._max_pages = max_pages
        self._db: sqlite3.Connection | None = None
        self._retry_at: float | None = None  # None while all is well
        self._owed: dict[Aor, None] = {}  # users to be written again
        try:
            try:
                self._db = self._open()
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                set_aside(self._path)
                self._tell("state-set-aside", str(error))
                self._db = self._open()
        except (sqlite3.Error, OSError) as error:  # full, or not ours to write
            self._fail(error, 0.0)

    def load(self, now: float) -> Iterable[tuple[Aor, Binding]]:
        """All stored bindings that have not expired, the oldest first."""
        try:
            return list(self._load(now - self._clock()))
        except sqlite3.Error as error:
            self._fail(error, now)
            return []

    def keep(self, aor: Aor, known: Mapping[Aor, Sequence[Binding]], now: float) -> None:
        """Commit the bindings of `aor`; after a failure also those of other users, step by step."""
        if self._retry_at is not None and now < self._retry_at:
            return
        try:
            if self._db is None:
                self._db = self._open()
            with transaction(self._db) as db:
                self._write(db, aor, known, now)
        except (sqlite3.Error, OSError, LocalError) as error:
            self._fail(error, now)
            return
        if self._retry_at is not None:
            self._retry_at = None
            self._tell("state-written", "")

    def _write(
        self, db: sqlite3.Connection, aor: Aor, known: Mapping[Aor, Sequence[Binding]], now: float
    ) -> None:
        if self._retry_at is not None:
            db.execute("DELETE FROM binding")
            self._owed = dict.fromkeys(known)
        ahead = self._clock() - now
        for each in (aor, *islice(self._owed, SLICE)):
            db.execute("DELETE FROM binding WHERE user = ? AND domain = ?", tuple(_key(each)))
            db.executemany(_INSERT, _rows(each, known.get(each, ()), ahead))
        for each in list(islice(self._owed, SLICE)):
            del self._owed[each]
        db.execute(_PURGE, (now + ahead, PURGE))

    def follow(self, adopt: Callable[..., object]) -> None:
        """Do nothing: no other process writes this file."""

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _open(self) -> sqlite3.Connection:
        """Open the file, which tells where everybody's phones are, and read or draw its secret."""
        db = open_file(self._path, SCHEMAS, self._max_pages)
        try:
            row = db.execute("SELECT value FROM secret").fetchone()
            self.secret = row[0] if row is not None else self.secret or os.urandom(SECRET)
            if row is None:
                db.execute("INSERT INTO secret VALUES (?)", (self.secret,))
        except BaseException:
            db.close()
            raise
        return db

    def _load(self, behind: float) -> Iterator[tuple[Aor, Binding]]:
        if self._db is None:
            return
        wanted = f"SELECT {_COLUMNS} FROM binding WHERE expires_at > ? ORDER BY rowid"
        for row in self._db.execute(wanted, (-behind,)).fetchall():
            try:
                yield _binding(row, behind)
            except (RemoteError, ValueError, TypeError, LookupError):
                continue  # a row that we cannot have written is ignored

    def _fail(self, error: Exception, now: float) -> None:
        """Go on without; all is written again once that works."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._retry_at is None:
            self._tell("state-unwritable", str(error))
        self._retry_at = now + RETRY_SECONDS


def _key(aor: Aor) -> Iterator[bytes]:
    return map(bytes_of, aor)


def _rows(aor: Aor, bindings: Sequence[Binding], ahead: float) -> Iterator[_Row]:
    """A row for each binding but those of this very process, which die with it."""
    user, domain = _key(aor)
    for binding in bindings:
        if binding.flow.transport != LOCAL:
            yield (
                user,
                domain,
                bytes_of(str(binding.contact)),
                bytes_of(binding.call_id),
                binding.cseq,
                binding.expires_at + ahead,
                flow_text(binding.flow),
                binding.is_proven,
                flow_text(binding.proven) if binding.proven else None,
                binding.reg_id,
                bytes_of(", ".join(map(str, binding.path))),
                binding.gruu,
            )


def _binding(row: _Row, behind: float) -> tuple[Aor, Binding]:
    """The binding of a row; raises the parsers' exceptions if it is none."""
    user, domain, contact, call_id, cseq, expires_at, source, is_proven, proven = row[:9]
    reg_id, path, gruu = row[9:]
    binding = Binding(
        Address.parse(contact),
        flow_of(source),
        text_of(call_id),
        cseq,
        expires_at + behind,
        bool(is_proven),
        flow_of(proven) if proven else None,
        reg_id,
        Address.parse_list(text_of(path)) if path else (),
        gruu,
    )
    return (text_of(user), text_of(domain)), binding
