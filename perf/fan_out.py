"""The ways in which Python can send a message to many, as LiveKit's article had them.

A track is a socket on loopback and the work to be done for it before the send: none, or a hash of
about 50 us, as that article pretended its encryption. Python lets other threads run meanwhile. Each
strategy sends one message to every track, and has finished when all are sent.
"""

import hashlib
import itertools
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from struct import Struct
from typing import Self

import gevent

MESSAGE = bytes(180)  # a packet of sound
STEP = 2  # tracks that a thread pulls at once, as in the article
WORK = 50e-6  # s for each track, where there is work
_SPAN = Struct("!II")  # from which track to before which
_NONE = 0xFFFFFFFF  # in place of the first: how much work there is; twice: the end

Strategy = Callable[[int], None]


class Tracks:
    """So many sockets that receive, one that sends, and the strategies that reach them all."""

    def __init__(self, most: int, cores: int) -> None:
        self._cores = cores
        self._receivers = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(most)]
        for receiver in self._receivers:
            receiver.bind(("127.0.0.1", 0))
            receiver.setblocking(False)
        self._places = [receiver.getsockname() for receiver in self._receivers]
        self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._text = b""
        self._children = [_Child(self._span) for _ in range(cores)]
        self._pool = ThreadPoolExecutor(cores)

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes and the threads, and close the sockets."""
        for child in self._children:
            child.close()
        self._pool.shutdown()
        for each in (self._sender, *self._receivers):
            each.close()

    def strategies(self) -> dict[str, Strategy]:
        """By name; the first is the reference."""
        return {
            "serial": lambda count: self._span(0, count, self._text),
            "pool": self._by_pool,
            "greenlets": self._by_greenlets,
            "pulling": self._by_pulling,
            "processes": self._by_processes,
        }

    def work(self, text: bytes) -> None:
        """Hash `text` for each track from now on; nothing is hashed if it is empty."""
        self._text = text

    def drain(self, count: int) -> None:
        """Read what each track got; LookupError if it is not one message."""
        for receiver in self._receivers[:count]:
            if receiver.recv(2048) != MESSAGE:
                raise LookupError("another message than was sent")

    def _span(self, begin: int, end: int, text: bytes) -> None:
        send = self._sender.sendto
        for place in self._places[begin:end]:
            if text:
                hashlib.sha256(text).digest()
            send(MESSAGE, place)

    def _by_pool(self, count: int) -> None:
        spans = [(begin, end, self._text) for begin, end in buckets(count, self._cores)]
        wait([self._pool.submit(self._span, *span) for span in spans])

    def _by_greenlets(self, count: int) -> None:
        spawned = [gevent.spawn(self._span, at, at + 1, self._text) for at in range(count)]
        gevent.joinall(spawned)

    def _by_pulling(self, count: int) -> None:
        steps = itertools.count(0, STEP)

        def pull() -> None:
            while (begin := next(steps)) < count:
                self._span(begin, min(begin + STEP, count), self._text)

        wait([self._pool.submit(pull) for _ in range(self._cores)])

    def _by_processes(self, count: int) -> None:
        asked = list(zip(self._children, buckets(count, self._cores), strict=False))
        for child, span in asked:
            child.ask(*span, self._text)
        for child, _ in asked:
            child.wait()


class _Child:
    """A process that sends to a part of the tracks when it is asked."""

    def __init__(self, span: Callable[[int, int, bytes], None]) -> None:
        self._ours, theirs = socket.socketpair()
        self._text = b""
        self._pid = os.fork()
        if self._pid:
            theirs.close()
            return
        self._ours.close()
        text = b""
        while True:
            begin, end = _SPAN.unpack(theirs.recv(_SPAN.size))
            if end == _NONE:
                os._exit(0)
            if begin == _NONE:
                text = bytes(end)
            else:
                span(begin, end, text)
            theirs.send(b"!")

    def ask(self, begin: int, end: int, text: bytes) -> None:
        """Begin; `wait` for the end."""
        if text != self._text:
            self._text = text
            self._ours.send(_SPAN.pack(_NONE, len(text)))
            self.wait()
        self._ours.send(_SPAN.pack(begin, end))

    def wait(self) -> None:
        """Until that part is sent."""
        self._ours.recv(1)

    def close(self) -> None:
        """End it; others of its kind may hold our end as well, so that closing would not."""
        self._ours.send(_SPAN.pack(_NONE, _NONE))
        os.waitpid(self._pid, 0)
        self._ours.close()


def buckets(count: int, parts: int) -> list[tuple[int, int]]:
    """Equal parts of so many, the first ones longer by one; none that is empty."""
    size, more = divmod(count, parts)
    ends = list(itertools.accumulate(size + (part < more) for part in range(parts)))
    return [(a, b) for a, b in itertools.pairwise([0, *ends]) if a < b]


def calibrated(seconds: float = WORK) -> bytes:
    """A text whose hash takes so long: the shortest of some trials, each of ten."""
    text, taken = bytes(1 << 16), []
    for _ in range(20):
        began = time.thread_time()
        for _ in range(10):
            hashlib.sha256(text).digest()
        taken.append((time.thread_time() - began) / 10)
    return bytes(max(4096, int(len(text) * seconds / min(taken))))
