"""The bus: messages between the workers of one server, and requests that are answered.

Own design: each worker has a connection of its own to each other one, over a Unix socket in a
folder of mode 0700, and writes on it only; what it reads comes by theirs.  A message is one line of
JSON.  A connection that ends means that the worker at its other end has ended, or was stuck for so
long that `MAX_WAITING` bytes have waited for it; the next one begins with `greeting`, all that a
worker must know which has just started, so nothing needs to be remembered for it.  However long
that is, it is sent: what may wait is counted beside it.
"""

import json
import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import gevent
import gevent.socket
from gevent.event import AsyncResult, Event
from gevent.server import StreamServer

from rtmplite.net.clock import now
from siprtmp.edge.workers.place import WorkerPlace, is_ours

log: Final = logging.getLogger(__name__)

MAX_WAITING: Final = 8 * 1024 * 1024  # bytes for a worker that does not read
MAX_OFFERED: Final = 1024 * 1024  # bytes that wait where no more is offered
MAX_LINE: Final = 64 * 1024 * 1024  # bytes of one message; all calls of a worker are one
AGAIN: Final = 0.2  # s until another attempt to reach a worker
TIMEOUT: Final = 1.0  # s for an answer
READ: Final = 1 << 16
MAX_READERS: Final = 256  # connections at once, of workers and of whoever says nothing

Message = dict[str, Any]


class Bus:
    """A worker's end of the bus.

    `handlers` take messages by their member `do`, with the number of the sender, and give what a
    request is answered by.  `greeting` gives the messages that begin a connection; `on_lost` is
    called with the number of a worker that has ended.
    """

    def __init__(
        self,
        place: WorkerPlace,
        handlers: Mapping[str, Callable[[int, Message], object]],
        greeting: Callable[[], Iterable[Message]],
        on_lost: Callable[[int], None],
    ) -> None:
        self._place, self._handlers, self._on_lost = place, handlers, on_lost
        self._ways = {each: _Way(place, each, greeting) for each in place.others}
        self._readers: dict[int, object] = {}
        self._asked: dict[int, AsyncResult[Any]] = {}
        self._number = 0
        listener = gevent.socket.socket(fileno=place.bus.detach())
        self._server = StreamServer(listener, self._serve, spawn=MAX_READERS)

    def start(self) -> None:
        """Take messages, and connect to the others."""
        self._server.start()
        for way in self._ways.values():
            way.start()

    def stop(self) -> None:
        """Leave the bus."""
        self._server.stop(timeout=0.1)
        for way in self._ways.values():
            way.stop()

    def tell(self, message: Message, worker: int | None = None) -> None:
        """Send a message to one worker, or to all others."""
        for number, way in self._ways.items():
            if worker in (None, number):
                way.put(message)

    def offer(self, message: Message, worker: int) -> None:
        """Send what may be lost on the way, as a peer may send more of it than a worker reads."""
        if (way := self._ways.get(worker)) is not None and way.has_room:
            way.put(message)

    def ask(self, message: Message, worker: int) -> Any:
        """Give the answer of one worker; None if there is none within `TIMEOUT`."""
        return self._collect(message, [worker]).get(worker)

    def ask_all(self, message: Message) -> dict[int, Any]:
        """Give the answers of all other workers, without those that are late."""
        return self._collect(message, self._place.others)

    def _collect(self, message: Message, workers: Iterable[int]) -> dict[int, Any]:
        waiting = {}
        for worker in workers:
            self._number += 1
            waiting[worker] = self._number
            self._asked[self._number] = AsyncResult()
            self.tell({**message, "ask": self._number, "until": now() + TIMEOUT}, worker)
        answers = {}
        with suppress(gevent.Timeout), gevent.Timeout(TIMEOUT):
            for worker, number in waiting.items():
                answers[worker] = self._asked[number].get()
        for worker, number in waiting.items():
            late = self._asked.pop(number)
            if worker not in answers and late.ready():
                answers[worker] = late.get()
        return answers

    def _serve(self, connected: Any, address: object) -> None:
        """Read what one worker says, until it ends."""
        if not is_ours(connected):
            return
        try:
            self._read(connected)
        except OSError:
            return
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            log.warning("somebody speaks on the bus who is no worker: %s", type(error).__name__)

    def _read(self, connected: Any) -> None:
        lines = _lines(connected)
        worker = next(lines, {}).get("worker")
        if worker not in self._ways:
            return
        if worker in self._readers:  # of a predecessor whose end we have not heard of yet
            self._on_lost(worker)
        self._readers[worker] = connected
        try:
            for message in lines:
                self._take(worker, message)
        finally:
            if self._readers.get(worker) is connected:
                del self._readers[worker]
                self._on_lost(worker)

    def _take(self, worker: int, message: Message) -> None:
        if "answer" in message:
            if (asked := self._asked.get(message["answer"])) is not None:
                asked.set(message["value"])
            return
        if (handler := self._handlers.get(message.get("do", ""))) is None:
            return
        if "ask" in message:
            if now() > message["until"]:  # we were stopped: nobody waits for it any more
                return
            gevent.spawn(self._answer, handler, worker, message)
            return
        try:
            handler(worker, message)
        except Exception:
            log.exception("bus")

    def _answer(self, handler: Callable[[int, Message], object], worker: int, asked: Any) -> None:
        """Answer a request in a greenlet, since that may take a while."""
        try:
            value = handler(worker, asked)
        except Exception:
            log.exception("bus")
            value = None
        self.tell({"answer": asked["ask"], "value": value}, worker)


class _Way:
    """The connection to one worker, made again when it is lost; it keeps what waits to be sent."""

    def __init__(
        self, place: WorkerPlace, worker: int, greeting: Callable[[], Iterable[Message]]
    ) -> None:
        self._place, self._worker, self._greeting = place, worker, greeting
        self._waiting = deque[bytes]()
        self._size, self._there = 0, Event()
        self._connected: Any = None
        self._greenlet: Any = None

    def start(self) -> None:
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        self._greenlet.kill()

    @property
    def has_room(self) -> bool:
        """Whether so little waits that more may be offered."""
        return self._size < MAX_OFFERED

    def put(self, message: Message) -> None:
        """Send a message, if there is a connection: a later one begins with the greeting."""
        if self._connected is None:
            return
        data = _line(message)
        self._size += len(data)
        if self._size > MAX_WAITING:
            log.warning("worker %d does not read the bus", self._worker)
            self._connected.close()
            self._connected = None
        self._waiting.append(data)
        self._there.set()

    def _run(self) -> None:
        while True:
            with suppress(OSError):
                self._connect()
            self._connected = None
            gevent.sleep(AGAIN)

    def _connect(self) -> None:
        with gevent.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
            connected.connect(self._place.bus_path(self._worker))
            self._waiting.clear()
            self._size, self._connected = 0, connected
            greeting = b"".join(map(_line, [{"worker": self._place.index}, *self._greeting()]))
            watch = gevent.spawn(self._watch, connected)
            try:
                connected.sendall(greeting)
                while self._connected is connected:
                    self._there.wait()
                    self._there.clear()
                    while self._waiting and self._connected is connected:
                        data = self._waiting.popleft()
                        connected.sendall(data)
                        self._size -= len(data)
            finally:
                watch.kill()

    def _watch(self, connected: Any) -> None:
        """Wait for the end: nothing else comes by this connection."""
        with suppress(OSError):
            connected.recv(1)
        if self._connected is connected:
            self._connected = None
            self._there.set()


def _line(message: Message) -> bytes:
    return json.dumps(message).encode("ascii") + b"\n"


def _lines(connected: Any) -> Iterator[Message]:
    """Yield the messages that come by a connection until its end."""
    data = bytearray()
    while piece := connected.recv(READ):
        data += piece
        if b"\n" in piece:
            *lines, data = data.split(b"\n")
            yield from map(json.loads, lines)
        if len(data) > MAX_LINE:
            return
        if len(piece) == READ:  # more is there, such as a long greeting: media come first
            gevent.sleep(0)
