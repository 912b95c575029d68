"""Whatever sizes a publisher cuts its sound into, a phone gets whole packets of all of it."""

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from p2psip.rtp.payload.speex import is_metadata
from p2psip.strategies.rtp import speex_payloads
from rtmplite.flv import file
from siprtmp.media.translate.audio_formats import NARROWBAND, PCMA, PCMU, WIDEBAND
from siprtmp.media.translate.conversion import UnsuitableError
from siprtmp.media.translate.flv_to_rtp import FlvToRtp


def cut(data, sizes):
    """Slices of `data` of the sizes given, with their start in samples."""
    at = 0
    while at < len(data):
        size = sizes[0] if len(sizes) == 1 else sizes.pop(0)
        yield at, data[at : at + size]
        at += size


@given(st.binary(min_size=1, max_size=4000), st.lists(st.integers(1, 700), min_size=1))
def test_every_sample_leaves_once_in_order_and_in_whole_packets(sound, sizes):
    """Covers RFC 3551 §4.2.

    Covers RFC 3550 §5.1 [clock-is-even].
    """
    machine = FlvToRtp(PCMU)
    packets = []
    for at, piece in cut(sound, sizes):
        packets += machine.convert(b"\x82" + piece, at * 1000 // 8000)
    packets += machine.flush()
    assert [p.ticks for p in packets] == [160 * i for i in range(len(packets))]
    assert all(len(p.payload) == 160 for p in packets)
    heard = b"".join(p.payload for p in packets)
    assert heard == sound.ljust(len(heard), b"\xff") and len(heard) - len(sound) < 160
    assert [p.marker for p in packets] == [True] + [False] * (len(packets) - 1)


def test_a_gap_in_rtmp_time_is_a_gap_in_rtp_time_and_opens_a_talk_spurt():
    """Covers RFC 3551 §4.1."""
    machine = FlvToRtp(PCMA)
    assert machine.convert(b"\x72" + bytes(200), 1000)[0].ticks == 0
    late = machine.convert(b"\x72" + bytes(160), 2000)
    assert [(p.ticks, p.marker) for p in late] == [(160, False), (8000, True)]
    assert late[0].payload == bytes(40) + b"\xd5" * 120


@given(
    st.lists(st.tuples(st.integers(1, 700), st.sampled_from([0, 0, 20, 41, 60, 150, 900]))),
    st.sampled_from([10, 20, 60, 200]),
)
def test_timestamps_only_go_forward_whatever_is_missing(tags, ptime):
    """Covers RFC 3550 §5.1: a gap is neither sent nor forgotten, and overlaps nothing."""
    machine, at, packets = FlvToRtp(PCMU, ptime), 0.0, []
    for size, gap in tags:
        at += gap if packets or at else 0
        packets += machine.convert(b"\x82" + bytes(size), int(at))
        at += size / 8
    packets += machine.flush() + machine.flush()
    size = 8 * ptime
    steps = [b.ticks - a.ticks for a, b in pairwise(packets)]
    assert all(step >= size for step in steps) and machine.packet_seconds == ptime / 1000
    assert [p.marker for p in packets[1:]] == [step > size for step in steps]
    if packets:
        assert abs(packets[-1].ticks + size - 8 * at) <= size + 8 * 41


@pytest.mark.parametrize("jump", [-900, -40, 25, 40])
def test_jitter_and_a_clock_that_ran_backwards_do_not_tear_the_sound(jump):
    """Covers RFC 3550 §5.1."""
    machine = FlvToRtp(PCMA)
    machine.convert(b"\x72" + bytes(160), 1000)
    assert [p.ticks for p in machine.convert(b"\x72" + bytes(160), 1020 + jump)] == [160]
    assert [p.ticks for p in machine.convert(b"\x72" + bytes(160), 1040 + jump)] == [320]


def test_rtmp_time_wraps_without_a_gap():
    """Covers RTMP 1.0 §5.3.1.3."""
    machine = FlvToRtp(PCMU)
    machine.convert(b"\x82" + bytes(160), (1 << 32) - 10)
    assert [p.ticks for p in machine.convert(b"\x82" + bytes(160), 10)] == [160]


def test_the_other_law_of_g711_is_converted_by_table():
    """Covers RFC 3551 §4.5.14."""
    (packet,) = FlvToRtp(PCMA).convert(b"\x82" + b"\xff" * 160, 0)
    assert packet.payload == b"\xd5" * 160


@pytest.mark.parametrize("codec", [PCMU, WIDEBAND])
@given(tag=st.binary(max_size=300), timestamp=st.integers(0, (1 << 32) - 1))
def test_any_bytes_are_packets_or_unsuitable(codec, tag, timestamp):
    """Covers FLV 10.1 §E.4.2.1."""
    try:
        packets = FlvToRtp(codec).convert(tag, timestamp)
    except UnsuitableError:
        return
    assert sum(len(p.payload) for p in packets) <= len(tag) + 160


def test_flash_speex_is_cut_to_the_narrowband_part_for_an_8_khz_phone(corpus):
    """Covers RFC 5574 §3.3."""
    tags = [
        tag
        for tag in file.tags((corpus / "flv" / "mona_Audio.flv").read_bytes())
        if tag.tag_type == 8
    ]
    wide, narrow = FlvToRtp(WIDEBAND), FlvToRtp(NARROWBAND)
    kept = cut_down = 0
    for tag in tags[2:]:
        (packet,) = wide.convert(tag.data, tag.timestamp)
        kept += packet.payload == tag.data[1:]
        (packet,) = narrow.convert(tag.data, tag.timestamp)
        cut_down += len(packet.payload) < len(tag.data) - 1
    assert kept == cut_down == len(tags) - 2 == 208


@given(speex_payloads(8))
def test_a_packet_has_one_whole_frame_of_speex(made):
    """Covers RFC 5574 §3.3 [frames-whole] [packet-within-mtu], RFC 3551 §4.4 [frames-whole].

    Covers RFC 3550 §5.1 [clock-is-even].
    """
    assume(not is_metadata(made.payload))
    packets = FlvToRtp(WIDEBAND).convert(b"\xb2" + made.payload, 0)
    assert [packet.ticks for packet in packets] == [320 * i for i in range(len(made.frames))]
    if len(packets) > 1:  # a frame alone keeps the padding it came with
        assert [packet.payload for packet in packets] == made.frames
    assert all(len(packet.payload) < 1200 for packet in packets)


@pytest.mark.parametrize(
    ("codec", "tag"), [(PCMU, b"\x82" + bytes(160)), (WIDEBAND, b"\xb2\x0f\xff\xff\xff\xff\xef")]
)
def test_the_marker_opens_a_talk_spurt_and_nothing_else(codec, tag):
    """Covers RFC 3551 §4.1 [marker-opens-talkspurt] [else-no-marker]."""
    machine, markers = FlvToRtp(codec), []
    for at in (0, 20, 40, 2000, 2020, 2040):
        markers += [packet.marker for packet in machine.convert(tag, at)]
    assert markers == [True, False, False, True, False, False]


def test_speex_headers_in_a_recording_never_go_out(corpus):
    """Covers RFC 5574 §3.2."""
    tags = [
        tag.data
        for tag in file.tags((corpus / "flv" / "mona_Audio.flv").read_bytes())
        if tag.tag_type == 8
    ]
    for tag in tags[:2]:
        with pytest.raises(UnsuitableError):
            FlvToRtp(WIDEBAND).convert(tag, 0)
