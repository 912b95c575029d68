"""Metadata and messages of flows, user control events and commands that only RTMFP has."""

import json
from collections import defaultdict

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.netconnection import messages as flash
from rtmplite.rtmfp.netconnection.messages import (
    FlowMetadata,
    FlowSynchronization,
    Intent,
    SetKeepaliveTimers,
)
from rtmplite.rtmfp.wire.vlu import decode_counted, decode_vlu
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType
from rtmplite.strategies import flash as strategies

CAPTURES = [
    "connect_play_nobody",
    "publish_play_h264_speex",
    "publish_play_nohmac_nosseq",
    "p2p_introduction",
]


def flows(path):
    """Metadata, association and whole messages of every flow of a decrypted capture, by its key."""
    parts, about = defaultdict(dict), {}
    for line in path.read_text().splitlines():
        packet = json.loads(line)
        for chunk in packet["chunks"]:
            data = bytes.fromhex(chunk["payload"])
            if chunk["type"] == 0x10:
                flow, at = decode_vlu(data, 1)
                number, at = decode_vlu(data, at)
                _, at = decode_vlu(data, at)
                key = packet["src"], packet["dst"], flow
                if data[0] & 0x80:
                    about[key], at = options(data, at)
            elif chunk["type"] == 0x11:
                number, at = number + 1, 1
            else:
                continue
            parts[key][number] = data[0] >> 4 & 3, data[at:]
    return {key: (about[key], list(whole(parts[key]))) for key in parts}


def options(data, at):
    """The options of the first fragment in a flow, by type."""
    read = {}
    while data[at]:
        option, at = decode_counted(data, at)
        kind, start = decode_vlu(option)
        read[kind] = option[start:]
    return read, at + 1


def whole(fragments):
    """The messages that all fragments are there of."""
    message, expected = None, 1
    for number, (position, data) in sorted(fragments.items()):
        if position in (0, 1):  # whole, begin
            message = b""
        elif number != expected:
            message = None
        expected = number + 1
        if message is not None:
            message += data
            if position in (0, 2):  # whole, end
                yield message
                message = None


@pytest.mark.parametrize("name", CAPTURES)
def test_what_peers_really_send(corpus, name):
    """Covers RFC 7425 §5.1.1 [signature] [stream-id-given].

    Every flow of the captures has such metadata, and streams have flows for each medium; all
    messages are written again byte for byte (§5.1.2 [header] [stream-from-flow]).
    """
    seen, streams = set(), defaultdict(set)
    for key, (about, messages) in flows(corpus / "rtmfp" / f"{name}.decrypted.jsonl").items():
        metadata = FlowMetadata.parse(about[0])
        assert bytes(metadata) == about[0]
        for raw in messages:
            message = flash.parse_message(raw, metadata.stream_id)
            assert flash.encode_message(message.type_id, message.timestamp, message.payload) == raw
            assert message.stream_id == metadata.stream_id
            streams[key[:2], metadata.stream_id].add(key)
            if message.type_id == MessageType.COMMAND:
                seen.add(Command.parse(message).name)
            elif (parsed := flash.parse_control(message)) is not None:
                seen.add(type(parsed).__name__)
            else:
                seen.add(message.type_id)
    assert {"connect", "_result", "setPeerInfo", "play", "StreamBegin"} <= seen
    if name.startswith("publish"):
        assert {8, 9, 18, "publish", "onStatus"} <= seen
        assert max(map(len, streams.values())) == 3


@given(strategies.metadata())
def test_metadata_are_read_as_they_were_written(metadata):
    """Covers RFC 7425 §5.1.1 [signature] [intent] [stream-id-present] [stream-id-given]."""
    raw = bytes(metadata)
    assert raw.startswith(b"TC") and raw[2] in (4, 5)
    assert FlowMetadata.parse(raw) == metadata


@given(strategies.odd_metadata())
def test_metadata_are_read_however_they_are_written(drawn):
    """Covers RFC 7425 §5.1.1 [intent]: reserved bits mean nothing, nor does what follows."""
    meant, raw = drawn
    assert FlowMetadata.parse(memoryview(raw)) == meant


def test_the_two_orders():
    """Covers RFC 7425 §5.1.1 [intent]."""
    assert FlowMetadata.parse(bytes.fromhex("54430407")).intent is Intent.QUEUING_ORDER
    assert FlowMetadata.parse(bytes.fromhex("54430507")) == FlowMetadata(7, Intent.NETWORK_ORDER)


@pytest.mark.parametrize("raw", ["", "54", "5443", "544304", "544404 05", "005443 04 05"])
def test_other_flows_are_rejected(raw):
    """Covers RFC 7425 §5.1.1 [rejects-unknown]."""
    with pytest.raises(RemoteError):
        FlowMetadata.parse(bytes.fromhex(raw))


@pytest.mark.parametrize("flags", [0, 1, 0xFB])
def test_flows_without_a_stream_are_rejected(flags):
    """Covers RFC 7425 §5.1.1 [rejects-without-stream]."""
    with pytest.raises(RemoteError, match="without a stream"):
        FlowMetadata.parse(b"TC" + bytes((flags, 5)))


def test_a_stream_id_has_24_bits():
    """Covers RFC 7425 §5.1 [stream-id-range]."""
    assert FlowMetadata.parse(b"TC\x04\x87\xff\xff\x7f").stream_id == 0xFFFFFF
    with pytest.raises(RemoteError):
        FlowMetadata.parse(b"TC\x04\x88\x80\x80\x00")


def test_a_message_as_drawn():
    """Covers RFC 7425 §5.1.2 [header] [stream-from-flow] and §5.1 [time-range]."""
    raw = flash.encode_message(9, 0xFFFFFFFE, b"picture")
    assert raw == b"\x09\xff\xff\xff\xfepicture"
    assert flash.parse_message(raw, 3) == Message(9, 0xFFFFFFFE, 3, b"picture")
    with pytest.raises(RemoteError):
        flash.parse_message(raw[:4], 3)


def test_a_barrier_as_drawn():
    """Covers RFC 7425 §5.2 [sync-layout] [time-ignored]."""
    barrier = FlowSynchronization(8, 2)
    message = barrier.message()
    assert message == Message(4, 0, 0, bytes.fromhex("0022 00000008 00000002"))
    assert flash.parse_control(Message(4, 99, 5, message.payload + b"more")) == barrier


def test_timers_as_drawn():
    """Covers RFC 7425 §5.3.4 [timer-layout] [time-ignored]."""
    timers = SetKeepaliveTimers(10_000, 60_000)
    message = timers.message()
    assert message == Message(4, 0, 0, bytes.fromhex("0029 00002710 0000ea60"))
    assert flash.parse_control(message) == timers


@pytest.mark.parametrize("payload", ["", "00", "0022", "0022 00000008 000000", "0029 0000", "0006"])
def test_a_control_message_that_is_cut_off(payload):
    """Nothing is made up: RTMP Errata §2 [errors-noticed]."""
    with pytest.raises(RemoteError):
        flash.parse_control(Message(4, 0, 0, bytes.fromhex(payload)))


@pytest.mark.parametrize("type_id", [1, 2, 3, 5, 6])
def test_what_is_about_chunks_is_ignored(type_id):
    """Covers RFC 7425 §5.1 [ignores-chunk-control]: even if it is broken."""
    assert flash.parse_control(Message(type_id, 0, 0, b"")) is None
    assert flash.parse_control(Message(type_id, 0, 0, bytes(8))) is None


def test_other_control_messages_are_those_of_rtmp():
    """And what is none is none."""
    assert flash.parse_control(control.StreamBegin(3).message()) == control.StreamBegin(3)
    assert flash.parse_control(Message(4, 0, 0, b"\x00\x23ab")) == control.OtherUserControl(
        35, b"ab"
    )
    assert flash.parse_control(Message(20, 0, 0, b"")) is None


@given(st.integers(0, 0xFFFFFFFF))
def test_a_client_has_limits_for_its_timers(advised):
    """Covers RFC 7425 §5.3.4 [client-minimum] [at-least-5] [client-maximum]."""
    assert flash.keepalive_period(4999) == 5
    assert flash.keepalive_period(5001) == 5.001
    assert 5 <= flash.keepalive_period(advised) <= flash.MAX_KEEPALIVE
    if 5000 <= advised <= flash.MAX_KEEPALIVE * 1000:
        assert flash.keepalive_period(advised) == advised / 1000


def test_peer_info_as_in_the_example():
    """Covers RFC 7425 §5.3.3 [layout] [address-format], with the addresses of Figure 3."""
    addresses = (("192.0.2.129", 50001), ("2001:db8:1::2", 50002))
    command = flash.peer_info(addresses)
    shown = ("192.0.2.129:50001", "[2001:db8:1::2]:50002")
    assert command == Command("setPeerInfo", 0.0, None, shown)
    assert flash.parse_peer_info(Command.parse(command.message())) == addresses


def test_peer_info_may_be_empty():
    """Covers RFC 7425 §5.3.3 [may-be-empty] [no-local]."""
    local = ["127.0.0.1", "::1", "169.254.3.4", "fe80::1", "0.0.0.0"]
    command = flash.peer_info((host, 1) for host in local)
    assert command.args == () and flash.parse_peer_info(command) == ()


@given(st.lists(strategies.addresses(), max_size=4))
def test_peer_info_is_read_as_it_was_written(addresses):
    """Covers RFC 7425 §5.3.3 [address-format] [no-local]."""
    command = flash.peer_info(addresses)
    read = flash.parse_peer_info(command)
    assert len(read) == len(command.args) and set(read) <= set(addresses)


@pytest.mark.parametrize(
    "text",
    ["", ":", "1.2.3.4", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:99999999", "h:1",
     "2001:db8::1:5", "[1.2.3.4]:5", "[2001:db8::1]", "1.2.3.4:+5", "1.2.3.4:٣", "1.2.3:4",
     "1.2.3.4:0000065536", "1.2.3.4:1" + "0" * 5000],
)  # fmt: skip
def test_what_is_no_address_is_left_out(text):
    """Covers RFC 7425 §5.3.3 [address-format]."""
    listed = Command("setPeerInfo", 0.0, None, (text, 5.0, "10.0.0.1:7"))
    assert flash.parse_peer_info(listed) == (("10.0.0.1", 7),)


@given(strategies.odd_peer_infos())
def test_addresses_are_found_among_others(drawn):
    """Covers RFC 7425 §5.3.3 [address-format]."""
    command, addresses = drawn
    assert flash.parse_peer_info(command) == addresses


def test_no_more_addresses_than_anybody_has():
    """A server keeps them for as long as the client is there."""
    command = Command("setPeerInfo", 0.0, None, ("10.0.0.1:7",) * 9999)
    assert len(flash.parse_peer_info(command)) == flash.MAX_ADDRESSES


def test_who_is_behind_a_nat():
    """Covers RFC 7425 §5.3.3 [nat-if-unlisted]."""
    listed = [("10.0.0.1", 7), ("2001:db8:0::1", 8)]
    assert not flash.is_behind_nat(listed, ("10.0.0.1", 7))
    assert not flash.is_behind_nat(listed, ("2001:db8::1", 8))
    assert flash.is_behind_nat(listed, ("10.0.0.1", 8)) and flash.is_behind_nat([], ("1.1.1.1", 1))


@given(mutations(strategies.flow_messages()))
def test_no_message_is_too_bad(data):
    """Anything is a message, or RemoteError; memory stays within bounds."""

    def read():
        try:
            message = flash.parse_message(memoryview(data), 1)
            event(f"type {message.type_id}")
            parsed = flash.parse_control(message)
            event(f"control {type(parsed).__name__}")
        except RemoteError:
            event("refused")

    assert peak(read) <= 32 * len(data) + 64 * 1024


@given(mutations(strategies.odd_metadata().map(lambda drawn: drawn[1])))
def test_no_metadata_are_too_bad(data):
    """Anything is metadata, or RemoteError."""
    try:
        FlowMetadata.parse(data)
        event("accepted")
    except RemoteError:
        event("refused")
