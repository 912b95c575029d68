"""Codecs that only one side has: what is offered and answered, with the extra and without."""

import pytest
from support.gateway.gateway_world import BOB as NAME
from support.gateway.gateway_world import PCMA, PCMU, Desk, GatewayWorld, sdp

from p2psip.rtp import fast
from p2psip.rtp.payload import g711, speex
from p2psip.sdp.session import SessionDescription
from rtmplite.amf import amf0
from siprtmp.calls import codec_names
from siprtmp.edge.call_records import record
from siprtmp.edge.overview import Overview
from siprtmp.media.session_log import MAX_TRANSCODED
from siprtmp.media.transcode import audio_decoder, libspeex

AUDIO, DATA = 8, 18
OPUS = sdp("111", maps=("111 opus/48000/2",))
G722 = sdp("9", maps=("9 G722/8000",))

L16 = sdp("112", maps=("112 L16/16000",))


@pytest.fixture
def without_extra(monkeypatch):
    """A gateway whose installation lacks PyAV."""
    monkeypatch.setattr(audio_decoder, "is_available", lambda: False)


@pytest.fixture
def with_extra():
    """A gateway that transcodes, and the tones to feed it with."""
    pytest.importorskip("av")
    pytest.importorskip("numpy")
    from support.gateway import audio_world

    return GatewayWorld(transcode=True), audio_world


def overview(world):
    """The operator's view of the calls."""
    made = Overview(world.registry, tuple, world.gateway.log)
    made.calls = world.gateway.context.calls
    return made


def names(text):
    """The encodings of the first line, in its order."""
    (line, *_) = SessionDescription.parse(text).media
    maps = dict(each.value.split(" ", 1) for each in line.attributes if each.name == "rtpmap")
    static = {"0": "PCMU/8000", "8": "PCMA/8000", "9": "G722/8000"}
    return [maps.get(number, static.get(number)) for number in line.formats]


def events(world, what):
    return [values for name, values in world.gateway.log.lines if name == what]


def test_the_best_sound_is_offered_first(with_extra):
    """Covers RFC 3264 §5, in an INVITE that is short enough for UDP: RFC 3261 §18.1.1.

    Covers Field §"Requests too long for UDP".
    """
    world, _ = with_extra
    desk = Desk(world.link)
    world.tool().publish(NAME)
    world.wait()
    [call] = desk.calls
    assert names(call.remote_sdp) == [
        *("opus/48000/2", "G722/8000", "PCMU/8000", "PCMA/8000"),
        *("speex/16000", "speex/8000", "telephone-event/8000"),
        "telephone-event/48000",
    ]
    assert len(bytes(call.invite)) < 1300


def test_without_the_extra_only_what_passes_is_offered(without_extra):
    """Covers RFC 3264 §5."""
    world = GatewayWorld()
    desk = Desk(world.link)
    world.tool().publish(NAME)
    world.wait()
    assert not {"opus/48000/2", "G722/8000"} & set(names(desk.calls[0].remote_sdp))


@pytest.mark.parametrize("offer", [OPUS, G722])
def test_without_the_extra_a_call_that_needs_it_is_refused_and_the_log_names_it(
    without_extra, offer
):
    """Covers RFC 3261 §21.4.26."""
    world = GatewayWorld()
    desk = Desk(world.link)
    world.tool().publish("studio")
    desk.ring("studio", world.now, offer)
    world.wait()
    assert desk.log[-1][2] == 488
    [line] = events(world, "transcode-missing")
    assert world.gateway.context.unsuitable == 1 and "transcode" in line["cure"]
    assert line["install"] == "transcode" and line["codecs"] in ("opus", "g722")
    assert not world.gateway.audios


def test_without_the_extra_the_publisher_is_told_what_to_install(without_extra):
    """Covers FLV 10.1 §E.4.2.1."""
    world = GatewayWorld()
    Desk(world.link)
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    tool.write(AUDIO, 0, stream, b"\xaf\x01aac")
    world.wait()
    told = [each.command.args[0] for each in tool.events if hasattr(each, "command")][-1]
    assert told["code"] == "NetStream.Publish.Unsuitable"
    assert "install the extra transcode" in told["description"] and "aac" in told["description"]
    [line] = events(world, "sound-unsuitable")
    assert "install the extra transcode" in line["cure"]
    assert world.gateway.context.unsuitable == 1


@pytest.mark.parametrize(
    "offer", [OPUS, G722, sdp(PCMU), sdp("11"), sdp("112", maps=("112 L16/16000",))]
)
def test_a_phone_that_calls_hears_a_publisher_whose_header_came_before(with_extra, offer):
    """Covers FLV 10.1 §E.4.2.1: AAC cannot be decoded without its configuration."""
    world, sound = with_extra
    desk, tool = Desk(world.link), world.tool()
    stream = tool.publish("studio")
    (at, header), *frames = sound.tags("aac")
    tool.write(AUDIO, at, stream, header)
    world.wait()
    desk.ring("studio", world.now, offer)
    world.wait()
    for number in range(2):  # a second call, to the same publisher
        wire = world.gateway.media
        for at, frame in frames[10:20]:
            tool.write(AUDIO, at, stream, frame)
            world.wait(0.02)
        assert len(wire.sent) >= 8
        desk.calls[-1].bye(world.now)
        world.wait()
        if not number:
            desk.ring("studio", world.now, offer)
            world.wait()
    assert len(events(world, "transcoding")) == 2 and not events(world, "sound-unsuitable")


def test_who_alternates_between_codecs_fills_no_log(with_extra):
    """Own design: one line for each pair of codecs in a call."""
    world, _ = with_extra
    desk, tool = Desk(world.link), world.tool()
    stream = tool.publish("studio")
    desk.ring("studio", world.now, OPUS)
    world.wait()
    nothing, neither = b"\x02" + bytes(20), b"\xd2" + bytes(20)  # ADPCM and more, of no decoder
    for at in range(0, 400, 20):
        for body in (b"\x82" + bytes(160), b"\x72" + bytes(160), nothing, neither):
            tool.write(AUDIO, at, stream, body)
    world.wait()
    assert 1 <= len(events(world, "transcoding")) <= 4
    assert len(events(world, "sound-unsuitable")) <= 4


def test_a_new_codec_in_the_call_needs_no_new_header(with_extra):
    """Covers RFC 3264 §8.3.2."""
    world, sound = with_extra
    desk, tool = Desk(world.link, answers=OPUS), world.tool()
    stream = tool.publish(NAME)
    world.wait()
    (at, header), *frames = sound.tags("aac")
    tool.write(AUDIO, at, stream, header)
    for at, frame in frames[:10]:
        tool.write(AUDIO, at, stream, frame)
        world.wait(0.02)
    desk.calls[0].reinvite(sdp(PCMU), world.now)
    world.wait()
    for at, frame in frames[10:20]:
        tool.write(AUDIO, at, stream, frame)
        world.wait(0.02)
    kinds = [fast.unpack(data)[0] for _, data in world.gateway.media.sent]
    assert sorted(set(kinds)) == [0, 111] and kinds.count(0) >= 8


def test_players_are_told_of_aac(with_extra):
    """Covers FLV 10.1 §E.5, and §E.4.2.1 in that a later player gets the configuration too."""
    world, _ = with_extra
    desk, player = Desk(world.link), world.tool()
    player.play("studio")
    desk.ring("studio", world.now, G722)
    world.wait()
    leg = world.gateway.audio
    for number in range(10):
        header = fast.pack_fixed(0x80, 9, number, 160 * number, 7)
        leg.on_rtp(header + bytes(160), world.now)
        world.wait(0.02)
    late = world.tool()
    late.play("studio")
    world.wait()
    for each in (player, late):
        kinds = [(type_id, body[:2]) for type_id, _, body in each.media()]
        assert (AUDIO, b"\xaf\x00") in kinds
    assert (AUDIO, b"\xaf\x01") in [(kind, body[:2]) for kind, _, body in player.media()]
    data = next(body for kind, _, body in player.media() if kind == DATA)
    _, told = amf0.decode(data)
    assert told["audiocodecid"] == 10.0 and told["audiosamplerate"] == 48000.0
    [line] = events(world, "transcoding")
    assert (line["codec"], line["to"]) == ("g722", "aac")
    [call] = world.gateway.context.calls
    assert call.media.transcodes
    [row] = [row for kind, row in overview(world).rows(world.now) if kind == "calls"]
    assert row["transcoding"] == ["g722 > aac"]


def test_the_record_of_a_call_has_what_was_made_of_its_publisher(with_extra):
    """Also after the publisher has ended, and for pictures; each once."""
    world, sound = with_extra
    Desk(world.link, answers=OPUS)
    tool, records = world.tool(), []
    world.gateway.context.on_end = lambda call, reason, now: records.append(
        record(call, reason, now, 0.0)
    )
    stream = tool.publish(NAME)
    world.wait()
    for at, frame in sound.tags("aac")[:20]:
        tool.write(AUDIO, at, stream, frame)
        world.wait(0.02)
    [call] = world.gateway.context.calls
    call.media.on_transcoding("h264 9x9 > h264 5x5", "too large")
    assert overview_row(world)["transcoding"] == ["aac > opus"]
    tool.send("deleteStream", float(stream))
    world.wait(2.0)
    [line] = records
    assert line["transcoding"] == ["aac > opus", "h264 9x9 > h264 5x5"]


def test_pictures_that_change_all_the_time_fill_no_record(with_extra):
    """Own design: the first sizes are kept."""
    world, _ = with_extra
    Desk(world.link, answers=OPUS)
    world.tool().publish(NAME)
    world.wait()
    [call] = world.gateway.context.calls
    for size in range(2 * MAX_TRANSCODED):
        call.media.on_transcoding(f"h264 {size}x9 > h264 5x5", "too large")
    assert len(call.media.transcoded) == MAX_TRANSCODED


def overview_row(world):
    return next(row for kind, row in overview(world).rows(world.now) if kind == "calls")


@pytest.mark.parametrize("incoming", [False, True])
def test_opus_passes_to_a_client_that_names_it(without_extra, incoming):
    """Covers E-RTMP v2 §"Enhanced Audio": nothing is decoded, so the extra is not needed."""
    world = GatewayWorld()
    desk, alice = Desk(world.link, answers=OPUS), world.rich("alice@home")
    if incoming:
        desk.ring("alice", world.now, OPUS)
        world.wait()
        alice.call("accept", "opus")
    else:
        alice.call("invite", NAME, "opus", "g722")
    world.wait()
    assert alice.heard()[-1] == ("accepted", "opus", None)
    alice.peer.play("remote")
    leg, packet = world.gateway.audio, b"\x78" + bytes(40)
    for number in range(3):
        leg.on_rtp(fast.pack_fixed(0x80, 111, number, 960 * number, 7) + packet, world.now)
        world.wait(0.02)
    bodies = [body for type_id, _, body in alice.peer.media() if type_id == AUDIO]
    assert bodies[0][:5] == b"\x90Opus" and bodies[1:] == 3 * [b"\x91Opus" + packet]
    stream = alice.peer.publish("local")
    for body in (bodies[0], *bodies[1:]):
        alice.peer.write(AUDIO, 0, stream, body)
    world.wait()
    assert [data[12:] for _, data in world.gateway.media.sent] == 3 * [packet]
    assert not events(world, "transcoding")


@pytest.mark.skipif(not libspeex.is_available(), reason="apt install libspeex1")
@pytest.mark.parametrize(("name", "number"), [("ulaw", PCMU), ("alaw", PCMA)])
def test_a_client_of_speex_talks_with_a_phone_of_g711(with_extra, name, number):
    """Covers FLV 10.1 §E.4.2.1: one narrowband frame a tag, in the phone's own time."""
    world, sound = with_extra
    desk, alice = Desk(world.link, answers=sdp(number)), world.rich("alice@home")
    alice.call("invite", NAME, name, "pcmu", "pcma")
    world.wait()
    assert names(desk.calls[0].remote_sdp) == ["PCMU/8000" if name == "ulaw" else "PCMA/8000"]
    assert alice.heard()[-1] == ("accepted", "speex", None)
    alice.peer.play("remote")
    leg, law = world.gateway.audio, g711.encode_ulaw if name == "ulaw" else g711.encode_alaw
    wave = sound.tone(8000)
    for at in range(10):  # packets of 30 ms
        packet = fast.pack_fixed(0x80, int(number), at, 240 * at, 7)
        leg.on_rtp(packet + law(wave[240 * at : 240 * at + 240]), world.now)
        world.wait(0.03)
    tags = [(at, body) for type_id, at, body in alice.peer.media() if type_id == AUDIO]
    assert len(tags) == 15 and {body[0] for _, body in tags} == {0xB2}
    assert [at - tags[0][0] for at, _ in tags] == list(range(0, 300, 20))
    assert all(speex.one_frame(body[1:]) != (0, False) for _, body in tags)
    stream, encode = alice.peer.publish("local"), libspeex.encoder(16000)
    wave = sound.tone(16000)
    for at in range(10):
        frame = encode(wave[320 * at : 320 * at + 320])
        alice.peer.write(AUDIO, 20 * at, stream, b"\xb2" + frame)
        world.wait(0.02)
    assert len(world.gateway.media.sent) >= 9
    codec = "pcmu" if name == "ulaw" else "pcma"
    lines = [(line["codec"], line["to"]) for line in events(world, "transcoding")]
    assert lines == [(codec, "speex"), ("speex", codec)]


def test_of_speex_and_g711_the_first_named_counts(monkeypatch):
    """Own design: one phone's G.711 is either passed or made into Speex."""
    monkeypatch.setattr(libspeex, "is_available", lambda: True)
    monkeypatch.setattr(audio_decoder, "is_available", lambda: True)
    assert codec_names.known(["pcma", "ulaw", "pcmu"]) == ("pcma", "pcmu")
    assert codec_names.known(["alaw", "pcmu", "opus", "ULAW"]) == ("alaw", "opus", "ulaw")
    monkeypatch.setattr(libspeex, "is_available", lambda: False)
    assert codec_names.known(["alaw", "pcmu", "opus"]) == ("pcmu", "opus")
