"""A transport of media without sockets: what one session sends, the other gets.

It is all that a new kind of transport needs: `MediaTransport`, and `Transports` to open them.
"""

from collections import deque

from p2psip.errors import LocalError
from siprtmp.media.transport import MediaAddress

HOST = "192.0.2.1"


class Loopback:
    """The way between two sessions, which a test drives; addresses are their ports."""

    def __init__(self):
        self.now, self.ends, self.queue = 0.0, {}, deque()
        self.timers = []

    def deliver(self):
        """Carry all that is under way."""
        while self.queue:
            receiver, data = self.queue.popleft()
            receiver(data, self.now)

    def wait(self, until):
        """Turn the clock, with the timers that are due on the way."""
        self.deliver()
        while due := [t for t in self.timers if t.deadline is not None and t.deadline <= until]:
            first = min(due, key=lambda timer: timer.deadline)
            self.now = max(self.now, first.deadline)
            first.tick(self.now)
            self.deliver()
        self.now = until


class LoopbackTransport:
    """One end: RTP and RTCP leave by the same queue."""

    is_ready = True

    def __init__(self, way, port):
        self._way, self.port = way, port
        self.remote = self.remote_rtcp = None
        self.rtcp_mux, self.hosts = False, ()
        self.on_ready = self.on_rtp = self.on_rtcp = None
        way.ends[port] = self

    def send_rtp(self, data):
        self._send(self.remote, "on_rtp", data)

    def send_run(self, run):
        for data in run:
            self.send_rtp(data)

    def send_rtcp(self, data):
        self._send(self.remote if self.rtcp_mux else self.remote_rtcp, "on_rtcp", data)

    def _send(self, to, receiver, data):
        end = self._way.ends.get(to[1] & ~1)
        if end is not None:
            self._way.queue.append((getattr(end, receiver), data))

    def close(self):
        del self._way.ends[self.port]


class LoopbackTransports:
    """Opens the ends of one session, `most` at most."""

    def __init__(self, way, first_port, most=3):
        self._way, self._next, self._left = way, first_port, most
        self.open_ends = 0

    def open(self):
        if not self._left:
            raise LocalError("no end is left")
        self._left -= 1
        self.open_ends += 1
        end, self._next = LoopbackTransport(self._way, self._next), self._next + 2
        return end, MediaAddress(HOST, end.port, end.port + 1)

    def release(self, transport):
        self.open_ends -= 1

    def waker(self, machine):
        return Timer(self._way, machine)


class Timer:
    """Wakes a session when the clock of its way has come to its deadline."""

    def __init__(self, way, machine):
        self._way, self._machine = way, machine
        way.timers.append(self)

    @property
    def deadline(self):
        return self._machine.deadline

    def set(self):
        """Nothing to do: `deadline` is asked at each turn of the clock."""

    def tick(self, now):
        self._machine.tick(now)

    def cancel(self):
        self._way.timers.remove(self)
