"""RTMFP endpoints on an in-memory network, with a profile whose secrets are none."""

from dataclasses import replace
from random import Random

from support.rtmfp.link import Link, calm
from support.rtmfp.pair import Listener, PlainCipher

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.crypto.profile import KeyingAnswer, Keys
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.wire.control_chunks import Ping
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
)

SERVER, CLIENT, THIRD = ("192.0.2.1", 1935), ("198.51.100.7", 40000), ("203.0.113.9", 50000)


def startup_datagram(chunk, session_id=0):
    """A chunk of the startup, as `PlainProfile` sends it."""
    return scramble(session_id, b"ours" + Packet(Mode.STARTUP, (chunk,)).encode())


class PlainAgreement:
    def __init__(self, name, component):
        self.name, self.component = name, component

    def agree(self, far_component):
        if far_component.startswith(b"bad"):
            raise RemoteError("a bad component")
        return Keys(SessionCipher(self.component + far_component), b"near", b"far")


class SessionCipher(PlainCipher):
    """Marks packets with the keys they would be sealed with."""

    def __init__(self, keys):
        self.keys = keys

    def seal(self, packet):
        return self.keys + packet

    def open(self, encrypted):
        if encrypted[: len(self.keys)] != self.keys:
            raise RemoteError("other keys")
        return bytes(encrypted[len(self.keys) :])

    def room(self, size):
        return size - len(self.keys)


class PlainProfile:
    """A `CryptoProfile` where a certificate is a name, and selected by its beginning.

    A certificate that begins with "bad" is not authentic; a signature is "signed"; the name that
    comes first prevails; each name overrides itself.
    """

    def __init__(self, name, random):
        self.certificate, self._random = name, random
        self.cipher = PlainCipher()

    def default_cipher(self):
        return self.cipher

    def selects(self, epd):
        return self.is_selected(self.certificate, epd)

    def is_selected(self, certificate, epd):
        return bool(epd) and certificate.startswith(epd)

    def is_authentic(self, certificate):
        return not certificate.startswith(b"bad")

    def fingerprint(self, certificate):
        return certificate.partition(b"#")[0]

    def wanted_fingerprint(self, epd):
        return epd

    def canonical_epd(self, certificate):
        return self.fingerprint(certificate)

    def initiate(self, far_certificate):
        if far_certificate.endswith(b"incompatible"):
            raise RemoteError("nothing in common")
        return PlainAgreement(self.certificate, b"skic" + self._random(4))

    def respond(self, far_component, far_certificate):
        if far_component.startswith(b"bad"):
            raise RemoteError("a bad component")
        component = b"skrc" + self._random(4)
        return KeyingAnswer(
            component, Keys(SessionCipher(far_component + component), b"far", b"near")
        )

    def sign(self, parameters):
        return b"signed"

    def verify(self, certificate, parameters, signature):
        return signature == b"signed"

    def wins_glare(self, far_certificate):
        return self.certificate <= far_certificate

    def overrides(self, new_certificate, old_certificate):
        return new_certificate == old_certificate


class User(EndpointListener):
    """Listens to every session, and records its events."""

    def __init__(self):
        self.sessions, self.failed, self.asked = [], [], []
        self.listeners = {}
        self.accepts = True
        self.reported, self.known = (), {}

    def on_session(self, session, opening, now):
        self.sessions.append((session, opening, now))
        if not self.accepts:
            return None
        self.listeners[session] = Listener()
        return self.listeners[session]

    def on_open_failed(self, opening, reason, now):
        self.failed.append((opening, reason, now))

    def on_introduction(self, session, asker, now):
        self.asked.append((session, asker))
        return self.reported

    def addresses_of(self, epd, now):
        return self.known.get(epd, ())


class Node:
    """An endpoint as `Link` wants it.  Jobs are done at once, or `slow` seconds later."""

    def __init__(self, world, profile, *, slow=0.0, **options):
        self.world, self.slow = world, slow
        self.user = User()
        self.random = Random(len(world.link.nodes) + 1).randbytes
        self.endpoint = Endpoint(
            profile, self.random, world.link.now, listener=self.user, **options
        )
        self.jobs = []  # (when done, job)

    @property
    def deadline(self):
        times = [at for at, _ in self.jobs]
        times += [self.endpoint.deadline] if self.endpoint.deadline is not None else []
        return min(times, default=None)

    def tick(self, now):
        done = [job for at, job in self.jobs if at <= now]
        self.jobs = [(at, job) for at, job in self.jobs if at > now]
        for job in done:
            job.run()
            self.endpoint.finish(job, now)
        self.endpoint.tick(now)

    def receive(self, data, source, now):
        self.endpoint.receive(data, source, now)

    def take(self):
        now = self.world.link.now
        while jobs := self.endpoint.take_jobs():
            if self.slow:
                self.jobs += [(now + self.slow, job) for job in jobs]
                continue
            for job in jobs:
                job.run()
                self.endpoint.finish(job, now)
        return self.endpoint.take(now)

    @property
    def session(self):
        """The session that its user heard of last."""
        return self.user.sessions[-1][0]

    def heard(self):
        """The messages received on flow "flow" of that session."""
        return self.user.listeners[self.session].receivers[b"flow"].messages


class World:
    """A network with endpoints by name; a name's profile is `PlainProfile`, or given."""

    def __init__(self, weather=None):
        self.link = Link(weather or calm(0.02))

    def join(self, address, name, profile=None, **options):
        profile = profile or PlainProfile(name, Random(name).randbytes)
        node = Node(self, profile, **options)
        self.link.join(address, node)
        return node

    def run(self, seconds):
        self.link.run(self.link.now + seconds)

    def connect(self, node, epd, *addresses):
        return node.endpoint.connect(epd, addresses, self.link.now)

    def startup(self):
        """All that was sent in the clear: (time, source, destination, session ID, chunk)."""
        for time, source, destination, data in self.link.sent:
            session_id, encrypted = unscramble(data)
            if encrypted.startswith(b"ours"):
                packet = Packet.parse(encrypted[4:])
                for chunk in packet.chunks:
                    yield round(time, 3), source, destination, session_id, chunk

    def sent(self, kind, source=None):
        """The chunks of one class, from one address or all: (time, destination, chunk)."""
        return [
            (time, destination, chunk)
            for time, origin, destination, _, chunk in self.startup()
            if isinstance(chunk, kind) and source in (None, origin)
        ]


class LoneResponder:
    """A responder whose initiators are this test."""

    def __init__(self, **options):
        self.world = World()
        self.node = self.world.join(SERVER, b"server", **options)
        self.endpoint = self.node.endpoint
        self.keying = InitiatorInitialKeying(7, b"", b"client", b"skic", b"signed")

    @property
    def now(self):
        return self.world.link.now

    @property
    def sessions(self):
        return self.endpoint.sessions

    def hear(self, chunk, source=CLIENT):
        self.node.receive(startup_datagram(chunk), source, self.now)
        self.world.run(0)

    def hello(self, source=CLIENT):
        """The answer to an IHello."""
        self.hear(InitiatorHello(b"server", b"tag"), source)
        return self.sent(ResponderHello)[-1]

    def key(self, source=CLIENT, **fields):
        """Ask for a cookie, and send an IIKeying with it."""
        keying = replace(self.keying, cookie_echo=self.hello(source).cookie, **fields)
        self.skic = keying.session_key_initiator_component
        self.hear(keying, source)
        return keying

    def sent(self, kind):
        return [chunk for _, _, chunk in self.world.sent(kind, SERVER)]

    def prove(self, session):
        """Send something with the session's keys."""
        replies = {reply.responder_session_id: reply for reply in self.sent(ResponderInitialKeying)}
        skrc = replies[session.near_id].session_key_responder_component
        packet = self.skic + skrc + Packet(Mode.INITIATOR, (Ping(),)).encode()
        self.node.receive(scramble(session.near_id, packet), session.address, self.now)
        self.world.run(0)


def met(weather=None, **options):
    """A world where a client has opened a session with a server."""
    world = World(weather)
    server = world.join(SERVER, b"server", **options)
    client = world.join(CLIENT, b"client")
    opening = world.connect(client, b"server", SERVER)
    world.run(1)
    return world, server, client, opening
