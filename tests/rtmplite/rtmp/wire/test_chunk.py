"""Reader and writer together: any order and any cut of their bytes, and whole conversations."""

from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.sip.tcp_streams import tcp_streams

from rtmplite.amf import amf0
from rtmplite.flv import file, metadata
from rtmplite.flv.audio import AudioTag
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import VideoTag
from rtmplite.rtmp.wire.chunk_reader import ChunkReader
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.control import parse_control
from rtmplite.rtmp.wire.digest import PACKET_SIZE
from rtmplite.rtmp.wire.message import MessageType
from rtmplite.strategies import rtmp

FFMPEG = "ffmpeg_publish_play_nginx_h264_speex_port19401.pcap"
RTMPDUMP = "rtmpdump_vod_play_nginx_port19401.pcap"
FLASH = "ndpi_rtmp.pcap"
HANDSHAKE = 1 + 2 * PACKET_SIZE


def conversations(corpus, name):
    """The messages of each connection in a capture: (from the client, from the server)."""
    talks = tcp_streams(corpus / "pcap/rtmp" / name, 1935 if name == FLASH else 19401)
    for port in sorted(number for number, upward in talks if upward):
        both = [talks[port, upward][HANDSHAKE:] for upward in (True, False)]
        if any(both):
            yield tuple(whole(raw) for raw in both)


def whole(raw):
    """The messages in `raw`, the same however it is cut, and nothing left over."""
    reader, got = ChunkReader(), []
    for start in range(0, len(raw), 1000):
        got += reader.feed(raw[start : start + 1000])
    assert got == ChunkReader().feed(raw) and got
    assert reader.feed(b"") == [] and reader.bytes_received == len(raw)
    return got


def media(messages):
    """The audio and video among messages, by type, without times."""
    return {
        kind: [message.payload for message in messages if message.type_id == kind]
        for kind in (MessageType.AUDIO, MessageType.VIDEO)
    }


@pytest.mark.parametrize("name", [FFMPEG, RTMPDUMP, FLASH])
def test_every_message_decodes(corpus, name):
    """Covers RTMP 1.0 §5.3 [by-chunk-stream], RTMP 1.0 §7.1."""
    names = []
    for messages in (each for both in conversations(corpus, name) for each in both):
        for message in messages:
            match message.type_id:
                case MessageType.COMMAND:
                    names.append(Command.parse(message).name)
                case MessageType.DATA:
                    assert amf0.decode(message.payload)
                case MessageType.AUDIO:
                    assert bytes(AudioTag.parse(message.payload)) == message.payload
                case MessageType.VIDEO:
                    assert bytes(VideoTag.parse(message.payload)) == message.payload
                case MessageType.AGGREGATE:
                    assert message.payload
                case _:
                    assert bytes(parse_control(message)) == message.payload
    assert names[0] == "connect" and {"_result", "createStream", "play"} <= set(names)


@pytest.mark.parametrize("name", [FFMPEG, RTMPDUMP, FLASH])
def test_every_message_goes_out_again(corpus, name):
    """Covers RTMP 1.0 §5.3.1.2 [compact]: real messages, written by us, read the same."""
    for messages in (each for both in conversations(corpus, name) for each in both):
        writer, reader = ChunkWriter(), ChunkReader()
        for message in messages:
            assert reader.feed(writer.write(message, 3 + message.type_id)) == [message]
            if message.type_id == MessageType.SET_CHUNK_SIZE:
                writer.chunk_size = reader.chunk_size


def test_what_is_played_is_what_was_published(corpus):
    """Covers RTMP 1.0 §5.3.1.2.4 [type-3-takes-all]: ffmpeg's audio is mostly type 3."""
    playing, publishing = conversations(corpus, FFMPEG)
    sent, got = media(publishing[0]), media(playing[1])
    for kind in (MessageType.AUDIO, MessageType.VIDEO):
        assert len(got[kind]) > 100
        assert set(got[kind]) <= set(sent[kind])
        assert got[kind][-1] == sent[kind][-1]
    seed = (corpus / "flv/seed_320x240_12fps_h264_speex16k_10s.flv").read_bytes()
    tags = file.read_flv(seed)[1]
    for kind in (TagType.AUDIO, TagType.VIDEO):
        published = [
            (message.timestamp, message.payload)
            for message in publishing[0]
            if message.type_id == kind
        ]
        stored = [(tag.timestamp, tag.data) for tag in tags if tag.tag_type == kind]
        assert [payload for _, payload in stored] == [payload for _, payload in published]
    (description,) = [
        metadata.read(message.payload)
        for message in publishing[0]
        if message.type_id == MessageType.DATA
    ]
    assert description["audiocodecid"] == 11.0 and description["videocodecid"] == 7.0


def in_pieces(raw, cuts):
    """What a new reader makes of `raw`, cut there."""
    reader, got = ChunkReader(), []
    for start, end in pairwise([0, *sorted(cut % (len(raw) + 1) for cut in cuts), len(raw)]):
        got += reader.feed(raw[start:end])
    assert reader.bytes_received == len(raw)
    return got


@given(rtmp.chunk_streams(), st.lists(st.integers(0, 10_000), max_size=30))
def test_any_cut_of_any_stream_gives_the_same_messages(stream, cuts):
    """Covers RTMP 1.0 §5.3 [by-chunk-stream], RTMP 1.0 §5.3.1 [header-lengths].

    In pieces as they come, and a byte at a time.
    """
    raw, messages = stream
    assert in_pieces(raw, cuts) == messages == in_pieces(raw, range(len(raw)))


def chunks_of(raw, payload, size):
    """The chunks of one written message: where its headers are follows from the first of them."""
    basic = {0: 2, 1: 3}.get(raw[0] & 63, 1)
    count = max(1, -(-len(payload) // size))
    first = basic + (11, 7, 3, 0)[raw[0] >> 6]
    extended = (len(raw) - len(payload) - first - (count - 1) * basic) // count
    assert extended in (0, 4)
    ends, at = [], first + extended
    for start in range(0, len(payload), size):
        at += min(size, len(payload) - start)
        ends.append(at)
        at += basic + extended
    return [raw[start:end] for start, end in pairwise([0, *(ends or [len(raw)])])]


@st.composite
def interleaved(draw):
    """Bytes of our writer, with the chunks of different streams in any order.

    And the messages by their last chunks, None for a new chunk size, which comes between lots.
    """
    writer, raw, complete = ChunkWriter(), b"", []
    for size in draw(st.lists(st.sampled_from([1, 7, 128, 4096, 0x7FFFFFFF]), max_size=3)):
        raw += writer.set_chunk_size(size)
        complete.append(None)
        queues = []
        for number in (2, 3, 64, 320):
            queue = []
            for message in draw(st.lists(rtmp.messages(), max_size=3)):
                chunks = chunks_of(writer.write(message, number), message.payload, size)
                queue += [(chunk, None) for chunk in chunks[:-1]] + [(chunks[-1], message)]
            queues.append(queue)
        while queues := [queue for queue in queues if queue]:
            chunk, message = draw(st.sampled_from(queues)).pop(0)
            raw += chunk
            complete += [message] if message is not None else []
    return raw, complete


@given(interleaved(), st.lists(st.integers(0, 10_000), max_size=30))
def test_messages_survive_any_interleaving(stream, cuts):
    """Covers RTMP 1.0 §5.3 [by-chunk-stream] [chunk-whole], RTMP 1.0 §5.4 [at-once].

    And RTMP 1.0 §5.4.1 [size-until-further-notice]: chunk sizes, timestamps, cuts are arbitrary.
    """
    raw, messages = stream
    got = [None if message.type_id == 1 else message for message in in_pieces(raw, cuts)]
    assert got == messages
    event(f"{min(len(messages), 9)} messages")
