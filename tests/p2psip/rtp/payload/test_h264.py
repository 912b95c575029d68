"""NAL units come out of packets whole or not at all, and what is missing is told."""

from collections import Counter

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.payload.h264 import H264Fragment, aggregate, pack_h264, read_h264
from p2psip.rtp.payload.h264_unpacker import H264Damage, H264Unpacker, NalUnit
from p2psip.strategies.video import access_units, h264_payloads, nal_units


def through(packets):
    """What an unpacker makes of (sequence, timestamp, marker, payload)."""
    unpacker = H264Unpacker()
    return [each for packet in packets for each in unpacker.push(*packet)]


def as_packets(pictures, size, mode=1):
    """The packets of access units, 3000 ticks apart."""
    sequence, packets = 0xFFF0, []
    for at, units in enumerate(pictures):
        for payload, marker in pack_h264(units, size, mode):
            packets.append((sequence, 3000 * at, marker, payload))
            sequence += 1
    return packets


@given(st.lists(access_units(), max_size=4), st.integers(3, 80))
def test_unpacking_undoes_packing(pictures, size):
    """Covers RFC 6184 §7.1 [order-of-the-packet] [fragments-in-order], §5.8 [each-octet-once]
    [not-in-one-fragment] [nri-of-the-nal-unit] [fragments-follow-each-other] [joined-in-order],
    §5.1 [marker-on-last] [aggregate-marker], §5.7 [aggregate-fits], §6.1 [slices-in-order],
    §5.5 [order-without-depth] [order-of-mode-1] [order-in-aggregates] and §6.3 [decoding-order]
    [mode-1-is-read].
    """
    packets = as_packets(pictures, size)
    assert all(len(payload) <= size for *_, payload in packets)
    assert [marker for _, _, marker, _ in packets].count(True) == len(pictures)
    assert through(packets) == [
        NalUnit(unit, 3000 * at, place == len(units))
        for at, units in enumerate(pictures)
        for place, unit in enumerate(units, 1)
    ]
    for *_, payload in packets:
        content = read_h264(payload)
        if isinstance(content, H264Fragment):
            event("fragment")
            assert not (content.start and content.end) and bytes(content) == payload
        elif len(content) > 1:
            event("aggregate")
            assert aggregate(content) == payload


@given(st.lists(access_units(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_is_lost_is_told_and_nothing_incomplete_comes_out(pictures, chance):
    """Covers RFC 6184 §5.8 [rest-discarded]."""
    packets = as_packets(pictures, 12)
    kept = [packet for packet in packets if chance.random() > 0.2]
    if chance.random() < 0.5:
        kept = [packet for packet in kept for _ in range(chance.choice([1, 2]))]  # duplicates
    out = through(kept)
    whole = Counter((3000 * at, unit) for at, units in enumerate(pictures) for unit in units)
    came = Counter((each.timestamp, each.data) for each in out if isinstance(each, NalUnit))
    assert came <= whole
    damages = [each for each in out if isinstance(each, H264Damage)]
    if kept:
        first, last = kept[0][0], kept[-1][0]
        lost = last - first + 1 - len({packet[0] for packet in kept})
        assert sum(damage.lost for damage in damages) == lost
        event(f"lost: {bool(lost)}")
        # Between the first and the last packet every missing unit lies in a span that was told.
        between = [each for each in (whole - came) if kept[0][1] < each[0] < kept[-1][1]]
        assert all(
            any(damage.since <= at <= damage.until for damage in damages) for at, _ in between
        )


def test_a_beginning_that_is_lost_is_told_once():
    """Covers RFC 6184 §5.8 [rest-discarded]."""
    packets = as_packets([[b"\x65" + bytes(5)], [b"\x65" + bytes(60)]], 12)
    assert len(packets) > 4
    picture, *damages = through(packets[:1] + packets[2:])
    assert isinstance(picture, NalUnit)
    assert [each.reason for each in damages] == ["packets lost"]


@pytest.mark.parametrize(("size", "count"), [(9, 1), (8, 2)])
def test_units_share_a_payload_that_has_room(size, count):
    """Covers RFC 6184 §5.7 [aggregate-fits]: an octet, and two more before each unit."""
    assert len(pack_h264([b"\x41a", b"\x41b"], size)) == count


@given(st.lists(nal_units(), min_size=1, max_size=5))
def test_mode_0_has_a_packet_for_each(units):
    """Covers RFC 6184 §6.2 [single-only] [mode-0-is-read] [decoding-order], §5.5 [order-of-mode-0],
    §5.6 [single-holds-one] [decoding-order] and §5.1 [one-nal-unit-goes-alone].
    """
    longest = max(map(len, units))
    payloads = [payload for payload, _ in pack_h264(units, max(longest, 3), mode=0)]
    assert payloads == units and [read_h264(each) for each in payloads] == [(u,) for u in units]
    if longest > 3:
        with pytest.raises(LocalError):
            pack_h264(units, longest - 1, mode=0)


def test_an_aggregate_has_the_highest_priority_and_any_error():
    """Covers RFC 6184 §5.7 [aggregate-f] [aggregate-nri] [aggregate-type]."""
    assert aggregate([b"\x21a", b"\x41bc"]).hex() == "58 0002 2161 0003 416263".replace(" ", "")
    assert aggregate([b"\x61a", b"\x81b"])[0] == 0x80 | 0x60 | 24


def test_small_units_of_one_picture_share_a_packet():
    """Covers RFC 6184 §5.7.1 [one-time-is-aggregated] and §5.1 [one-nal-unit-goes-alone]."""
    sets = [b"\x67a", b"\x68b"]
    assert pack_h264([*sets, b"\x65" + bytes(9)], 12) == [
        (aggregate(sets), False),
        (b"\x65" + bytes(9), True),
    ]


@given(mutations(h264_payloads()) | st.binary(max_size=40))
def test_any_octets_are_read_or_refused(data):
    """Covers RFC 6184 §5.2: and what is read is no more than what came."""
    try:
        content = read_h264(data)
    except RemoteError:
        event("refused")
        return
    size = len(content.data) if isinstance(content, H264Fragment) else sum(map(len, content))
    event(type(content).__name__)
    assert size <= len(data)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 3), st.booleans(), mutations(h264_payloads())),
        max_size=30,
    )
)
def test_any_packets_in_any_order_make_units_of_what_came(packets):
    """Covers RFC 6184 §7.1."""
    out = through(packets)
    came = sum(len(payload) for *_, payload in packets)
    units = [each for each in out if isinstance(each, NalUnit)]
    assert sum(len(unit.data) for unit in units) <= came
    assert all(unit.kind in range(1, 24) and not unit.data[0] & 0x80 for unit in units)


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "18", "1800", "180000", "18000341", "18000278ff", "1800021c85",  # of STAP-A
        "19000000024142", "1a0000000141", "1b0000000141", "1d850000", # STAP-B, MTAPs, FU-B
        "1c", "1c98", "1c9c",  # FU-A without header, of types 24 and 28
    ],
)  # fmt: skip
def test_what_is_refused(payload):
    """Covers RFC 6184 §6.3 [no-interleaved-packets], §5.7 [aggregates-not-nested]
    [aggregates-without-fragments] and §5.8 [fragments-not-nested] [aggregates-not-fragmented]
    [no-fu-b].
    """
    assert read_h264(bytes.fromhex("7c8541"))
    with pytest.raises(RemoteError):
        read_h264(bytes.fromhex(payload))
    [damage] = through([(1, 0, True, bytes.fromhex(payload))])
    assert (damage.since, damage.until, damage.lost) == (0, 0, 0)


@pytest.mark.parametrize("payload", ["00", "1e00", "1f", "1c80", "7c1e00", "7c5f", "18 0002 1e00"])
def test_reserved_types_are_no_loss(payload):
    """Covers RFC 6184 §5.4 [reserved-types-ignored]: they come out as nothing, others as ever."""
    data = bytes.fromhex(payload)
    assert read_h264(data) == ()
    slices = NalUnit(b"\x65a", 0, False), NalUnit(b"\x65b", 0, True)
    packets = [(1, 0, False, b"\x65a"), (2, 0, False, data), (3, 0, True, b"\x65b")]
    assert through(packets) == list(slices)
    assert read_h264(bytes.fromhex("18 0001 41 0001 1e 0001 42")) == (b"\x41", b"\x42")


def test_a_fragment_may_be_empty():
    """Covers RFC 6184 §5.8 [fragment-may-be-empty]."""
    assert read_h264(b"\x7c\x85") == H264Fragment(0x65, b"", start=True)
    packets = [(1, 0, False, b"\x7c\x85"), (2, 0, False, b"\x7c\x05a"), (3, 0, True, b"\x7c\x45")]
    assert through(packets) == [NalUnit(b"\x65a", 0, True)]


def test_the_reserved_bit_is_ignored():
    """Covers RFC 6184 §5.8 [reserved-bit] [no-fu-b]."""
    assert read_h264(bytes.fromhex("7ca501")) == H264Fragment(0x65, b"\x01", start=True)
    assert bytes(H264Fragment(0x65, b"\x01", start=True)).hex() == "7c8501"


def fragment(start, end, header=0x65):
    return bytes(H264Fragment(header, b"ab", start, end))


@pytest.mark.parametrize(
    ("packets", "reasons"),
    [
        # the end never comes: another begins, another kind follows, or another time
        ([(0, fragment(True, False)), (0, fragment(True, True))], ["without an end", "whole"]),
        ([(0, fragment(True, False)), (0, b"\x41z")], ["without an end", "whole"]),
        ([(0, fragment(True, False)), (1, fragment(False, True))],
         ["without an end", "without a beginning"]),
        ([(0, fragment(True, False)), (0, fragment(False, True, 0x61))], ["without an end"]),
        ([(0, fragment(False, False)), (0, fragment(False, True)), (0, b"\x41z")],
         ["without a beginning", "whole"]),
        ([(0, fragment(True, True, 0xE5))], ["with errors"]),
        ([(0, b"\xc1z")], ["with errors"]),
    ],
)  # fmt: skip
def test_broken_sequences_of_fragments(packets, reasons):
    """Covers RFC 6184 §5.8 and §5.3 [errors-are-a-loss]: each is told once."""
    out = through([(at, time, False, payload) for at, (time, payload) in enumerate(packets)])
    assert [
        "whole" if isinstance(each, NalUnit) else each.reason.removeprefix("a NAL unit ")
        for each in out
    ] == reasons


def test_a_unit_without_an_end_takes_no_more_memory_than_a_picture(monkeypatch):
    """Own design: a forged stream of fragments is cut off."""
    monkeypatch.setattr("p2psip.rtp.payload.h264_unpacker.MAX_UNIT_OCTETS", 640)
    unpacker, damages = H264Unpacker(), []
    for at in range(500):
        damages += unpacker.push(at, 0, False, fragment(at == 0, False))
        assert unpacker._octets <= 640 and len(unpacker._parts) <= 10
    assert [damage.reason for damage in damages] == ["a NAL unit that is too long"]


@pytest.mark.parametrize(
    "wrong", [(b"", 9), (b"\x00", 9), (b"\x1e", 9), (b"\x78", 9), (b"\x7c\x85", 9), (b"\x41", 2)]
)
def test_what_cannot_be_packed(wrong):
    """Covers RFC 6184 §5.4 [reserved-types-unsent] and §5.7 [aggregates-without-fragments]."""
    assert len(pack_h264([b"\x41a"], 9)) == 1
    with pytest.raises(LocalError):
        pack_h264([wrong[0]], wrong[1])


@pytest.mark.parametrize(
    ("name", "kinds", "frames", "port"),
    [
        ("h264_fua_stapa_4slices", {"H264Fragment": 245, "tuple": 72}, 72, 20000),
        ("h264_single_nal_multislice", {"tuple": 383}, 48, 20004),
    ],
)
def test_captured_streams(capture, name, kinds, frames, port):
    """Covers RFC 6184 §7.1, of ffmpeg and GStreamer, and repacking them for another link."""
    packets = [
        RtpPacket.parse(each.data) for each in capture(f"rtp/{name}.pcap") if each.port == port
    ]
    assert Counter(type(read_h264(each.payload)).__name__ for each in packets) == kinds
    first = packets[0].sequence
    out = through(
        (each.sequence - first & 0xFFFF, each.timestamp, each.marker, each.payload)
        for each in packets
    )
    assert all(isinstance(each, NalUnit) for each in out)
    assert sum(each.last for each in out) == len({each.timestamp for each in out}) == frames
    pictures = {}
    for each in out:
        pictures.setdefault(each.timestamp, []).append(each.data)
    again = through(as_packets(pictures.values(), 300))
    assert [each.data for each in again] == [each.data for each in out]
