"""How many pictures a publisher sends, as counted by their times."""

from support.gateway.video_rig import HEADER, idr, inter, tag

from siprtmp.media.video_to_phone import VideoMeter


def film(meter, *, times, every, start=0):
    """Pictures at these times, with a key frame first and after each so many."""
    for number, at in enumerate(times):
        is_key = number % every == 0
        body = tag(idr(0, 4000) if is_key else inter(0, 300), key=is_key)
        meter.put(start + at & 0xFFFFFFFF, body)


def test_pictures_are_counted_from_key_frame_to_key_frame():
    meter = VideoMeter()
    meter.put(0, HEADER)
    film(meter, times=range(0, 2001, 40), every=50)
    assert meter.rate == 25
    large, small = (len(tag(unit, key=True)) for unit in (idr(0, 4000), inter(0, 300)))
    assert meter.bits == 8 * (large + 49 * small) / 2


def test_nothing_is_known_after_less_than_a_second():
    meter = VideoMeter()
    film(meter, times=range(0, 961, 40), every=5)
    assert meter.rate == meter.bits == 0


def test_rare_key_frames_are_not_waited_for():
    meter = VideoMeter()
    film(meter, times=range(0, 10_001, 100), every=1000)
    assert meter.rate == 10


def test_time_that_wraps_or_jumps_back_is_no_harm():
    meter = VideoMeter()
    film(meter, times=range(0, 2001, 40), every=25, start=(1 << 32) - 1000)
    assert meter.rate == 25
    film(meter, times=range(0, 900, 40), every=25, start=5)
    assert meter.rate == 25
