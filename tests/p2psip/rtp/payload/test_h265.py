"""NAL units and pictures of H.265 come out of packets whole or not at all."""

from collections import Counter

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.payload.h264_unpacker import H264Damage, NalUnit
from p2psip.rtp.payload.h265 import H265Fragment, aggregate, kind_of, pack_h265, read_h265
from p2psip.rtp.payload.h265_access_units import H265AccessUnitAssembler, H265Unpacker
from p2psip.strategies.video import h265_access_units, h265_payloads

IDR, INTER, SETS = b"\x26\x01\x80", b"\x02\x01\x80", (b"\x40\x01v", b"\x42\x01s", b"\x44\x01p")


def through(packets):
    """What an unpacker makes of (sequence, timestamp, marker, payload)."""
    unpacker = H265Unpacker()
    return [each for packet in packets for each in unpacker.push(*packet)]


def as_packets(pictures, size):
    """The packets of access units, 3000 ticks apart."""
    sequence, packets = 0xFFF0, []
    for at, units in enumerate(pictures):
        for payload, marker in pack_h265(units, size):
            packets.append((sequence, 3000 * at, marker, payload))
            sequence += 1
    return packets


@given(st.lists(h265_access_units(), max_size=4), st.integers(4, 80))
def test_unpacking_undoes_packing(pictures, size):
    """Covers RFC 7798 §4.4.1 [header-is-a-copy] [no-number-alone], §4.4.2 [aggregate-type]
    [two-units-and-they-fit] [no-number-in-aggregates] [no-difference-in-aggregates],
    §4.4.3 [fragments-follow-each-other] [fragment-type] [header-of-the-unit] [type-of-the-unit]
    [start-on-first-alone] [end-on-last-alone] [no-number-in-fragments] [not-in-one-fragment]
    [fragment-has-octets], §5 [order-of-decoding] and §4.1.
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
        content = read_h265(payload)
        if isinstance(content, H265Fragment):
            event("fragment")
            assert not (content.start and content.end) and bytes(content) == payload
            assert content.data
        elif len(content) > 1:
            event("aggregate")
            assert aggregate(content) == payload


@given(st.lists(h265_access_units(), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_what_is_lost_is_told_and_nothing_incomplete_comes_out(pictures, chance):
    """Covers RFC 7798 §4.4.3 [rest-discarded]."""
    packets = as_packets(pictures, 12)
    kept = [packet for packet in packets if chance.random() > 0.2]
    out = through(kept)
    whole = Counter((3000 * at, unit) for at, units in enumerate(pictures) for unit in units)
    came = Counter((each.timestamp, each.data) for each in out if isinstance(each, NalUnit))
    assert came <= whole
    if kept:
        lost = kept[-1][0] - kept[0][0] + 1 - len(kept)
        assert sum(each.lost for each in out if isinstance(each, H264Damage)) == lost
        event(f"lost: {bool(lost)}")


@given(mutations(h265_payloads()) | st.binary(max_size=40))
def test_any_octets_are_read_or_refused(data):
    """Covers RFC 7798 §4.4: what is read is no more than what came, and can be decoded."""
    try:
        content = read_h265(data)
    except RemoteError:
        event("refused")
        return
    event(type(content).__name__)
    if isinstance(content, H265Fragment):
        assert 0 < len(content.data) <= len(data) and kind_of(content.head) < 48
    else:
        assert sum(map(len, content)) <= len(data)
        assert all(len(unit) >= 2 and kind_of(unit) < 48 for unit in content)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 3), st.booleans(), mutations(h265_payloads())),
        max_size=30,
    )
)
def test_any_packets_in_any_order_make_units_of_what_came(packets):
    """Covers RFC 7798 §6 [other-types-are-kept-back]."""
    came = sum(len(payload) for *_, payload in packets)
    units = [each for each in through(packets) if isinstance(each, NalUnit)]
    assert sum(len(unit.data) for unit in units) <= came
    assert all(kind_of(unit.data) < 48 and not unit.data[0] & 0x80 for unit in units)


def test_an_aggregate_has_the_lowest_numbers_and_any_error():
    """Covers RFC 7798 §4.4.2 [aggregate-f] [aggregate-type] [aggregate-layer] [aggregate-tid]."""
    head = aggregate([b"\x43\x13a", b"\xc4\x22b", b"\x42\x1cc"])[:2]
    # layers 34, 4 and 3, temporal ids 3, 2 and 4, the second with its F bit set
    assert int.from_bytes(head, "big") == 0x8000 | 48 << 9 | 3 << 3 | 2


def test_small_units_of_one_picture_share_a_packet():
    """Covers RFC 7798 §5 [small-units-share] [sets-share-with-slices] [one-goes-alone]."""
    long = IDR + bytes(9)
    assert pack_h265([*SETS[1:], long], 14) == [(aggregate(SETS[1:]), False), (long, True)]


@pytest.mark.parametrize(
    "payload",
    [
        "", "42", "6001", "600100", "60010000", "6001000142", "600100034201",  # aggregates
        "6001000362014 2".replace(" ", ""), "6001000360014 2".replace(" ", ""),  # of a FU, an AP
        "6201", "620193", "6201b042", "6201b142", "6201b242",  # fragments of nothing, of 48 to 50
        "640100", "64016400420141",  # PACI, within a PACI
    ],
)  # fmt: skip
def test_what_is_refused(payload):
    """Covers RFC 7798 §4.4.2 [no-fragments-in-aggregates] [aggregates-not-nested],
    §4.4.3 [fragments-not-nested] [aggregates-not-fragmented] [fragment-has-octets], §4.4.4
    [paci-stands-alone].
    """
    with pytest.raises(RemoteError):
        read_h265(bytes.fromhex(payload))
    [damage] = through([(1, 0, True, bytes.fromhex(payload))])
    assert (damage.since, damage.until, damage.lost) == (0, 0, 0)


def test_types_without_a_meaning_are_no_loss():
    """Covers RFC 7798 §6 [other-types-are-kept-back], §4.4.4 [paci-stands-alone]."""
    paci = "0006 6401 0200 8041"
    assert read_h265(bytes.fromhex(f"6001 0003 420141 {paci}")) == (b"\x42\x01A",)
    assert read_h265(bytes.fromhex("660100")) == () == read_h265(bytes.fromhex("7e01"))
    assert read_h265(bytes.fromhex("6001 0003 420141 0003 660142")) == (b"\x42\x01A",)


def test_a_paci_packet_gives_what_it_carries():
    """Covers RFC 7798 §4.4.4 [paci-type] [extension-is-ignored].

    Three octets of extension, all its bits too, and a slice with its F bit clear and set.
    """
    assert read_h265(bytes.fromhex("6401 023f aabbcc 8041")) == (b"\x02\x01\x80A",)
    assert read_h265(bytes.fromhex("6401 0230 aabbcc 8041")) == (b"\x02\x01\x80A",)
    assert read_h265(bytes.fromhex("6401 8230 aabbcc 8041")) == (b"\x82\x01\x80A",)


@pytest.mark.parametrize("wrong", [(b"", 9), (b"\x42", 9), (b"\x60\x01a", 9), (IDR, 3)])
def test_what_cannot_be_packed(wrong):
    """Covers RFC 7798 §4.4: no NAL unit, or no room."""
    assert len(pack_h265([IDR], 9)) == 1
    with pytest.raises(LocalError):
        pack_h265([wrong[0]], wrong[1])


def pictures(*packets):
    """What comes out of (timestamp, marker, payload)."""
    unpacker, assembler, out = H265Unpacker(), H265AccessUnitAssembler(), []
    for at, (timestamp, marker, payload) in enumerate(packets):
        for item in unpacker.push(at, timestamp, marker, payload):
            out += assembler.push(item)
    return out


def test_units_of_one_time_are_a_picture():
    """Covers RFC 7798 §4.1: the sets and slices of a key frame, and one that depends on it."""
    second = b"\x26\x01\x42"
    first, other = pictures(
        *((0, False, unit) for unit in SETS),
        (0, False, IDR), (0, True, second), (3000, True, INTER), (6000, True, INTER),
    )[:2]  # fmt: skip
    assert first.units == (*SETS, IDR, second) and first.is_key and not first.damaged
    assert other.units == (INTER,) and not other.is_key


def test_a_stream_that_is_joined_within_a_picture_is_damaged():
    """Covers RFC 7798 §4.1: the first slice says that it is the first."""
    [picture] = pictures((0, True, b"\x26\x01\x42"), (3000, True, INTER))[:1]
    assert picture.damaged and picture.is_key


@pytest.mark.parametrize("units", [[*SETS, IDR], [IDR]])
def test_a_key_frame_that_begins_behind_a_loss_is_whole(units):
    """Covers RFC 7798 §4.4.3: what was lost is of pictures before it, which it does not need."""
    unpacker, assembler, out = H265Unpacker(), H265AccessUnitAssembler(), []
    packets = [(0, 0, True, INTER), *((5, 6000, False, unit) for unit in units)]
    for at, (skip, *rest) in enumerate([*packets, (5, 9000, True, INTER), (5, 12000, True, INTER)]):
        for item in unpacker.push(at + skip, *rest):
            out += assembler.push(item)
    assert [(each.timestamp, each.damaged) for each in out[:3]] == [
        (0, True), (6000, False), (9000, False),
    ]  # fmt: skip
