"""A file of SQLite that keeps what a server knows, and outlives the process.

Own design: no commit waits for the disk (`synchronous=OFF`, with a write-ahead log), since calls
run in the same loop.  A change survives the death of the process; a power cut may damage the file,
which is then set aside.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from p2psip.errors import LocalError

MODE: Final = 0o600  # what is kept is private
RETRY_SECONDS: Final = 30.0  # after a failure, and at the next change
BESIDE: Final = ("-wal", "-shm")  # what SQLite adds to the name of the file
CHECKPOINT: Final = 200  # pages of the log, then they are moved into the file


def open_file(path: Path, schemas: Sequence[str], max_pages: int) -> sqlite3.Connection:
    """Open a file, and bring its schema up to date; none but this user may read it.

    `schemas` are the statements of each version after the one before.  A page has 4096 octets.
    Raises LocalError for a file of another program or a later version, sqlite3.Error and OSError.
    """
    # SQLite gives the files beside it the same mode when it makes them
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE))
    db, last = sqlite3.connect(path, timeout=0.0, isolation_level=None), len(schemas)
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("damaged")
        if not 0 <= version <= last or (version == 0 and tables):
            raise LocalError(f"{path}: schema {version}, and this version knows {last} at most")
        for rest in ("", *BESIDE):
            with suppress(FileNotFoundError):
                os.chmod(f"{path}{rest}", MODE)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        db.execute(f"PRAGMA max_page_count = {max_pages}")
        if version < last:
            with transaction(db):
                for statement in "".join(schemas[version:]).split(";")[:-1]:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {last}")
    except BaseException:
        db.close()
        raise
    return db


def set_aside(path: Path) -> None:
    """Rename a damaged file, which stays beside the new one for the operator."""
    path.replace(path.with_suffix(".damaged"))
    for rest in BESIDE:
        path.with_name(path.name + rest).unlink(missing_ok=True)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One transaction: all changes within, or none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
