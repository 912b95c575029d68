"""A server, its clients and their translators, without sockets: RTMFP with real keys."""

from random import Random

from support.rtmfp.link import Link, calm

from rtmplite.live.streams import Registry
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.netconnection.client import RtmfpClientConnection
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmfp.p2p.introducer import Introducer
from rtmplite.rtmfp.p2p.peer_relay import AGAIN, PeerRelays
from rtmplite.rtmfp.p2p.peers import DEFAULT_PEER_LIMITS, Peers
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Called, Target
from rtmplite.rtmp.wire.message import Message

SERVER = ("192.0.2.1", 1935)


class Node:
    """An endpoint and the connections in its sessions, as `Link` wants them."""

    def __init__(self, link, profile, listener, number, **options):
        self.link, self.connections, self.log = link, [], []
        random = Random(number).randbytes
        self.endpoint = Endpoint(profile, random, link.now, listener=listener, **options)

    @property
    def address(self):
        return next(at for at, node in self.link.nodes.items() if node is self)

    @property
    def deadline(self):
        due = [each.deadline for each in (*self.connections, self.endpoint)]
        return min((at for at in due if at is not None), default=None)

    def tick(self, now):
        for each in list(self.connections):
            if each.deadline is not None and each.deadline <= now:
                each.tick(now)
        self.endpoint.tick(now)

    def receive(self, data, source, now):
        self.endpoint.receive(data, source, now)

    def watch(self, connection):
        self.connections.append(connection)

    def take(self):
        now = self.link.now
        while jobs := self.endpoint.take_jobs():
            for job in jobs:
                job.run()
                self.endpoint.finish(job, now)
        for each in list(self.connections):
            each.transport.flush(now)
            if each.transport.is_over:
                self.connections.remove(each)
        return self.endpoint.take(now)


class ServerUser(EndpointListener):
    """The part of `RtmfpListener`, played for the same machines."""

    def __init__(self, world, introduces, relays):
        self.world, self.by_session, self.applications = world, {}, {"live": LiveApplication()}
        self.introduces, self.peer_relays = introduces, None
        if relays:
            self.peer_relays = PeerRelays(self.by_peer_id, world.make_place)

    def begin(self, node):
        self.node = node
        self.introducer = Introducer(self.sessions_at, self.by_session.get, Random(3).randbytes)

    def sessions_at(self, address):
        held = self.node.endpoint.table.at(address)
        return [each.session for each in held if each.is_open and each.is_proven]

    def by_peer_id(self, peer_id):
        held = self.node.endpoint.table.reachable(peer_id)
        return None if held is None else self.by_session.get(held.session)

    def on_session(self, session, opening, now):
        connection = RtmfpServerConnection(
            self.applications.get, Registry(), Random(4).randbytes, now
        )
        connection.peer_relays = self.peer_relays
        connection.transport.attach(session)
        self.by_session[session] = connection
        self.node.watch(connection)
        return connection.transport.incoming

    def on_introduction(self, session, asker, now):
        return self.introducer.addresses(session, asker, now) if self.introduces else None

    def addresses_of(self, epd, now):
        return () if self.peer_relays is None else self.peer_relays.addresses_of(epd)


class Client:
    """A client; `events` of its connection, and of each stream that it plays."""

    def __init__(self, world, address, app, limits, own):
        self.world, number = world, len(world.link.nodes) + 1
        target = Target.parse(f"rtmfp://host/{app}", stream=False)
        self.machine = RtmfpClientConnection(target, world.now, addresses=lambda: own)
        self.peers = Peers(
            self.machine,
            Random(number).randbytes,
            lambda stream: self.node.watch(stream),
            limits=limits,
            on_server=lambda: self.node.watch(self.machine),
        )
        profile = FlashProfile.client(Random(number).randbytes, groups=(2,))
        self.peer_id = profile.peer_id
        self.node = Node(world.link, profile, self.peers, number)
        self.peers.endpoint = self.node.endpoint
        world.link.join(address, self.node)
        self.address = address

    def connect(self):
        epd = Epd(ancillary_data=self.machine.target.tc_url.encode()).encode()
        self.peers.connect(epd, [SERVER], self.world.now)
        self.world.run()
        return self

    def play(self, peer_id, name):
        stream = self.peers.play(peer_id, self.world.now)
        stream.send("play", name, -2000.0)
        return stream


class PeerWorld:
    """A network with a server, to which clients are added."""

    def __init__(self, weather=None, *, introduces=True, relays=False, **options):
        self.link = Link(weather or calm(0.02))
        self.places = 0
        self.user = ServerUser(self, introduces, relays)
        profile = FlashProfile.server(Random(1).randbytes)
        self.server = Node(self.link, profile, self.user, 2, **options)
        self.user.begin(self.server)
        self.link.join(SERVER, self.server)

    @property
    def now(self):
        return self.link.now

    def run(self, seconds=2.0):
        """Let time pass, as the edge does: the relay endpoints remind of themselves."""
        end = self.now + seconds
        while self.now < end:
            self.link.run(min(end, self.now + AGAIN))
            if self.user.peer_relays is not None:
                self.user.peer_relays.remind()

    def client(self, address, app="live", limits=DEFAULT_PEER_LIMITS, own=()):
        return Client(self, address, app, limits, own).connect()

    def make_place(self, relay):
        self.places += 1
        profile = FlashProfile(Random(self.places).randbytes, accepts_ancillary_data=False)
        node = Node(self.link, profile, relay, 100 + self.places, limits=StartupLimits(sessions=32))
        address = (SERVER[0], 40000 + self.places)
        self.link.join(address, node)
        return Place(self.link, node.endpoint, address)


class Place:
    """A port that a relay endpoint has."""

    def __init__(self, link, endpoint, address):
        self.link, self.endpoint, self.address = link, endpoint, address

    def close(self):
        self.endpoint.abort(self.link.now)
        self.link.flush()
        del self.link.nodes[self.address]


def translated(*addresses, symmetric=False):
    """A network where these nodes are behind address translators that let in only replies.

    With `symmetric` each far end sees another port, so that nobody knows where to answer but the
    one that was spoken to: what these say to each other is lost.
    """
    opened = set()

    def weather(data, source, destination):
        opened.add((source, destination))
        if destination in addresses and (destination, source) not in opened:
            return ()
        if symmetric and source in addresses and destination in addresses:
            return ()
        return (0.02,)

    return weather


def codes(events):
    """The codes of all status events."""
    return [
        event.command.args[0]["code"]
        for event in events
        if isinstance(event, Called) and event.command.name == "onStatus"
    ]


def media(events):
    """Type, time and payload of all messages."""
    return [
        (event.type_id, event.timestamp, event.payload)
        for event in events
        if isinstance(event, Message)
    ]
