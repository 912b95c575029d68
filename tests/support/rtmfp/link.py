"""An in-memory network in virtual time, for machines that would otherwise need sockets.

Nodes join under an address.  A node has `deadline`, `tick(now)`, `receive(data, source, now)` and
`take()`, which hands over what it wants sent as (data, destination) or (data, destination, True)
where the transport is reliable.  `Link.run` moves the clock from event to event.

The weather decides what becomes of a datagram: a function that gives the delays, in seconds, of
its copies; none when it is lost, two when it is duplicated.  Different delays reorder.

    >>> class Echo:
    ...     deadline = None
    ...     def __init__(self):
    ...         self.out, self.heard = [], []
    ...     def receive(self, data, source, now):
    ...         self.heard.append((data, round(now, 3)))
    ...         if data == b"ping":
    ...             self.out.append((b"pong", source))
    ...     def tick(self, now): ...
    ...     def take(self):
    ...         out, self.out = self.out, []
    ...         return out
    >>> link, a, b = Link(calm(0.02)), Echo(), Echo()
    >>> link.join("a", a), link.join("b", b)
    (None, None)
    >>> a.out.append((b"ping", "b"))
    >>> link.run()
    >>> b.heard, a.heard
    ([(b'ping', 0.02)], [(b'pong', 0.04)])
"""

import heapq
import itertools

TOO_LONG = 100_000  # events without rest: something is going in circles


def calm(delay=0.01):
    """A network that delivers everything once and in order."""
    return lambda data, source, destination: (delay,)


def storm(random, loss=0.2, duplicates=0.2, delay=0.01, spread=0.3, mercy=None):
    """A network that loses, doubles and reorders; `random` is a random.Random.

    `loss` and `duplicates` are probabilities; a delay lies between `delay` and `delay + spread`.
    The same datagram is never lost more than `mercy` times in a row.
    """
    losses = {}

    def weather(data, source, destination):
        key = data, source, destination
        if random.random() < loss and (mercy is None or losses.get(key, 0) < mercy):
            losses[key] = losses.get(key, 0) + 1
            return ()
        losses.pop(key, None)
        copies = 2 if random.random() < duplicates else 1
        return tuple(delay + spread * random.random() for _ in range(copies))

    return weather


class Link:
    """The network, its nodes and their common clock."""

    def __init__(self, weather=None, *, reliable_delay=0.01):
        self.now = 0.0
        self.weather = weather or calm()
        self.nodes = {}
        self.sent = []  # (time, source, destination, data) of all that was sent
        self._reliable_delay = reliable_delay
        self._flying = []
        self._order = itertools.count()

    def join(self, address, node):
        """Connect a node; a datagram to an address without a node is lost."""
        self.nodes[address] = node

    @property
    def deadline(self):
        """When something happens next, or None when all is at rest."""
        times = [node.deadline for node in self.nodes.values()]
        times += [self._flying[0][0]] if self._flying else []
        return min((at for at in times if at is not None), default=None)

    def flush(self):
        """Put the nodes' output on the wire."""
        for address, node in self.nodes.items():
            for data, destination, *reliable in node.take():
                self.sent.append((self.now, address, destination, data))
                if reliable and reliable[0]:
                    delays = (self._reliable_delay,)
                else:
                    delays = self.weather(data, address, destination)
                for delay in delays:
                    parcel = (self.now + delay, next(self._order), address, destination, data)
                    heapq.heappush(self._flying, parcel)

    def step(self):
        """Let the next thing happen: a delivery before a timer of the same moment."""
        self.now = max(self.now, self.deadline)
        if self._flying and self._flying[0][0] <= self.now:
            _, _, source, destination, data = heapq.heappop(self._flying)
            if destination in self.nodes:
                self.nodes[destination].receive(data, source, self.now)
        else:
            for node in self.nodes.values():
                if node.deadline is not None and node.deadline <= self.now:
                    node.tick(self.now)
        self.flush()

    def run(self, until=None):
        """Run to the time `until`, or without it until nothing is left to happen."""
        self.flush()
        for _ in range(TOO_LONG):
            at = self.deadline
            if at is None or (until is not None and at > until):
                self.now = self.now if until is None else max(self.now, until)
                return
            self.step()
        raise AssertionError("the network never comes to rest")
