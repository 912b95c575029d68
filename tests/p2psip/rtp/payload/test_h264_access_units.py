"""Pictures come out of NAL units whole, wherever the marker is, or are marked as damaged."""

from collections import Counter

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.payload.h264 import pack_h264
from p2psip.rtp.payload.h264_access_units import MAX_UNITS, AccessUnit, AccessUnitAssembler
from p2psip.rtp.payload.h264_unpacker import H264Damage, H264Unpacker, NalUnit
from p2psip.strategies.video import h264_payloads

NEXT = NalUnit(b"\x09\xf0", -1, False)
SPS, PPS, AUD, SEI = b"\x67\x42\xc0\x0c", b"\x68\xce", b"\x09\xf0", b"\x06\x05"


def slices(kind, count):
    """The slices of one picture: the first one begins with macroblock 0."""
    return [bytes((0x60 | kind, 0x80 if not at else 0x40, at)) for at in range(count)]


def slices_of(units):
    return [unit for unit in units if unit[0] & 0x1F in (1, 5)]


def stream():
    """Pictures as a phone makes them, each with any number of slices and units beside them."""
    picture = st.builds(
        lambda before, kind, count: [*before, *slices(kind, count)],
        st.lists(st.sampled_from([SPS, PPS, AUD, SEI]), max_size=3),
        st.sampled_from([1, 5]),
        st.integers(1, 5),
    )
    return st.lists(picture, min_size=1, max_size=8)


def assemble(items):
    """The pictures of a stream that goes on, for the last one may be waiting for the next."""
    assembler = AccessUnitAssembler()
    return [picture for item in [*items, NEXT] for picture in assembler.push(item)]


def packets_of(pictures, size=60, step=3000):
    """(extended sequence, timestamp, marker, payload) of each packet."""
    at, out = 100, []
    for number, units in enumerate(pictures):
        for payload, marker in pack_h264(units, size):
            out.append((at, number * step & 0xFFFFFFFF, marker, payload))
            at += 1
    return out


def through(packets):
    unpacker = H264Unpacker()
    return assemble([item for packet in packets for item in unpacker.push(*packet)])


@given(stream(), st.sampled_from(["last", "never", "any"]), st.data())
def test_slices_become_pictures_whatever_the_marker_says(pictures, rule, data):
    """Covers RFC 6184 §5.1 [marker-is-a-hint] [marker-on-last].

    Covers Field §"Markers of pictures".
    """
    items = []
    for at, units in enumerate(pictures):
        for place, unit in enumerate(units, 1):
            is_last = place == len(units)
            if rule == "any":
                is_last = data.draw(st.booleans()) if is_last else False
            items.append(NalUnit(unit, 3000 * at, is_last and rule != "never"))
    assert assemble(items) == [
        AccessUnit(tuple(units), 3000 * at, False) for at, units in enumerate(pictures)
    ]


def test_a_picture_does_not_wait_for_the_next_one_once_the_marker_has_proved_true():
    """Covers RFC 6184 §5.1 [marker-on-last]: the first picture waits, the others do not."""
    assembler, counts = AccessUnitAssembler(), []
    for at in range(4):
        first, second = slices(1, 2)
        counts.append(len(assembler.push(NalUnit(first, at, False))))
        counts.append(len(assembler.push(NalUnit(second, at, True))))
    assert counts == [0, 0, 1, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("count", [2, 5])
def test_a_marker_on_every_slice_ends_no_picture(count):
    """Covers RFC 6184 §5.1 [marker-is-a-hint]: found out with the first picture.

    Covers Field §"Markers of pictures".
    """
    items = [NalUnit(unit, at, True) for at in range(4) for unit in slices(5, count)]
    assert assemble(items) == [AccessUnit(tuple(slices(5, count)), at, False) for at in range(4)]


def test_a_marker_that_turns_out_false_later_costs_one_picture():
    """Covers RFC 6184 §5.1 [marker-is-a-hint]: what was cut in two is told, then no marker counts.

    Units without slices may lie between.
    """
    one, two = slices(5, 1), slices(1, 2)
    for between in ([], [SEI]):
        units = [(0, one), (1, one), (2, [two[0], *between, two[1]]), (3, two), (4, two)]
        items = [NalUnit(unit, at, unit != SEI) for at, picture in units for unit in picture]
        assert assemble(items) == [
            AccessUnit(tuple(one), 0, False),
            AccessUnit(tuple(one), 1, False),
            AccessUnit((two[0],), 2, False),
            AccessUnit((*between, two[1]), 2, True),
            AccessUnit(tuple(two), 3, False),
            AccessUnit(tuple(two), 4, False),
        ]


def test_a_stream_that_is_joined_within_a_picture():
    """Covers RFC 6184 §5.8: the slices that came before are told, once."""
    assert assemble([NalUnit(slices(5, 3)[1], 0, True), NalUnit(slices(1, 1)[0], 1, True)]) == [
        AccessUnit((slices(5, 3)[1],), 0, True),
        AccessUnit(tuple(slices(1, 1)), 1, False),
    ]


def test_parameter_sets_with_a_marker_or_a_time_of_their_own():
    """Covers RFC 6184 §5.1: they end no picture, and are not lost."""
    [slice_] = slices(5, 1)
    items = [NalUnit(SPS, 0, True), NalUnit(PPS, 0, True), NalUnit(slice_, 0, True)]
    assert assemble(items) == [AccessUnit((SPS, PPS, slice_), 0, False)]
    items = [NalUnit(SPS, 0, True), NalUnit(PPS, 0, True), NalUnit(slice_, 9, True)]
    assert assemble(items) == [AccessUnit((SPS, PPS), 0, False), AccessUnit((slice_,), 9, False)]


def test_damage_marks_every_picture_that_it_touches():
    """Covers RFC 6184 §5.8: the one before, the one after, and one of which nothing came."""
    [one] = slices(1, 1)
    before = [NalUnit(one, 0, True), NalUnit(one, 1, False)]
    damage = H264Damage(1, 2, 3, "packets lost")
    assert assemble([*before, damage, NalUnit(one, 2, True), NalUnit(one, 3, True)]) == [
        AccessUnit((one,), 0, False),
        AccessUnit((one,), 1, True),
        AccessUnit((one,), 2, True),
        AccessUnit((one,), 3, False),
    ]
    alone = H264Damage(2, 2, 0, "H.264 payload of type 0")
    assert assemble([*before, alone, NalUnit(one, 3, True)])[1:] == [
        AccessUnit((one,), 1, True),
        AccessUnit((), 2, True),
        AccessUnit((one,), 3, False),
    ]


@pytest.mark.parametrize(
    "units",
    [
        [AUD, SPS, PPS, *slices(5, 3)],
        [SPS, PPS, *slices(5, 2)],
        [PPS, SEI, *slices(5, 1)],
        slices(5, 4),
    ],
    ids=["delimiter", "SPS", "first slice behind others", "first slice"],
)
def test_a_key_frame_that_begins_behind_a_loss_is_whole(units):
    """Covers RFC 6184 §5.8: what was lost is of pictures before it, which it does not need."""
    inter = slices(1, 1)
    packets = packets_of([inter, inter, inter, units, inter])
    out = through([packet for packet in packets if packet[1] != 2 * 3000])
    assert out[2:] == [
        AccessUnit(tuple(units), 9000, False),
        AccessUnit(tuple(inter), 12000, False),
    ]


LOST = None  # a packet


@pytest.mark.parametrize(
    "came",
    [
        slices(5, 3)[1:],
        [SEI, *slices(5, 3)[1:]],
        [AUD, slices(5, 3)[0], LOST, slices(5, 3)[2]],
        [AUD, LOST, *slices(5, 3)[1:]],
        [SPS, PPS, *slices(1, 1)],
        slices(1, 2),
    ],
    ids=["rest", "SEI and rest", "a slice lost", "first slice lost", "SPS, no key frame", "inter"],
)
def test_a_picture_behind_a_loss_that_may_be_its_own_is_damaged(came):
    """Covers RFC 6184 §5.8: or one that is built on what is lost."""
    items = [NalUnit(slices(1, 1)[0], 0, True), H264Damage(0, 2, 1, "packets lost")]
    for unit in came:
        items.append(
            H264Damage(2, 2, 1, "packets lost") if unit is LOST else NalUnit(unit, 2, False)
        )
    assert assemble(items)[-1].damaged


@given(stream(), st.integers(3, 20), st.randoms(use_true_random=False))
def test_no_picture_that_lacks_anything_passes_for_whole(pictures, size, chance):
    """Covers RFC 6184 §5.8 and §5.1 [marker-is-a-hint]: the packets that are lost are any."""
    packets = packets_of(pictures, size)
    kept = [packet for packet in packets if chance.random() > 0.15]
    whole = {3000 * at: tuple(units) for at, units in enumerate(pictures)}
    out = through(kept)
    for picture in out:
        if not picture.damaged and kept[0][1] < picture.timestamp < kept[-1][1]:
            units = whole[picture.timestamp]
            assert picture.units == units or picture.is_key
            if picture.is_key:  # what was lost before it may have been its own, but no slice
                assert picture.units == units[-len(picture.units) :]
                assert slices_of(picture.units) == slices_of(units)
    # A picture that did not come out as it was is followed, or shown, by one that is damaged, or
    # by a key frame.
    came = {each.timestamp for each in out if not each.damaged}
    missing = [at for at in whole if at not in came and kept and kept[0][1] < at < kept[-1][1]]
    damaged = [each.timestamp for each in out if each.damaged or each.is_key]
    event(f"damaged: {bool(damaged)}")
    assert all(any(at <= each for each in damaged) for at in missing)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 3), st.booleans(), mutations(h264_payloads())),
        max_size=40,
    )
)
def test_any_packets_make_pictures_of_what_came(packets):
    """Covers RFC 6184 §5.1: no octet comes out twice."""
    out = through(packets)
    came = Counter(octet for *_, payload in packets for octet in payload)
    assert sum(len(unit) for each in out for unit in each.units) <= came.total()


def test_a_picture_without_an_end_takes_no_more_memory_than_a_limit(monkeypatch):
    """Own design: a forged stream of one timestamp is cut off, and told."""
    assembler = AccessUnitAssembler()
    for _ in range(2 * MAX_UNITS):
        assert assembler.push(NalUnit(b"\x41\x80", 0, False)) == []
    [picture] = assembler.push(NEXT)
    assert picture.damaged and len(picture.units) == MAX_UNITS
    monkeypatch.setattr("p2psip.rtp.payload.h264_access_units.MAX_OCTETS", 10)
    assert assemble([NalUnit(b"\x41\x80345", 0, False)] * 9) == [
        AccessUnit((b"\x41\x80345",) * 2, 0, True)
    ]


@pytest.mark.parametrize(
    ("name", "port", "frames", "count"),
    [
        ("rtp/h264_fua_stapa_4slices", 20000, 72, 4),
        ("rtp/h264_single_nal_multislice", 20004, 48, None),
        ("sip/sip_call_av_speex16k_h264", 23202, None, 2),
    ],
)
def test_captured_streams(capture, name, port, frames, count):
    """Covers RFC 6184 §5.1 [marker-on-last]: every picture of a timestamp, and once."""
    packets = [RtpPacket.parse(each.data) for each in capture(f"{name}.pcap") if each.port == port]
    first = packets[0].sequence
    raw = [
        (each.sequence - first & 0xFFFF, each.timestamp, each.marker, each.payload)
        for each in packets
    ]
    out = through(raw)
    assert not any(each.damaged for each in out)
    assert [each.timestamp for each in out] == list(dict.fromkeys(each[1] for each in raw))
    assert frames in (None, len(out)) and out[0].is_key
    kinds = [Counter(unit[0] & 0x1F for unit in each.units) for each in out]
    assert count is None or all(each[1] + each[5] == count for each in kinds)
    assert through((at, time, False, payload) for at, time, _, payload in raw) == out
