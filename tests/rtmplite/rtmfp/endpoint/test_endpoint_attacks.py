"""An endpoint under attack: by floods, by fragments, and by any bytes at all."""

import gc
import time
from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak
from support.rtmfp.endpoints import (
    CLIENT,
    SERVER,
    THIRD,
    PlainProfile,
    User,
    World,
    startup_datagram,
)

from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.endpoint.limits import StartupLimits
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.address import SocketAddress
from rtmplite.rtmfp.wire.chunks import PARSERS, UnknownChunk, encode_chunk
from rtmplite.rtmfp.wire.control_chunks import Fragment
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import (
    InitiatorHello,
    InitiatorInitialKeying,
    ResponderHello,
    ResponderInitialKeying,
    ResponderRedirect,
)
from rtmplite.strategies.rtmfp import received_packets, startup_chunks

URL = Epd(ancillary_data=b"rtmfp://example.com/live").encode()


def met(weather=None, **options):
    """A world where a client has opened a session with a server."""
    world = World(weather)
    server = world.join(SERVER, b"server", **options)
    client = world.join(CLIENT, b"client")
    opening = world.connect(client, b"server", SERVER)
    world.run(1)
    return world, server, client, opening


class Flood:
    """A server, and strangers at as many addresses as they like."""

    def __init__(self, profile):
        self.user = User()
        self.endpoint = Endpoint(profile, Random(1).randbytes, 0.0, listener=self.user)
        self.answers = 0

    def receive(self, datagrams):
        for number, datagram in enumerate(datagrams):
            source = (f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1 + number % 60_000)
            self.endpoint.receive(datagram, source, number / 100_000)
            if number % 50 == 0:
                self.answers += len(self.endpoint.take())
        self.answers += len(self.endpoint.take())


def objects():
    gc.collect()
    return len(gc.get_objects())


def test_a_flood_leaves_nothing_behind_and_keeps_nobody_out():
    """Covers RFC 7016 §3.5.1.1.2 [no-state] [bad-cookie-ignored], §5 [resources-bounded].

    Twenty thousand hellos and forged keyings in a fifth of a second, each from another address.
    """
    flood = Flood(PlainProfile(b"server", Random(1).randbytes))
    hello = startup_datagram(InitiatorHello(b"server", b"tagtagtagtagtagt"))
    forged = startup_datagram(InitiatorInitialKeying(7, bytes(41), b"client", b"skic", b"signed"))
    flood.receive([hello, forged] * 100)  # what is made once is made now
    before = objects()
    answers = flood.answers
    flood.receive([hello, forged] * 10_000)
    assert flood.answers > answers + 8_000
    assert objects() - before < 100
    assert flood.endpoint.sessions == flood.endpoint.take_jobs() == []
    assert flood.endpoint.deadline is None
    assert flood.endpoint.ignored["cookie"] == 10_100
    # and an honest client still connects
    world = World()
    node = world.join(SERVER, b"server")
    node.endpoint, node.user = flood.endpoint, flood.user
    world.link.now = 1.0
    client = world.join(CLIENT, b"client")
    world.connect(client, b"server", SERVER)
    world.run(5)
    assert len(flood.user.sessions) == 1


def test_a_flood_of_real_packets_leaves_nothing_behind():
    """Covers RFC 7016 §3.5.1.1.2 [no-state]: with Flash's ciphers and certificates."""
    drawn = Random(1).randbytes
    profile = FlashProfile.server(drawn)
    client = FlashProfile.client(drawn, groups=(2,))
    seal = profile.default_cipher().seal

    def sealed(chunk):
        return scramble(0, seal(Packet(Mode.STARTUP, (chunk,), timestamp=1).encode()))

    hello = sealed(InitiatorHello(URL, b"tagtagtagtagtagt"))
    skic = client.initiate(profile.certificate).component
    forged = sealed(InitiatorInitialKeying(7, bytes(41), client.certificate, skic, b"X"))
    flood = Flood(profile)
    flood.receive([hello, forged] * 50)
    before = objects()
    flood.receive([hello, forged] * 2000)
    assert objects() - before < 100
    assert flood.answers > 1900
    assert flood.endpoint.sessions == flood.endpoint.take_jobs() == []


def test_a_flood_of_fragments_is_bounded():
    """Covers RFC 7016 §3.4 [buffers-limited]."""
    flood = Flood(PlainProfile(b"server", Random(1).randbytes))
    flood.receive(
        startup_datagram(Fragment(number, 0, b"x" * 1000, more_fragments=True))
        for number in range(2000)
    )
    assert flood.endpoint.packets.reassembling == StartupLimits().reassemblies
    flood.endpoint.tick(flood.endpoint.deadline + 1.0)
    assert flood.endpoint.packets.reassembling == 0
    assert flood.endpoint.deadline is None


@pytest.mark.parametrize("size", range(24))
def test_short_datagrams_are_ignored(size):
    """Own design: `receive` never raises."""
    _, server, client, _ = met()
    for node in (server, client):
        node.endpoint.receive(bytes(size), THIRD, 2.0)
        assert sum(node.endpoint.ignored.values()) == 1


def startup_packets():
    """Datagrams of the startup, and what sessions send, in packets for any session ID."""
    one = st.one_of(
        startup_chunks(),
        st.builds(InitiatorHello, st.sampled_from([b"server", b"client"]), st.binary(max_size=20)),
        st.builds(
            Fragment, st.integers(0, 3), st.integers(0, 3), st.binary(min_size=1), st.booleans()
        ),
    )
    packets = st.lists(one, min_size=1, max_size=6).map(
        lambda chunks: Packet(Mode.STARTUP, tuple(chunks)).encode()
    )
    other = received_packets().map(lambda received: received[0].encode() + received[1])
    return st.one_of(packets, other)


@given(st.lists(st.tuples(st.integers(0, 3), mutations(startup_packets())), max_size=3))
def test_no_datagrams_crash_an_endpoint(received):
    """Covers RFC 7016 §5 [resources-bounded]: nor make it remember much."""
    world, server, client, _ = met()
    opening = world.connect(client, b"nobody", THIRD)
    client.receive(startup_datagram(ResponderHello(opening.tag, b"c", b"nobody")), THIRD, 1.0)
    world.run(0.0)
    keys = world.sent(ResponderInitialKeying)[0][2].session_key_responder_component
    skic = world.sent(InitiatorInitialKeying)[0][2].session_key_initiator_component
    size = sum(len(data) for _, data in received)

    def feed():
        for where, data in received:
            node, session_id, seal = [
                (server, 0, b"ours"),
                (client, 0, b"ours"),
                (client, opening.near_id, b"ours"),
                (server, server.session.near_id, skic + keys),
            ][where]
            node.endpoint.receive(scramble(session_id, seal + data), THIRD, world.link.now)
            event("answered" if node.take() else "ignored")

    assert peak(feed) <= 32 * size + 65536
    world.run(1.0)


@given(st.binary(max_size=200))
def test_no_bytes_crash_an_endpoint(data):
    """Own design: `receive` never raises."""
    world, server, _, _ = met()
    server.endpoint.receive(data, THIRD, world.link.now)
    assert sum(server.endpoint.ignored.values()) == 1


def packed(chunk, size=1180):
    """A packet of the startup with a chunk over and over."""
    once = encode_chunk(chunk)
    return bytes([Mode.STARTUP]) + once * (size // len(once))


@pytest.mark.parametrize("is_asking", [False, True])
@pytest.mark.parametrize(
    "plain",
    [
        packed(InitiatorHello(URL, b"t" * 16)),
        packed(InitiatorHello(b"\x01\x33" * 550, b"t" * 16)),
        packed(InitiatorHello(bytes(1000), b"t" * 16)),
        packed(InitiatorInitialKeying(7, bytes(41), b"\x01\x33" * 400, b"\x01\x33" * 100, b"X")),
        packed(Fragment(1, 1, b"x", more_fragments=True)),
        packed(ResponderRedirect(b"t" * 16, (SocketAddress("192.0.2.1", 1),) * 160)),
        packed(ResponderHello(b"t" * 16, b"cookie", b"\x01\x33" * 500)),
        packed(UnknownChunk(0x22, b"")),
    ],
    ids=lambda plain: PARSERS[plain[1]].__self__.__name__ if plain[1] in PARSERS else "unknown",
)
def test_a_strangers_packet_costs_little(plain, is_asking):
    """Covers RFC 7016 §5 [resources-bounded]: in time, and in what is sent because of it."""
    drawn = Random(1).randbytes
    profile = FlashProfile.server(drawn)
    endpoint = Endpoint(profile, drawn, 0.0, listener=User())
    if is_asking:
        endpoint.connect(URL, [SERVER], 0.0)
        endpoint.take()
    datagram = scramble(0, profile.default_cipher().seal(plain))
    sources = [(f"10.0.{number}.1", 1935) for number in range(100)]
    began = time.process_time()
    for source in sources:
        endpoint.receive(datagram, source, 0.1)
    assert time.process_time() - began < 100 * 0.01
    assert sum(len(answer) for answer, _ in endpoint.take()) <= 100 * len(datagram)


class Eavesdropper:
    """Somebody who sees all packets, and sends them again, as they are and otherwise."""

    def __init__(self, world, seed):
        self.world, self.random, self.seen = world, Random(seed), 0

    def run(self, seconds):
        end = self.world.link.now + seconds
        while self.world.link.now < end:
            self.world.run(0.005)
            for _, source, destination, datagram in self.world.link.sent[self.seen :][:50]:
                for spoiled in self.variants(datagram):
                    for pretended in (source, THIRD):
                        node = self.world.link.nodes.get(destination)
                        if node is not None:
                            node.receive(spoiled, pretended, self.world.link.now)
            self.seen = len(self.world.link.sent)

    def variants(self, datagram):
        flipped = bytearray(datagram)
        flipped[self.random.randrange(len(datagram))] ^= 1 << self.random.randrange(8)
        cut = datagram[: self.random.randrange(len(datagram))]
        session_id, encrypted = unscramble(datagram)
        elsewhere = scramble(session_id ^ self.random.randrange(1, 1 << 32), encrypted)
        older = self.random.choice(self.world.link.sent)[3]
        return datagram, bytes(flipped), cut, datagram + datagram, elsewhere, older


@pytest.mark.parametrize("seed", range(3))
def test_replayed_and_tampered_packets_in_every_state(seed):
    """Covers RFC 7016 §2.2.3 [replays-noticed] [unverified-discarded].

    From the first hello to the last close; with Flash's own keys, HMACs and numbers.
    """
    world = World()
    drawn = Random(seed).randbytes
    server = world.join(SERVER, b"server", FlashProfile.server(drawn))
    client = world.join(CLIENT, b"client", FlashProfile.client(drawn, groups=(2,)))
    eve = Eavesdropper(world, seed)
    opening = world.connect(client, URL, SERVER)
    eve.run(0.5)
    assert opening.state is OpeningState.OPEN
    assert [len(node.user.sessions) for node in (server, client)] == [1, 1]
    flow = client.session.open_flow(b"flow", world.link.now)
    messages = [b"%d" % number * 700 for number in range(12)]
    for message in messages:
        flow.send(message, world.link.now)
        eve.run(0.05)
    assert server.heard() == messages
    assert (server.session.address, client.session.address) == (CLIENT, SERVER)
    assert min(server.session.invalid, client.session.invalid) > 50
    client.session.close(world.link.now)
    eve.run(0.5)
    assert client.endpoint.sessions == []
    eve.run(20.0)
    # A keying that is replayed while its cookie is good makes a session that nobody hears of.
    assert len(server.endpoint.sessions) <= 1
    world.run(SessionLimits().silence_timeout)
    assert server.endpoint.sessions == []
    assert [len(node.user.sessions) for node in (server, client)] == [1, 1]


@pytest.mark.sources
@pytest.mark.parametrize("call", ["receive", "tick", "take"])
def test_a_bug_that_one_far_end_can_reach_costs_the_others_nothing(call):
    """Own design: there is one, always; its session ends, and it is told of."""
    bugs = []
    world, server, client, _ = met(on_bug=bugs.append)
    other = world.join(THIRD, b"other")
    world.connect(other, b"server", SERVER)
    world.run(1)
    bad, good = (held for held, _, _ in server.user.sessions)

    def breaks(*args):
        raise ZeroDivisionError

    setattr(bad, call, breaks)
    bad._wake()
    server.endpoint._schedule.plan(bad)
    client.user.sessions[0][0].open_flow(b"flow", world.link.now).send(b"a word", world.link.now)
    client.endpoint._wake()
    world.run(60)
    assert [type(bug) for bug in bugs] == [ZeroDivisionError]
    assert server.endpoint.sessions == [good] and good.state is State.OPEN
    assert len(server.user.listeners[bad].closed) == 1 and not server.user.listeners[good].closed
