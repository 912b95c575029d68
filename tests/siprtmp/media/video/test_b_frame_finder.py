"""B-frames in the tags of a publisher."""

import pytest
from support.gateway.h264_world import header_of, tag_of

from siprtmp.media.video.b_frame_finder import BFrameFinder

REORDERED = [(0, 1, 80), (40, 2, 120), (80, 2, 0)]  # the third is shown before the second
IN_ORDER = [(0, 1, 80), (40, 2, 80), (80, 2, 79)]


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        (REORDERED, True),
        (IN_ORDER, False),
        ([(0, 1, 0), (40, 2, 0), (20, 2, 0), (60, 2, 0)], False),  # a clock that is set back
        ([(1000, 1, 80), (1040, 1, 80), (0, 1, 0), (40, 2, 0)], False),  # a clip after another
        ([((1 << 32) - 40, 1, 80), (0, 2, 120), (40, 2, 0)], True),  # over the end of the clock
    ],
)
def test_frames_are_b_frames_if_they_are_shown_before_earlier_ones(frames, found):
    finder = BFrameFinder()
    for timestamp, kind, composition in frames:
        finder.put(timestamp, tag_of(kind, [b"\x65frame"], composition))
    assert finder.found is found


def test_what_is_no_frame_of_h264_or_h265_is_passed_over():
    finder = BFrameFinder()
    for body in (b"", b"\x17", b"\x57\x00", b"\x22frame", b"\xff", header_of()):
        finder.put(0, body)
    assert not finder.found
