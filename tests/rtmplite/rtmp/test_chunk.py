"""Whole conversations of real peers: every message decodes, and media out equal media in."""

import pytest
from tcp_streams import tcp_streams

from rtmplite.amf import amf0
from rtmplite.flv import file, metadata
from rtmplite.flv.audio import AudioTag
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import VideoTag
from rtmplite.rtmp.chunk import ChunkReader, ChunkWriter, MessageType
from rtmplite.rtmp.command import Command
from rtmplite.rtmp.control import parse_control
from rtmplite.rtmp.digest import PACKET_SIZE

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
    tags = file.read(seed)[1]
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
