"""The persistent resources of several gateways in one Redis, with the log of their changes.

Implements Resources §15.

Own design: a hash has the resources, and a stream the latest edits, numbered one by one.  A script
adds an edit only for a gateway that knows all edits before it.  A greenlet reads the edits of
others.  If edits are missing in the stream, it reads all resources and tells the differences.  If
Redis has begun anew, a gateway writes its own resources there, except under names that exist.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import gevent
from gevent.lock import Semaphore
from redis.exceptions import RedisError

from p2psip.errors import RemoteError
from p2psip.net.location_redis import RETRY_SECONDS, redis_client
from siprtmp.web.resources.nodes import Held
from siprtmp.web.resources.path import Path, read_path, write_path
from siprtmp.web.resources.shared import (
    AWAY,
    Act,
    Edit,
    StaleError,
    read_edits,
    read_row,
    written_edits,
    written_row,
)
from siprtmp.web.resources.tree import Tree

HEAD: Final = "siprtmp:tree"  # a hash: the life of this Redis, and the number of the last edit
ROWS: Final = "siprtmp:tree:resources"  # a hash: the resources by their paths
LOG: Final = "siprtmp:tree:changes"  # a stream
MAX_LOG: Final = 1_000  # edits, about
BLOCK_MS: Final = 1_000  # of waiting for edits, before the life is looked at again
BATCH: Final = 50  # edits or resources at once
_UNKNOWN: Final = "?"  # the life of a Redis that has not been given all
TURN_SECONDS: Final = 10.0  # that a request waits for those before it

# KEYS: head, rows, log.  ARGV: life, number of the last edit or "", limit, edits, and then paths,
# each with its row, which is empty if there is none any more.
_COMMIT: Final = """
local said = redis.call('HMGET', KEYS[1], 'life', 'last')
if said[1] ~= ARGV[1] or (ARGV[2] ~= '' and said[2] ~= ARGV[2]) then return 0 end
local last = redis.call('HINCRBY', KEYS[1], 'last', 1)
for at = 5, #ARGV, 2 do
  if ARGV[at + 1] == '' then redis.call('HDEL', KEYS[2], ARGV[at])
  else redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1]) end
end
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[3], last .. '-0', 'edits', ARGV[4])
return last
"""


class RedisLog:
    """A `SharedLog` in the Redis at `url`; raises LocalError for a `url` that is none.

    `tell(what, reason)` reports "tree-away" when Redis cannot be reached any more, and "tree-back"
    when it can again.  `follow` must be called once, with the tree.
    """

    def __init__(self, url: str, tell: Callable[[str, str], None]) -> None:
        self._writer: Any = redis_client(url)  # redis-py has no types for what is used here
        self._reader: Any = redis_client(url)
        self._script = self._writer.register_script(_COMMIT)
        self._tell = tell
        self._life = ""  # of the Redis whose edits are applied ...
        self._last = 0  # ... up to this one
        self._is_there = self._is_failing = False
        self._turn = Semaphore(1)
        self._holder: object = None  # the greenlet of the request whose turn it is
        self._greenlet: gevent.Greenlet[[], None] | None = None

    def follow(self, tree: Tree, on_loaded: Callable[[], object]) -> None:
        """Load the tree, and apply the edits of others to it from now on; call `on_loaded` once."""
        self._tree, self._on_loaded = tree, on_loaded
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        """Stop reading, and close the connection."""
        if self._greenlet is not None:
            self._greenlet.kill()
        for client in (self._writer, self._reader):
            client.close()

    # -- for the tree -------------------------------------------------------------------

    @property
    def is_loaded(self) -> bool:
        return bool(self._life)

    def commit(self, edit: Edit, rows: Iterable[tuple[Path, Held | None]]) -> None:
        last = self._last  # by which the request was judged
        self._take_turn()
        if not self._is_there:
            raise RemoteError(AWAY, 503)
        try:
            # Resources §15.2 [judged-by-all-before]
            number = self._add([edit], rows, None if edit.act is Act.EVENT else last)
            if not number:
                self._catch_up()
                raise StaleError
        except (RedisError, OSError, RemoteError, ValueError) as error:
            self._fail(error)
            # Resources §15.3 [changes-are-503]
            raise RemoteError(AWAY, 503) from None
        if number == self._last + 1:
            self._apply(number, [edit])

    def leave(self) -> None:
        if self._holder is gevent.getcurrent():
            self._holder = None
            self._turn.release()

    def _take_turn(self) -> None:
        """One request commits at a time; one that has waited for that is judged again."""
        if self._holder is gevent.getcurrent():
            return
        was_free = self._turn.acquire(blocking=False)
        if not was_free and not self._turn.acquire(timeout=TURN_SECONDS):
            raise RemoteError(AWAY, 503)
        self._holder = gevent.getcurrent()
        if not was_free:
            raise StaleError

    # -- Redis --------------------------------------------------------------------------

    def _add(
        self, edits: Sequence[Edit], rows: Iterable[tuple[Path, Held | None]], last: int | None
    ) -> int:
        """Add an entry behind the one with the number `last`; its number, 0 if others did."""
        words: list[Any] = [self._life, "" if last is None else last, MAX_LOG, written_edits(edits)]
        for path, held in rows:
            words += [write_path(path), "" if held is None else written_row(held)]
        return int(self._script(keys=[HEAD, ROWS, LOG], args=words))

    def _run(self) -> None:
        while True:
            try:
                with self._turn:
                    self._load()
                while self._is_there:
                    self._hear()
            except (RedisError, OSError, RemoteError, ValueError) as error:
                self._fail(error)
                gevent.sleep(RETRY_SECONDS)

    def _hear(self) -> None:
        """Wait for edits of others; those of this gateway have been applied, as a rule."""
        place = {LOG: f"{self._last}-0"}
        found = self._reader.xread(place, count=BATCH, block=BLOCK_MS)
        with self._turn:
            if found:
                self._take(found[0][1])
            else:
                self._catch_up()  # which looks whether something is lost

    # What follows is done in turn: by the request whose turn it is, or by the greenlet that reads.

    def _catch_up(self) -> None:
        """Read what others have added, now."""
        life, last = self._writer.hmget(HEAD, "life", "last")
        if not (life and last) or life.decode() != self._life or int(last) < self._last:
            self._load()
            return
        entries = self._writer.xrange(LOG, f"({self._last}-0", count=BATCH)
        self._take(entries)
        if self._last < int(last) and len(entries) < BATCH:  # the latest are lost
            self._load()

    def _take(self, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> None:
        for name, fields in entries:
            number = _number(name)
            if number <= self._last:
                continue
            if number != self._last + 1:  # older ones are not there any more
                self._load()
                return
            self._apply(number, read_edits(fields.get(b"edits", b"").decode()))

    def _apply(self, number: int, edits: Iterable[Edit]) -> None:
        self._last = number
        for edit in edits:
            self._tree.apply(edit)

    def _load(self) -> None:
        """Read all resources of Redis, or write ours to one that has begun anew."""
        life, last, kept = self._everything()
        was_loaded, is_new = self.is_loaded, life != self._life or last < self._last
        own: list[tuple[Path, Held]] = []
        if was_loaded and is_new:
            own = [each for each in self._tree.persistent() if each[0] not in kept]
        self._life, self._last = life, last
        self._tree.renew(kept | dict(own))
        for some in _batches(own):  # Resources §15.3 [given-what-is-known]
            edits = [Edit(Act.PUT, path, held) for path, held in some]
            number = self._add(edits, some, self._last)
            if not number:
                self._life = _UNKNOWN
                raise RemoteError("another gateway gives Redis what it has")
            self._last = number
        self._is_there = True
        if self._is_failing:
            self._is_failing = False
            self._tell("tree-back", "")
        if not was_loaded:
            self._on_loaded()

    def _everything(self) -> tuple[str, int, dict[Path, Held]]:
        """The life, the number of the last edit, and the resources, all of one moment."""
        with self._writer.pipeline(transaction=True) as together:
            together.hsetnx(HEAD, "life", os.urandom(8).hex())
            together.hsetnx(HEAD, "last", 0)
            together.hmget(HEAD, "life", "last")
            together.hgetall(ROWS)
            together.xrevrange(LOG, count=1)
            *_, (life, last), rows, latest = together.execute()
        if latest and _number(latest[0][0]) > int(last):  # which no gateway can have written
            self._writer.delete(LOG)
        kept: dict[Path, Held] = {}
        for number, (path, row) in enumerate(rows.items()):
            if not number % BATCH:
                gevent.sleep(0)  # others must run while there is much to read
            with suppress(RemoteError, UnicodeDecodeError):  # no gateway has written this
                kept[read_path(path.decode())] = read_row(row.decode())
        return life.decode(), int(last), kept

    def _fail(self, error: Exception) -> None:
        self._is_there = False
        if not self._is_failing:
            self._is_failing = True
            self._tell("tree-away", str(error) or type(error).__name__)


def _number(name: bytes) -> int:
    """The number of the edits of an entry."""
    return int(name.partition(b"-")[0])


def _batches(rows: Sequence[tuple[Path, Held]]) -> Iterable[Sequence[tuple[Path, Held]]]:
    return (rows[start : start + BATCH] for start in range(0, len(rows), BATCH))
