"""Two sources as one picture by PyAV: each in its half and shape, at the pace of the faster one."""

import av
import numpy as np
import pytest
from support.gateway.numbered_film import film

from rtmplite.flv.avc import AvcConfig, SequenceParameters
from rtmplite.flv.video import VideoTag, is_key_frame, is_sequence_header
from siprtmp.media.transcode.side_by_side import HALF, HEIGHT, WIDTH, SideBySide
from siprtmp.media.transcode.video_decoder import VideoDecoder
from siprtmp.media.transcode.video_encoder import H264, VP8, VideoEncoder
from siprtmp.media.translate.conversion import QueuedTag

LEFT, RIGHT = 0, 1
STRIPS = 4


def of(source, sources):
    return [each._replace(source=source) for each in sources]


def together(*sources):
    """All tags in the order of their times."""
    return sorted((tag for each in sources for tag in each), key=lambda tag: (tag.time, tag.came))


def shown(tags):
    """The time of each picture, and the light of both halves."""
    decoder = VideoDecoder()
    return [
        (frame.pts, frame.to_ndarray(format="gray"))
        for at, body in tags
        for frame in decoder.decode(body, at)
    ]


def number(light, source, width=480):
    """The number in one half, whose picture is so wide; 0 for a half that is black."""
    half = light[:, source * HALF : (source + 1) * HALF]
    step, left = width // STRIPS, (HALF - width) // 2
    row = half[HEIGHT // 2]
    return sum((int(row[left + step * at + step // 2]) > 125) << at for at in range(STRIPS))


def numbers(tags):
    return [(at, number(light, LEFT), number(light, RIGHT)) for at, light in shown(tags)]


def made(pair, sources, late=0):
    """All that comes of tags, which are given one at a time."""
    out = [pair.convert([each], late, False) for each in sources]
    assert not any(each.error for each in out)
    return [tag for each in out for tag in each.tags]


def test_each_source_is_in_its_half_at_its_time():
    """Own design: both of their own codec and size."""
    left = of(LEFT, film(count=8))
    right = of(RIGHT, film(VP8, count=8, width=96, height=72, start=5))
    pair = SideBySide()
    tags = made(pair, together(left, right))
    assert numbers(tags) == [(0, 0, 0), *((40 * at, at, at - 1) for at in range(1, 8))]
    assert pair.convert([], 0, False).transcodes == "h264 64x48 + vp8 96x72 > h264 1280x360"


def test_the_picture_is_constrained_baseline_of_one_size():
    """Covers FLV 10.1 §E.4.3.2 [decoder-configuration]: one header, then pictures."""
    tags = made(SideBySide(), of(LEFT, film(count=4)))
    headers = [body for _, body in tags if is_sequence_header(body)]
    config = AvcConfig.parse(VideoTag.parse(headers[0]).data)
    read = SequenceParameters.parse(config.sps[0])
    assert (read.width, read.height) == (WIDTH, HEIGHT) and len(headers) == 1
    assert [is_key_frame(body) for _, body in tags[1:]] == [True, False, False, False]


@pytest.mark.parametrize(("width", "height"), [(64, 48), (64, 36), (64, 20), (48, 64)])
def test_a_picture_keeps_its_shape_with_black_around(width, height):
    """Own design: as large as its half takes it, in the middle."""
    encoder = VideoEncoder(H264, (width, height), 25, 400_000)
    image = np.full((height * 3 // 2, width), 128, np.uint8)
    image[:height] = 235
    white = []
    for at in (0, 40):  # with the second one it sets the pace
        frame = av.VideoFrame.from_ndarray(image, format="yuv420p")
        frame.pts = at
        white += [QueuedTag(at, body, 0.0, RIGHT) for _, body in encoder.encode(frame, not at)]
    [(_, light)] = shown(made(SideBySide(), white))
    half = light[:, HALF:] > 125
    rows, columns = half.any(axis=1).sum(), half.any(axis=0).sum()
    scale = min(HALF / width, HEIGHT / height)
    assert rows == pytest.approx(height * scale, abs=3)
    assert columns == pytest.approx(width * scale, abs=3)
    assert np.argmax(half.any(axis=1)) == pytest.approx((HEIGHT - rows) / 2, abs=3)
    assert np.argmax(half.any(axis=0)) == pytest.approx((HALF - columns) / 2, abs=3)
    assert light[:, :HALF].max() < 40


def test_the_faster_source_sets_the_pace_whichever_it_is():
    """Own design: a picture for each of its own, not for each of both."""
    slow, fast = film(count=4, step=80), film(count=8, step=40, start=10)
    for left, right in ((fast, slow), (slow, fast)):
        tags = made(SideBySide(), together(of(LEFT, left), of(RIGHT, right)))
        times = [at for at, _ in shown(tags)]
        assert [at for at in times if at > 80] == [at for at in range(90, 300, 40)]


def test_a_source_that_ends_keeps_its_last_picture():
    """Own design: the other one goes on by itself."""
    left, right = of(LEFT, film(count=3)), of(RIGHT, film(count=10, start=5))
    assert numbers(made(SideBySide(), together(left, right)))[-3:] == [
        (40 * at + 5, 2, at) for at in (7, 8, 9)
    ]


def test_a_source_that_turns_leaves_nothing_of_its_former_shape():
    """Own design: black where the new picture does not reach."""
    wide, tall = film(count=2), film(count=3, width=48, height=64, start=200)
    tags = made(SideBySide(), of(LEFT, [*wide, *tall]))
    light = shown(tags)[-1][1]
    edge = (HALF - 360 * 48 // 64) // 2 - 4
    assert light[:, :edge].max() < 40 and number(light, LEFT, 268) == 2


def test_there_are_no_more_than_the_operator_wants():
    """Own design: as the limit of --transcode-video says."""
    tags = made(SideBySide(10), together(of(LEFT, film(count=16)), of(RIGHT, film(count=16))))
    assert 6 <= len(shown(tags)) <= 8


def test_what_is_late_is_seen_by_the_decoder_alone():
    """Own design: the last ones are made, and show where the others are by now."""
    sources = together(of(LEFT, film(count=10)), of(RIGHT, film(count=10)))
    tags = SideBySide().convert(sources, len(sources) - 4, False).tags
    assert numbers(tags) == [(320, 8, 7), (360, 9, 8)]


def test_a_key_frame_is_made_when_one_is_wanted():
    pair, sources = SideBySide(), of(LEFT, film(count=4))
    made(pair, sources[:3])
    [(_, body)] = pair.convert(sources[3:4], 0, True).tags
    assert is_key_frame(body)


def test_a_broken_source_leaves_the_other_alone():
    """Own design: its error is told."""
    left, right = of(LEFT, film(count=6)), of(RIGHT, film(count=6))
    pair = SideBySide()
    header = [each for each in made(pair, [*right[:2], *left[:2]]) if is_sequence_header(each[1])]
    broken = left[2]._replace(body=left[2].body[:5] + b"\xff" * 40)
    assert pair.convert([broken], 0, False).error.startswith("broken h264")
    made(pair, right[2:4])
    pair.convert([], 0, False)
    tags = pair.convert(right[4:5], 0, True).tags
    [(at, _, seen)] = numbers([*header, *tags])
    assert (at, seen) == (right[4].time, 3)


def test_time_never_goes_back():
    """Own design: an encoder takes no older picture."""
    left = of(LEFT, film(count=6))
    back = [*left[:5], left[5]._replace(time=10)]
    assert [at for at, _, _ in numbers(made(SideBySide(), back))] == [0, 40, 80, 120]


def test_nothing_is_made_for_times_that_are_over():
    """Own design: what was shown before stays before it."""
    tags = made(SideBySide(after=100), of(LEFT, film(count=6)))
    assert [at for at, _ in shown(tags)] == [120, 160, 200]
