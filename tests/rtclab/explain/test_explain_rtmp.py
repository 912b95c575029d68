"""RTMP, AMF, FLV and RTMFP, with the errors at their octets."""

from support.explained import hold

from rtclab.explain import amf, flv, rtmfp, rtmp, rtmp_message
from rtclab.explain.fields.context import Context, RtmfpKey
from rtclab.explain.fields.field import Span
from rtmplite.amf import amf0, amf3
from rtmplite.flv.file import write_flv
from rtmplite.flv.tag import Tag, TagType
from rtmplite.rtmfp.crypto.cipher import Protection, Sealer, default_cipher
from rtmplite.rtmfp.netconnection.messages import FlowMetadata, encode_message
from rtmplite.rtmfp.wire.chunks import InitiatorHello, UserData
from rtmplite.rtmfp.wire.flow_chunks import FragmentControl, flow_options
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.rtmp.wire.shared_object import (
    Flags,
    RequestChange,
    SendMessage,
    SharedObject,
    Status,
    Use,
)

CONNECT = Command("connect", 1.0, {"app": "live", "tcUrl": "rtmp://host/live"})


def described(describe, data, context=None):
    field = describe(Span.all(data), context or Context())
    hold(field, data)
    return field


def wrong(field):
    return [
        (each.name, each.start, each.end, each.fault.reason, each.fault.citation)
        for each in field.walk()
        if each.fault
    ]


def named(field, name):
    return [each for each in field.walk() if each.name == name]


def test_values_nest_with_their_names_and_markers():
    data = amf0.encode("onStatus", 0.0, None, {"info": {"code": "ok"}}, [1.0, True])
    field = described(amf.values, data)
    assert wrong(field) == []
    [code] = named(field, "code")
    assert code.value == '"ok"' and data[code.start : code.end] == b"\2\0\2ok"
    assert code.source.citation == "AMF0 §2.4"
    assert [each.meaning for each in field.children] == [
        *("string", "number", "null", "object", "strict array"),
    ]


def test_amf3_within_amf0_and_alone():
    data = amf0.encode("call", {"n": 4, "raw": b"abc"}, avmplus=True)
    field = described(amf.values, data)
    assert wrong(field) == []
    [raw] = named(field, "raw")
    assert (raw.value, raw.meaning, raw.source.citation) == (
        *("3 octets", "AMF3 byte array", "AMF3 §3.14"),
    )
    data = amf3.encode({"n": 4}, [True])
    assert [each.value for each in described(amf.amf3_values, data).children] == [
        *("1 member", "1 item"),
    ]


def test_the_innermost_broken_value_is_to_blame():
    data = amf0.encode({"a": {"b": 1.0}})
    broken = data.replace(b"\0\x3f\xf0", b"\x0e\x3f\xf0")
    [(name, start, end, reason, section)] = wrong(described(amf.values, broken))
    assert (name, broken[start:end]) == ("b", b"\x0e")
    assert reason == "AMF0 record sets cannot be sent" and section.startswith("AMF0 §2.")


def test_a_handshake_is_followed_by_chunks_and_their_commands():
    told = ChunkWriter().write(CONNECT.message(), 3)
    data = b"\3" + bytes(3072) + told
    field = described(rtmp.stream, data)
    assert wrong(field) == []
    assert [each.name for each in field.children] == ["version", "packet 1", "packet 2", "chunks"]
    [app] = named(field, "app")
    assert data[app.start : app.end] == b"\2\0\4live"
    assert next(iter(named(field, "command message"))).source.citation == "RTMP 1.0 §7.1.1"


def test_a_message_of_several_chunks_is_put_together():
    message = Message(MessageType.DATA, 40, 1, amf0.encode("onMetaData", "x" * 300))
    data = ChunkWriter().write(message, 3)
    field = described(rtmp.chunks, data)
    assert wrong(field) == []
    assert [each.value for each in field.children] == ["type 0 on 3", "type 3 on 3", "type 3 on 3"]
    last = field.children[-1].children[-1]
    assert last.octets == message.payload
    assert last.children[0].children[1].value.startswith('"xxx')


def test_an_error_of_a_chunk_stream_is_where_reading_stopped():
    good = ChunkWriter().write(CONNECT.message(), 3)
    data = good + b"\xc5" + bytes(20)
    [(name, start, _, reason, section)] = wrong(described(rtmp.chunks, data))
    assert (name, start) == ("rest", len(good))
    assert reason == "chunk stream 5 begins with type 3" and section.startswith("RTMP 1.0 §5.3")


def test_an_unknown_version_and_an_empty_message():
    assert wrong(described(rtmp.stream, b"\6" + bytes(30)))[0][0] == "version"
    empty = Message(MessageType.AUDIO, 0, 1, b"")
    data = ChunkWriter().write(empty, 4)
    assert wrong(described(rtmp.chunks, data)) == []


def test_shared_objects_and_aggregates_are_cut_into_their_parts():
    tag = bytes(Tag(TagType.AUDIO, 0, bytes.fromhex("b236")))
    whole = Message(MessageType.AGGREGATE, 0, 1, tag + len(tag).to_bytes(4))
    field = rtmp_message.message(Span.all(whole.payload), whole, Context())
    hold(field, whole.payload)
    assert [each.name for each in field.children] == ["audio tag", "back pointer"]


def test_headers_of_sound_and_pictures_in_a_file():
    record = bytes.fromhex(
        "0142c00cffe100166742c00cda0507ec0440000003004000000603c50aa801000468ce3c80"
    )
    tags = [
        Tag(TagType.AUDIO, 0, bytes.fromhex("af001210")),
        Tag(TagType.VIDEO, 0, bytes.fromhex("1700000000") + record),
        Tag(TagType.VIDEO, 40, bytes.fromhex("17010000280000000465aabbcc")),
        Tag(TagType.SCRIPT, 0, amf0.encode("onMetaData", {"duration": 1.0})),
    ]
    data = write_flv(tags)
    field = described(flv.file, data)
    assert wrong(field) == []
    assert named(field, "frequency index")[0].meaning == "44100 Hz"
    sets = [each.value for each in named(field, "NAL unit")]
    assert sets == ["sequence parameter set", "picture parameter set", "slice of a key picture"]
    assert named(field, "composition time")[1].value == "40"
    assert named(field, "duration")[0].value == "1.0"


def test_codecs_that_encoders_number_have_the_fields_of_avc():
    """Covers Field §"HEVC and AV1 by number"."""
    tags = [Tag(TagType.VIDEO, 40, bytes.fromhex(f"1{each}0100002865aa")) for each in "cd"]
    field = described(flv.file, write_flv(tags))
    assert wrong(field) == [] and [each.value for each in named(field, "composition time")] == [
        *("40", "40"),
    ]
    assert [each.meaning for each in named(field, "codec")] == ["hevc", "av1"]
    assert named(field, "HEVC packet type") and named(field, "AV1 packet type")


def test_a_tag_that_is_cut_short():
    data = write_flv([Tag(TagType.AUDIO, 0, b"\xb2" + bytes(50))])[:40]
    [(name, start, _, reason, section)] = wrong(described(flv.file, data))
    assert (name, start, section) == ("audio tag", 13, "FLV 10.1 §E.4.1")
    assert "announces 51" in reason


def sealed(cipher, packet):
    return scramble(9, cipher.seal(packet.encode()))


def test_a_packet_of_the_startup_is_decrypted():
    hello = InitiatorHello(bytes.fromhex("030a723a"), b"tag")
    data = sealed(default_cipher(), Packet(Mode.STARTUP, (hello,), timestamp=4))
    field = described(rtmfp.datagram, data)
    assert wrong(field) == []
    assert named(field, "session ID")[0].value == "9"
    assert named(field, "value")[0].value == "r:"
    assert named(field, "tag")[0].end == 3 + 3 + 8


def flow(number, control, data, options=None):
    return UserData(2, number, 1, data, control, options=options)


def test_messages_in_flows_need_the_keys_of_the_session():
    raw = encode_message(MessageType.COMMAND, 0, bytes(CONNECT))
    opening = flow_options(bytes(FlowMetadata(0)))
    parts = (
        flow(1, FragmentControl.BEGIN, raw[:20], opening),
        flow(2, FragmentControl.END, raw[20:]),
        flow(3, FragmentControl.WHOLE, raw),
    )
    for key, hmac_key, length, numbered in (
        (b"k" * 16, b"", 0, False),
        (b"k" * 16, b"", 0, True),
        (b"k" * 16, b"h" * 32, 16, True),
    ):
        sealer = Sealer(Protection(key, hmac_key, length, numbered))
        data = sealed(sealer, Packet(Mode.INITIATOR, parts, timestamp=4))
        context = Context(keys=(RtmfpKey(b"x" * 16), RtmfpKey(key, hmac_key)))
        field = described(rtmfp.datagram, data, context)
        assert wrong(field) == []
        assert [each.value for each in named(field, "app")] == ['"live"', '"live"']
        assert named(field, "metadata")[0].source.citation == "RFC 7425 §5.1.1"
        without = described(rtmfp.datagram, data)
        assert without.children[-1].meaning == "encrypted; the session's key is not given"


def test_a_broken_chunk_is_found_within_its_packet():
    plain = bytes.fromhex("09 0004 10 0004 00020507")
    [(name, start, end, reason, section)] = wrong(described(rtmfp.packet, plain))
    assert (name, plain[start:end]) == ("sequence number", b"\5")
    assert reason.startswith("a forward sequence number below 0")
    assert section == "RFC 7016 §2.3.11 [fsn-offset-not-greater]"


def test_lengths_of_two_octets_are_taken_from_the_record():
    sets = "6742c00cda0507ec0440000003004000000603c50aa801000468ce3c80"
    record = bytes.fromhex("0142c00cfde10016" + sets)
    tags = [
        Tag(TagType.VIDEO, 0, bytes.fromhex("1700000000") + record),
        Tag(TagType.VIDEO, 40, bytes.fromhex("1701000000 0000 0002 65aa")),
    ]
    field = described(flv.file, write_flv(tags))
    assert wrong(field) == []
    assert [each.value for each in named(field, "NAL unit")][2:] == ["slice of a key picture"]


def test_events_of_a_shared_object_have_their_names_and_values():
    events = (Use(), RequestChange("ann", 1.0), Status("Bad", "error"), SendMessage(("hi", 2.0)))
    whole = SharedObject("users", 3, Flags.NONE, events).message()
    field = rtmp_message.message(Span.all(whole.payload), whole, Context())
    hold(field, whole.payload)
    assert wrong(field) == [] and field.value == "users"
    assert [each.name for each in field.children][-4:] == [
        *("Use", "RequestChange", "Status", "SendMessage"),
    ]
    assert [each.value for each in named(field, "name")] == ["users", "ann"]
    assert [each.value for each in named(field, "value")] == ["1.0", '"hi"', "2.0"]
    cut = whole._replace(payload=whole.payload.replace(b"\0\3ann", b"\0\xffann"))
    field = rtmp_message.message(Span.all(cut.payload), cut, Context())
    [(_, start, _, reason, _)] = wrong(field)
    assert cut.payload[start:].startswith(b"ann")
    assert reason == "a shared object message ends within a name"
