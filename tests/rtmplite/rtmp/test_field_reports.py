"""What users of other servers, encoders and players have reported, tried here.

Each test is named for the behaviour; its marks, such as `mediamtx-6118`, are project and number of
the report, as docs/6-conformance/field-reports-rtmp.md lists them.
"""

import re
from pathlib import Path

import pytest
from support.rtmp.rtmp_world import Peer, World

from rtmplite.amf import amf0
from rtmplite.amf.values import EcmaArray
from rtmplite.flv.file import tags
from rtmplite.rtmp.bandwidth import ACK_TIMEOUT, Throttle
from rtmplite.rtmp.client import Called, ClientConnection, Target
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_writer import CHUNK_SIZE
from rtmplite.vod.recorder import Recorder

HEAD = b"\x17\0\0\0\0"
SPS, PPS = bytes.fromhex("6742c00cda0507ec04400000030040000006 03c50aa8"), b"\x68\xce\x3c\x80"
RECORD = b"\x01\x42\xc0\x0c\xff\xe1" + len(SPS).to_bytes(2) + SPS + b"\x01\0\x04" + PPS
AVC, KEY = HEAD + RECORD, b"\x17\x01\0\0\0\0\0\0\x04\x65\x88\x84\x21"
AAC, SOUND = b"\xaf\0\x11\x90", b"\xaf\x01sound"


def header(fmt, number, time, length=0, type_id=8, stream=1):
    """A chunk header, with the time field as it is given."""
    fields = (
        time.to_bytes(3) + length.to_bytes(3) + bytes((type_id,)) + stream.to_bytes(4, "little")
    )
    return bytes((fmt << 6 | number,)) + fields[: (11, 7, 3, 0)[fmt]]


def published(registry=None):
    """A client that publishes on stream 1, and one that plays it."""
    world = World(registry=registry)
    encoder, player = world.client(), world.client()
    encoder.publish("demo")
    player.play("demo")
    return world, encoder, player


def feed(world, encoder, raw):
    """Send chunks as they are."""
    encoder.server.transport.receive(raw, world.now)
    world.run()


def late(world, name="demo"):
    """All that a client gets which comes now."""
    player = world.client()
    player.play(name)
    return player.media()


CHUNKS = {
    "srs-4356: an extended delta": (
        header(0, 9, 11000, 1) + b"a" + header(1, 9, 0xFFFFFF, 1) + (16776216).to_bytes(4) + b"b",
        [(11000, b"a"), (11000 + 16776216, b"b")],
    ),
    "ovenmediaengine-2093: a negative extended delta": (
        header(0, 9, 1000, 1) + b"a" + header(1, 9, 0xFFFFFF, 1) + b"\xff\xff\xff\xf0" + b"b",
        [(1000, b"a"), (984, b"b")],
    ),
    "scuffle-650: type 3 begins messages": (
        header(0, 9, 10, 1) + b"a" + header(1, 9, 40, 1) + b"b" + b"\xc9c" + b"\xc9d",
        [(10, b"a"), (50, b"b"), (90, b"c"), (130, b"d")],
    ),
    "re-169: type 3 after type 0": (
        header(0, 9, 1000, 1) + b"a" + b"\xc9b",
        [(1000, b"a"), (2000, b"b")],
    ),
    "rust-media-libs-15: extended time in the rest of a message": (
        header(0, 9, 0xFFFFFF, 4100) + b"\x01\0\0\0" + b"a" * 4096 + b"\xc9\x01\0\0\0" + b"aaaa",
        [(1 << 24, b"a" * 4100)],
    ),
    "rust-media-libs-15: and left out there": (
        header(0, 9, 0xFFFFFF, 4100) + b"\x01\0\0\0" + b"a" * 4096 + b"\xc9" + b"aaaa",
        [(1 << 24, b"a" * 4100)],
    ),
    "nginx-rtmp-246: chunk stream 64": (
        b"\0\0" + header(0, 9, 7, 1)[1:] + b"a",
        [(7, b"a")],
    ),
    "srs-4680: chunk stream 65599": (
        b"\x01\xff\xff" + header(0, 9, 7, 1)[1:] + b"a" + b"\xc1\xff\xff" + b"b",
        [(7, b"a"), (14, b"b")],
    ),
    "nginx-rtmp-1162: a chunk size of 134217728": (
        header(0, 2, 0, 4, 1, 0) + (134217728).to_bytes(4) + header(0, 9, 5, 200_000)
        + b"a" * 200_000,
        [(5, b"a" * 200_000)],
    ),
    "nginx-http-flv-242: a key frame of 3 MB": (
        header(0, 9, 5, 733 * 4096) + (b"a" * 4096 + b"\xc9") * 732 + b"a" * 4096,
        [(5, b"a" * 733 * 4096)],
    ),
    "rtmfp-cpp-19: a message given up in the middle": (
        header(0, 9, 5, 5000) + b"a" * 4096 + header(0, 2, 0, 4, 2, 0) + b"\0\0\0\x09"
        + header(0, 9, 6, 1) + b"b",
        [(6, b"b")],
    ),
    "mediamtx-928: limits of our output, before and among the media": (
        header(0, 2, 0, 5, 6, 0) + b"\0\x26\x25\xa0\x02" + header(0, 9, 5, 1) + b"a"
        + header(0, 2, 0, 5, 6, 0) + b"\0\x26\x25\xa0\0" + header(0, 9, 6, 1) + b"b",
        [(5, b"a"), (6, b"b")],
    ),
    "red5-server-119: user controls that nobody knows": (
        header(0, 2, 0, 6, 4, 0) + b"\0\x1f\0\0\0\x01" + header(0, 2, 0, 6, 4, 0)
        + b"\0\x20\0\0\0\x01" + header(0, 2, 0, 2, 4, 0) + b"\0\x1f" + header(0, 9, 6, 1) + b"b",
        [(6, b"b")],
    ),
    "rtmplite-14: media of a message stream that is none": (
        header(0, 9, 5, 1, 8, 2) + b"a" + header(0, 9, 6, 1, 8, 0) + b"b" + header(0, 9, 7, 1)
        + b"c",
        [(7, b"c")],
    ),
    "live-streaming-server-net-73: message type 0": (
        header(0, 9, 5, 2, 0) + b"ab" + header(0, 9, 7, 1) + b"c",
        [(7, b"c")],
    ),
    "mediamtx-4006: a message of no octets, and of a type that is none": (
        header(0, 9, 5, 0) + header(0, 9, 6, 3, 255) + b"abc" + header(0, 9, 7, 1) + b"b",
        [(5, b""), (7, b"b")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CHUNKS)
def test_chunks_are_read_as_they_were_meant(case):
    """RTMP 1.0 §5.3.1: time, length and numbers of chunk streams in all their forms."""
    world, encoder, player = published()
    raw, expected = CHUNKS[case]
    feed(world, encoder, header(0, 2, 0, 4, 1, 0) + (4096).to_bytes(4) + raw)
    assert not encoder.server.closed, encoder.server.reason
    assert player.media() == [(8, time, payload) for time, payload in expected]


def test_a_long_stream_goes_out_with_its_time_in_every_chunk():
    """go2rtc-2329, node-rtsp-rtmp-server-127: after 4 h 40 min, RTMP 1.0 §5.3.1.3."""
    world, encoder, _ = published()
    player = world.client()
    player.play("demo")
    sent = []
    receive = player.client.transport.receive
    player.client.transport.receive = lambda data, now: (sent.append(data), receive(data, now))
    encoder.write(8, 0x01000000, 1, b"a" * 70_000)
    assert player.media() == [(8, 0x01000000, b"a" * 70_000)]
    chunks = -(-70_000 // CHUNK_SIZE)
    assert b"".join(sent).count(b"\x01\0\0\0a") == chunks > 1


NAMES = {
    "nginx-rtmp-1426: app of several parts": ("live/a/b", "c", "live/a", "b/c"),
    "nginx-rtmp-1775: no name, all in the app": ("live/key", "", "live", "key"),
    "live-streaming-server-net-81: a query for a key": ("live/in", "?key=1&vid=2", "live", "in"),
    "mediamtx-5765: a query in the app": ("live?query", "demo", "live", "demo"),
    "rootencoder-1326: a slash behind the app": ("live/", "demo", "live", "demo"),
    "haishinkit-398: a query behind the name": ("live", "demo?token=1", "live", "demo"),
}


@pytest.mark.parametrize("case", NAMES)
def test_a_stream_is_found_however_its_url_was_cut(case):
    """RTMP 1.0 §7.2.1.1, RTMP 1.0 §7.2.2.6: who publishes and who plays cut it differently."""
    app, name, play_app, play_name = NAMES[case]
    world = World()
    target = Target("host", 1935, app, "", f"rtmp://host/{app}", False, "", "")
    encoder = Peer(world, ClientConnection(target, world.random, 0.0), world.server())
    world.peers.append(encoder)
    world.run()
    number = encoder.publish(name)
    assert encoder.codes() == ["NetStream.Publish.Start"]
    player = world.client(f"rtmp://host/{play_app}")
    player.play(play_name)
    encoder.write(8, 5, number, SOUND)
    assert player.media() == [(8, 5, SOUND)]


def test_a_stream_without_any_name_is_refused_in_words():
    """RTMP 1.0 §7.2.2.6: a key that is a query alone, in an app without more."""
    encoder = World().client()
    encoder.publish("?key=1")
    assert encoder.statuses() == [("NetStream.Publish.BadName", "A stream needs a name.")]


def test_a_connect_of_xsplit_is_taken():
    """mediamtx-3188, mediamtx-2232: its codecs are a strict array.

    E-RTMP v2 §"Enhancing NetConnection connect Command".
    """
    world = World()
    properties = {"fourCcList": ["av01", "vp09", "hvc1"], "audioCodecs": 3575.0}
    encoder = world.client(properties=properties)
    values = encoder.reply(1.0)
    assert values[1]["code"] == "NetConnection.Connect.Success"
    assert "fourCcList" in values[1] or "fourCcList" in values[0]


def test_commands_of_type_17_have_a_zero_before_them():
    """haishinkit-16, monaserver: RTMP Errata §7.2."""
    world = World()
    server = world.server()
    peer = Peer(world, ClientConnection(Target.parse("rtmp://h/live", stream=False), world.random,
                                        0.0), server)  # fmt: skip
    world.peers.append(peer)
    peer.client.on_ready = lambda: peer.client.transport.put(
        header(0, 3, 0, len(body), 17, 0) + body
    )
    body = b"\0" + amf0.encode("connect", 1.0, {"app": "live", "objectEncoding": 3.0})
    assert len(body) < 128
    world.run()
    assert peer.reply(1.0)[1]["code"] == "NetConnection.Connect.Success"


def test_chunk_sizes_are_each_ends_own():
    """red5-client-54, srs-926: RTMP 1.0 §5.4.1 [size-until-further-notice]."""
    _, encoder, player = published()
    writer = encoder.client.transport._writer
    encoder.client.transport.send_chunk_size(128)
    encoder.write(9, 5, 1, AVC + b"x" * 1000)
    assert writer.chunk_size == 128
    assert player.media() == [(9, 5, AVC + b"x" * 1000)]


def test_control_messages_are_on_chunk_stream_2_and_message_stream_0():
    """srs-4683: Larix takes them nowhere else: RTMP 1.0 §5.4 [control-on-2]."""
    world, encoder, _ = published()
    sent = []
    receive = encoder.client.transport.receive
    encoder.client.transport.receive = lambda data, now: (sent.append(data), receive(data, now))
    encoder.server.transport.welcome()
    world.run()
    raw = b"".join(sent)
    assert raw[:12] == header(0, 2, 0, 4, 5, 0)
    assert raw[16:28] == header(0, 2, 0, 5, 6, 0)
    assert raw[33:45] == header(0, 2, 0, 4, 1, 0)


def test_http_on_the_port_of_rtmp_is_refused_in_words():
    """ovenmediaengine-662: ffmpeg posts a stream by http:// there: RTMP 1.0 §5.2.2 [not-text]."""
    server = World().server()
    server.transport.receive(b"POST /app/stream HTTP/1.1\r\n\r\n", 0.0)
    assert server.closed and "does not begin an RTMP connection" in server.reason


def acknowledged(transport):
    """The numbers of the Acknowledgements among its output."""
    found = []
    send = transport.send_control

    def note(message):
        if isinstance(message, control.Acknowledgement):
            found.append(int.from_bytes(bytes(message)))
        send(message)

    transport.send_control = note
    return found


def test_acknowledgements_begin_again_behind_4_gib():
    """srs-730, srs-598: RTMP 1.0 §5.4.3 [sequence-number], of 32 bits."""
    _, encoder, _ = published()
    transport = encoder.server.transport
    found = acknowledged(transport)
    transport._reader.bytes_received = transport._acknowledged = (1 << 32) - 100
    for at in range(4):
        encoder.write(9, at, 1, b"\x27\x01\0\0\0" + bytes(999_995))
    assert len(found) == 1 and found[0] < 4_000_000


def test_a_server_that_acknowledges_by_steps_is_not_waited_for():
    """hprtmp-28: YouTube says 131325 each time, and not how many have arrived in all."""
    throttle = Throttle(200_000)
    for size in (150_000, *5 * [50_000]):
        throttle.push(bytes(size))
    for at in (0.0, 0.5, 1.0):
        throttle.ready()
        throttle.acknowledged(131_325)
        assert throttle.deadline is None or not throttle.tick(at)
    assert throttle.size and throttle.deadline == 0.5 + ACK_TIMEOUT
    assert not throttle.tick(5.4) and throttle.tick(5.5)
    throttle.acknowledged(200_000)  # who does go on is believed again
    assert throttle.deadline is None


def test_the_echo_is_exact_and_none_is_asked_for():
    """restreamer-966, owncast-34: S2 is C1; a C2 of other octets is taken: RTMP 1.0 §5.2.4."""
    world = World()
    server = world.server()
    c1 = bytes(8) + bytes(range(256)) * 5 + bytes(248)
    server.transport.receive(b"\x03" + c1, 0.0)
    answer = b"".join(server.transport.take_output())
    assert answer[1537:1541] + answer[1545:] == c1[:4] + c1[8:]
    server.transport.receive(bytes(1536), 0.0)
    assert not server.closed
    body = amf0.encode("connect", 1.0, {"app": "live"})
    server.transport.receive(header(0, 3, 0, len(body), 20, 0) + body, 0.0)
    assert b"NetConnection.Connect.Success" in b"".join(server.transport.take_output())


HEVC_RECORD = bytes.fromhex("0101600000009000000000005df000fcfdf8f800000f03") + b"".join(
    bytes((0x80 | kind, 0, 1, 0, len(unit))) + unit
    for kind, unit in ((32, b"\x40\x01vps."), (33, b"\x42\x01sps."), (34, b"\x44\x01pps."))
)


def nal(*units):
    """NAL units behind their lengths."""
    return b"".join(len(unit).to_bytes(4) + unit for unit in units)


HEVC_KEY = b"\x17\x01\0\0\0" + nal(b"\x28\x01\xaf key")  # IDR_N_LP
HEVC_INTER = b"\x27\x01\0\0\0" + nal(b"\x02\x01\xd0 inter")
TWO_SPS = HEAD + b"\x01\x42\xc0\x0c\xff\xe2" + 2 * (len(SPS).to_bytes(2) + SPS) + RECORD[-7:]
OPUS = b"\x91Opus\xfcsound"

UNCHANGED = {
    "mediamtx-4069: two sequence parameter sets": [(9, 0, TWO_SPS), (9, 0, KEY)],
    "srs-3464: HEVC as number 7": [
        (9, 0, HEAD + HEVC_RECORD), (9, 0, HEVC_KEY), (9, 40, HEVC_INTER), (9, 80, HEVC_KEY),
        (9, 80, HEVC_INTER),
    ],
    "obs-8761: frame type 0 in Enhanced RTMP": [
        (9, 0, b"\x90hvc1" + HEVC_RECORD), (9, 0, b"\x93hvc1" + HEVC_KEY[5:]),
        (9, 40, b"\x83hvc1" + HEVC_INTER[5:]),
    ],
    "zlmediakit-4429: pictures of next to nothing": [
        (9, 0, AVC), (9, 0, KEY),
        *((9, 40, b"\x27\x01\0\0\0\0\0\0\x01"[:size]) for size in range(9)), (9, 80, KEY),
    ],
    "zlmediakit-3253: sound of next to nothing": [
        (8, 0, AAC), (8, 0, b"\xaf\x01"), (8, 0, b"\xaf"), (8, 0, SOUND),
    ],
    "zlmediakit-2182: a data frame of another name": [
        (18, 0, amf0.encode("onStatus", {"code": "x"})), (8, 0, SOUND),
    ],
    "rootencoder-2086: start codes within a NAL unit": [
        (9, 0, AVC), (9, 0, b"\x17\x01\0\0\0" + nal(b"\x06\x05sei\0\0\0\x01\x65\x88\x84\x21")),
    ],
    "phz76-rtmp-14: start codes in place of lengths": [
        (9, 0, AVC), (9, 0, b"\x17\x01\0\0\0\0\0\0\x01\x65\x88\x84\x21\0\0\0\x01\x65\x08"),
        (9, 40, b"\x27\x01\0\0\0\0\0\0\x01\x41\x9a\x84\x21"),
    ],
    "ant-media-3846: AAC without a header": [(8, 0, SOUND), (8, 21, SOUND)],
    "rootencoder-2048: times that go back": [(8, 100, SOUND), (8, 80, SOUND), (8, 121, SOUND)],
    "librtmp-client-47: times that begin late and wrap": [
        (8, 0xFFFFFFF0, SOUND), (8, 5, SOUND), (8, 26, SOUND),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", UNCHANGED)
def test_what_needs_no_mending_passes_as_it_is(case):
    """RTMP 1.0 §7.1.4, RTMP 1.0 §7.1.5: the payload is the codec's own affair."""
    world, encoder, player = published()
    for message in UNCHANGED[case]:
        encoder.write(message[0], message[1], 1, message[2])
    world.wait(1)
    assert player.media() == UNCHANGED[case]


def test_opus_that_is_joined_in_the_middle():
    """enhanced-rtmp-53, enhanced-rtmp-30: the header if there was one, else the frames alone."""
    world, encoder, _ = published()
    encoder.write(8, 0, 1, OPUS)
    first = world.client()
    first.play("demo")
    encoder.write(8, 20, 1, OPUS)
    assert first.media() == [(8, 20, OPUS)]
    start = b"\x90OpusOpusHead\x01\x02"
    encoder.write(8, 40, 1, start)
    encoder.write(8, 40, 1, OPUS)
    assert late(world)[0][2] == start


@pytest.mark.parametrize("empty", [b"\xaf\0", b"\x90mp4a"], ids=["number", "fourcc"])
@pytest.mark.parametrize("order", ["before", "behind"])
def test_an_empty_header_of_sound_is_none(empty, order):
    """xiu-110, mediamtx-6132: FLV 10.1 §E.4.2.1, no decoder can use it, nor begin without one."""
    real = AAC if empty[0] == 0xAF else b"\x90mp4a\x11\x90"
    sound = SOUND if empty[0] == 0xAF else b"\x91mp4asound"
    world, encoder, player = published()
    for header_ in (empty, real) if order == "before" else (real, empty):
        encoder.write(8, 0, 1, header_)
    encoder.write(8, 21, 1, sound)
    assert player.media() == [(8, 0, real), (8, 21, sound)]
    assert [payload for _, _, payload in late(world)] == [real]


def test_an_empty_header_of_pictures_is_none():
    """mediamtx-6118: FLV 10.1 §E.4.3.2, the real one comes a moment later."""
    world, encoder, player = published()
    for payload in (HEAD, AVC, KEY, HEAD):
        encoder.write(9, 0, 1, payload)
    world.wait(1)
    assert [payload for _, _, payload in player.media()] == [AVC, KEY]
    assert [payload for _, _, payload in late(world)] == [AVC]


DESCRIBED = amf0.encode("onMetaData", {"width": 320.0, "height": 240.0})


def test_a_description_of_flash_is_read_by_everybody():
    """nginx-rtmp-1043, nginx-rtmp-313: in AMF3, by type 15; FLV 10.1 §E.4.4.1 has none of that."""
    world, encoder, player = published()
    said = {"width": 320, "height": 240.0, "encoder": "Flash"}
    raw = amf0.encode("@setDataFrame", "onMetaData") + amf0.encode(said, avmplus=True)
    assert raw[-len(amf0.encode(said, avmplus=True))] == amf0.AVMPLUS
    feed(world, encoder, header(0, 9, 0, 1 + len(raw), 15) + b"\0" + raw)
    encoder.write(18, 0, 1, amf0.encode("onMetaData") + b"\x11\x0a")  # and a broken one
    [first, second] = player.media()
    assert first == (18, 0, amf0.encode("onMetaData", EcmaArray(said)))
    assert second[2].endswith(b"\x11\x0a")


BROKEN = {
    "bililiverecorder-33: a name alone": amf0.encode("onMetaData"),
    "node-rtsp-rtmp-server-39: an array without its end": (
        amf0.encode("onMetaData", EcmaArray({"width": 320.0}))[:-3]
    ),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("wrapper", [b"", amf0.encode("@setDataFrame")], ids=["bare", "wrapped"])
def test_a_description_that_says_nothing_is_kept_for_nobody(case, wrapper):
    """FLV 10.1 §E.5: who comes late gets the last one that can be read; a file has it too."""
    world, encoder, _ = published()
    encoder.write(18, 0, 1, wrapper + DESCRIBED)
    encoder.write(18, 0, 1, wrapper + BROKEN[case])
    encoder.write(8, 0, 1, SOUND)
    assert not encoder.server.closed
    assert late(world)[0] == (18, 0, DESCRIBED)


@pytest.mark.parametrize("case", BROKEN)
def test_a_description_that_cannot_be_read_leaves_a_file_whole(case):
    """FLV 10.1 §E.5, §E.4.1: the recorder's own description comes first whatever comes."""
    recorder = Recorder()
    raw = recorder.write(18, 0, BROKEN[case]) + recorder.write(8, 0, SOUND)
    found = list(tags(raw))
    assert found[0].tag_type == 18 and found[-1].data == SOUND
    assert dict(recorder.patches())


def test_a_clock_that_wraps_goes_on_in_a_file():
    """rtsp-server-79, librtmp-client-47: FLV 10.1 §E.4.1, RTMP 1.0 §4 [serial-numbers]."""
    recorder = Recorder()
    raw = b"".join(recorder.write(8, at, SOUND) for at in (0xFFFFFFF0, 4, 24, 14, 44))
    assert [tag.timestamp for tag in tags(raw) if tag.tag_type == 8] == [0, 20, 40, 30, 60]


@pytest.mark.parametrize(
    ("name", "args", "on_stream"),
    [("closeStream", (), True), ("deleteStream", (1.0,), False), ("FCUnpublish", ("demo",), False)],
)
def test_every_way_to_stop_is_told_to_players(name, args, on_stream):
    """haishinkit-1472, docker-nginx-rtmp-14: RTMP 1.0 §7.2.2.3, RTMP 1.0 §7.1.7."""
    _, encoder, player = published()
    encoder.write(8, 0, 1, SOUND)
    encoder.send(name, *args, stream_id=1 if on_stream else 0)
    assert player.codes()[-1] == "NetStream.Play.UnpublishNotify"
    assert not encoder.server.closed


def test_an_encoder_hears_of_its_fc_publish_by_number_and_by_call():
    """membrane-115, ireader-209: RTMP 1.0 §7.2.1.2, the answer has its number, the call has 0."""
    encoder = World().client()
    number = encoder.client.call("FCPublish", "demo")
    encoder.world.run()
    assert encoder.reply(number)
    [call] = [each for each in encoder.events if isinstance(each, Called)]
    assert (call.command.name, call.command.transaction_id) == ("onFCPublish", 0.0)


def test_a_publisher_that_is_gone_leaves_nothing_to_who_comes_next():
    """nginx-rtmp-1455: the same player sees who publishes again, with new headers."""
    world, encoder, player = published()
    encoder.write(8, 9000, 1, AAC)
    encoder.write(8, 9000, 1, SOUND)
    encoder.server.transport.connection_lost(world.now)
    again = world.client()
    number = again.publish("demo")
    other = b"\xaf\0\x12\x10"
    again.write(8, 0, number, other)
    again.write(8, 21, number, SOUND)
    assert player.media()[2:] == [(8, 0, other), (8, 21, SOUND)]
    assert [each[2] for each in late(world)] == [other]


def test_the_page_names_tests_that_there_are():
    """Each row of docs/6-conformance/field-reports-rtmp.md has a test."""
    root = Path(__file__).parents[3]
    rows = (root / "docs/6-conformance/field-reports-rtmp.md").read_text().splitlines()
    rows = [row for row in rows if row.startswith("| [")]
    assert len(rows) >= 50
    for row in rows:
        file = Path(__file__)
        for name in re.findall(r"`([^`]+)`", row.split(" | ")[-1]):
            path, _, test = name.rpartition("::")
            file = root / path if path else file
            assert f"def {test}(" in file.read_text(), name
