"""NetConnections over RTMFP without sockets or secrets: both ends on an in-memory link."""

from support.rtmfp.link import Link, calm
from support.rtmfp.pair import PlainCipher
from support.rtmp.rtmp_world import Peer, counting

from rtmplite.live.streams import Registry
from rtmplite.rtmfp.netconnection.client import RtmfpClientConnection
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.session import Session
from rtmplite.rtmfp.wire.packet import unscramble
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS

SERVER = ("192.0.2.1", 1935)


class Node:
    """A machine and its session, as `Link` wants them."""

    def __init__(self, link, machine, session):
        self.link, self.machine, self.session = link, machine, session

    @property
    def deadline(self):
        due = [each for each in (self.machine.deadline, self.session.deadline) if each is not None]
        return min(due, default=None)

    def tick(self, now):
        self.machine.tick(now)
        self.session.tick(now)

    def receive(self, data, source, now):
        _, encrypted = unscramble(data)
        self.session.receive(encrypted, source, now)

    def take(self):
        self.machine.transport.flush(self.link.now)
        return self.session.take(self.link.now)


class FlashPeer(Peer):
    """A client and the server's end of its connection; see `rtmp_world.Peer` for its methods."""

    def __init__(self, world, client, server, sessions):
        super().__init__(world, client, server)
        self.client_session, self.server_session = sessions


class FlashWorld:
    """A server with one application, and its clients, each at an address of its own."""

    def __init__(
        self,
        application=None,
        *,
        weather=None,
        limits=DEFAULT_LIMITS,
        registry=None,
        session_limits=None,
    ):
        self.session_limits = session_limits or SessionLimits()
        self.link = Link(weather or calm(0.02))
        self.random = counting()
        self.registry = Registry() if registry is None else registry
        self.application = LiveApplication() if application is None else application
        self.limits, self.peers = limits, []

    @property
    def now(self):
        return self.link.now

    def application_for(self, name):
        return None if name == "nothing" else self.application

    def client(self, url="rtmfp://host/live", **options):
        """A client, connected as far as the application lets it."""
        target = Target.parse(url, stream=False)
        client = RtmfpClientConnection(target, self.now, **options)
        server = RtmfpServerConnection(
            self.application_for, self.registry, self.random, self.now, limits=self.limits
        )
        number = len(self.peers) + 1
        here, there = (f"198.51.100.{number}", 40000), (SERVER[0], SERVER[1] + number)
        sessions = (
            self._session(client, there, number, True),
            self._session(server, here, number, False),
        )
        peer = FlashPeer(self, client, server, sessions)
        self.peers.append(peer)
        for address, machine, session in zip(
            (here, there), (client, server), sessions, strict=True
        ):
            self.link.join(address, Node(self.link, machine, session))
            machine.transport.attach(session)
        self.run()
        return peer

    def run(self, seconds=1.0):
        """Let this much time pass: enough to finish the open exchanges if no packet is lost."""
        self.link.run(self.link.now + seconds)
        for peer in self.peers:
            peer.events += peer.client.events()

    def _session(self, machine, far, number, initiator):
        return Session(
            initiator=initiator,
            cipher=PlainCipher(),
            near_id=2 * number + initiator,
            far_id=2 * number + (not initiator),
            address=far,
            far_certificate=b"certificate",
            near_nonce=b"n",
            far_nonce=b"f",
            random=self.random,
            now=self.now,
            listener=machine.transport.incoming,
            limits=self.session_limits,
        )
