"""H.265 between tags and packets: with its parameter sets, in time, and never broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gateway.h265_world import (
    DELIMITER,
    HEADER,
    PPS,
    SEI,
    SETS,
    SPS,
    VPS,
    header,
    idr,
    inter,
    picture,
    read,
    tag,
)
from support.mutations import mutations

from p2psip.rtp.payload.h265_access_units import H265AccessUnitAssembler, H265Unpacker
from rtmplite.flv.enhanced_video import ExVideoTag, VideoPacketType
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.flv_to_video import FlvToH265
from siprtmp.media.translate.video_tag import H265, codec_of
from siprtmp.media.translate.video_to_flv import H265ToFlv

OTHER_PPS = b"\x44\x01\x70\x73\xc1\x89"  # of number 2


def frames_of(packets):
    """(units, ticks) of each picture, as a phone unpacks them."""
    unpacker, assembler, out = H265Unpacker(), H265AccessUnitAssembler(), []
    for at, packet in enumerate(packets):
        for item in unpacker.push(at, packet.ticks, packet.marker, packet.payload):
            out += assembler.push(item)
    for item in unpacker.push(len(packets), -1, False, DELIMITER):
        out += assembler.push(item)
    return [(each.units, each.timestamp) for each in out]


def packets(machine, *bodies):
    return [p for at, body in enumerate(bodies) for p in machine.convert(body, 40 * at)]


def test_a_phone_gets_the_sets_before_each_key_frame():
    """Covers RFC 7798 §4.1 [clock-is-90000] [sets-have-the-time-of-their-picture]: and nothing
    that it does not need, at the time of showing.
    """
    machine = FlvToH265(100)
    sent = packets(
        machine, HEADER, tag(inter()), tag(DELIMITER, SEI, idr(1, 200), key=True),
        tag(inter(2), composition=80), tag(idr(3), key=True),
    )  # fmt: skip
    assert all(len(packet.payload) <= 100 for packet in sent)
    assert frames_of(sent) == [
        ((*SETS, idr(1, 200)), 7200),
        ((inter(2),), 10_800 + 7200),
        ((*SETS, idr(3)), 14_400),
    ]
    assert machine.size == (322, 244) and machine.anew().size == (0, 0)


def test_sets_that_change_are_announced():
    """Covers RFC 7798 §4.1: also before a picture that is no key frame."""
    machine = FlvToH265()
    packets(machine, HEADER, tag(idr(), key=True))
    sent = packets(machine, header([VPS], [SPS], [PPS, OTHER_PPS]), tag(inter(1)), tag(inter(2)))
    assert [units for units, _ in frames_of(sent)] == [
        (*SETS, OTHER_PPS, inter(1)),
        (inter(2),),
    ]


def test_hevc_by_number_is_packed_as_by_name():
    """Covers RFC 7798 §4.1 and Field §"HEVC and AV1 by number"."""

    def by_number(body):
        data = ExVideoTag.parse(body).tracks[0].data
        return bytes((body[0] & 0x70 | 12, bool(body[0] & 0x0F))) + bytes(3) + data

    machine, other = FlvToH265(), FlvToH265()
    for at, body in enumerate([HEADER, tag(idr(), key=True), tag(inter())]):
        assert codec_of(by_number(body)) == codec_of(body) == H265
        assert machine.convert(by_number(body), 40 * at) == other.convert(body, 40 * at)
    assert machine.size == other.size == (322, 244)
    with pytest.raises(UnsuitableError, match="AVC"):
        machine.convert(b"\x17\x01" + bytes(9), 0)


def test_nothing_leaves_without_sets():
    for before in ([], [header([], [SPS], [PPS])]):
        with pytest.raises(UnsuitableError, match="without parameter sets"):
            packets(FlvToH265(), *before, tag(idr(), key=True))
    in_the_picture = packets(FlvToH265(), tag(*SETS, idr(), key=True))
    assert [units for units, _ in frames_of(in_the_picture)] == [(*SETS, idr())]


@pytest.mark.parametrize(
    "body",
    [b"\x17\x01\0\0\0" + bytes(9), b"\x91vp08" + bytes(9), b"\x91hv", b"\x91hvc1\0\0\0\0\0\0\x09a"],
)
def test_other_codecs_and_rubbish_are_unsuitable(body):
    machine = FlvToH265()
    packets(machine, HEADER, tag(idr(), key=True))
    with pytest.raises(UnsuitableError):
        machine.convert(body, 40)
    assert machine.convert(tag(b"", key=True, kind=VideoPacketType.SEQUENCE_END), 40) == []


@given(mutations(st.sampled_from([HEADER, tag(*SETS, idr(), key=True)])))
def test_any_octets_are_packed_or_unsuitable(body):
    """Own design: never another error."""
    try:
        sent = FlvToH265(100).convert(body, 0)
    except UnsuitableError:
        return
    assert all(len(packet.payload) <= 100 for packet in sent)


def test_the_sets_come_first_and_all_slices_of_a_picture_are_in_one_tag():
    """Covers RFC 7798 §4.1 [shown-by-rtp-time] and E-RTMP v2 §"Enhanced Video": and nothing that a
    player does not need.
    """
    slices = idr(1), idr(2, first=False)
    machine = H265ToFlv()
    tags = machine.convert(picture(700, DELIMITER, *SETS, SEI, *slices), 50)
    tags += machine.convert(picture(700 + 3600, inter(1)), 99)
    assert [each[1:] for each in read(tags)] == [
        ("sets", SETS), ("key", slices), ("inter", (inter(1),)),
    ]  # fmt: skip
    shown = [at + ExVideoTag.parse(body).tracks[0].composition_time for at, body in tags[1:]]
    assert shown == [50, 90] and tags[1][0] < 50  # B-frames may come, says the set
    assert machine.size == (322, 244) and not machine.wants_key_frame


def test_sets_of_the_description_do_where_none_come_in_the_stream():
    """Covers RFC 7798 §7: those that make no sense are none."""
    machine = H265ToFlv([*SETS, b"\x42", b"\x42\x01\xff", b"\x02\x01\x80"])
    assert machine.size == (322, 244)
    assert [kind for _, kind, _ in read(machine.convert(picture(0, idr()), 0))] == ["sets", "key"]


@pytest.mark.parametrize("missing", SETS)
def test_nothing_passes_before_a_key_frame_with_its_sets(missing):
    machine = H265ToFlv()
    sets = [each for each in SETS if each != missing]
    for each in (picture(0, inter()), picture(3000, *sets, idr())):
        assert machine.convert(each, 0) == [] and machine.wants_key_frame
    assert len(machine.convert(picture(6000, missing, idr()), 0)) == 2


def test_a_loss_freezes_the_picture_until_a_key_frame():
    """Covers RFC 7798 §4.4.3: nothing that depends on what is lost is passed on."""
    machine = H265ToFlv(SETS)
    assert machine.convert(picture(0, idr()), 0)
    assert not machine.convert(picture(3000, inter(), damaged=True), 33)
    assert not machine.convert(picture(6000, inter()), 66)
    assert machine.wants_key_frame and machine.freezes == 1
    assert [kind for _, kind, _ in read(machine.convert(picture(9000, idr()), 99))] == ["key"]


def test_sets_of_another_number_wait_for_a_slice_that_needs_them():
    """Covers E-RTMP v2 §"Enhanced Video": both are in the record then."""
    machine = H265ToFlv(SETS)
    machine.convert(picture(0, idr()), 0)
    [(_, kind, sets), _] = read(machine.convert(picture(3000, OTHER_PPS, inter()), 33))
    assert kind == "sets" and sets == (*SETS, OTHER_PPS)


@given(st.lists(mutations(st.sampled_from([*SETS, idr(), inter()])), max_size=8))
def test_any_units_become_tags_or_nothing(units):
    """Own design: no error, whatever a phone sends."""
    kept = tuple(unit for unit in units if unit)
    for _, body in H265ToFlv().convert(picture(0, *kept), 0):
        assert body[:1] >= b"\x80"
