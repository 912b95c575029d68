"""The runs that docs/4-protocols/rtmfp-steps.md shows, and the page's blocks made of them.

Endpoints on an in-memory link, with fixed randomness, so that every run gives the same bytes.  When
the code has changed what it sends, `PYTHONPATH=src python tests/rtmfp_walk.py` brings the page, and
the file with all bytes of its first run, up to date; a test compares them.
"""

import json
import re
from dataclasses import fields
from hashlib import sha256
from pathlib import Path

import rtmfp_dump
from rtmfp_dump import hexed
from rtmfp_sequence import sequence
from rtmfp_sniffer import Sniffer
from support.rtmfp.link import Link

from rtmplite.live.streams import Registry
from rtmplite.rtmfp.crypto.cipher import default_cipher
from rtmplite.rtmfp.crypto.dh import GROUPS, KeyPair
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.crypto.keying import Component, SessionKeys
from rtmplite.rtmfp.crypto.params import KEY_LENGTH
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.netconnection.client import RtmfpClientConnection
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmfp.session.session import SessionListener
from rtmplite.rtmfp.wire import chunks
from rtmplite.rtmfp.wire.packet import Packet, unscramble
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Reply, Target
from rtmplite.rtmp.wire.message import MessageType

PAGE = Path(__file__).resolve().parent.parent / "4-protocols/rtmfp-steps.md"
VECTORS = PAGE.with_suffix(".json")
BLOCK = re.compile(r"(?<=^<!-- run: )(\S+)( -->\n```\w+\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)

URL = "rtmfp://192.0.2.1/live"
SERVER, OTHER = ("192.0.2.1", 1935), ("192.0.2.2", 1935)
CLIENT, PEER = ("198.51.100.7", 50000), ("203.0.113.9", 40000)
AT_HOME = ("10.0.0.9", 40000)  # what the peer calls itself, behind its NAT
DELAY = 0.02  # seconds, one way
SOUND = b"\xb2" + bytes(range(30))  # an audio tag's body: Speex, 16 kHz


def fixed(seed):
    """A source of bytes that look random, and are the same in every run."""
    drawn = 0

    def some(count):
        nonlocal drawn
        drawn += 1
        parts = (sha256(f"{seed} {drawn} {i}".encode()).digest() for i in range(count // 32 + 1))
        return b"".join(parts)[:count]

    return some


class Node(EndpointListener):
    """An endpoint as `Link` wants it, its slow work done at once, and its connections."""

    def __init__(self, world, name, pairs, **options):
        self.world, self.random = world, fixed(name)
        if pairs:
            keys = pairs.values()
            profile = FlashProfile(self.random, keys=keys, accepts_ancillary_data=False)
        else:
            profile = FlashProfile.server(self.random)
        self.endpoint = Endpoint(profile, self.random, 0.0, listener=self, **options)
        self.connections = []

    @property
    def deadline(self):
        due = [each.deadline for each in (self.endpoint, *self.connections)]
        return min((at for at in due if at is not None), default=None)

    def tick(self, now):
        for each in (self.endpoint, *self.connections):
            each.tick(now)

    def receive(self, data, source, now):
        self.endpoint.receive(data, source, now)

    def take(self):
        now = self.world.link.now
        while jobs := self.endpoint.take_jobs():
            for job in jobs:
                job.run()
                self.endpoint.finish(job, now)
        for connection in self.connections:
            connection.transport.flush(now)
        return self.endpoint.take(now)

    def on_session(self, session, opening, now):
        connection = self.make(now)
        connection.transport.attach(session)
        self.connections.append(connection)
        return connection.transport.incoming

    def on_introduction(self, session, asker, now):
        [found] = [each for each in self.connections if each.transport.session is session]
        return found.listed


class Server(Node):
    def __init__(self, world, name, pairs, **options):
        super().__init__(world, name, pairs, **options)
        self.registry, self.application = Registry(), LiveApplication()

    def make(self, now):
        applications = {"live": self.application}
        return RtmfpServerConnection(applications.get, self.registry, self.random, now)


class Client(Node):
    """`at_home` are the addresses that it reports as its own."""

    at_home = ()

    def on_session(self, session, opening, now):
        if opening is None or Epd.parse(opening.epd).fingerprint:
            return SessionListener()  # a session with a peer, and nothing to say there
        return super().on_session(session, opening, now)

    def make(self, now):
        target = Target.parse(URL, stream=False)
        return RtmfpClientConnection(target, now, addresses=lambda: self.at_home)

    def open(self, server, **wanted):
        """Ask for somebody at a server's address."""
        return self.endpoint.connect(Epd(**wanted).encode(), [server], self.world.link.now)

    def connect(self, server=SERVER):
        """Ask for a server, by URL."""
        return self.open(server, ancillary_data=URL.encode())


class World:
    """A link, its nodes, and the datagrams lost: `to_lose` are places in `link.sent`."""

    def __init__(self):
        self.link = Link(self._weather)
        self.private, self.lost, self.losing = {}, set(), 0

    def join(self, kind, name, address, **options):
        pairs = {}
        if kind is Client:  # these have static keys
            pairs = {n: KeyPair.generate(GROUPS[n], fixed(f"{name} {n}")) for n in (14, 5, 2)}
            self.private[address] = pairs
        node = kind(self, name, pairs, **options)
        self.link.join(address, node)
        return node

    def run(self, seconds=1.0):
        self.link.run(self.link.now + seconds)

    def read(self):
        """All that was sent so far, opened."""
        self.sniffer = Sniffer(self.private)
        return self.sniffer.read(self.link.sent)

    def _weather(self, data, source, destination):
        if self.losing or destination not in self.link.nodes:
            self.losing = max(0, self.losing - 1)
            self.lost.add(len(self.link.sent) - 1)
            return ()
        return (DELAY,)


class Conversation:
    """A client connects, publishes six frames of audio, of which one is lost, and leaves."""

    def __init__(self):
        world = self.world = World()
        world.join(Server, "server", SERVER)
        client = world.join(Client, "client", CLIENT)
        client.connect()
        world.run()
        [connection] = client.connections
        number = connection.call("createStream")
        world.run()
        replies = {e.transaction_id: e.values for e in connection.events() if isinstance(e, Reply)}
        stream = int(replies[number][1])
        connection.send("publish", "demo", "live", stream_id=stream)
        world.run()
        self.published = len(world.link.sent)
        for i in range(6):
            world.losing = int(i == 2)
            connection.transport.send_live(MessageType.AUDIO, 20 * i, stream, SOUND)
            world.run(0.02)
        world.run(0.4)
        self.left = len(world.link.sent)
        ends = (world.link.nodes[address] for address in (CLIENT, SERVER))
        self.sessions = [each.transport.session for end in ends for each in end.connections]
        connection.close(world.link.now)
        world.run(0.3)
        self.seen = world.read()
        [self.agreed] = world.sniffer.agreements


class Introduction:
    """A peer behind a NAT is connected to a server, and a client there asks for its peer id."""

    def __init__(self):
        world = self.world = World()
        world.join(Server, "server", SERVER)
        peer, client = world.join(Client, "peer", PEER), world.join(Client, "client", CLIENT)
        peer.at_home = [AT_HOME]
        peer.connect()
        client.connect()
        world.run()
        self.asked = len(world.link.sent)
        client.open(SERVER, fingerprint=peer.endpoint.profile.peer_id)
        world.run(0.17)
        self.seen = world.read()


class Redirection:
    """A server that has no room for clients, and the other one that it names."""

    def __init__(self):
        world = self.world = World()
        world.join(Server, "server", SERVER, limits=StartupLimits(sessions=0), others=[OTHER])
        world.join(Server, "other", OTHER)
        world.join(Client, "client", CLIENT).connect()
        world.run(0.17)
        self.seen = world.read()


def blocks():
    """All blocks of the page, by name."""
    run, introduction, redirection = Conversation(), Introduction(), Redirection()
    places = list(enumerate(run.seen))
    two = [("client", [CLIENT]), ("server", [SERVER])]
    third = [*two, ("peer", [PEER, AT_HOME])], [*two, ("other server", [OTHER])]
    found = {
        "datagram": opened(run.seen[0].datagram),
        "keys": derivation(run.agreed),
        "startup": sequence(places[:5], run.world.lost, two, 66),
        "session": sequence(places[4 : run.published], run.world.lost, two, 66),
        "loss": sequence(places[run.published : run.left], run.world.lost, two, 66),
        "close": sequence(places[run.left :], run.world.lost, two, 66),
        "introduction": sequence(
            list(enumerate(introduction.seen))[introduction.asked :],
            introduction.world.lost,
            third[0],
            36,
        ),
        "redirection": sequence(list(enumerate(redirection.seen)), set(), third[1], 36),
    }
    for name, seen in dumped(run, introduction).items():
        found[name] = "\n".join(rtmfp_dump.packet(seen)[0]) + "\n"
    return found


def dumped(run, introduction):
    """The datagrams that the page shows byte by byte."""
    found = dict(zip(("ihello", "rhello", "iikeying", "rikeying"), run.seen, strict=False))
    introduced = introduction.seen[introduction.asked :]
    for name, kind, seen in (
        ("first", chunks.UserData, [each for each in run.seen if each.source == CLIENT]),
        ("answer", chunks.UserData, [each for each in run.seen if each.source == SERVER]),
        ("next", chunks.NextUserData, run.seen),
        ("audio", chunks.UserData, run.seen[run.published :]),
        ("redirect", chunks.ResponderRedirect, introduced),
        ("fihello", chunks.ForwardedInitiatorHello, introduced),
    ):
        found[name] = next(
            each for each in seen if any(isinstance(chunk, kind) for chunk in each.packet.chunks)
        )
    found["hole"] = next(each for each in run.seen if any(map(has_hole, each.packet.chunks)))
    return found


def has_hole(chunk):
    """Whether it acknowledges data after a gap."""
    return isinstance(chunk, chunks.DataAckRanges) and chunk.runs != ()


def opened(datagram):
    """A datagram opened by hand, as an example in Python."""
    text = datagram.hex()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    written = "\n".join(f'...     "{line}"' for line in lines)
    packet = Packet.parse(default_cipher().open(unscramble(datagram)[1]))
    [hello] = packet.chunks
    return f""">>> from rtmplite.rtmfp.crypto.cipher import default_cipher
>>> from rtmplite.rtmfp.wire.packet import Packet, unscramble
>>> datagram = bytes.fromhex(
{written}
... )
>>> session_id, encrypted = unscramble(datagram)
>>> session_id, len(encrypted)
(0, {len(datagram) - 4})
>>> packet = Packet.parse(default_cipher().open(encrypted))
>>> packet.mode, packet.timestamp
({packet.mode!r}, {packet.timestamp})
>>> [hello] = packet.chunks
>>> hello.endpoint_discriminator
{hello.endpoint_discriminator!r}
>>> hello.tag.hex()
{hello.tag.hex()!r}
"""


def derivation(agreed):
    """From two components and a secret to the keys, as the initiator makes them."""
    keys = agreed.keys
    made = (
        ("encrypt key", "HMAC(SKRC, SKIC)", keys.encrypt_key),
        ("  HMAC send key", "encrypt key", keys.hmac_send_key),
        ("decrypt key", "HMAC(SKIC, SKRC)", keys.decrypt_key),
        ("  HMAC recv key", "decrypt key", keys.hmac_recv_key),
        ("near nonce", "SKIC", keys.near_nonce),
        ("far nonce", "SKRC", keys.far_nonce),
    )
    known = (("SKIC", agreed.skic), ("SKRC", agreed.skrc), ("secret", agreed.secret))
    lines = [f"{name:<8}{len(value):>4} bytes  {hexed(value)}" for name, value in known]
    lines.append("   |")
    for name, message, value in made:
        lines.append(f"   +--> {name:<16} = HMAC(secret, {message + ')':<18}{hexed(value)}")
    return "\n".join(lines) + "\n"


def renewed(text):
    """The page with its blocks as they come out now."""
    found = blocks()
    return BLOCK.sub(lambda match: f"{match[1]}{match[2]}{found[match[1]]}", text)


def vectors():
    """All datagrams of the first run, whole, with their keys and contents."""
    run = Conversation()
    client, agreed = run.world.private[CLIENT], run.agreed
    group = Component.parse(agreed.skic).group_select
    keys = {field.name: getattr(agreed.keys, field.name).hex() for field in fields(SessionKeys)}
    datagrams = [
        {
            "ms": round(1000 * seen.at),
            "from": "client" if seen.source == CLIENT else "server",
            "lost": number in run.world.lost,
            "datagram": seen.datagram.hex(),
            "session_id": f"{seen.session_id:08x}",
            "key": seen.protection.key[:KEY_LENGTH].hex(),
            "decrypted": seen.plain.hex(),
            "packet": seen.plain[seen.packet_at :].hex(),
        }
        for number, seen in enumerate(run.seen)
    ]
    found = {
        "client_group": group,
        "client_private": f"{client[group].private:x}",
        "skic": agreed.skic.hex(),
        "skrc": agreed.skrc.hex(),
        "secret": agreed.secret.hex(),
        "client_keys": keys,
        "datagrams": datagrams,
    }
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
    VECTORS.write_text(vectors())
