"""A link between two RTMFP endpoints in virtual time: rate, delay, queue and loss, all seeded.

Each way has a router with a queue in front of a line. A datagram waits for those before it, takes
its length at the line's rate, and arrives after half a round trip; one that finds the queue full is
lost, and so are some by chance. The ends wake once in a millisecond at the most, as a busy host
does: they read together what has come, act on the deadlines that have passed, and send.

Nothing sleeps and nothing asks for the time, so the same seed gives the same bytes each time.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol

from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.initiator import Opening
from rtmplite.rtmfp.session.recv_flow import FlowReceiver, RecvFlow
from rtmplite.rtmfp.session.send_flow import FlowSender, SendFlow
from rtmplite.rtmfp.session.session import Session, SessionListener
from rtmplite.rtmfp.wire.address import Address

GRAIN = 0.001  # s between two turns of an end
HEADERS = 28  # bytes of IPv4 and UDP in front of each datagram
QUEUE_SECONDS = 0.05  # what a router's queue holds, at the line's rate
QUEUE_LEAST = 30_000  # bytes, however slow the line is
HOST = "192.0.2.1"
SENDER, RECEIVER = (HOST, 5001), (HOST, 5002)
EPD = Epd(ancillary_data=b"rtmfp://192.0.2.1/").encode()
MESSAGE = 10_000  # bytes
BACKLOG = 8 << 20  # bytes that a sender keeps queued
Datagrams = list[tuple[bytes, Address]]


@dataclass(frozen=True, slots=True)
class Line:
    """What a link is like: Mb/s, seconds there and back, the share lost on either way, a seed."""

    rate: float = 10.0
    round_trip: float = 0.05
    loss: float = 0.0
    seed: int = 1


class End(Protocol):
    """One end of the link; `delivered` counts the bytes of the messages that have come to it."""

    delivered: int

    @property
    def deadline(self) -> float | None:
        """When it wants a turn although nothing comes; None for never."""

    def turn(self, datagrams: Datagrams, now: float) -> Datagrams:
        """Take the datagrams that have come, each with its source, and give those to send."""


class Way:
    """One direction of a link."""

    def __init__(self, line: Line, random: Random) -> None:
        self._line, self._random = line, random
        self._rate = line.rate * 1e6 / 8
        self._queue = max(self._rate * QUEUE_SECONDS, QUEUE_LEAST)
        self._free = 0.0  # when the line has sent all that waits

    def arrival(self, size: int, now: float) -> float | None:
        """When a datagram of `size` bytes that is sent now arrives; None if it is lost."""
        waiting = max(0.0, self._free - now)
        if waiting * self._rate > self._queue:
            return None
        self._free = now + waiting + (size + HEADERS) / self._rate
        if self._random.random() < self._line.loss:
            return None
        return self._free + self._line.round_trip / 2


class Link:
    """Two ends and the ways between them; `now` is the virtual time in seconds.

    `addresses` are those that the ends have now: to change one is to move that end.
    """

    def __init__(self, line: Line, sender: End, receiver: End) -> None:
        random = Random(line.seed)
        self.now = 0.0
        self.addresses = [SENDER, RECEIVER]
        self._ends = sender, receiver
        self._ways = Way(line, random), Way(line, random)
        self._coming: list[list[tuple[float, int, bytes, Address]]] = [[], []]
        self._turned = [-GRAIN, -GRAIN]
        self._count = 0

    def run(self, until: float) -> None:
        """Run until the virtual time `until`."""
        while True:
            at, index = min((self._wake(index), index) for index in (0, 1))
            if at > until:
                self.now = until
                return
            self.now = at
            self.turn(index)

    def _wake(self, index: int) -> float:
        """When an end has its next turn: on the first grain after what it waits for."""
        deadline = self._ends[index].deadline
        at = math.inf if deadline is None else deadline
        if self._turned[index] < 0:
            at = 0.0
        if self._coming[index]:
            at = min(at, self._coming[index][0][0])
        if at == math.inf:
            return at
        return max(math.ceil(at / GRAIN) * GRAIN, self._turned[index] + GRAIN)

    def turn(self, index: int) -> None:
        """Give an end a turn now, also when its user has given it something to send."""
        coming, come = self._coming[index], []
        while coming and coming[0][0] <= self.now:
            _, _, datagram, source = heapq.heappop(coming)
            come.append((datagram, source))
        self._turned[index] = self.now
        for datagram, destination in self._ends[index].turn(come, self.now):
            at = self._ways[index].arrival(len(datagram), self.now)
            if at is not None and destination == self.addresses[1 - index]:
                self._count += 1
                parcel = at, self._count, datagram, self.addresses[index]
                heapq.heappush(self._coming[1 - index], parcel)


class Sending(FlowSender):
    """Keeps a flow full of messages."""

    def on_writable(self, flow: SendFlow, now: float) -> None:
        """Fill up what has gone."""
        while flow.queued < BACKLOG:
            flow.send(bytes(MESSAGE), now)


class Ours(EndpointListener, SessionListener, FlowReceiver):
    """An endpoint of ours; `begin` is called with the session that the sender has opened."""

    def __init__(
        self, *, opens: bool, seed: int = 1, begin: Callable[[Session, float], None] | None = None
    ) -> None:
        random = Random(seed).randbytes
        profile = FlashProfile.client(random) if opens else FlashProfile.server(random)
        self.delivered = 0
        self.session: Session | None = None
        self.messages: list[tuple[float, bytes]] = []
        self.keeps = False  # whether to keep messages, each with its time
        self._begin = begin or _bulk
        self._endpoint = Endpoint(profile, random, 0.0, listener=self)
        if opens:
            self._endpoint.connect(EPD, [RECEIVER], 0.0)

    @property
    def deadline(self) -> float | None:
        """When it wants a turn although nothing comes."""
        return self._endpoint.deadline

    def turn(self, datagrams: Datagrams, now: float) -> Datagrams:
        """As gevent's loop has it: timers, all that is there to read, then output."""
        deadline = self._endpoint.deadline
        if deadline is not None and deadline <= now:
            self._endpoint.tick(now)
        for datagram, source in datagrams:
            self._endpoint.receive(datagram, source, now)
        for job in self._endpoint.take_jobs():
            job.run()
            self._endpoint.finish(job, now)
        return self._endpoint.take(now)

    def on_session(self, session: Session, opening: Opening | None, now: float) -> SessionListener:
        """Take the session, and begin to send in one that was asked for."""
        self.session = session
        if opening is not None:
            self._begin(session, now)
        return self

    def on_flow(self, session: Session, flow: RecvFlow, now: float) -> FlowReceiver:
        """Accept any flow."""
        return self

    def on_message(self, flow: RecvFlow, message: bytes, now: float) -> None:
        """Count a message."""
        self.delivered += len(message)
        if self.keeps:
            self.messages.append((now, message))


def _bulk(session: Session, now: float) -> None:
    sending = Sending()
    sending.on_writable(session.open_flow(b"load", now, sender=sending), now)
