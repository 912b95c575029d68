"""Pictures that are made elsewhere: in order, one piece of work at a time, never late."""

import pytest
from support.gateway.video_rig import HEADER, idr, inter, tag
from support.gateway.video_threads import Pretended

from rtmplite.flv.video import is_key_frame, is_sequence_header
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.video.video_worker import ENCODED, MAX_OCTETS, MAX_SECONDS, VideoWorker


class Bench:
    """A piece of work in progress, with all that it has given."""

    def __init__(self):
        self.threads = Pretended()
        self.given, self.changes, self.wants = [], [], 0
        self.work = VideoWorker(
            self.threads.transcoder("h264", CodecLimits(), 0),
            self.threads.run,
            self._want,
            give=lambda *tag: self.given.append(tag[:3]),
            changed=lambda: self.changes.append((self.work.transcodes, self.work.error)),
        )

    def _want(self, now):
        self.wants += 1

    @property
    def times(self):
        return [time for time, body, _ in self.given if not is_sequence_header(body)]

    def film(self, *times, key=None, now=None):
        for at in times:
            body = tag(idr(), key=True) if at == key else tag(inter())
            self.work.put(at, body, at / 1000 if now is None else now)


def test_what_comes_meanwhile_waits_for_its_turn():
    bench = Bench()
    bench.work.put(0, HEADER, 0.0)
    bench.film(0, key=0)
    bench.film(40)
    assert len(bench.threads.jobs) == 1 and not bench.given
    bench.threads.work(0.05)
    assert bench.threads.converted == [(1, 0, False), (2, 0, False)]
    assert bench.times == [0, 40]
    assert bench.changes == [("h264 320x240 > h264 32x24", "")]


def test_of_many_the_last_ones_alone_are_encoded():
    """Own design: all are decoded, since those depend on them."""
    bench = Bench()
    bench.film(0, key=0)
    bench.film(*range(40, 400, 40))
    bench.threads.work(0.4)
    assert bench.threads.converted[1] == (9, 9 - ENCODED, False)
    assert bench.times == [0, 320, 360]


def test_a_picture_has_the_moment_at_which_its_source_came():
    """Own design: reports say by it which sound it belongs to."""
    bench = Bench()
    bench.work.put(1000, tag(idr(), key=True), 7.0)
    bench.threads.work(7.3)
    bench.work.put(1040, tag(inter()), 7.04)
    bench.work.put(1080, tag(inter()), 7.08)
    bench.threads.work(7.3)
    assert [at for _, body, at in bench.given if not is_sequence_header(body)] == [
        pytest.approx(each) for each in (7.0, 7.04, 7.08)
    ]


def test_a_key_frame_is_made_when_one_is_wanted():
    bench = Bench()
    bench.film(0, 40, key=0)
    bench.threads.work(0.05)
    bench.work.want_key_frame()
    bench.film(80)
    bench.film(120)
    bench.threads.work(0.13)
    keys = [time for time, body, _ in bench.given if is_key_frame(body)]
    assert keys == [0, 80]


def test_a_wish_that_gave_no_picture_stays():
    bench = Bench()
    bench.work.want_key_frame()
    bench.work.put(0, HEADER, 0.0)
    bench.film(0, key=0)
    bench.threads.work(0.0)
    assert [wanted for *_, wanted in bench.threads.converted] == [True, True]
    bench.film(40)
    bench.threads.work(0.04)
    assert bench.threads.converted[-1] == (1, 0, False)


@pytest.mark.parametrize("slow", [True, False])
def test_what_waits_too_long_is_dropped_up_to_the_next_key_frame(slow):
    """Own design: memory is bounded, and a call is not watched late."""
    bench = Bench()
    bench.work.put(0, HEADER, 0.0)
    bench.threads.work(0.0)
    bench.film(0, key=0)  # under way, and takes long
    if slow:
        bench.film(40, int(1000 * MAX_SECONDS) + 80)
    else:
        bench.work.put(40, tag(inter(0, MAX_OCTETS)), 0.04)
        bench.film(60)
    assert bench.wants == 1
    bench.film(3000)
    assert bench.work.dropped == 3
    bench.threads.work(3.0)
    assert bench.times == [0]
    bench.film(3040, key=3040)
    bench.film(3080)
    bench.threads.work(3.1)
    assert bench.times == [0, 3040, 3080]
    assert bench.threads.converted[-2:] == [(2, 0, False), (1, 0, False)]  # the header again
    assert bench.wants == 1


def test_an_error_is_said_once_and_the_source_asked():
    bench = Bench()
    bench.threads.error = "broken h264"
    for at in (0, 40, 80):
        bench.film(at, key=at)
        bench.threads.work(at / 1000)
    assert bench.changes == [("", "broken h264")] and bench.wants == 1 and not bench.given


def test_nothing_is_given_after_the_end():
    bench = Bench()
    bench.film(0, key=0)
    bench.film(40)
    bench.work.close()
    bench.threads.work(0.1)
    assert not bench.given and len(bench.threads.converted) == 1


def test_two_sources_are_one_piece_of_work_in_the_order_of_arrival():
    """Own design: of each the last ones are encoded, and each asks for its own key frames."""
    threads, asked, orders = Pretended(), [], []
    maker = threads.transcoder("h264", CodecLimits(), 0)
    convert = maker.convert

    def noted(sources, late, wants_key):
        orders.append([(each.source, each.time) for each in sources])
        return convert(sources, late, wants_key)

    maker.convert = noted
    work = VideoWorker(
        maker,
        threads.run,
        lambda now: asked.append((0, now)),
        lambda now: asked.append((1, now)),
        give=lambda *tag: None,
        changed=lambda: None,
    )
    work.put(0, tag(idr(), key=True), 0.0)
    for at in range(0, 120, 40):
        work.put(1000 + at, tag(idr(), key=True), at / 1000 + 0.03, 1)
        work.put(40 + at, tag(inter()), at / 1000 + 0.04)
    threads.work(0.2)
    both = [(1, 1000), (0, 40), (1, 1040), (0, 80), (1, 1080), (0, 120)]
    assert orders == [[(0, 0)], both] and threads.converted[1] == (6, 6 - 2 * ENCODED, False)
    work.put(160, tag(inter()), 0.2)
    work.put(200, tag(inter(0, MAX_OCTETS)), 0.24)
    work.put(1160, tag(inter()), 0.24, 1)
    work.put(240, tag(inter()), 0.28)
    threads.work(0.3)
    assert asked == [(0, 0.24)] and work.dropped == 2
    assert orders[2:] == [[(0, 160)], [(1, 1160)]]
