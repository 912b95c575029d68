"""Calls whose pictures are made: what is offered, told to the operator, and seen at both ends."""

import pytest
from support.gateway import h265_world
from support.gateway.gateway_world import BOB as NAME
from support.gateway.gateway_world import PCMU, Desk, GatewayWorld, sdp
from support.gateway.numbered_film import film, seen
from support.gateway.video_threads import at_once

from p2psip.rtp import fast
from p2psip.rtp.payload.vp8 import Vp8Unpacker, pack_vp8
from p2psip.sdp.codec import codecs_of
from p2psip.sdp.session import SessionDescription
from rtmplite.amf import amf0
from rtmplite.flv.enhanced_video import ExVideoTag
from siprtmp.calls import quality

VIDEO, DATA = 9, 18
OFFERED = ["H264", "H264", "H265", "VP8"]
STOCK = dict.fromkeys(("fourCcList", "videoFourCcInfoMap", "audioFourCcInfoMap", "capsEx"))
H265 = "m=video 6000 RTP/AVP 96\r\na=rtpmap:96 H265/90000\r\na=fmtp:96 profile-id=2;level-id=93\r\n"
BOTH = "m=video 6000 RTP/AVP 98 99\r\na=rtpmap:98 VP8/90000\r\na=rtpmap:99 H264/90000\r\n"
VP8 = "m=video 6000 RTP/AVP 98\r\na=rtpmap:98 VP8/90000\r\n"
H264 = (
    "m=video 6000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\n"
    "a=fmtp:99 profile-level-id=42e01f;packetization-mode=1\r\n"
)


def described(video):
    return sdp(PCMU) + video.encode()


def world_that_makes(**limits):
    world = GatewayWorld(pictures=at_once(lambda: world.now, **limits))
    return world


def events(world, what):
    return [values for name, values in world.gateway.log.lines if name == what]


def wire_of(world):
    [(leg, wire)] = world.gateway.videos.items()
    return leg, wire


def publish(world, tool, stream, sources):
    for source in sources:
        world.wait(0.04)
        tool.write(VIDEO, source.time, stream, source.body)
    world.wait(0.04)


def test_what_is_made_is_told_to_the_operator():
    """Own design: in the log once, in the figures of the call as long as it lasts."""
    world = world_that_makes(width=32)
    Desk(world.link, answers=described(H264))
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    publish(world, tool, stream, film(count=4))
    [line] = events(world, "transcoding")
    assert (line["codec"], line["to"]) == ("h264 64x48", "h264 32x24")
    assert line["reason"] == "size 64x48"
    [call] = world.gateway.context.calls
    assert call.media.transcodes
    figures = quality.figures_of(call)
    assert figures["transcoding"] == ["h264 64x48 > h264 32x24"] and figures["video"] == "h264"
    _, wire = wire_of(world)
    assert len(wire.sent) == 4
    call.hang_up(world.now)
    world.wait()
    assert world.is_clean()


def test_vp8_is_offered_in_an_invite_that_leaves_by_udp():
    """Covers RFC 3264 §5.1 and RFC 3261 §18.1.1: 1,300 octets at most."""
    for world in (world_that_makes(), GatewayWorld()):
        desk = Desk(world.link, answers=described(H264))
        world.tool().publish(NAME)
        world.wait()
        [call] = desk.calls
        offer = SessionDescription.parse(call.remote_sdp)
        assert [codec.name for codec in codecs_of(offer.media[1])] == OFFERED
        assert len(bytes(call.invite)) < 1300


def stock(world, *codecs):
    """A tool that says at connect that it knows these FourCCs, or nothing of Enhanced RTMP."""
    return world.client("rtmp://host/call", properties=STOCK | {"fourCcList": list(codecs)})


def answered(world, desk, video):
    """The formats of the line of pictures that answers a phone, None where its port is 0."""
    desk.ring("studio", world.now, offer=described(video))
    world.wait()
    line = SessionDescription.parse(desk.log[-1][2]).media[1]
    return [codec.name for codec in codecs_of(line)] if line.port else None


@pytest.mark.parametrize(
    ("publisher", "player", "video", "names"),
    [
        ((), (), VP8, None),
        ((), (), H265, None),
        ((), ("vp08",), VP8, ["VP8"]),
        ((), ("*",), H265, ["H265"]),
        (("hvc1",), (), H265, ["H265"]),
        (("hvc1",), (), VP8, None),
        ((), ("vp08",), BOTH, ["H264", "VP8"]),
        ((), (), BOTH, ["H264"]),
    ],
)
def test_a_phone_is_answered_with_what_a_client_has_said_it_takes(publisher, player, video, names):
    """Covers E-RTMP v2 §"Enhancing NetConnection connect Command": H.264 first, else port 0."""
    world = GatewayWorld()
    desk = Desk(world.link)
    stock(world, *publisher).publish("studio")
    stock(world, *player).play("studio")
    world.wait()
    assert answered(world, desk, video) == names


@pytest.mark.parametrize(("codec", "video"), [("vp8", VP8), ("h265", H265)])
def test_a_phone_is_answered_with_what_the_publisher_sends(codec, video):
    """Covers RFC 3264 §6: a publisher of ffmpeg says nothing at connect, and sends."""
    world = GatewayWorld()
    desk = Desk(world.link)
    tool, player = stock(world), stock(world)
    player.play("studio")
    stream = tool.publish("studio")
    if codec == "vp8":
        bodies = [source.body for source in film("vp8", count=2)]
    else:
        bodies = [h265_world.HEADER, h265_world.tag(h265_world.idr(), key=True)]
    for body in bodies:
        tool.write(VIDEO, 0, stream, body)
    world.wait()
    assert answered(world, desk, video) == [codec.upper()]
    [line] = events(world, "call-answer")
    assert line["video"] == codec
    _, wire = wire_of(world)
    tool.write(VIDEO, 40, stream, bodies[-1])
    world.wait()
    assert len(wire.sent) >= 1


@pytest.mark.parametrize("makes", [True, False])
def test_a_phone_that_has_vp8_alone_has_pictures_only_if_they_may_be_made(makes):
    """Covers RFC 3264 §6."""
    world = world_that_makes() if makes else GatewayWorld()
    desk = Desk(world.link)
    stock(world).publish("studio")
    world.wait()
    desk.ring("studio", world.now, offer=described(VP8))
    world.wait()
    answer = SessionDescription.parse(desk.log[-1][2])
    assert bool(answer.media[1].port) == makes == bool(world.gateway.videos)
    [line] = events(world, "call-answer")
    assert line.get("video") == ("vp8" if makes else None)


def test_a_stream_and_a_phone_of_vp8_see_each_other():
    """Covers RFC 7741 §4.4 and §4.5.1: by PyAV, each picture with its own number and time."""
    world = world_that_makes()
    Desk(world.link, answers=described(VP8))
    tool, player = world.tool(), world.tool()
    player.play(NAME)
    stream = tool.publish(NAME)
    world.wait()
    leg, wire = wire_of(world)
    publish(world, tool, stream, film(count=8))
    unpacker, numbered = Vp8Unpacker(), [(*fast.unpack(data), data[12:]) for _, data in wire.sent]
    frames = [
        frame
        for number, marker, sequence, timestamp, *_, payload in numbered
        for frame in unpacker.push(sequence, timestamp - numbered[0][3], marker, payload)
        if number == 98
    ]
    assert [frame.timestamp for frame in frames] == [3600 * at for at in range(8)]
    sequence = 0
    for source in film("vp8", count=8):
        world.wait(0.04)
        data = ExVideoTag.parse(source.body).tracks[0].data
        for payload, marker in pack_vp8(data, 1000):
            sequence += 1
            head = fast.pack_fixed(0x80, 0x80 * marker | 106, sequence, 90 * source.time, 0xBEEF)
            leg.on_rtp(head + payload, world.now)
        world.run()
    tags = [(at, body) for type_id, at, body in player.media() if type_id == VIDEO]
    assert [number for _, number, _ in seen(tags)] == list(range(8))
    times = [at for at, _ in tags[1:]]
    assert [at - times[0] for at in times] == [40 * at for at in range(8)]
    *_, told = [body for type_id, _, body in player.media() if type_id == DATA]
    _, values = amf0.decode(told)
    assert (values["width"], values["videocodecid"]) == (64.0, 7.0)
    made = [(line["codec"], line["to"]) for line in events(world, "transcoding")]
    assert made == [("h264 64x48", "vp8 64x48"), ("vp8 64x48", "h264 64x48")]
