"""A relay of UDP in user space that loses and delays datagrams, for links that this machine lacks.

Own design: there is no netem here.  A thread of its own, with plain sockets of the system.
"""

import heapq
import random
import selectors
import time
from contextlib import contextmanager
from itertools import count

from gevent.monkey import get_original

socket_ = get_original("socket", "socket")


class LossyRelay:
    """Listens at `port` and forwards to `target`, each client from a socket of its own.

    `loss` is a share of the datagrams each way and `delay` in seconds one way.  `lost` and `passed`
    are counts.  `move` changes the ports that the clients seem to come from, as a NAT that forgets.
    """

    def __init__(self, target, loss, delay, seed=1):
        self.target, self.loss, self.delay = target, loss, delay
        self.lost = self.passed = 0
        self._random, self._count, self._due = random.Random(seed), count(), []
        self._selector = selectors.DefaultSelector()
        self._front = self._open()
        self.port = self._front.getsockname()[1]
        self._by_client, self._clients = {}, {}
        self._ended = self._moves = False
        self._thread = get_original("threading", "Thread")(target=self._run, daemon=True)

    def _open(self):
        made = socket_(2, 2)
        made.bind(("127.0.0.1", 0))
        made.setblocking(False)
        self._selector.register(made, selectors.EVENT_READ)
        return made

    def move(self):
        self._moves = True

    def _run(self):
        while not self._ended:
            now = time.monotonic()
            wait = min(0.05, self._due[0][0] - now if self._due else 0.05)
            for key, _ in self._selector.select(max(0.0, wait)):
                self._read(key.fileobj)
            if self._moves:
                self._forget()
            while self._due and self._due[0][0] <= time.monotonic():
                _, _, sender, data, to = heapq.heappop(self._due)
                sender.sendto(data, to)

    def _forget(self):
        self._by_client, self._due, self._moves = {}, [], False
        for made in self._clients:
            self._selector.unregister(made)
            made.close()
        self._clients = {}

    def _read(self, at):
        try:
            data, source = at.recvfrom(4096)
        except OSError:
            return
        if at is self._front:
            if source not in self._by_client:
                made = self._by_client[source] = self._open()
                self._clients[made] = source
            sender, to = self._by_client[source], self.target
        else:
            sender, to = self._front, self._clients[at]
        if self._random.random() < self.loss:
            self.lost += 1
        else:
            self.passed += 1
            heapq.heappush(
                self._due, (time.monotonic() + self.delay, next(self._count), sender, data, to)
            )

    def start(self):
        self._thread.start()

    def stop(self):
        self._ended = True
        self._thread.join()
        for made in [self._front, *self._clients]:
            made.close()
        self._selector.close()


@contextmanager
def lossy_relay(target, loss=0.05, delay=0.05):
    """A running relay; with 50 ms each way a round trip takes 100 ms."""
    relay = LossyRelay(target, loss, delay)
    relay.start()
    try:
        yield relay
    finally:
        relay.stop()
