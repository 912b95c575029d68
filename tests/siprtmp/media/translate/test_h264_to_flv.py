"""A phone's pictures become tags that any player decodes, or are held back."""

from itertools import pairwise

import pytest
from support.gateway.h264_world import (
    AUD,
    END,
    FILLER,
    OTHER_PPS,
    PPS,
    SEI,
    SETS,
    SPS,
    main_sps,
    pass_on,
    picture,
    read,
    slice_of,
)

from p2psip.rtp.payload.h264_access_units import AccessUnit
from rtmplite.flv.video import VideoTag
from rtmplite.strategies.avc import BitWriter
from siprtmp.media.translate.video_to_flv import H264ToFlv


def test_the_sets_come_first_and_all_slices_of_a_picture_are_in_one_tag():
    """Covers FLV 10.1 §E.4.3.2 [full-frames] and RFC 6184 §5.1 [clock-of-90-khz]
    [timing-sei-ignored] [shown-by-rtp-time], §9 [no-user-data]: and nothing that a player does not
    need.
    """
    slices = tuple(slice_of(5, n, first=n) for n in range(4))
    machine = H264ToFlv()
    tags = pass_on(machine, [AccessUnit((AUD, *SETS, SEI, *slices, FILLER, END), 700, False)], 50)
    tags += machine.convert(picture(1, 700 + 3600, AUD), 99)
    assert read(tags) == [
        (50, "sets", SETS),
        (50, "key", slices),
        (90, "inter", (slice_of(1),)),
    ]
    assert machine.size == (320, 240) and not machine.wants_key_frame


def test_sets_of_the_description_do_where_none_come_in_the_stream():
    """Covers RFC 6184 §8.2.2 [sets-of-the-offer] [sets-of-the-answer]: sent once, in SDP, as some
    phones do.
    """
    machine = H264ToFlv([SPS, PPS, b"\x67", b"\x68", b"\x41\x80"])
    assert machine.size == (320, 240)
    assert [kind for _, kind, _ in read(machine.convert(picture(5, 0), 0))] == ["sets", "key"]


def test_nothing_passes_before_a_key_frame_with_its_sets():
    """Covers FLV 10.1 §E.4.3.2: a key frame is asked for as long as none could be used."""
    machine = H264ToFlv()
    assert machine.size is None and not machine.wants_key_frame
    assert machine.convert(AccessUnit(SETS[:1], 0, False), 0) == []
    assert not machine.wants_key_frame
    for each in (picture(1, 0), picture(5, 1), picture(5, 2, SPS), picture(5, 3, PPS, pps=1)):
        assert machine.convert(each, 0) == [] and machine.wants_key_frame
    assert [kind for _, kind, _ in read(machine.convert(picture(5, 4), 0))] == ["sets", "key"]
    assert not machine.wants_key_frame


def test_changed_sets_are_announced_at_the_time_of_their_picture():
    """Covers FLV 10.1 §E.4.3.2 [decoder-configuration]: once, and repetitions are none."""
    machine = H264ToFlv()
    tags = pass_on(
        machine,
        [
            picture(5, 0, *SETS),
            picture(5, 9000, *SETS),
            picture(5, 18000, SPS, OTHER_PPS),
            picture(1, 27000, PPS),
        ],
    )
    assert [(at, kind) for at, kind, _ in read(tags)] == [
        *((0, "sets"), (0, "key"), (100, "key")),
        *((200, "sets"), (200, "key"), (300, "sets"), (300, "inter")),
    ]
    assert [content[1] for _, kind, content in read(tags) if kind == "sets"] == [
        *(PPS, OTHER_PPS, PPS)
    ]


def test_the_sets_that_a_key_frame_refers_to_are_announced():
    """Covers FLV 10.1 §E.4.3.2 [decoder-configuration]: of several sequences its own, as a phone
    changes its size, and all sets of pictures of that sequence.
    """
    bits = BitWriter()
    bits.put(24, 0x42C01E)
    bits.exp_golomb(1, 0, 2, 1)  # id 1; the order of showing is that of decoding
    bits.put(1, 0)
    bits.exp_golomb(9, 8)
    bits.put(4, 0b1000)
    small = bits.unit(0x67)
    bits = BitWriter()
    bits.exp_golomb(1, 1)
    bits.put(8, 0)
    its_pps = bits.unit(0x68)
    machine = H264ToFlv([SPS, PPS, small, its_pps])
    assert read(machine.convert(picture(5, 0), 0))[0][2] == SETS and machine.size == (320, 240)
    tags = read(machine.convert(picture(5, 9, pps=1), 0))
    assert tags[0][2] == (small, its_pps) and machine.size == (160, 144)


def test_a_damaged_picture_freezes_until_the_next_key_frame():
    """Own design: a player shows the last whole picture rather than a broken one."""
    machine = H264ToFlv(SETS)
    pass_on(machine, [picture(5, 0), picture(1, 3000)])
    for each in (
        *(picture(1, 6000, damaged=True), picture(1, 9000), AccessUnit((), 12000, True)),
        *(picture(5, 15000, damaged=True), picture(1, 18000)),
    ):
        assert machine.convert(each, 0) == [] and machine.wants_key_frame
    assert [kind for _, kind, _ in read(machine.convert(picture(5, 21000), 0))] == ["key"]
    assert not machine.wants_key_frame and machine.freezes == 1  # one after the other is one
    assert machine.convert(picture(1, 24000), 0)


def test_a_new_source_begins_with_a_key_frame_and_time_goes_on():
    """Covers RFC 3550 §5.1: its timestamps have nothing to do with the old ones."""
    machine = H264ToFlv(SETS)
    pass_on(machine, [picture(5, 90_000), picture(1, 180_000)], 1000)
    machine.restart()
    assert machine.convert(picture(1, 5), 2500) == [] and machine.wants_key_frame
    [(at, body)] = machine.convert(picture(5, 3605), 2540)
    assert at in (2540, 2541) and body[:2] == b"\x17\x01"


def pyramid(groups, start):
    """Timestamps in the order of decoding of I B B B P ..., the middle one being a reference."""
    shown = [0]
    for at in range(groups):
        shown += [4 * at + 4, 4 * at + 2, 4 * at + 1, 4 * at + 3]
    return [start + 3600 * each & 0xFFFFFFFF for each in shown]


@pytest.mark.parametrize("start", [0, 0xFFFFFFFF - 3600 * 9])
@pytest.mark.parametrize("tells", [True, False])
def test_b_frames_get_composition_times(tells, start):
    """Covers FLV 10.1 §E.4.3.1 [composition-time]: time does not run backwards, and each picture is
    shown when its RTP timestamp says.
    """
    machine = H264ToFlv([main_sps(2 if tells else None), PPS])
    times = pyramid(9, start)
    tags = []
    for at, time in enumerate(times):
        tags += machine.convert(picture(1 if at else 5, time), 1000)[-1:]
    decode = [at for at, _ in tags]
    offsets = [VideoTag.parse(body).composition_time for _, body in tags]
    assert decode == sorted(decode) and len(decode) == len(times)
    shown = [at + offset for at, offset in zip(decode, offsets, strict=True)]
    assert shown == [1000 + (each - start & 0xFFFFFFFF) // 90 for each in times]
    settled = offsets if tells else offsets[5:]
    assert min(settled) >= 0 and max(offsets) <= 40 * 5
    if tells:
        assert all(b > a for a, b in pairwise(decode))


def test_a_clock_that_is_set_back_begins_anew():
    """Covers RFC 3550 §5.1: by little, which a key frame shows, or by much."""
    machine = H264ToFlv(SETS)
    times = []
    for kind, timestamp, arrival in (
        *((5, 900_000, 0), (1, 903_600, 40), (5, 870_000, 80), (1, 873_600, 120)),
        *((5, 100, 160), (1, 3700, 200)),
    ):
        times += [at for at, _ in machine.convert(picture(kind, timestamp), arrival)][-1:]
    assert times == [0, 40, 80, 120, 160, 200]
