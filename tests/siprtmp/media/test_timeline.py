"""Sound and picture of a phone: an hour beside each other, by clocks that drift."""

from itertools import pairwise
from random import Random

import pytest
from support.gateway.audio_rig import Rig
from support.gateway.video_rig import PPS, SPS, VideoRig, idr, inter, video_plan

from p2psip.rtp import fast
from p2psip.rtp.rtcp import SenderReport, ntp_time
from p2psip.rtp.source_description import SourceDescription
from rtmplite.flv.video import is_sequence_header
from siprtmp.media.translate.audio_formats import PCMU

SOUND, PICTURE = 7, 0xBEEF  # sources
FAST, SLOW = 1 + 100e-6, 1 - 100e-6  # clocks of the phone's devices
BOOTED = 1_790_000_000.0  # Unix time of second 0, by the phone's clock


class Phone:
    """A phone whose microphone and camera each have a clock of their own; times by the wall."""

    def __init__(self, *, delay=0.15, reports=True, clocks=(BOOTED, BOOTED)):
        self.audio = Rig(PCMU)
        self.video = VideoRig(video_plan(), timeline=self.audio.stream.shared.timeline)
        self.random, self.delay = Random(1), delay
        self.reports, self.clocks = reports, clocks
        self.late = {}  # (sound, picture) that are late in seconds, by when they were made
        self._arrived = [0.0, 0.0]
        self.heard, self.filmed = {}, []  # RTMP time of what was made at a tenth of a second

    def ticks(self, which, at):
        """RTP time: the sound's and the pictures' wrap in the first minutes."""
        rate, start = ((8000 * FAST, -400_000), (90_000 * SLOW, -9_000_000))[which]
        return int(at * rate) + start & 0xFFFFFFFF

    def arrival(self, which, at):
        """When something arrives: up to 30 ms late, the pictures later for being encoded."""
        late = self.random.uniform(0.0, 0.03) + (self.delay if which else 0.0)
        late += self.late.get(at, (0.0, 0.0))[which]
        self._arrived[which] = max(self._arrived[which], at + late)
        return self._arrived[which]

    def report(self, at):
        """A sender report of each, not at once."""
        if not self.reports:
            return
        for which, (source, leg) in enumerate(
            ((SOUND, self.audio.stream), (PICTURE, self.video.stream))
        ):
            clock, at = self.clocks[which], at + 0.7 * which
            ntp = 0 if clock is None else ntp_time(at + clock)
            report = SenderReport(source, ntp, self.ticks(which, at), 1, 1)
            names = SourceDescription.of_cname(source, "bob@host")
            leg.on_rtcp(bytes(report) + bytes(names), self.arrival(which, at))

    def talk(self, tenth):
        """A packet of a fifth of a second."""
        at, before = tenth / 10, len(self.audio.tags)
        stamp, number = self.ticks(0, at), 65_000 + tenth // 2 & 0xFFFF
        data = fast.pack_fixed(0x80, 0, number, stamp, SOUND) + b"p" * 1600
        self.audio.stream.on_rtp(data, self.arrival(0, at))
        if len(self.audio.tags) > before:
            self.heard[tenth] = self.audio.tags[-1][0]

    def film(self, tenth):
        """A picture, the first one a key frame."""
        rig, at = self.video, tenth / 10
        units = (inter(),) if self.filmed else (SPS, PPS, idr())
        rig.now = self.arrival(1, at)
        rig.picture(self.ticks(1, at), *units, octets=1000)
        self.filmed.append(tenth)

    def live(self, seconds, since=0):
        """Sound five times a second, a picture each second, reports every five."""
        for tenth in range(since * 10, (since + seconds) * 10, 2):
            self.talk(tenth)
            if tenth % 10 == 0:
                self.film(tenth)
            if tenth % 50 == 12:
                self.report(tenth / 10)

    def apart(self):
        """How many ms the picture of each second is behind its sound."""
        seen = [at for _, at, body in self.video.tags if not is_sequence_header(body)]
        assert len(self.filmed) - len(seen) <= 1  # the last one may wait for its end
        return {
            tenth // 10: at - self.heard[tenth]
            for tenth, at in zip(self.filmed, seen, strict=False)
        }


def times(phone):
    """RTMP times of the pictures, in the order of the stream."""
    return [at for _, at, _ in phone.video.tags]


def test_sound_and_picture_stay_together_for_an_hour():
    """Covers RFC 3550 §6.4.1 [sound-and-picture-together]: clocks 200 ppm apart."""
    phone = Phone()
    phone.live(3600)
    apart = phone.apart()
    assert abs(apart[0]) > 100  # by arrival, as long as no report has come
    assert max(abs(ms) for second, ms in apart.items() if second >= 10) <= 40
    assert len(apart) >= 3599
    assert all(before <= after for before, after in pairwise(times(phone)))
    # The sound is passed on as it was sampled: nobody corrects its clock.
    last = 3600 * 10 - 2
    assert phone.heard[last] - phone.heard[0] == pytest.approx(last * 100 * FAST, abs=1)


def test_without_reports_arrival_decides():
    """Own design: nothing else tells; the drift of ten seconds is 2 ms."""
    phone = Phone(reports=False, delay=0.0)
    phone.live(10)
    assert all(abs(ms) <= 35 for ms in phone.apart().values())


@pytest.mark.parametrize("late", [(0.473, 0.0), (0.0, 0.473), (0.0, 1.4)], ids=str)
def test_what_is_late_at_the_beginning_parts_nothing_for_the_whole_call(late):
    """Own design: without reports the usual arrival decides, within seconds and without a step."""
    phone = Phone(reports=False, delay=0.0)
    phone.late = {at: late for at in (0.0, 1.0)}
    phone.live(60)
    apart = phone.apart()
    assert abs(apart[0]) == pytest.approx(1000 * max(late), abs=40)
    assert all(abs(ms) <= 40 for second, ms in apart.items() if second >= 25)
    assert all(before < after for before, after in pairwise(times(phone)[1:]))


def test_pictures_that_come_late_now_and_then_make_no_others_late():
    """Own design: a key frame is long, and takes its time on the way."""
    phone = Phone(reports=False, delay=0.0)
    phone.late = {float(at): (0.0, 0.4) for at in range(0, 60, 4)}
    phone.live(60)
    assert all(abs(ms) <= 40 for second, ms in phone.apart().items() if second >= 10)


@pytest.mark.parametrize("clock", [None, BOOTED + 3600.0])
def test_reports_of_no_common_clock_are_no_use(clock):
    """Covers RFC 3550 §6.4.1 [no-clock]: a phone that says 0, or something of its own."""
    phone = Phone(clocks=(BOOTED, clock), delay=0.0)
    phone.live(30)
    assert all(abs(ms) <= 35 for ms in phone.apart().values())
    neither = Phone(clocks=(None, None), delay=0.0)
    neither.live(30)
    assert all(abs(ms) <= 35 for ms in neither.apart().values())


def test_pictures_that_begin_later_begin_where_the_sound_is():
    """A re-INVITE may add them after an hour: what arrives together is shown together."""
    phone = Phone(delay=0.0, reports=False)
    for tenth in range(0, 36_000, 2):
        phone.talk(tenth)
    assert not phone.video.tags
    phone.live(5, since=3600)
    assert all(abs(ms) <= 35 for ms in phone.apart().values())


def test_a_new_source_of_pictures_goes_on_beside_the_sound():
    """Covers RFC 3550 §5.1: by arrival until its first report, and never back in time."""
    phone = Phone(delay=0.0)
    phone.live(1000)
    begun = len(phone.video.tags)
    again = VideoRig()
    for at, (stamp, units) in enumerate(((0, (SPS, PPS, idr())), (90_000, (inter(),)))):
        for datagram in again.datagrams(stamp, *units, octets=50):
            other = bytearray(datagram)
            other[8:12] = b"abcd"
            phone.video.stream.on_rtp(bytes(other), 1000.0 + at)
    shown = [at for _, at, _ in phone.video.tags[begun:]]
    assert shown and all(abs(at - 1_000_100) < 2000 for at in shown)
    assert all(before <= after for before, after in pairwise(times(phone)))
