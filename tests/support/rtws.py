"""Two ends of an RTWebSocket on a link that delays and loses nothing, on a clock that tests set."""

from collections import deque
from math import inf

import gevent
from support.rtmfp.pair import Listener, Receiver, Sender
from support.rtmp.rtmp_world import Peer, counting
from wsproto import ConnectionType, WSConnection
from wsproto import events as ws
from wsproto.connection import ConnectionState

from rtmplite.live.streams import Registry
from rtmplite.net.clock import now
from rtmplite.rtmfp.netconnection.client import RtmfpClientConnection
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Reply, Target
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS
from rtmplite.rtws.server import RtwsServerConnection
from rtmplite.rtws.session import DEFAULT_LIMITS as SESSION_LIMITS
from rtmplite.rtws.session import RtwsSession

__all__ = ["Listener", "PythonPage", "Receiver", "RtwsLink", "RtwsPair", "RtwsWorld", "Sender"]


class RtwsLink:
    """Carries the frames of two sessions, `delay` seconds each way, `rate` bytes a second."""

    def __init__(self, delay=0.01, rate=inf):
        self.now, self.delay, self.rate = 0.0, delay, rate
        self.sides = []
        self.ways = [deque(), deque()]  # (when, frame) of what goes to each side
        self.free = [0.0, 0.0]  # when each way has carried all before
        self.log = [[], []]  # the frames that each side has got
        self.held = False  # nothing arrives

    def join(self, session, flush=lambda now: None, tick=lambda now: None):
        self.sides.append((session, flush, tick))

    def settle(self):
        """Have both sides send what they want to send now."""
        for index, (session, flush, _) in enumerate(self.sides):
            flush(self.now)
            for frame in session.take(self.now):
                way = 1 - index
                self.free[way] = max(self.free[way], self.now) + len(frame) / self.rate
                self.ways[way].append((self.free[way] + self.delay, frame))

    def run(self, seconds=1.0):
        end = self.now + seconds
        self.settle()
        while (at := self._next()) <= end:
            self.now = max(self.now, at)
            for index in (0, 1):
                self._deliver(index)
            self.settle()
        self.now = end

    def _next(self):
        times = [way[0][0] for way in self.ways if way and not self.held]
        due = [session.deadline for session, *_ in self.sides if session.deadline is not None]
        return min([*times, *(max(each, self.now) for each in due)], default=inf)

    def _deliver(self, index):
        session, _, tick = self.sides[index]
        way = self.ways[index]
        while way and way[0][0] <= self.now and not self.held:
            frame = way.popleft()[1]
            self.log[index].append(frame)
            session.receive(frame, self.now)
        if session.deadline is not None and session.deadline <= self.now:
            tick(self.now)
            session.tick(self.now)


class RtwsPair:
    """Two sessions with plain listeners: `a` sends, `b` hears."""

    def __init__(self, limits=SESSION_LIMITS, **link):
        self.link = RtwsLink(**link)
        self.listeners = Listener(), Listener()
        self.a, self.b = (
            RtwsSession((f"192.0.2.{number}", 80), 0.0, listener, limits)
            for number, listener in enumerate(self.listeners, 1)
        )
        self.link.join(self.a)
        self.link.join(self.b)

    @property
    def now(self):
        return self.link.now

    def run(self, seconds=1.0):
        self.link.run(seconds)

    def flow(self, metadata=b"flow", **options):
        return self.a.open_flow(metadata, self.now, sender=Sender(), **options)

    def heard(self, metadata=b"flow"):
        """What `b` has got in the flow with these metadata."""
        return self.listeners[1].receivers[metadata]


class RtwsWorld:
    """A server with one application, and NetConnections by RTWebSocket."""

    def __init__(self, application=None, *, limits=DEFAULT_LIMITS, registry=None):
        self.links, self.peers, self.random = [], [], counting()
        self.registry = Registry() if registry is None else registry
        self.application = LiveApplication() if application is None else application
        self.limits, self.now = limits, 0.0

    def application_for(self, name):
        return None if name == "nothing" else self.application

    def client(self, url="rtmp://host/live", **options):
        """A client, connected as far as the application lets it."""
        client = RtmfpClientConnection(Target.parse(url, stream=False), self.now, **options)
        server = RtwsServerConnection(
            self.application_for, self.registry, self.random, self.now, limits=self.limits
        )
        link = RtwsLink()
        link.now = self.now
        peer = Peer(self, client, server)
        for machine, address in ((client, "192.0.2.1"), (server, "198.51.100.1")):
            incoming = machine.transport.incoming
            session = RtwsSession((address, 4000), self.now, incoming, SessionLimits())
            machine.transport.attach(session)
            link.join(session, machine.transport.flush, machine.tick)
            peer.session = session  # the server's, in the end
        self.links.append(link)
        self.peers.append(peer)
        self.run()
        return peer

    def run(self, seconds=1.0, step=0.005):
        """Let this much time pass for all, in small steps, as players hear what publishers send."""
        end = self.now + seconds
        while self.now < end - step / 2:
            self.now += step
            for link in self.links:
                link.run(self.now - link.now)
        for peer in self.peers:
            peer.events += peer.client.events()


class PythonPage(Peer):
    """A page of `hall`, which opens its socket; `code` is the one that closes it."""

    def __init__(self, hall, headers=()):
        client = RtmfpClientConnection(Target.parse("rtmp://host/live", stream=False), now())
        super().__init__(self, client, None)
        self.web, self.code = WSConnection(ConnectionType.CLIENT), None
        self.partial, self.refused = bytearray(), 0
        self.session = RtwsSession(("host", 80), now(), client.transport.incoming)
        request = ws.Request(host="x", target="/rtws", extra_headers=list(headers))
        self.socket = hall.connect(self.web.send(request).decode())
        client.transport.attach(self.session)

    def until(self, condition):
        """Talk until this is so; false if the server hangs up before."""
        while not condition():
            if self.web.state is ConnectionState.OPEN:
                self.client.transport.flush(now())
                for frame in self.session.take(now()):
                    self.say(frame)
            try:
                with gevent.Timeout(0.02):
                    data = self.socket.recv(65536)
            except gevent.Timeout:
                continue
            self.web.receive_data(data or None)
            for event in self.web.events():
                if isinstance(event, ws.BytesMessage):
                    self.partial += event.data
                    if event.message_finished:
                        self.session.receive(bytes(self.partial), now())
                        self.partial.clear()
                elif isinstance(event, ws.CloseConnection):
                    self.code = event.code
                elif isinstance(event, ws.RejectConnection):
                    self.refused = event.status_code
            self.events += self.client.events()
            if not data:
                return False
        return True

    def say(self, frame):
        self.socket.sendall(self.web.send(ws.BytesMessage(bytes(frame))))

    def run(self):
        """Talk until every call is answered, and what was sent has arrived."""
        self.until(lambda: self.session.queued == 0 and not self.client.transport.queued)

    def connected(self):
        self.until(lambda: any(isinstance(each, Reply) for each in self.events))
        return self

    def call(self, name, *args):
        number = self.client.call(name, *args)
        replies = lambda: {each.transaction_id for each in self.events if isinstance(each, Reply)}  # noqa: E731
        self.until(lambda: number in replies())
        return self.reply(number)
