"""What encoders send is mended before anybody keeps, packs or plays it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gateway import h265_world
from support.gateway.h264_world import (
    AUD,
    HEADER,
    OTHER_PPS,
    PPS,
    SEI,
    SPS,
    header_of,
    slice_of,
    tag_of,
)
from support.mutations import mutations

from rtmplite.flv.avc import AvcConfig, join_units
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.hevc import HevcConfig
from rtmplite.flv.published_video import HOLD, MAX_FRAME, MAX_SET, MAX_SETS, PublishedVideo
from rtmplite.flv.video import FrameType
from rtmplite.strategies.avc import BitWriter

KEY, INTER = FrameType.KEY, FrameType.INTER
OTHER_SPS = bytes.fromhex("6742c01fd90141fb011000000300100000030140f1832480")  # of the same number
SECOND_PPS = bytes.fromhex("685ce3c8")  # of another number
VIDEO, AUDIO, DATA = 9, 8, 18
SECOND = (  # the same, with the number 1 each
    bytes.fromhex("6742c00c568141fb011000000300100000030180f142aa00"),
    bytes.fromhex("6848e3c800"),
)


class Tape:
    """A sink that keeps all."""

    def __init__(self):
        self.messages, self.is_over = [], False

    def write(self, type_id, timestamp, payload, now):
        self.messages.append((type_id, timestamp, payload))

    def end(self, now):
        self.is_over = True

    @property
    def video(self):
        return [(at, body) for kind, at, body in self.messages if kind == VIDEO]


def passed(*messages, end=True):
    """What comes out of video messages (time, body), or whole ones."""
    tape = Tape()
    pictures = PublishedVideo(tape)
    for message in messages:
        pictures.write(*(message if len(message) == 3 else (VIDEO, *message)), 0.0)
    if end:
        pictures.end(0.0)
        assert tape.is_over
    return tape.video if {kind for kind, *_ in tape.messages} == {VIDEO} else tape.messages


def bits(number):
    """How a picture parameter set of that number begins, which is of the sequence 0."""
    writer = BitWriter()
    writer.exp_golomb(number, 0)
    return writer.unit(0)[1:]


def key(*units):
    return tag_of(KEY, units)


def inter(*units):
    return tag_of(INTER, units)


def enhanced(body):
    """The same with the FourCC of AVC."""
    kind = VideoPacketType.CODED_FRAMES if body[1] else VideoPacketType.SEQUENCE_START
    return bytes(ExVideoTag(body[0] >> 4, kind, (VideoTrack(VideoFourCc.AVC, body[5:]),)))


def by_number(body):
    """A tag of HEVC with the number 12 in place of the FourCC."""
    tag = ExVideoTag.parse(body)
    is_header = tag.packet_type == VideoPacketType.SEQUENCE_START
    head = bytes((tag.frame_type << 4 | 12, not is_header))
    return head + bytes(3) + tag.tracks[0].data


IDR, P = slice_of(5, 1), slice_of(1, 2)


@pytest.mark.parametrize("form", [bytes, enhanced])
def test_sets_in_a_message_of_their_own_make_a_header(form):
    """Covers FLV 10.1 §E.4.3.2: as DJI and many hardware encoders send them."""
    sets, picture = form(key(SPS, PPS)), form(key(IDR))
    whole = form(key(SPS, PPS, IDR))
    assert passed((0, sets), (40, picture)) == [(40, form(HEADER)), (40, whole)]
    two = [(0, form(key(AUD, SPS))), (1, form(key(PPS, SEI))), (40, picture)]
    assert passed(*two)[0] == (40, form(HEADER))
    again = [(0, sets), (40, picture), (80, sets), (80, picture), (120, form(inter(P)))]
    assert passed(*again) == [
        (40, form(HEADER)), (40, whole), (80, whole), (120, form(inter(P))),
    ]  # fmt: skip


def test_sets_among_the_pictures_make_a_header():
    """Covers FLV 10.1 §E.4.3.2: in front of the key frame that needs them, once."""
    first = key(AUD, SPS, PPS, SEI, IDR)
    assert passed((7, first), (40, inter(P)), (80, first)) == [
        (7, HEADER), (7, first), (40, inter(P)), (80, first),
    ]  # fmt: skip
    assert passed((0, HEADER), (0, first)) == [(0, HEADER), (0, first)]
    assert passed((0, inter(P)), (40, key(IDR))) == [(0, inter(P)), (40, key(IDR))]


def test_sets_that_change_are_those_of_the_next_key_frame():
    """Covers FLV 10.1 §E.4.3.2: also a lone set, with the others that are in force."""
    old, new = (0, HEADER), header_of(sps=OTHER_SPS)
    changed = key(OTHER_SPS, PPS, IDR)
    assert passed(old, (0, key(IDR)), (40, changed), (80, key(IDR))) == [
        old, (0, key(IDR)), (40, new), (40, changed), (80, key(IDR)),
    ]  # fmt: skip
    lone = passed(old, (0, key(IDR)), (40, key(OTHER_PPS)), (40, key(IDR)))
    assert lone[2:] == [(40, header_of(pps=[OTHER_PPS])), (40, key(OTHER_PPS, IDR))]
    more = passed(old, (0, key(IDR)), (40, inter(SECOND_PPS, P)), (80, key(IDR)))
    assert more[2:] == [
        (40, inter(SECOND_PPS, P)), (80, header_of(pps=[PPS, SECOND_PPS])), (80, key(IDR)),
    ]  # fmt: skip


def test_the_sets_that_came_last_are_in_force():
    """Own design: a header counts as well, and one that is sent again and again does no harm."""
    changed = key(OTHER_SPS, PPS, IDR)
    back = passed((0, HEADER), (0, changed), (40, HEADER), (40, key(IDR)))
    new = header_of(sps=OTHER_SPS)
    assert back == [(0, HEADER), (0, new), (0, changed), (40, HEADER), (40, key(IDR))]
    both = [(0, HEADER), (0, changed), (40, HEADER), (40, changed)]
    assert passed(*both) == [(0, HEADER), (0, new), (0, changed), (40, changed)]


def test_a_header_is_made_only_where_the_publisher_has_none():
    """Own design: its own record stays as it is, and its sets need not be among the pictures."""
    record = AvcConfig(0x42, 0xC0, 0x1F, (SPS,), (PPS,), extension=b"own")
    own = b"\x17\0\0\0\0" + bytes(record)
    assert passed((0, own), (0, key(SPS, PPS, IDR))) == [(0, own), (0, key(SPS, PPS, IDR))]
    pending = [(0, HEADER), (0, key(IDR)), (40, own), (40, key(SECOND_PPS, slice_of(5, pps=9)))]
    assert passed(*pending)[2:] == [(40, own), (40, key(SECOND_PPS, slice_of(5, pps=9)))]


def test_sets_of_several_numbers_are_in_force_by_turns():
    """Covers FLV 10.1 §E.4.3.2: a header made here has those of one sequence."""
    one, two = key(SPS, PPS, IDR), key(*SECOND, slice_of(5, 1, pps=1))
    first, second = header_of(), header_of(sps=SECOND[0], pps=[SECOND[1]])
    assert passed((0, one), (1, two), (2, one)) == [
        (0, first), (0, one), (1, second), (1, two), (2, first), (2, one),
    ]  # fmt: skip
    config = AvcConfig(0x42, 0xC0, 0x0C, (SPS, SECOND[0]), (PPS, SECOND[1]))
    both = b"\x17\0\0\0\0" + bytes(config)
    assert passed((0, one), (1, both), (1, one), (2, two))[2:] == [(1, both), (1, one), (2, two)]


def test_another_codec_has_sets_of_its_own():
    """Own design: a publisher may change it."""
    world = h265_world
    hevc = world.tag(*world.SETS, world.idr(), key=True)
    first = key(SPS, PPS, IDR)
    assert passed((0, first), (40, hevc)) == [
        (0, HEADER), (0, first), (40, world.HEADER), (40, hevc),
    ]  # fmt: skip


def test_headers_of_several_tracks_pass_at_once():
    """Covers E-RTMP v2 §"Enhanced Video": one of them does not replace another."""
    tracks = [(0, b"\x96\x00avc1" + bytes((track,)) + b"head") for track in (0, 1)]
    assert passed((0, HEADER), *tracks, end=False) == [(0, HEADER), *tracks]


def test_a_header_that_is_another_one_comes_with_its_picture():
    """Own design: never alone, and never before a picture of the old one."""
    new = header_of(sps=OTHER_SPS)
    late = [(0, HEADER), (0, key(IDR)), (50, new), (AUDIO, 60, b"\xaf\x01a"), (99, key(IDR))]
    assert passed(*late) == [
        (VIDEO, 0, HEADER), (VIDEO, 0, key(IDR)), (AUDIO, 60, b"\xaf\x01a"),
        (VIDEO, 99, new), (VIDEO, 99, key(IDR)),
    ]  # fmt: skip
    assert passed(*late[:3]) == [(0, HEADER), (0, key(IDR))]
    assert passed((0, HEADER), (9, HEADER), (9, key(IDR)))[1] == (9, HEADER)
    av1, other = b"\x90av01\x81one", b"\x90av01\x81two"
    assert passed((0, av1), (5, other), (9, b"\x91av01obu")) == [
        (0, av1), (9, other), (9, b"\x91av01obu"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "empty",
    [
        b"\x17\0\0\0\0",
        b"\x17\0\0\0\0" + bytes(AvcConfig(0x42, 0xC0, 0x0C, (), ())),
        b"\x90avc1",
        b"\x90hvc1" + bytes(HevcConfig(bytes(12), ())),
        b"\x1c\0\0\0\0",
        b"\x90av01",
    ],
    ids=lambda body: body.hex()[:24],
)
def test_an_empty_header_replaces_none(empty):
    """Own design: encoders send one when they stop, or before they know the sets."""
    assert passed((0, HEADER), (5, empty), (9, key(IDR))) == [(0, HEADER), (9, key(IDR))]


def test_an_empty_header_of_a_codec_that_needs_none_passes_first():
    """Covers E-RTMP v2 §"Enhanced Video": a sequence start of VP8 may say nothing."""
    assert passed((0, b"\x90vp08"), (9, b"\x91vp08frame"))[0] == (0, b"\x90vp08")


def test_pictures_of_another_codec_pass_as_they_are():
    """Own design: H.265 with the number of H.264, where IDR_N_LP looks like a parameter set."""
    record = bytes(HevcConfig.parse(h265_world.HEADER[5:]))
    foreign = b"\x17\0\0\0\0" + record
    pictures = [(40 * at, key(b"\x28\x01\xaf" + bytes((at,)))) for at in range(3)]
    pictures += [(80, inter(b"\x02\x01\x50")), (120, inter(b"\x02\x01\xd0"))]
    assert passed((0, foreign), *pictures) == [(0, foreign), *pictures]
    # a broken header of the codec itself tells as little, until there are sets
    broken = b"\x17\0\0\0\0\1\x42\xc0"
    own = [(0, broken), (9, key(IDR)), (40, key(SPS, PPS, IDR))]
    assert passed(*own) == [*own[:2], (40, header_of()), own[2]]


def test_an_empty_header_of_sound_is_none():
    """Own design: of AAC, by number and by FourCC, beside a picture that waits too."""
    for empty in (b"\xaf\0", b"\x90mp4a"):
        assert passed((AUDIO, 0, empty), (AUDIO, 5, empty), (0, HEADER)) == [(0, HEADER)]
    for rest in (b"\xaf\0\x12", b"\x90Opus", b"\xaf", b"\xaf\1"):
        assert passed((AUDIO, 0, rest), (0, HEADER))[0] == (AUDIO, 0, rest)


def test_slices_in_messages_of_one_time_become_a_picture():
    """Covers RFC 6184 §5.1: `first_mb_in_slice` tells; also of the first picture."""
    parts = [slice_of(5, 1), slice_of(5, 2, first=8), slice_of(5, 3, first=16)]
    rest = [slice_of(1, 4), slice_of(1, 5, first=8)]
    split = [(0, HEADER), *((0, key(each)) for each in parts)]
    split += [(40, inter(each)) for each in rest] + [(80, key(each)) for each in parts]
    out = passed(*split)
    assert out[1:] == [(0, key(*parts)), (40, inter(*rest)), (80, key(*parts))]


def test_the_first_picture_waits_for_what_follows_it():
    """Own design: the next picture, sound of another time, or nothing for a while."""
    first, sound = [(0, HEADER), (0, key(IDR))], (AUDIO, 20, b"\xaf\x01")
    assert passed(*first, end=False) == first[:1]
    assert passed(*first, (40, inter(P)), end=False) == [*first, (40, inter(P))]
    assert passed(*first, sound, (40, inter(P)), end=False)[1:] == [
        (VIDEO, *first[1]), sound, (VIDEO, 40, inter(P)),
    ]  # fmt: skip
    tape = Tape()
    pictures = PublishedVideo(tape)
    for at, body in first:
        pictures.write(VIDEO, at, body, 5.0)
    assert pictures.deadline == 5.0 + HOLD
    for now, count in ((5.0, 1), (5.0 + HOLD, 2)):
        pictures.tick(now)
        assert len(tape.video) == count
    assert pictures.deadline is None
    pictures.write(VIDEO, 9000, inter(P), 15.0)
    assert len(tape.video) == 3 and pictures.deadline is None


def test_a_picture_that_may_go_on_leaves_with_the_next_message():
    """Own design: that of another time, or of another picture; the last one with the stream."""
    halves = [slice_of(1, 1), slice_of(1, 2, first=8)]
    split = [(0, HEADER), (0, key(IDR)), (0, key(slice_of(5, 3, first=8)))]
    split += [(40, inter(each)) for each in halves]
    whole = (VIDEO, 40, inter(*halves))
    sound = (AUDIO, 41, b"\xaf\x01")
    assert passed(*split, sound)[-2:] == [whole, sound]
    assert passed(*split, (AUDIO, 40, b"\xaf\x01"))[-2:] == [(AUDIO, 40, b"\xaf\x01"), whole]
    assert passed(*split, (40, inter(P)))[-2:] == [(40, inter(*halves)), (40, inter(P))]
    assert passed(*split, (80, b"\x17\x02\0\0\0"))[-2:] == [
        (40, inter(*halves)), (80, b"\x17\x02\0\0\0"),
    ]  # fmt: skip
    assert passed(*split)[-1] == (40, inter(*halves))
    assert whole[1:] not in passed(*split, end=False)
    alone = [(0, HEADER), (0, key(IDR)), (40, key(slice_of(5, 3, first=8)))]
    assert passed(*alone) == alone  # the beginning of that picture was lost


def test_sets_repeated_in_mid_picture_are_left_out():
    """Covers RFC 6184 §5.1: some encoders write them, and a delimiter, before each slice."""
    low = slice_of(5, 2, first=8)
    split = [(0, HEADER), (0, key(IDR)), (0, key(low))]
    again = [(40, key(AUD, SPS, PPS, IDR)), (40, key(AUD, SPS, PPS, low))]
    assert passed(*split, *again)[-1] == (40, key(AUD, SPS, PPS, IDR, low))


@pytest.mark.parametrize("form", [bytes, by_number])
def test_hevc_is_mended_likewise(form):
    """Covers E-RTMP v2 §"Enhanced Video" and Field §"HEVC and AV1 by number"."""
    world = h265_world
    sets, picture = form(world.tag(*world.SETS, key=True)), form(world.tag(world.idr(), key=True))
    out = passed((0, sets), (40, picture), (80, picture))
    assert out == [
        (40, form(world.HEADER)),
        (40, form(world.tag(*world.SETS, world.idr(), key=True))),
        (80, picture),
    ]
    other = form(world.tag(world.PPS + b"\0", world.idr(), key=True))
    changed = passed((0, form(world.HEADER)), (0, picture), (40, other))
    assert changed[2] == (40, form(world.header([world.VPS], [world.SPS], [world.PPS + b"\0"])))
    halves = [form(world.tag(world.idr(first=each), key=True)) for each in (True, False)]
    split = [(at, half) for at in (0, 40) for half in halves]
    whole = form(world.tag(world.idr(), world.idr(first=False), key=True))
    assert passed((0, form(world.HEADER)), *split)[-1] == (40, whole)


def test_lengths_stay_as_long_as_the_publisher_has_them():
    """Covers FLV 10.1 §E.4.3.2 [decoder-configuration]: two octets, also of a header made here."""
    config = AvcConfig(0x42, 0xC0, 0x0C, (SPS,), (PPS,), length_size=2)
    header = b"\x17\0\0\0\0" + bytes(config)
    picture = b"".join(len(each).to_bytes(2, "big") + each for each in (OTHER_SPS, PPS, IDR))
    out = passed((0, header), (0, b"\x17\x01\0\0\0" + picture))
    made = AvcConfig.parse(out[1][1][5:])
    assert (made.length_size, made.sps) == (2, (OTHER_SPS,))


@pytest.mark.parametrize(
    "body",
    [
        b"\x17\x01\0\0\0\0\0\0\x99cut",
        b"\x17\x01\0\0\0",
        b"\x57\x00",
        b"\x12picture",
        b"\x96\x10avc1" + bytes(8),
        b"\x97\x00\x00\x00",
        b"\x90",
        b"\x91",
        b"",
        tag_of(KEY, [AUD, SEI]),
        tag_of(KEY, [SPS + bytes(MAX_SETS)]),
        tag_of(KEY, [SPS + bytes(MAX_SET), PPS, slice_of(5)]),
        tag_of(KEY, [b"\x65"]),
        tag_of(KEY, [slice_of(5, first=8)]),
        b"\x17\0\0\0\0avcC",
    ],
    ids=lambda body: body.hex()[:20] or "empty",
)
def test_what_is_not_understood_passes_as_it_is(body):
    """Own design: a relay of what is unknown."""
    assert passed((0, body), (40, body))[:1] == [(0, body)]


def test_long_pictures_and_many_sets_are_not_put_together():
    """Own design: limits on all that a publisher can make us hold."""
    half = slice_of(5, 2, first=8, filling=b"\1" * MAX_FRAME)
    split = [(0, HEADER), (0, key(IDR)), (0, key(half)), (40, key(IDR)), (40, key(half))]
    assert passed(*split, end=False)[-2:] == [(40, key(IDR)), (40, inter(half))]
    assert passed(*split[:3], (40, key(slice_of(5, 1, filling=half))), end=False)[-1][0] == 40
    many = [OTHER_PPS[:1] + bits(number) + bytes(MAX_SET - 9) for number in range(1, 20)]
    sets = [(at, inter(unit, P)) for at, unit in enumerate(many)]
    assert passed((0, HEADER), (0, key(IDR)), *sets, (99, key(IDR)))[-2:] == [
        (18, inter(many[-1], P)), (99, key(IDR)),
    ]  # fmt: skip
    big = passed((0, HEADER), *((at, key(OTHER_PPS + bytes(9000))) for at in range(3)))
    assert len(big) == 3  # one message of sets is kept ahead


MESSAGES = st.sampled_from(
    [HEADER, key(SPS, PPS), key(OTHER_PPS), key(IDR), inter(P), key(slice_of(5, 2, first=8)),
     header_of(sps=OTHER_SPS), h265_world.HEADER, h265_world.tag(h265_world.idr(), key=True),
     b"\x17\0\0\0\0", b"\x17\x02\0\0\0"]
)  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 3), MESSAGES | mutations(MESSAGES)), max_size=12))
def test_any_messages_pass_and_no_slice_is_lost(messages):
    """Own design: in their order, whatever a publisher sends."""
    out = b"".join(body for _, body in passed(*messages) or [] if body)
    for _, body in messages:
        if body in (key(IDR), inter(P)):
            assert join_units([body[9:]]) in out
