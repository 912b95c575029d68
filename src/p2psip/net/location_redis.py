"""The bindings of a registrar in Redis, where processes and machines share them.

Own design: RFC 3261 §10.3 leaves the storage to the implementation.  A user has one hash, with a
field for each contact; of one contact the last writer wins.  A change is published, and the other
processes read that user again.  Expiry is in wall clock time, by clocks that agree to a few
seconds.

Nothing waits for Redis: a greenlet writes changes some milliseconds later, and while Redis cannot
be reached, the registrar continues from memory.  A Redis that was started anew, maybe with nothing
in memory, is first given the bindings that each process has taken itself.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import gevent
from gevent import socket
from gevent.event import Event
from redis import Redis
from redis.backoff import NoBackoff
from redis.connection import Connection, ConnectionPool
from redis.exceptions import RedisError
from redis.retry import Retry

from p2psip.errors import LocalError, RemoteError
from p2psip.net.clock import monotonic
from p2psip.server.domains import Aor
from p2psip.server.gruu import SECRET
from p2psip.server.location import Binding, flow_of, flow_text
from p2psip.sip.address import Address
from p2psip.sip.grammar import bytes_of, text_of
from p2psip.transaction.flow import LOCAL

PREFIX: Final = "p2psip:location:"  # before the user in the name of a hash
CHANNEL: Final = "p2psip:location"
KEY: Final = "p2psip:secret"  # where the key of all processes is
PATIENCE: Final = 2.0  # s for an answer of Redis, and between questions whether it is still there
RETRY_SECONDS: Final = 1.0
BATCH: Final = 500  # users asked for at once

Adopt = Callable[[Aor, Sequence[Binding], float], Sequence[Binding]]
_Rows = dict[str, str]  # of one user, by the name of the binding


class RedisLocation:
    """A `LocationStore` in the Redis at `url`, such as "redis://192.0.2.7:6379/0".

    `tell(what, reason)` reports "state-unwritable" when Redis cannot be reached any more, and
    "state-written" when it can again.  `follow` must be called once the registrar has loaded.
    Raises LocalError for a `url` that is none.  `clock` gives Unix time.
    """

    def __init__(
        self, url: str, tell: Callable[[str, str], None], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._writer, self._reader = redis_client(url), redis_client(url)
        self._tell, self._clock = tell, clock
        self.secret = os.urandom(SECRET)  # until Redis has told that of the others
        self._node = os.urandom(8).hex()
        self._adopt: Adopt = lambda aor, bindings, now: bindings
        self._wanted: dict[Aor, _Rows] = {}  # the bindings in force here
        self._stored: dict[Aor, _Rows] = {}  # what Redis has of them, as far as we know
        self._to_write: dict[Aor, None] = {}
        self._to_read: dict[Aor, None] = {}
        self._run: object = None  # of Redis, whose memory ends with it
        self._is_fresh = False  # a new connection: write and read everything
        self._is_failing = False
        self._news = Event()
        self._greenlets: list[gevent.Greenlet[[], None]] = []

    def load(self, now: float) -> Iterable[tuple[Aor, Binding]]:
        """All stored bindings that have not expired; none if Redis cannot be reached.  May wait."""
        try:
            self._run, found = self._run_of_redis(), list(self._everything())
            self._share_secret()
        except (RedisError, OSError) as error:
            self._fail(error)
            return []
        for aor, rows in found:
            self._wanted[aor], self._stored[aor] = dict(rows), dict(rows)
        return [(aor, binding) for aor, rows in found for binding in self._bindings(rows, now)]

    def keep(self, aor: Aor, known: Mapping[Aor, Sequence[Binding]], now: float) -> None:
        """Have the bindings of `aor` written, soon."""
        ahead, before = self._clock() - now, self._wanted.get(aor, {})
        rows = {}
        for binding in known.get(aor, ()):
            if binding.flow.transport != LOCAL:
                contact = binding.name
                theirs = before.get(contact)
                is_same = theirs is not None and _version(theirs) == [
                    binding.call_id,
                    binding.cseq,
                    binding.is_proven,
                    binding.gruu,
                ]
                rows[contact] = theirs if theirs and is_same else self._row(binding, ahead)
        self._wanted[aor] = rows
        self._to_write[aor] = None
        self._news.set()

    def follow(self, adopt: Adopt) -> None:
        """Begin to write, and to tell `adopt` what other processes have stored."""
        self._adopt = adopt
        self._greenlets = [gevent.spawn(self._listen), gevent.spawn(self._work)]

    def close(self) -> None:
        """Write what is left, if that is quick, and leave."""
        if self._greenlets:
            end = monotonic() + PATIENCE
            while self._to_write and not self._is_failing and monotonic() < end:
                gevent.sleep(0.01)
        gevent.killall(self._greenlets)
        for client in (self._writer, self._reader):
            client.close()

    # Greenlets

    def _listen(self) -> None:
        """Wait for news of others, and for a new connection, after which all is written again."""
        while True:
            try:
                hearings: Any = self._reader  # redis-py has no types for this
                with hearings.pubsub() as hearing:
                    hearing.subscribe(CHANNEL)
                    while True:
                        self._hear(hearing.get_message(timeout=PATIENCE))
                        hearing.check_health()
            except (RedisError, OSError, ValueError) as error:
                self._fail(error)
            gevent.sleep(RETRY_SECONDS)

    def _hear(self, message: Mapping[str, Any] | None) -> None:
        match message:
            case {"type": "subscribe"}:
                self._is_fresh = True
            case {"type": "message", "data": bytes(data)}:
                node, user, domain = json.loads(data)
                if node == self._node:
                    return
                self._to_read[user, domain] = None
            case _:
                return
        self._news.set()

    def _work(self) -> None:
        """Write our changes, then read those of others, one after the other."""
        while True:
            self._news.wait()
            self._news.clear()
            try:
                self._exchange()
            except (RedisError, OSError) as error:
                self._fail(error)
                gevent.sleep(RETRY_SECONDS)
                self._news.set()

    def _exchange(self) -> None:
        if self._is_fresh:
            self._is_fresh = False
            try:
                self._begin_again()
            except (RedisError, OSError):
                self._is_fresh = True
                raise
        while self._to_write or self._to_read:
            if self._to_write:
                self._write(next(iter(self._to_write)))
            else:
                self._read(next(iter(self._to_read)))
        if self._is_failing:
            self._is_failing = False
            self._tell("state-written", "")

    def _begin_again(self) -> None:
        """Read everything; write our own bindings again if this Redis has never seen them."""
        run, found = self._run_of_redis(), dict(self._everything())
        self._share_secret()
        if run == self._run:  # only the connection was lost: what is gone was removed by others
            found = dict.fromkeys(self._wanted, _Rows()) | found
        else:
            self._run = run
            for aor, wanted in self._wanted.items():
                theirs = {contact: row for contact, row in wanted.items() if not self._is_ours(row)}
                if len(theirs) < len(wanted):
                    self._stored[aor] = theirs
                    self._to_write[aor] = None
        for aor, rows in found.items():
            self._take(aor, rows)

    def _share_secret(self) -> None:
        """Take the secret of the others, or give them ours if they have none."""
        self._writer.set(KEY, self.secret, nx=True)
        known: Any = self._writer.get(KEY)
        self.secret = known or self.secret

    def _run_of_redis(self) -> object:
        """What tells two runs of Redis apart."""
        server: Any = self._writer.info("server")
        return server["run_id"]

    # Redis

    def _write(self, aor: Aor) -> None:
        """Write the difference between what is wanted and what Redis has."""
        wanted, stored = self._wanted.get(aor, {}), self._stored.get(aor, {})
        gone = stored.keys() - wanted.keys()
        new: dict[Any, Any] = {
            bytes_of(contact): row for contact, row in wanted.items() if stored.get(contact) != row
        }
        with self._writer.pipeline() as together:
            if gone:
                together.hdel(_key(aor), *map(bytes_of, gone))
            if new:
                together.hset(_key(aor), mapping=new)
                together.expireat(_key(aor), int(max(map(_expiry, wanted.values()))) + 60)
            if gone or new:
                together.publish(CHANNEL, json.dumps([self._node, *aor]))
                together.execute()
        if self._wanted.get(aor, {}) == wanted:  # nothing has changed while we waited
            del self._to_write[aor]
            self._remember(self._wanted, aor, wanted)
        self._remember(self._stored, aor, wanted)

    def _read(self, aor: Aor) -> None:
        del self._to_read[aor]  # now: news that come while we wait are of a later change
        try:
            rows: Any = self._writer.hgetall(_key(aor))
        except (RedisError, OSError):
            self._to_read[aor] = None
            raise
        self._take(aor, _text(rows))

    def _take(self, aor: Aor, rows: _Rows) -> None:
        """Tell the registrar what Redis has, unless it has news for Redis itself."""
        if aor in self._to_write:
            self._to_read[aor] = None
            self._news.set()
            return
        now = monotonic()
        live = {each.name for each in self._adopt(aor, self._bindings(rows, now), now)}
        rows = {contact: row for contact, row in rows.items() if contact in live}
        self._remember(self._wanted, aor, rows)
        self._remember(self._stored, aor, rows)

    def _everything(self) -> Iterator[tuple[Aor, _Rows]]:
        names = list(self._writer.scan_iter(f"{PREFIX}*", count=BATCH))
        for start in range(0, len(names), BATCH):
            with self._writer.pipeline(transaction=False) as together:
                for name in names[start : start + BATCH]:
                    together.hgetall(name)
                answers = together.execute()
            for name, rows in zip(names[start:], answers, strict=False):
                try:
                    user, domain = json.loads(name[len(PREFIX) :])
                    yield (user, domain), _text(rows)
                except ValueError:
                    continue  # nothing that we have written

    def _fail(self, error: Exception) -> None:
        if not self._is_failing:
            self._is_failing = True
            self._tell("state-unwritable", str(error) or type(error).__name__)

    @staticmethod
    def _remember(where: dict[Aor, _Rows], aor: Aor, rows: _Rows) -> None:
        if rows:
            where[aor] = rows
        else:
            where.pop(aor, None)

    # Rows

    def _row(self, binding: Binding, ahead: float) -> str:
        proven = flow_text(binding.proven) if binding.proven else None
        version = [binding.call_id, binding.cseq, binding.is_proven]
        expires_at = binding.expires_at + ahead
        row = [self._node, expires_at, str(binding.contact), flow_text(binding.flow), proven]
        if binding.reg_id or binding.path or binding.gruu:  # which nodes of before would not read
            path = list(map(str, binding.path))
            return json.dumps([version, *row, binding.reg_id, path, binding.gruu])
        return json.dumps([version, *row])

    def _is_ours(self, row: str) -> bool:
        return bool(json.loads(row)[1] == self._node)

    def _bindings(self, rows: _Rows, now: float) -> list[Binding]:
        """The bindings of rows that have not expired; what no such process has written is left."""
        behind, found = now - self._clock(), []
        for text in rows.values():
            try:
                (call_id, cseq, is_proven), _, *row = json.loads(text)
                expires_at, contact, source, proven, *more = row
                more += [0, [], ""][len(more) :]
                reg_id, path, gruu = more
                until = float(expires_at) + behind
                binding = Binding(
                    Address.parse(contact),
                    flow_of(source),
                    call_id,
                    cseq,
                    until,
                    is_proven,
                    flow_of(proven) if proven else None,
                    reg_id,
                    tuple(map(Address.parse, path)),
                    str(gruu),
                )
            except (RemoteError, ValueError, TypeError):
                continue
            if until > now:
                found.append(binding)
        return found


def redis_client(url: str) -> Redis:
    """A client of the Redis at `url`, by sockets of gevent; LocalError for a `url` that is none.

    It connects at its first use, and tries once.
    """
    try:
        if not url.startswith("redis://"):
            raise ValueError("neither TLS nor a socket in the file system")
        pool = ConnectionPool.from_url(
            url,
            connection_class=_Connection,
            protocol=2,  # whose answers look the same in all versions of redis-py
            socket_timeout=PATIENCE,
            retry=Retry(NoBackoff(), 0),  # a retry would sleep, and block all other clients
        )
    except ValueError as error:
        raise LocalError("no URL such as redis://192.0.2.7:6379/0") from error
    return Redis(connection_pool=pool)


class _Connection(Connection):
    """A connection of redis-py by sockets of gevent, so that the others of the loop go on."""

    def _connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), PATIENCE)


def _key(aor: Aor) -> str:
    return PREFIX + json.dumps(aor)


def _text(rows: Mapping[bytes, bytes]) -> _Rows:
    return {text_of(contact): row.decode() for contact, row in rows.items()}


def _version(row: str) -> list[Any]:
    version, *rest = json.loads(row)
    return [*version, *(rest[7:] or [""])]


def _expiry(row: str) -> float:
    return float(json.loads(row)[2])
