"""Pictures of calls: agreed on beside the sound, and never a reason to lose it."""

import pytest
from support.gateway.gateway_world import BOB as NAME
from support.gateway.gateway_world import PCMA, PCMU, Desk, GatewayWorld, sdp
from support.gateway.video_rig import HEADER, PPS, SPS, VideoRig, idr, inter, tag

from p2psip.rtp import fast
from p2psip.sdp.session import SessionDescription
from rtmplite.amf import amf0
from rtmplite.flv.video import is_sequence_header
from siprtmp.calls.call_info import FAST_UPDATE, MEDIA_CONTROL
from siprtmp.calls.quality import figures_of
from siprtmp.edge.metrics import CallTotals

AUDIO, VIDEO, DATA = 8, 9, 18
SOUND = b"\x82" + b"s" * 160
H264 = "m=video 6000 RTP/AVP 99\r\na=rtpmap:99 H264/90000\r\na=fmtp:99 packetization-mode=1\r\n"


def seen(video=H264):
    """The description of a phone with sound and a line of pictures."""
    return sdp(PCMU) + video.encode()


@pytest.fixture
def world():
    return GatewayWorld()


@pytest.fixture
def desk(world):
    return Desk(world.link, answers=seen())


def video(world):
    """The leg and the wire of the only call's pictures."""
    [(leg, wire)] = world.gateway.videos.items()
    return leg, wire


def show(world, leg):
    """The phone sends a key frame and the picture after it."""
    rig = VideoRig()
    for at, units in ((0, (SPS, PPS, idr())), (3000, (inter(),))):
        for datagram in rig.datagrams(at, *units):
            leg.on_rtp(datagram, world.now)
    world.run()


def test_a_call_has_pictures_both_ways(world, desk):
    """Covers RFC 3264 §5: a line each, a port each, and the name of one end for both streams."""
    tool, player = world.tool(), world.tool()
    player.play(NAME)
    stream = tool.publish(NAME)
    world.wait()
    offer = SessionDescription.parse(desk.calls[0].remote_sdp)
    assert [line.kind for line in offer.media] == ["audio", "video"]
    assert len({line.port for line in offer.media}) == 2
    leg, wire = video(world)
    for body in (HEADER, tag(idr(), key=True), tag(inter())):
        tool.write(VIDEO, 0, stream, body)
    assert [fast.unpack(data)[0] for _, data in wire.sent] == [99] * len(wire.sent)
    assert len(wire.sent) >= 2
    show(world, leg)
    at, described = [(at, body) for _, at, body in player.media() if b"onMetaData" in body][-1]
    pictures = [body for type_id, _, body in player.media() if type_id == VIDEO]
    _, told = amf0.decode(described)
    assert at == 0 and told["hasVideo"] is True and told["videocodecid"] == 7.0
    assert (told["width"], told["height"]) == (320.0, 240.0)
    assert len(pictures) == 3 and is_sequence_header(pictures[0])
    [line] = [values for what, values in world.gateway.log.lines if what == "call-answer"]
    assert line["video"] == "h264"
    desk.calls[0].bye(world.now)
    world.wait()
    [end] = [values for what, values in world.gateway.log.lines if what == "call-end"]
    assert end["video_sent"] == len(wire.sent) and end["video_received"] == 2
    assert world.is_clean()


@pytest.mark.parametrize("answer", [sdp(PCMU), seen(H264.replace("6000", "0"))])
def test_a_phone_without_pictures_gets_sound_and_the_port_is_free_again(world, answer):
    """Covers RFC 3264 §6: port 0, or no line at all, refuses pictures alone."""
    Desk(world.link, answers=answer)
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    assert len(world.gateway.audios) == 1 and not world.gateway.videos
    tool.write(VIDEO, 0, stream, HEADER)
    tool.write(AUDIO, 0, stream, SOUND)
    assert world.gateway.media.sent
    [line] = events(world, "video-refused")
    assert "h264" in line["offered"] and line["reason"] == "the phone refuses the line"
    assert world.gateway.context.unsuitable == 0  # as of all phones without pictures


def events(world, what):
    return [values for name, values in world.gateway.log.lines if name == what]


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (seen(), 0),
        (seen(H264.replace("H264", "H263-1998")), 1),
        (seen("m=video 6000 RTP/AVP 98\r\na=rtpmap:98 rtx/90000\r\n"), 0),
        (seen(H264.replace("H264", "VP8")), 1),
    ],
)
def test_pictures_that_the_gateway_refuses_are_in_the_log_with_a_cure(world, answer, lines):
    """Covers RFC 3264 §6: nothing is said of a line without codecs of pictures."""
    desk, tool = Desk(world.link), world.tool()
    tool.write(VIDEO, 0, tool.publish("studio"), HEADER)
    world.wait()
    desk.ring("studio", world.now, offer=answer)
    world.wait()
    said = events(world, "video-refused")
    assert len(said) == lines and len(events(world, "call-answer")) == 1
    for line in said:
        assert line["reason"] == "no codec in common" and "H264" in line["cure"]
        assert ("--transcode-video" in line["cure"]) == (line["offered"] == "vp8")


def test_slices_too_long_for_the_phone_are_said_once_with_a_cure(world):
    """Covers RFC 6184 §5.6: whatever their size; baresip answers with packetization mode 0."""
    Desk(world.link, answers=seen(H264.replace("99", "100").replace("mode=1", "mode=0")))
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    world.gateway.audio.on_rtp(b"\x80\x00\0\1" + bytes(8) + b"p" * 160, world.now)
    tool.write(VIDEO, 0, stream, HEADER)
    for size in (1500, 2500, 3500):
        tool.write(VIDEO, size, stream, tag(idr() + bytes(size), key=True))
        world.wait()
    [line] = events(world, "video-unsuitable")
    assert "mode 0" in line["reason"] and not set("123456789") & set(line["reason"])
    assert "slices of 1200 octets" in line["cure"] and "--transcode-video" in line["cure"]
    told = [each.command.args[0] for each in tool.events if hasattr(each, "command")][-1]
    assert line["cure"] in told["description"]
    assert world.gateway.context.unsuitable == 1
    [row] = [figures_of(call) for call in world.gateway.context.calls]
    assert row["video"] == "h264" and row["video_sent"] == 0


def test_pictures_that_come_too_late_are_counted_and_said_once(world, desk):
    """Own design: an encoder that stalls, or a gateway without time for it."""
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    [call] = world.gateway.context.calls
    leg, _ = video(world)
    tool.write(VIDEO, 0, stream, HEADER)
    tool.write(VIDEO, 0, stream, tag(idr(), key=True))
    tool.write(VIDEO, 0, stream, tag(inter()))  # until then the first one may have more slices
    for stall in range(1, 3):
        world.wait(3.0)  # and then all at once
        for at in range(0, 3000, 40):
            tool.write(VIDEO, 3000 * stall - 3000 + at, stream, tag(inter()))
        world.wait(2.0)
    assert leg.figures.left_out > 20 and call.media.statistics.left_out == leg.figures.left_out
    [line] = events(world, "media-late")
    assert line["kind"] == "pictures" and "loop_lag_ms" in line["cure"]
    totals = CallTotals()
    world.gateway.context.on_end = totals.end
    left_out = call.media.statistics.left_out
    desk.calls[0].bye(world.now)
    world.wait()
    assert totals.left_out == left_out == events(world, "call-end")[0]["left_out"]


def test_sound_that_comes_too_late_is_counted_and_said_once(world, desk):
    """Own design: as pictures."""
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    [call] = world.gateway.context.calls
    tool.write(AUDIO, 0, stream, SOUND)
    for stall in range(1, 3):
        world.wait(3.0)
        for at in range(20, 3020, 20):
            tool.write(AUDIO, 3000 * stall - 3000 + at, stream, SOUND)
    world.wait(6.0)
    leg, sent = world.gateway.audio, len(world.gateway.media.sent)
    assert (
        leg.left_out > 50
        and sent + leg.left_out == 301
        and call.media.statistics.left_out == leg.left_out
    )
    [line] = events(world, "media-late")
    assert line["kind"] == "sound"
    desk.calls[0].reinvite(sdp(PCMA), world.now)
    world.wait()
    tool.write(AUDIO, 9000, stream, b"\x72" + SOUND[1:])  # by another pacer
    assert call.media.statistics.left_out == 301 - sent


def test_without_a_port_for_pictures_the_call_has_sound():
    world = GatewayWorld(room=1)
    desk = Desk(world.link, answers=sdp(PCMU))
    world.tool().publish(NAME)
    world.wait()
    offer = SessionDescription.parse(desk.calls[0].remote_sdp)
    assert [line.kind for line in offer.media] == ["audio"] and world.gateway.audios
    [line] = events(world, "video-without-port")
    assert "--rtp-ports" in line["cure"] and world.gateway.context.unsuitable == 1


def test_a_phone_that_calls_a_waiting_name_sees_at_once(world, desk):
    """Own design: all since the last key frame, before the next picture of the publisher."""
    tool = world.tool()
    stream = tool.publish("studio")
    for body in (HEADER, tag(idr(1), key=True), tag(inter(2)), tag(inter(3))):
        tool.write(VIDEO, 0, stream, body)
    world.wait()
    desk.ring("studio", world.now, offer=seen())
    world.wait()
    _, wire = video(world)
    answer = SessionDescription.parse(desk.log[-1][2])
    assert answer.media[1].port == wire.rtp_port
    world.gateway.audio.on_rtp(b"\x80\x00\0\1" + bytes(8) + b"p" * 160, world.now)
    tool.write(VIDEO, 120, stream, tag(inter(4)))
    units = [data[12:] for _, data in wire.sent]
    assert any(unit[0] & 31 in (5, 24) for unit in units) and len(units) >= 4
    first = len(wire.sent)
    desk.calls[0].bye(world.now)
    world.wait()
    desk.ring("studio", world.now, offer=seen())  # the header was published once
    world.wait()
    _, wire = video(world)
    world.gateway.audio.on_rtp(b"\x80\x00\0\1" + bytes(8) + b"p" * 160, world.now)
    tool.write(VIDEO, 160, stream, tag(inter(5)))
    assert len(wire.sent) == first + 1


def test_a_later_offer_may_add_pictures_and_take_them_away(world):
    """Covers RFC 3264 §8.1 and §8.2."""
    desk = Desk(world.link, answers=sdp(PCMU))
    tool = world.tool()
    tool.publish("studio")
    world.wait()
    call = desk.ring("studio", world.now)
    world.wait()
    assert not world.gateway.videos
    call.reinvite(seen(), world.now)
    world.wait(1.0)
    assert len(world.gateway.videos) == 1
    call.reinvite(seen(H264.replace("6000", "0")), world.now)
    world.wait(1.0)
    assert not world.gateway.videos and len(world.gateway.audios) == 1
    call.bye(world.now)
    world.wait()
    assert not world.gateway.ports


def test_a_new_player_has_the_phone_asked_for_a_key_frame(world, desk):
    """Covers RFC 5168 §4: by INFO, as this phone takes no feedback.

    Covers Field §"Key frames by INFO".
    """
    world.registry.keeps_groups = False
    world.tool().publish(NAME)
    world.wait()
    leg, _ = video(world)
    show(world, leg)
    asked = sum(name == "info" for name in desk.events())
    world.tool().play(NAME)
    world.wait()
    infos = [data for *_, (_, data) in world.link.sent if data.startswith(b"INFO ")]
    assert len(infos) == asked + 1 and b"picture_fast_update" in infos[-1]


def test_a_player_that_finds_pictures_has_nobody_asked(world, desk):
    """Own design: it begins with those since the last key frame."""
    world.registry.keeps_groups = True
    world.tool().publish(NAME)
    world.wait()
    leg, _ = video(world)
    show(world, leg)
    asked = sum(name == "info" for name in desk.events())
    player = world.tool()
    player.play(NAME)
    world.wait()
    assert [type_id for type_id, *_ in player.media()][-3:] == [VIDEO, VIDEO, VIDEO]
    infos = [data for *_, (_, data) in world.link.sent if data.startswith(b"INFO ")]
    assert len(infos) == asked


def test_a_phone_that_asks_by_sip_has_the_publisher_told(world, desk):
    """Covers RFC 5168 §4 [fast-update-asks-the-encoder]: by a status, as RTMP has no request.

    Covers Field §"Key frames by INFO".
    """
    tool = world.tool()
    tool.publish(NAME)
    world.wait()
    for kind, body in (
        ("text/plain", FAST_UPDATE),
        (MEDIA_CONTROL, b"<media_control/>"),
        (MEDIA_CONTROL + "; charset=utf-8", FAST_UPDATE),
    ):
        desk.calls[0].info(kind, body, world.now)
        world.wait()
    assert tool.codes().count("NetStream.Publish.KeyFrameWanted") == 1


def test_a_phone_that_cannot_be_asked_is_not_asked_again(world, desk):
    """Covers RFC 5168 §6 [no-more-after-an-error]."""
    world.registry.keeps_groups = False
    world.tool().publish(NAME)
    world.wait()
    leg, _ = video(world)
    show(world, leg)
    asked = b"<media_control><general_error>what?</general_error></media_control>"
    before = sum(data.startswith(b"INFO ") for *_, (_, data) in world.link.sent)
    world.tool().play(NAME)
    world.wait(3.0)
    assert sum(data.startswith(b"INFO ") for *_, (_, data) in world.link.sent) > before
    desk.calls[0].info(MEDIA_CONTROL, asked, world.now)
    world.wait()
    before = sum(data.startswith(b"INFO ") for *_, (_, data) in world.link.sent)
    world.tool().play(NAME)
    world.wait(3.0)
    assert sum(data.startswith(b"INFO ") for *_, (_, data) in world.link.sent) == before


def test_what_a_phone_cannot_see_is_told_to_the_publisher(world, desk):
    """Own design: the codec, and what to publish instead; the sound goes on."""
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    for at in (0, 40):
        tool.write(VIDEO, at, stream, b"\x22" + bytes(50))  # Sorenson
        tool.write(AUDIO, at, stream, SOUND)
    world.wait()
    assert tool.codes().count("NetStream.Publish.Unsuitable") == 1
    assert world.gateway.media.sent and not tool.server.closed


def test_what_a_phone_cannot_hear_is_told_to_the_publisher(world, desk):
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    tool.write(AUDIO, 0, stream, b"\xaf\x01" + bytes(50))
    world.wait()
    told = [e.command.args[0] for e in tool.events if hasattr(e, "command")][-1]
    assert told["code"] == "NetStream.Publish.Unsuitable" and told["level"] == "warning"
    assert "aac" in told["description"] and "pcmu" in told["description"]
