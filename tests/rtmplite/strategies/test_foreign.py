"""Wireshark and ffprobe read what the strategies of RTMP, AMF0 and FLV draw as our codecs mean it.

Own design: a second opinion on valid input.  `docs/3-howto/use-as-oracle.md` says where Wireshark
is wrong.
"""

import json
import subprocess
from itertools import accumulate, chain, pairwise

import pytest
from hypothesis import strategies as st
from support.oracle import drawn
from support.peers.process import require
from support.tshark import COMPLAINT, dissect, segments

from rtmplite.amf.values import UNDEFINED, Date, EcmaArray, TypedObject, XmlDocument
from rtmplite.flv import file
from rtmplite.flv.tag import Tag, TagType
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.message import MessageType
from rtmplite.strategies import flv, rtmp

HANDSHAKE = b"\3" + bytes(1536) + bytes(1536)
UNKNOWN = 23  # and the hundred behind it: Wireshark looks into no message of these types

pytestmark = pytest.mark.timeout(2400)


def connections(path, streams, *fields):
    """The fields of each of these streams of bytes, in one connection each."""
    frames = [
        list(segments(HANDSHAKE + data, 1935, 10_000 + number, 60_000))
        for number, data in enumerate(streams)
    ]
    rows = dissect(path / "drawn.pcap", [*chain(*frames)], fields)
    for first, last in pairwise(accumulate(map(len, frames), initial=0)):
        yield {
            name: [each for row in rows[first:last] for each in row.get(name, [])]
            for name in (*fields, COMPLAINT)
        }


def of_unknown_type(message):
    """The same message of a type that nobody looks into.

    Wireshark takes the lower seven bits of a type for the whole, against RTMP 1.0 §5.3.1.2.
    """
    return message._replace(type_id=UNKNOWN + message.type_id % 100)


def is_largest_size(message):
    """Whether it sets the largest chunk size: RTMP 1.0 §5.4.1."""
    return message.type_id == MessageType.SET_CHUNK_SIZE and message.payload[:1] == b"\x7f"


def test_chunks(tmp_path):
    """Covers RTMP 1.0 §5.3: each message is found, whatever way its sender takes.

    Wireshark loses its place behind the largest chunk size, which §5.4.1 allows.
    """
    found = drawn(rtmp.chunk_streams(rtmp.messages().map(of_unknown_type)))
    found = [each for each in found if not any(map(is_largest_size, each[1]))]
    of_message = "rtmpt.header.format", "rtmpt.header.typeid", "rtmpt.header.bodysize"
    of_first = "rtmpt.header.timestamp", "rtmpt.header.streamid"
    rows = connections(tmp_path, [data for data, _ in found], *of_message, *of_first)
    for (_, messages), row in zip(found, rows, strict=True):
        assert row[COMPLAINT] == []
        formats, kinds, sizes, times, streams = (
            [int(each, 0) for each in row[name]] for name in (*of_message, *of_first)
        )
        told = list(zip(formats, messages, strict=True))
        with_size = [each for form, each in told if form <= 1]  # RTMP 1.0 §5.3.1.2.1, §5.3.1.2.2
        assert kinds == [each.type_id for each in with_size]
        assert sizes == [len(each.payload) for each in with_size]
        whole = [each for form, each in told if form == 0]
        if len(whole) == len(told):  # else Wireshark counts times together, which no field has
            assert times == [min(each.timestamp, 0xFFFFFF) for each in whole]
        assert streams == [each.stream_id for each in whole]


def parts(value):
    """The markers, numbers and texts of a value, in the order of its octets: AMF0 §2."""
    match value:
        case bool():
            yield "marker", 1
        case float():
            yield "marker", 0
            yield "number", f"{value:.15g}".replace("-nan", "nan")
        case str():
            yield "marker", 2
            yield "text", value
        case None:
            yield "marker", 5
        case Date():
            yield "marker", 11
        case XmlDocument():
            yield "marker", 15
        case list():
            yield "marker", 10
            for each in value:
                yield from parts(each)
        case dict():
            typed = isinstance(value, TypedObject)
            yield "marker", 16 if typed else 8 if isinstance(value, EcmaArray) else 3
            if typed:
                yield "text", value.class_name
            for name, each in value.items():
                yield "text", name
                yield from parts(each)
        case _:
            yield "marker", 6 if value is UNDEFINED else 13


def test_commands(tmp_path):
    """Covers RTMP 1.0 §7.1.1 and AMF0 §2: names, numbers, and all that is in an object.

    Wireshark ends a text at Nul, and complains: AMF0 §1.3.1 takes any UTF-8.
    """
    found = drawn(rtmp.commands())
    rows = connections(
        tmp_path,
        [ChunkWriter().write(each.message(), 3) for each in found],
        *("amf.amf0_type", "amf.number", "amf.string"),
    )
    for command, row in zip(found, rows, strict=True):
        values = [command.name, command.transaction_id, command.object, *command.args]
        wanted = {"marker": [], "number": [], "text": []}
        for kind, each in (part for value in values for part in parts(value)):
            wanted[kind].append(each)
        assert [int(each, 0) for each in row["amf.amf0_type"]] == wanted["marker"]
        assert [each.replace("-nan", "nan") for each in row["amf.number"]] == wanted["number"]
        texts = [each.partition("\0")[0] for each in wanted["text"]]
        assert list(filter(None, row["amf.string"])) == list(filter(None, texts))
        assert set(row[COMPLAINT]) <= {"Trailing stray characters"}
        assert not row[COMPLAINT] or b"\0" in bytes(command)


def test_files(tmp_path):
    """Covers FLV 10.1 §E.3 and §E.4: type, time, place and size of each tag.

    Of codecs without a configuration, whose bodies no parser takes apart, and with a body.  Of
    times their 32 bits count: ffprobe goes on counting where they jump.
    """
    # As long as a picture's size is not known, ffprobe looks for further streams: to the end.
    found = [Tag(TagType.VIDEO, 0, b"\x22\0"), *drawn(plain_tags())]
    (tmp_path / "drawn.flv").write_bytes(file.write_flv(found))
    command = [require("ffprobe", "ffmpeg"), "-v", "error", "-f", "flv"]
    command += ["-probesize", str(1 << 30), "-analyzeduration", str(1 << 60)]
    command += ["-fflags", "noparse+nofillin"]  # it shows what it reads, and no guesses
    command += ["-show_entries", "packet=codec_type,dts,size,pos", "-of", "json"]
    done = subprocess.run(
        [*command, tmp_path / "drawn.flv"], capture_output=True, check=True, timeout=60
    )
    rows = json.loads(done.stdout)["packets"]
    places = accumulate((len(bytes(each)) + 4 for each in found), initial=13)
    assert [
        (row["codec_type"], row["dts"] & 0xFFFFFFFF, int(row["size"]), int(row["pos"]))
        for row in rows
    ] == [
        (TagType(tag.tag_type).name.lower(), tag.timestamp & 0xFFFFFFFF, len(tag.data) - 1, place)
        for tag, place in zip(found, places, strict=False)
    ]


def plain_tags():
    """Tags of any time with audio or a picture that a demuxer hands on as it is."""
    times = st.integers(-(1 << 31), (1 << 31) - 1)
    audio = st.builds(Tag, st.just(TagType.AUDIO), times, flv.audio_tags().map(bytes))
    video = st.builds(Tag, st.just(TagType.VIDEO), times, flv.video_tags().map(bytes))
    return (audio | video).filter(is_plain)


def is_plain(tag):
    """Whether it is audio or a picture that a demuxer hands on as it is."""
    if len(tag.data) < 2:
        return False
    if tag.tag_type == TagType.AUDIO:
        return tag.data[0] >> 4 in (0, 2, 3, 7, 8, 11)
    return tag.tag_type == TagType.VIDEO and tag.data[0] & 15 in (2, 3) and tag.data[0] >> 4 < 5
