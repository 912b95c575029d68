"""The application `live`: what is published under a name is what its players get."""

import pytest
from support.rtmp.rtmp_world import World

from rtmplite.amf import amf0
from rtmplite.flv import file
from rtmplite.flv.video import VideoTag
from rtmplite.rtmp.client import Called
from rtmplite.rtmp.wire.chunk_writer import CHUNK_STREAMS, ChunkWriter
from rtmplite.rtmp.wire.message import TIMESTAMP_MASK, Message

AVC, KEY = b"\x17\x00\0\0\0avcC", b"\x17\x01\0\0\0key"
META = amf0.encode("onMetaData", {"width": 320.0})


def published(world, name="demo", url="rtmp://host/live"):
    """A publisher and its stream."""
    publisher = world.client(url)
    return publisher, publisher.publish(name)


def test_tags_out_are_tags_in(corpus):
    """Covers RTMP 1.0 §7.2.2.6 [any-client-plays], §7.2.2.1 [waits].

    Every medium of a recording, with large frames and small ones.
    """
    _, tags = file.read_flv((corpus / "flv" / "h264_slices4_speex16k.flv").read_bytes())
    world = World()
    players = [world.client() for _ in range(3)]
    for player in players:
        player.play("demo")
    publisher, stream_id = published(world)
    sent = [(tag.tag_type, tag.timestamp, tag.data) for tag in tags[:200]]
    for tag in sent:
        publisher.write(*tag[:2], stream_id, tag[2])
    for player in players:
        assert player.media() == sent


def test_metadata_loses_its_wrapper():
    """Covers Field §"@setDataFrame" [unwrapped]: OBS, ffmpeg and librtmp wrap onMetaData."""
    world = World()
    early = world.client()
    early.play("demo")
    publisher, stream_id = published(world)
    publisher.write(18, 0, stream_id, amf0.encode("@setDataFrame") + META)
    late = world.client()
    late.play("demo")
    assert early.media() == late.media() == [(18, 0, META)]
    publisher.write(18, 0, stream_id, amf0.encode("@clearDataFrame", "onMetaData"))
    later = world.client()
    later.play("demo")
    assert later.media() == [] and early.media() == [(18, 0, META)]


def test_who_comes_late_starts_on_a_key_frame(corpus):
    """Metadata, both codec headers, then the next key frame and everything after it."""
    _, tags = file.read_flv((corpus / "flv" / "h264_720p30_bf3_aac44k_30s.flv").read_bytes())
    world = World()
    publisher, stream_id = published(world)
    for tag in tags[:100]:
        publisher.write(tag.tag_type, tag.timestamp, stream_id, tag.data)
    late = world.client()
    late.play("demo")
    for tag in tags[100:900]:
        publisher.write(tag.tag_type, tag.timestamp, stream_id, tag.data)
    kinds = [(kind, payload[:2]) for kind, _, payload in late.media()[:4]]
    assert [kind for kind, _ in kinds] == [18, 8, 9, 9]
    assert kinds[1][1] == b"\xaf\x00" and kinds[2][1] == b"\x17\x00" and kinds[3][1] == b"\x17\x01"
    rest = [(tag.tag_type, tag.timestamp, tag.data) for tag in tags[100:900]]
    assert late.media()[3:] == rest[rest.index(late.media()[3]) :]
    assert late.media()[0][1] == 0  # ffmpeg makes a track of text of metadata that come later
    assert late.media()[1][1] == late.media()[2][1] == tags[99].timestamp


def test_a_name_can_be_published_once():
    """Covers Field §"Names in use" [bad-name], RTMP 1.0 §7.2.2.3 [destroyed].

    The second comer is refused, until the first has gone.
    """
    world = World()
    first, stream_id = published(world)
    second, _ = published(world)
    assert second.codes() == ["NetStream.Publish.BadName"]
    first.send("deleteStream", float(stream_id))
    second.publish("demo")
    assert second.codes()[1:] == ["NetStream.Publish.Start"]


def test_a_name_is_needed():
    """Covers RTMP 1.0 §7.2.2.1 [not-found] and RTMP 1.0 §7.2.2.6."""
    peer = World().client()
    peer.publish("")
    peer.play("")
    assert peer.codes() == ["NetStream.Publish.BadName", "NetStream.Play.StreamNotFound"]
    told = [event.command.args[0] for event in peer.events if isinstance(event, Called)]
    assert [information["level"] for information in told] == ["error", "error"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("rtmp://host/live", "room/cam"),
        ("rtmp://host/live/room", "cam"),
        ("rtmp://h/live/", "room/cam"),
    ],
)
def test_clients_may_split_the_url_as_they_like(url, name):
    """ffmpeg and librtmp do it in different ways: RTMP Errata §8.1.2."""
    world = World()
    published(world, "cam?key=1", "rtmp://host/live/room")
    player = world.client(url)
    player.play(name)
    assert world.registry.get("live", "room/cam").players == 1 and world.registry.streams == 1


def test_two_streams_of_one_connection_have_two_numbers():
    """Covers RTMP 1.0 §7.2.2 [several-streams].

    The bytes differ by their stream id alone: RTMP 1.0 §5.3.1.2.5.
    """
    world = World()
    player = world.client()
    numbers = [player.play("demo"), player.play("demo")]
    publisher, stream_id = published(world)
    publisher.write(8, 5, stream_id, b"sound")
    heard = [each for each in player.events if getattr(each, "payload", None) == b"sound"]
    assert [message.stream_id for message in heard] == numbers


def test_whoever_leaves_leaves_nothing():
    """Publishers and players, properly or not: the registry is empty afterwards."""
    world = World()
    peers = [world.client() for _ in range(4)]
    for peer in peers[:3]:
        peer.play("demo")
    stream_id = peers[3].publish("demo")
    peers[0].server.transport.connection_lost(world.now)
    peers[1].send("deleteStream", 1.0)
    peers[2].send("closeStream", stream_id=1)
    assert [each.players for each in world.registry] == [0]
    peers[3].send("deleteStream", float(stream_id))
    assert world.registry.streams == 0 and list(world.registry) == []


def test_media_and_commands_share_no_chunk_stream():
    """Own design: so shared bytes are right after any history."""
    assert len(set(CHUNK_STREAMS.values()) | {2, 3}) == 5


def test_who_wants_a_recording_is_told_whether_there_is_one():
    """Covers RTMP 1.0 §7.2.2.6: the type is a wish, the operator decides."""
    world = World()
    peer = world.client()
    peer.publish("one", "record")
    assert peer.codes() == ["NetStream.Publish.Start", "NetStream.Record.NoAccess"]
    kinds = []

    def record(live, now):
        live.recorded = True
        kinds.append(live.kind)

    world.registry.on_begin.append(record)
    peer.publish("two", "append")
    peer.publish("three")
    assert peer.codes()[2:] == [
        *("NetStream.Publish.Start", "NetStream.Record.Start", "NetStream.Publish.Start")
    ]
    assert kinds == ["append", "live"]


def through(times, payload=b"\x27\x01\0\0\0picture", compressed=True):
    """Publish video at these times, and give what an early and a late player have of it.

    `compressed` is by deltas where the chunk writer can, as every encoder does.
    """
    world = World()
    early, late = world.client(), world.client()
    early.play("demo")
    publisher, number = published(world)
    sent = [(9, times[0], AVC), (9, times[0], KEY), *((9, time, payload) for time in times)]
    middle = len(sent) // 2
    sent.insert(middle, (9, sent[middle][1], KEY))  # so that the late one can begin
    writer = ChunkWriter(publisher.client.transport._writer.chunk_size)
    for at, (type_id, time, data) in enumerate(sent):
        if at == middle:
            late.play("demo")
        if compressed:
            message = Message(type_id, time & TIMESTAMP_MASK, number, data)
            publisher.server.transport.receive(writer.write(message, 6), world.now)
            world.run()
        else:
            publisher.write(type_id, time, number, data)
    wanted = [(kind, time & TIMESTAMP_MASK, data) for kind, time, data in sent]
    assert early.media() == wanted
    assert late.media()[0][2] == AVC and late.media()[1:] == wanted[middle:]


FOUR_HOURS, DAYS_49 = 1 << 24, 1 << 32  # ms: 4 h 39 min 37 s, 49 d 17 h 2 min 47 s


@pytest.mark.parametrize("size", [10, 10_000])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_stream_goes_on_after_4_hours(size, compressed):
    """Covers RTMP 1.0 §5.3.1.3 [extended-when-full]: 24 bits are full, in one chunk and in many."""
    times = range(FOUR_HOURS - 200, FOUR_HOURS + 200, 20)
    through(times, b"\x27\x01\0\0\0" + bytes(size), compressed)
    edge = [FOUR_HOURS - 2, FOUR_HOURS - 1, FOUR_HOURS, FOUR_HOURS + 1]
    through(edge + [time + 4 for time in edge], bytes([0x27, 1, 0, 0, 0]) + bytes(size))


@pytest.mark.parametrize("size", [10, 10_000])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_stream_goes_on_after_49_days(size, compressed):
    """Covers RTMP Errata §7 [within-limits]: 32 bits are full, and time begins again at 0."""
    times = range(DAYS_49 - 200, DAYS_49 + 200, 20)
    through(times, b"\x27\x01\0\0\0" + bytes(size), compressed)
    through([DAYS_49 - 1, DAYS_49, DAYS_49 + 1, DAYS_49 + 2], compressed=compressed)


def test_a_pause_of_5_hours_is_a_delta_of_more_than_24_bits():
    """Covers RTMP 1.0 §5.3.1.2.5 [delta-extended]: the deltas themselves are extended."""
    through([0, 20, 20 + FOUR_HOURS, 40 + FOUR_HOURS, 40 + 3 * FOUR_HOURS, 60 + 3 * FOUR_HOURS])
    through([time * (FOUR_HOURS - 1) for time in range(6)])


def test_pictures_before_their_time_keep_it():
    """Negative composition times, which B-frames lead to: FLV 10.1 §E.4.3.1."""
    for time in (-1, -40, -(1 << 23), (1 << 23) - 1):
        picture = bytes(VideoTag(2, 7, 1, time, b"picture"))
        through(range(0, 400, 40), picture)
        assert VideoTag.parse(picture).composition_time == time


def test_b_frames_arrive_in_the_order_of_decoding():
    """Their composition times go back and forth; the times of their messages do not."""
    world = World()
    player = world.client()
    player.play("demo")
    publisher, number = published(world)
    shown = [0, 120, 40, 80, 240, 160, 200]  # I P B B P B B, 40 ms a picture
    sent = []
    for at, picture in enumerate(shown):
        kind = 1 if at == 0 else 2
        tag = VideoTag(kind, 7, 1, picture - 40 * at, bytes([at]))
        sent.append((9, 40 * at, bytes(tag)))
        publisher.write(*sent[-1][:2], number, sent[-1][2])
    assert player.media() == sent
    tags = [(time, VideoTag.parse(data)) for _, time, data in player.media()]
    assert [time + tag.composition_time for time, tag in tags] == shown


def test_who_starts_its_clock_anywhere_is_understood():
    """Cameras count from when they were switched on."""
    for start in (0, FOUR_HOURS - 1, FOUR_HOURS, DAYS_49 // 2 - 1, DAYS_49 // 2, DAYS_49 - 1):
        through(range(start, start + 200, 20))
