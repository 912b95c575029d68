"""Pictures by PyAV: decoded, made smaller, fewer and simpler, and encoded again."""

from functools import cache

import av
import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.gateway.numbered_film import HEIGHT, WIDTH, film, picture, seen

from p2psip.sdp.h264_parameters import H264Parameters, ProfileLevel
from rtmplite.flv.avc import AvcConfig, SequenceParameters, split_units
from rtmplite.flv.enhanced_video import ExVideoTag, VideoFourCc, VideoPacketType, VideoTrack
from rtmplite.flv.video import FrameType, VideoTag, is_key_frame, is_sequence_header
from siprtmp.media.transcode import video_encoder
from siprtmp.media.transcode.video_decoder import VideoDecoder
from siprtmp.media.transcode.video_encoder import H264, VP8, VideoEncoder
from siprtmp.media.transcode.video_transcoder import VideoTranscoder
from siprtmp.media.translate.codec_limits import CodecLimits, h264_limits
from siprtmp.media.translate.conversion import QueuedTag, UnsuitableError


def passed(transcoder, sources, *, late=0, key=False):
    """All that comes out, one at a time."""
    made = [transcoder.convert([source], late, key) for source in sources]
    assert not any(each.error for each in made)
    return [tag for each in made for tag in each.tags]


@pytest.mark.parametrize("source", [H264, VP8])
@pytest.mark.parametrize("codec", [H264, VP8])
def test_each_picture_is_seen_at_its_own_time(source, codec):
    """Own design: none waits for a later one, and none is lost."""
    sources, transcoder = film(source), VideoTranscoder(codec, CodecLimits(width=32))
    counts = [len(transcoder.convert([each], 0, False).tags) for each in sources]
    assert all(counts[-15:])
    tags = passed(VideoTranscoder(codec, CodecLimits(width=32)), sources)
    assert seen(tags) == [(40 * at, at, (32, 24)) for at in range(16)]
    made = transcoder.convert([], 0, False).transcodes
    assert made == f"{source} 64x48 > {codec} 32x24"


def test_the_header_says_the_level_that_was_agreed_on():
    """Covers RFC 6184 §8.2.2: Constrained Baseline, no higher than the phone's."""
    limits = h264_limits(H264Parameters.parse("profile-level-id=42e00b"))
    tags = passed(VideoTranscoder(H264, limits), film())
    [header] = [body for _, body in tags if is_sequence_header(body)]
    config = AvcConfig.parse(VideoTag.parse(header).data)
    read = ProfileLevel(*config.sps[0][1:4])
    assert read.sub_profile == "CB" and read.level == 1.1
    assert SequenceParameters.parse(config.sps[0]).width == 64


def test_no_slice_is_longer_than_a_packet_of_mode_0():
    """Covers RFC 6184 §6.2: a NAL unit a packet."""
    noise = np.random.default_rng(1).integers(100, 120, (360, 320), np.uint8)
    frame = av.VideoFrame.from_ndarray(noise, format="yuv420p")
    lengths = {}
    for most in (0, 300):
        frame.pts = 0
        encoder = VideoEncoder(H264, (320, 240), 25, 500_000, slice_octets=most)
        [(_, header), (_, body)] = encoder.encode(frame, True)
        assert is_sequence_header(header)
        lengths[most] = [len(unit) for unit in split_units(VideoTag.parse(body).data)]
    assert len(lengths[0]) == 1 and lengths[0][0] > 300
    assert len(lengths[300]) > 1 and max(lengths[300]) <= 300


@pytest.mark.parametrize("codec", [H264, VP8])
def test_key_frames_are_made_on_demand_alone(codec):
    sources, transcoder = film(), VideoTranscoder(codec, CodecLimits())
    keys = []
    for source in sources:
        made = transcoder.convert([source], 0, source.time == 240)
        keys += [at for at, body in made.tags if is_key_frame(body)]
    assert keys == [0, 240]


def test_there_are_no_more_pictures_than_wanted():
    limits = CodecLimits(rate=10)
    times = [at for at, *_ in seen(passed(VideoTranscoder(H264, limits), film(step=33)))]
    assert times[0] == 0 and 5 <= len(times) <= 6 and times == sorted(times)
    alike = film(step=100)
    assert len(seen(passed(VideoTranscoder(H264, limits), alike))) == 16
    transcoder = VideoTranscoder(H264, limits)
    passed(transcoder, film(start=50_000))
    assert passed(transcoder, film())  # the publisher's clock has begun anew


def test_what_is_late_is_decoded_and_not_encoded():
    transcoder = VideoTranscoder(H264, CodecLimits())
    sources = film()
    made = transcoder.convert(sources, len(sources) - 2, False)
    assert seen(made.tags) == [(40 * at, at, (64, 48)) for at in (14, 15)]


def test_a_new_size_of_the_publisher_is_a_new_film():
    transcoder = VideoTranscoder(H264, CodecLimits(width=32))
    tags = passed(transcoder, film(count=2))
    tags += passed(transcoder, film(count=2, width=48, start=80))
    assert sum(is_sequence_header(body) for _, body in tags) == 2
    assert [size for *_, size in seen(tags)] == [(32, 24)] * 2 + [(32, 32)] * 2
    assert [is_key_frame(body) for _, body in tags] == [False, True, False, False, True, False]


def test_time_wraps_as_the_publisher_s_does():
    """Covers RTMP 1.0 §5.4.1: the extended timestamp has 32 bits."""
    wrap = 1 << 32
    sources = [each._replace(time=each.time % wrap) for each in film(count=4, start=wrap - 60)]
    tags = passed(VideoTranscoder(H264, CodecLimits()), sources)
    assert [at for at, body in tags if not is_sequence_header(body)] == [
        wrap - 60,
        wrap - 20,
        20,
        60,
    ]


def test_b_frames_come_out_in_the_order_in_which_they_are_shown():
    """OBS sends them unless it is told not to, and phones do not expect them."""
    context = av.CodecContext.create("libx264", "w")
    context.width, context.height, context.pix_fmt = WIDTH, HEIGHT, "yuv420p"
    context.time_base, context.max_b_frames = video_encoder.MILLISECOND, 2
    context.options, context.thread_count = {"x264-params": "annexb=0:b-adapt=0"}, 1
    packets = []
    for number in range(16):
        frame = picture(number)
        frame.pts, frame.time_base = 40 * number, context.time_base
        packets += context.encode(frame)
    packets += context.encode(None)
    units = split_units(bytes(packets[0]))
    config = AvcConfig.of([units[0]], [units[1]])
    sources = [QueuedTag(0, bytes(VideoTag(1, 7, 0, 0, bytes(config))), 0.0)]
    for packet in packets:
        kind, at = (1 if packet.is_keyframe else 2), packet.dts + 80
        body = VideoTag(kind, 7, 1, packet.pts + 80 - at, bytes(packet))
        sources.append(QueuedTag(at, bytes(body), 0.0))
    found = seen(passed(VideoTranscoder(H264, CodecLimits(baseline=True)), sources))
    assert len(found) >= 13
    assert [(at, number) for at, number, _ in found] == [
        (80 + 40 * at, at) for at in range(len(found))
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x14" + bytes(50), "video codec ON2_VP6"),
        (b"\x1e" + bytes(50), "video codec 14"),
        (b"\x17\x01", "2 bytes"),
        (b"\x17\x01\0\0\0" + bytes(20), "without its header"),
        (b"\x91vvc1" + bytes(50), "video codec vvc1"),
        (b"\x91vp08" + bytes(50), "broken vp8"),
    ],
)
def test_what_cannot_be_decoded_is_said(body, reason):
    made = VideoTranscoder(H264, CodecLimits()).convert([QueuedTag(0, body, 0.0)], 0, False)
    assert reason in made.error and not made.tags
    with pytest.raises(UnsuitableError):
        VideoDecoder().decode(body, 0)


def test_after_a_broken_picture_the_next_is_a_key_frame():
    transcoder, sources = VideoTranscoder(VP8, CodecLimits()), film(VP8)
    passed(transcoder, sources[:4])
    broken = transcoder.convert([QueuedTag(160, b"\x91vp08" + b"\xff" * 30, 0.0)], 0, False)
    assert "broken vp8" in broken.error
    assert not passed(transcoder, sources[5:])  # they depend on what is lost
    tags = passed(transcoder, film(VP8, start=800))
    assert is_key_frame(tags[0][1]) and len(tags) == 16


def test_a_tag_without_octets_does_not_end_the_decoder():
    """An empty packet says to ffmpeg that no more will come."""
    transcoder, sources = VideoTranscoder(VP8, CodecLimits()), film(VP8)
    passed(transcoder, sources[:4])
    assert not passed(
        transcoder,
        [QueuedTag(160, b"\x91vp08", 0.0), QueuedTag(160, b"\xa1vp08", 0.0)],
    )
    assert len(passed(transcoder, sources[4:])) == 12


def test_tags_without_a_picture_make_none():
    track = VideoTrack(VideoFourCc.AVC, b"")
    for body in (
        b"\x57\x00",
        b"\x17\x02\0\0\0",
        bytes(ExVideoTag(FrameType.KEY, VideoPacketType.METADATA, (track,))),
        bytes(ExVideoTag(FrameType.KEY, VideoPacketType.SEQUENCE_END, (track,))),
        bytes(ExVideoTag(1, VideoPacketType.SEQUENCE_START, (VideoTrack(VideoFourCc.VP8, b""),))),
    ):
        assert not VideoDecoder().decode(body, 0)


def test_a_picture_of_any_size_is_not_decoded():
    """Own design: a few octets may claim one, and memory is bounded."""
    head = bytes([0x10, 0, 0, 0x9D, 0x01, 0x2A]) + (16000).to_bytes(2, "little") * 2
    with pytest.raises(UnsuitableError):
        VideoDecoder().decode(b"\x91vp08" + head + bytes(100), 0)


@cache
def short_film(codec, **options):
    return film(codec, count=3, **options)


@given(st.data())
def test_no_octets_whatever_end_the_work(data):
    """Own design: an error is said, and what is good again comes out."""
    codec = data.draw(st.sampled_from([H264, VP8]))
    bad = [bytearray(each.body) for each in short_film(codec)]
    for body in bad:
        for _ in range(data.draw(st.integers(0, 3))):
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
        del body[data.draw(st.integers(1, len(body))) :]
    bad.append(bytearray(data.draw(st.binary(max_size=40))))
    transcoder = VideoTranscoder(H264, CodecLimits(width=32))
    for at, body in enumerate(bad):
        made = transcoder.convert([QueuedTag(40 * at, bytes(body), 0.0)], 0, False)
        event("broken" if made.error else "decoded")
    again = short_film(codec, width=48, start=200)  # of another header, and so another decoder
    assert any(transcoder.convert([each], 0, False).tags for each in again)


def test_encoders_that_are_missing_are_named(monkeypatch):
    assert video_encoder.missing() == []
    monkeypatch.setattr(av, "codecs_available", {"libx264"})
    assert video_encoder.missing() == ["libvpx"]
