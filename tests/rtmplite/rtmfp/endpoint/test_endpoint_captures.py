"""Handshakes that real peers made, made again by our machines, byte for byte."""

import json

import pytest
from support.rtmfp.endpoints import User

from rtmplite.rtmfp.crypto.cipher import FlashCipher, default_cipher
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.crypto.keying import Component, derive, protections
from rtmplite.rtmfp.crypto.profile import KeyingAnswer, Keys
from rtmplite.rtmfp.endpoint import responder
from rtmplite.rtmfp.endpoint.cookie import Cookie
from rtmplite.rtmfp.endpoint.endpoint import Endpoint
from rtmplite.rtmfp.endpoint.initiator import OpeningState
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.address import Origin
from rtmplite.rtmfp.wire.control_chunks import ForwardedInitiatorHello
from rtmplite.rtmfp.wire.packet import Packet, scramble, unscramble
from rtmplite.rtmfp.wire.startup_chunks import ResponderRedirect

HANDSHAKES = [
    *(("connect_play_nobody", 0), ("p2p_introduction", 0), ("p2p_introduction", 1)),
    *(("publish_play_h264_speex", 0), ("publish_play_h264_speex", 1)),
    *(("publish_play_nohmac_nosseq", 0), ("publish_play_nohmac_nosseq", 1)),
    ("flash_player", 0),
]
STARTUP = ("IHello", "RHello", "IIKeying", "RIKeying")


def address(text):
    ip, port = text.rsplit(":", 1)
    return ip, int(port)


class Line:
    """One packet of a capture."""

    def __init__(self, line):
        self.source, self.destination = (address(line[end]) for end in ("src", "dst"))
        self.session_id, self.key = line["ssid"], line["key"]
        self.name = line["chunks"][0]["name"]
        self.plain = bytes.fromhex(line["plain"])
        # Its clock, as far as a timestamp tells; what it sent back then says nothing of ours.
        self.now = (line.get("timestamp") or 0) / 250
        self.hmac_length = line.get("hmac_len", 0)

    @property
    def datagram(self):
        """As it was on the wire, if it is of the startup."""
        return scramble(self.session_id, default_cipher().seal(self.plain[2:].rstrip(b"\xff")))

    @property
    def chunk(self):
        return Packet.parse(self.plain[2:]).chunks[0]


def captured(folder, name):
    """The packets of a capture."""
    if name == "flash_player":
        packets = json.loads((folder / "rtmfp/flash_player_handshake.json").read_text())["packets"]
        ends = ("192.0.2.1:40000", "192.0.2.2:1935")
        for packet in packets:
            there = packet["direction"].startswith("initiator")
            yield Line(
                packet | dict(zip(("src", "dst"), ends if there else ends[::-1], strict=True))
            )
        return
    with (folder / f"rtmfp/{name}.decrypted.jsonl").open() as file:
        yield from (Line(json.loads(line)) for line in file)


class Captured:
    """The handshake number `index` of a capture, and who made it."""

    def __init__(self, folder, name, index):
        lines = list(captured(folder, name))
        keyings = [line for line in lines if line.name == "IIKeying"]
        keying = keyings[index]
        ends = {keying.source, keying.destination}
        between = [line for line in lines if {line.source, line.destination} == ends]
        self.hello, self.rhello, _, self.rikeying = (
            next(line for line in between if line.name == name) for name in STARTUP
        )
        self.keying = keying
        self.lines = lines
        self.initiator, self.responder = keying.source, keying.destination
        self.session = next((line.key.partition(".")[0] for line in between if "." in line.key), "")
        if name != "flash_player":
            found = json.loads((folder / f"rtmfp/{name}.keys.json").read_text())
            self.secret = next(
                bytes.fromhex(each["dh_shared_secret"])
                for each in found
                if each["client_keying_component"] == self.skic.hex()
            )
        else:
            self.secret = b"not known"

    @property
    def skic(self):
        return self.keying.chunk.session_key_initiator_component

    @property
    def skrc(self):
        return self.rikeying.chunk.session_key_responder_component

    def keys(self, near, far):
        keys = derive(self.secret, near, far)
        send, receive = protections(keys, Component.parse(near), Component.parse(far))
        return Keys(FlashCipher(send, receive), keys.near_nonce, keys.far_nonce)


class CapturedProfile(FlashProfile):
    """The identity of one end of a captured handshake, which knows how it went on."""

    def __init__(self, capture, certificate):
        super().__init__(bytes)
        self.capture, self.certificate = capture, certificate
        self.component = capture.skic

    def selects(self, epd):
        return self.is_selected(self.certificate, epd)

    def initiate(self, far_certificate):
        assert far_certificate == self.capture.rhello.chunk.responder_certificate
        return self

    def agree(self, far_component):
        return self.capture.keys(self.capture.skic, far_component)

    def respond(self, far_component, far_certificate):
        assert far_certificate == self.capture.keying.chunk.initiator_certificate
        assert far_component == self.capture.skic
        capture = self.capture
        return KeyingAnswer(capture.skrc, capture.keys(capture.skrc, capture.skic))


class CapturedCookies:
    """A jar with one cookie."""

    def __init__(self, cookie):
        self.cookie = cookie

    def issue(self, source, now):
        return self.cookie

    def check(self, cookie, source, now):
        return Cookie(0.0, is_here=True) if cookie == self.cookie else None


def drawing(tag, session_id):
    """Randomness that gives what a captured peer drew."""
    drawn = {16: tag, 4: session_id.to_bytes(4, "big")}
    return lambda size: drawn.get(size) or bytes(size)


def deliver(endpoint, line):
    """Let an endpoint hear a packet, and do its slow work."""
    endpoint.receive(line.datagram, line.source, line.now)


def work(endpoint, now):
    for job in endpoint.take_jobs():
        job.run()
        endpoint.finish(job, now)


def is_same(datagram, line):
    """Compare packets as they were before encryption, checksum and padding included."""
    session_id, encrypted = unscramble(datagram)
    assert session_id == line.session_id
    assert default_cipher().open(encrypted) == line.plain[2:]
    assert encrypted == line.datagram[4:]
    return True


@pytest.mark.parametrize(("name", "index"), HANDSHAKES)
def test_our_initiator_sends_what_theirs_sent(name, index, corpus):
    """Covers RFC 7016 §3.5.1.1.1 [iikeying-sent] [rikeying-accepted] [initiator-open].

    With the randomness of the captured initiator, and the clock of its timestamps.
    """
    capture = Captured(corpus, name, index)
    hello, keying = capture.hello.chunk, capture.keying.chunk
    random = drawing(hello.tag, keying.initiator_session_id)
    profile = CapturedProfile(capture, keying.initiator_certificate)
    user = User()
    endpoint = Endpoint(profile, random, 0.0, listener=user)
    addresses = [capture.hello.destination]
    opening = endpoint.connect(hello.endpoint_discriminator, addresses, capture.hello.now)
    ((datagram, _),) = endpoint.take()
    assert is_same(datagram, capture.hello)
    endpoint.receive(capture.rhello.datagram, capture.responder, capture.keying.now)
    work(endpoint, capture.keying.now)
    ((datagram, to),) = endpoint.take()
    assert is_same(datagram, capture.keying)
    assert to == capture.responder
    endpoint.receive(capture.rikeying.datagram, capture.responder, capture.keying.now)
    work(endpoint, capture.keying.now)
    assert opening.state is OpeningState.OPEN
    assert user.sessions[0][0].far_id == capture.rikeying.chunk.responder_session_id


@pytest.mark.parametrize(("name", "index"), HANDSHAKES)
def test_our_responder_sends_what_theirs_sent(name, index, corpus, monkeypatch):
    """Covers RFC 7016 §3.5.1.1.2 [rhello-sent] [rikeying-sent] [responder-open].

    With the randomness, cookies and clock of the captured responder.
    """
    capture = Captured(corpus, name, index)
    rhello, rikeying = capture.rhello.chunk, capture.rikeying.chunk
    monkeypatch.setattr(responder, "CookieJar", lambda random: CapturedCookies(rhello.cookie))
    profile = CapturedProfile(capture, rhello.responder_certificate)
    endpoint = Endpoint(profile, drawing(b"", rikeying.responder_session_id), 0.0, listener=User())
    endpoint.receive(capture.hello.datagram, capture.initiator, capture.rhello.now)
    ((datagram, to),) = endpoint.take()
    assert is_same(datagram, capture.rhello)
    assert to == capture.initiator
    endpoint.receive(capture.keying.datagram, capture.initiator, capture.rikeying.now)
    work(endpoint, capture.rikeying.now)
    ((datagram, _),) = endpoint.take()
    assert is_same(datagram, capture.rikeying)
    (session,) = endpoint.sessions
    assert session.state is State.OPEN
    assert session.far_id == capture.keying.chunk.initiator_session_id


def test_a_captured_introduction_through_our_server(corpus, monkeypatch):
    """Covers RFC 7016 §3.5.1.5 [fihello-sent], §3.5.1.6 [introduction] [public-address-told].

    Ours tells both what theirs told; that an address was observed, and not merely known, too.
    """
    capture = Captured(corpus, "p2p_introduction", 0)
    rhello, rikeying = capture.rhello.chunk, capture.rikeying.chunk
    monkeypatch.setattr(responder, "CookieJar", lambda random: CapturedCookies(rhello.cookie))
    profile = CapturedProfile(capture, rhello.responder_certificate)
    endpoint = Endpoint(profile, drawing(b"", rikeying.responder_session_id), 0.0, listener=User())
    for line in (capture.hello, capture.keying):
        deliver(endpoint, line)
        work(endpoint, line.now)
    endpoint.take()
    theirs = capture.keys(capture.skic, capture.skrc).cipher
    number = next(n for n, line in enumerate(capture.lines) if line.name == "User Data")
    first = capture.lines[number]
    packet = first.plain[1:].rstrip(b"\xff")  # without its number, 0
    endpoint.receive(scramble(first.session_id, theirs.seal(packet)), first.source, 1.0)
    endpoint.take()
    asked, redirect, forwarded = capture.lines[15:18]
    assert (asked.name, redirect.name, forwarded.name) == (
        "IHello",
        "Responder Redirect",
        "FIHello",
    )
    endpoint.receive(asked.datagram, asked.source, 2.0)
    sent = {to: unscramble(datagram)[1] for datagram, to in endpoint.take()}
    ours = Packet.parse(default_cipher().open(sent[asked.source])).chunks[0]
    (there,), (here,) = redirect.chunk.redirect_destinations, ours.redirect_destinations
    assert isinstance(ours, ResponderRedirect)
    assert ours.tag_echo == redirect.chunk.tag_echo
    assert (there.ip, there.port) == (here.ip, here.port)
    assert here.origin is Origin.OBSERVED
    hello = next(
        chunk
        for chunk in Packet.parse(theirs.open(sent[capture.initiator])).chunks
        if isinstance(chunk, ForwardedInitiatorHello)
    )
    number = 1 if forwarded.plain[0] < 0x80 else 2
    assert hello == Packet.parse(forwarded.plain[number:]).chunks[0]
