"""Two gateways back to back: a call by x-flv, with loss and without."""

import random

import pytest
from support.gateway.gateway_world import AUDIO, BOB, PCMU, SPEEX, GatewayWorld, sdp

from p2psip.rtp.rtcp import parse_compound
from p2psip.sdp.session import SessionDescription
from rtmplite.amf import amf0

VIDEO, DATA = 9, 18
AAC_HEADER, AVC_HEADER = b"\xaf\x00\x12\x10", b"\x17\x00\0\0\0" + b"avcC" * 8
METADATA = amf0.encode("@setDataFrame", "onMetaData", {"width": 320.0})
TUNNEL = b"m=video 5010 RTP/AVP 97\r\na=rtpmap:97 x-flv/90000\r\n"


class Net:
    """Carries datagrams between the ports of all tunnels of a gateway; `loss` of them are lost."""

    def __init__(self, world, loss=0.0):
        self.world, self.random, self.loss = world, random.Random(7), loss
        self.seen, self.lost = {}, 0

    def carry(self):
        ports = {wire.rtp_port: leg for leg, wire in self.world.gateway.videos.items()}
        for leg, wire in list(self.world.gateway.videos.items()):
            for _, data in wire.sent[self.seen.get(leg, 0) :]:
                other = ports.get(wire.remote[1]) if wire.remote else None
                if other is None or self.random.random() < self.loss:
                    self.lost += 1
                else:
                    other.on_rtp(data, self.world.now)
            self.seen[leg] = len(wire.sent)
        self.world.run()


def picture(number, key):
    """A picture that says its number, larger than a packet if it is a key frame."""
    head = b"\x17\x01\0\0\0" if key else b"\x27\x01\0\0\0"
    return head + number.to_bytes(2, "big") + bytes(5000 if key else 1500)


def shown(peer):
    """The numbers of the pictures that a player got, with whether it is a key frame."""
    return [
        (int.from_bytes(body[5:7], "big"), body[0] == 0x17)
        for kind, _, body in peer.media()
        if kind == VIDEO and body[1] == 1
    ]


@pytest.fixture
def both(world):
    """Two clients in a call that name what is carried by the tunnel."""
    alice, bob = world.rich("alice@home"), world.rich("bob@home")
    alice.call("invite", "bob@home", "pcmu", "flv")
    world.wait()
    bob.call("accept", "pcmu", "flv")
    world.wait()
    assert alice.heard()[1:] == [("accepted", "default", "default")]
    assert bob.heard()[1:] == [("accepted", "default", "default")]
    return alice, bob


def test_every_codec_crosses_as_it_is(world, both):
    """Covers RFC 3264 §6: sound, pictures and metadata by the tunnel, both ways."""
    net, sent = Net(world), []
    alice, bob = both
    alice.peer.play("remote"), bob.peer.play("remote")
    local, other = alice.peer.publish("local"), bob.peer.publish("local")
    for at, (kind, body) in enumerate(
        [(DATA, METADATA), (VIDEO, AVC_HEADER), (AUDIO, AAC_HEADER), (VIDEO, picture(1, True)),
         (AUDIO, b"\xaf\x01" + b"a" * 300), (VIDEO, picture(2, False))]
    ):  # fmt: skip
        sent.append((kind, 20 * at, body))
        alice.peer.write(kind, 20 * at, local, body)
        world.wait(0.02)
        net.carry()
    bob.peer.write(AUDIO, 0, other, b"\x2e" + b"mp3" * 50)
    net.carry()
    heard = bob.peer.media()
    assert heard[0][0] == DATA and amf0.decode(heard[0][2])[0] == "onMetaData"
    assert [kind for kind, *_ in heard[:3]] == [DATA, VIDEO, AUDIO]
    headers = (AAC_HEADER, AVC_HEADER)  # which come again with the key frame
    plain = [[each for each in messages if each[0] != DATA and each[2] not in headers]
             for messages in (sent, heard)]  # fmt: skip
    assert plain[0] == plain[1] and len(plain[0]) == 3
    assert [body for _, _, body in alice.peer.media()] == [b"\x2e" + b"mp3" * 50]
    assert not any(wire.sent for wire in world.gateway.audios.values())
    alice.call("bye")
    world.wait()
    assert bob.heard() == [("byed",)] and world.is_clean()


@pytest.mark.parametrize("rate", ["wideband", "narrowband"])
def test_clients_that_name_no_codecs_hear_each_other_whatever_they_publish(world, rate):
    """Own design, as the original: AAC crosses without the extra, and neither is told a codec."""
    alice, bob = world.rich("alice@home"), world.rich("bob@home", "", "", "", rate)
    alice.call("invite", "bob@home")
    world.wait()
    bob.call("accept")
    world.wait()
    assert alice.heard()[1:] == bob.heard()[1:] == [("accepted",)]
    net, local = Net(world), alice.peer.publish("local")
    bob.peer.play("remote")
    for at, body in enumerate([AAC_HEADER, b"\xaf\x01" + b"a" * 300]):
        alice.peer.write(AUDIO, 20 * at, local, body)
        world.wait(0.02)
        net.carry()
    assert [body for _, _, body in bob.peer.media()] == [AAC_HEADER, b"\xaf\x01" + b"a" * 300]
    bob.call("bye")
    world.wait()
    assert world.is_clean()


def test_five_percent_of_the_packets_are_lost(world, both):
    """Own design: headers come again, and no picture is shown without those it depends on."""
    net = Net(world, loss=0.05)
    alice, bob = both
    bob.peer.play("remote")
    local = alice.peer.publish("local")
    for kind, body in ((VIDEO, AVC_HEADER), (AUDIO, AAC_HEADER)):
        alice.peer.write(kind, 0, local, body)
    for number in range(1500):  # a minute, a key frame each second
        alice.peer.write(VIDEO, 40 * number, local, picture(number, number % 25 == 0))
        alice.peer.write(AUDIO, 40 * number, local, b"\xaf\x01" + bytes(200))
        world.wait(0.04)
        net.carry()
    numbers = shown(bob.peer)
    assert net.lost > 200 and 300 < len(numbers) < 1400
    last = None
    for number, is_key in numbers:
        assert is_key or number == last + 1
        last = number
    sounds = sum(kind == AUDIO and body[1] == 1 for kind, _, body in bob.peer.media())
    assert 0.9 * 1500 < sounds < 1500
    headers = [body for _, _, body in bob.peer.media() if body in (AVC_HEADER, AAC_HEADER)]
    assert headers.count(AVC_HEADER) > 40 < headers.count(AAC_HEADER)
    assert world.is_clean()


def test_headers_of_sound_alone_come_again(world, both):
    """Own design: after every hundred sounds."""
    net = Net(world)
    alice, bob = both
    bob.peer.play("remote")
    local = alice.peer.publish("local")
    alice.peer.write(AUDIO, 0, local, AAC_HEADER)
    for number in range(250):
        alice.peer.write(AUDIO, 20 * number, local, b"\xaf\x01" + bytes(9))
        world.wait(0.02)
        net.carry()
    bodies = [body for _, _, body in bob.peer.media()]
    assert bodies.count(AAC_HEADER) == 3 and len(bodies) == 253 and world.is_clean()


def test_pictures_from_before_the_call_come_first(world):
    """Own design: as a phone gets them."""
    alice, bob = world.rich("alice@home"), world.rich("bob@home")
    bob.peer.play("remote")
    local, net = alice.peer.publish("local"), Net(world)
    alice.peer.write(AUDIO, 0, local, AAC_HEADER)
    alice.peer.write(VIDEO, 0, local, AVC_HEADER)
    for number in range(3):
        alice.peer.write(VIDEO, 40 * number, local, picture(number, number == 0))
    alice.call("invite", "bob@home", "wideband", "flv")
    world.wait()
    bob.call("accept", "wideband", "flv")
    world.wait(0.5)
    net.carry()
    assert [number for number, _ in shown(bob.peer)] == [0, 1, 2]
    assert {AAC_HEADER, AVC_HEADER} < {body for _, _, body in bob.peer.media()}
    assert alice.heard()[1:] == [("accepted", "default", "default")] and world.is_clean()


def test_what_is_too_large_is_told_and_the_rest_crosses(world, both):
    """Own design: the flaw of the format, 64 KiB."""
    net = Net(world)
    alice, bob = both
    bob.peer.play("remote")
    local = alice.peer.publish("local")
    for body in (b"\x17\x01" + bytes(70_000), b"\x17\x01" + bytes(70_000), picture(5, True)):
        alice.peer.write(VIDEO, 0, local, body)
    world.wait(0.5)
    net.carry()
    assert shown(bob.peer) == [(5, True)]
    assert alice.peer.codes().count("NetStream.Publish.Unsuitable") == 1 and world.is_clean()


def test_a_phone_refuses_the_tunnel_and_the_call_has_sound(world, desk):
    """Covers RFC 3264 §6: the ports of the line are given back."""
    desk.answers = SPEEX
    alice = world.rich("alice@home")
    alice.call("invite", BOB, "wideband", "dtmf", "flv")
    world.wait()
    assert alice.heard() == [("accepted", "speex", None)]
    assert len(world.gateway.ports) == 1 and not world.gateway.videos and world.is_clean()


def test_a_gateway_calls_a_client_that_names_none(world, desk):
    """Covers RFC 3264 §6: answered, and H.264 beside it is not."""
    h264 = b"m=video 5008 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n"
    alice = world.rich("alice@home")
    for names, port in ((("pcmu", "flv", "h264"), True), (("pcmu",), False)):
        call = desk.ring("alice", world.now, sdp(PCMU) + TUNNEL + h264)
        world.wait()
        alice.call("accept", *names)
        world.wait()
        lines = SessionDescription.parse(call.remote_sdp).media
        assert [bool(line.port) for line in lines] == [True, port, False]
        alice.call("bye")
        world.wait()
    assert [args for name, *args in alice.heard() if name == "accepted"] == [
        ["default", "default"], ["pcmu", None],
    ]  # fmt: skip
    assert world.is_clean()


def test_the_client_holds_a_tunnel(world, both):
    """Covers RFC 3264 §8.4: nothing crosses meanwhile, and pictures go on at the next key frame."""
    net = Net(world)
    alice, bob = both
    bob.peer.play("remote")
    local = alice.peer.publish("local")
    alice.call("hold", True)
    alice.peer.write(VIDEO, 0, local, picture(1, True))
    world.wait()
    alice.peer.write(VIDEO, 100, local, picture(2, True))
    world.wait(0.5)
    net.carry()
    assert shown(bob.peer) == [] and bob.heard() == [("holded", True)]
    alice.call("hold", False)
    world.wait()
    alice.peer.write(VIDEO, 700, local, picture(3, True))
    world.wait(0.5)
    net.carry()
    assert shown(bob.peer) == [(3, True)] and bob.heard() == [("holded", False)]
    assert world.is_clean()


def test_a_file_is_held_back_and_reports_are_sent():
    """Covers RFC 3550 §6.2: a tunnel has RTCP of its own, and the pace of its messages."""
    world = GatewayWorld()
    alice, bob = world.rich("alice@home"), world.rich("bob@home")
    alice.call("invite", "bob@home", "wideband", "flv")
    world.wait()
    bob.call("accept", "wideband", "flv")
    world.wait()
    net, local = Net(world), alice.peer.publish("local")
    bob.peer.play("remote")
    for number in range(100):
        alice.peer.write(VIDEO, 40 * number, local, picture(number, number % 25 == 0))
    assert not alice.peer.server.transport.reading
    for _ in range(100):
        world.wait(0.1)
        net.carry()
    assert alice.peer.server.transport.reading
    assert [number for number, _ in shown(bob.peer)] == list(range(100))
    reports = [data for wire in world.gateway.videos.values() for data in wire.reports]
    assert reports and all(parse_compound(data) for data in reports)
    assert world.is_clean()
