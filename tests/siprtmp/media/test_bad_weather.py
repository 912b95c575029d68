"""Two packets in a hundred, and reports too, are lost between a phone and us for half a minute."""

from itertools import pairwise
from random import Random

import pytest
from support.gateway.video_rig import PPS, SPS, VideoRig, idr, inter, video_plan

from p2psip.rtp import fast
from p2psip.rtp.feedback import Fir, Nack, Pli
from p2psip.rtp.rtcp import parse_compound
from rtmplite.flv.avc import split_units
from rtmplite.flv.video import VideoTag, is_sequence_header

FRAME, SECONDS, LOSS = 0.04, 30, 0.02
PORT = ("192.0.2.9", 6001)


class Phone:
    """A camera of 25 pictures a second, which makes a key frame only when it is asked for one."""

    def __init__(self, feedback):
        self.rig = VideoRig(video_plan(feedback=feedback))
        self.rig.remote_rtcp = PORT
        self.random, self.number = Random(5), 0
        self.wants_key, self.keys = True, []
        self.sent, self.heard, self.asked = {}, 0, 0

    def lose(self):
        return self.random.random() < LOSS

    def film(self):
        """A picture, in two slices of a packet each, or in a dozen packets."""
        at, self.number = self.number, self.number + 1
        if self.wants_key:
            self.keys.append(at)
            units, self.wants_key = (SPS, PPS, idr(at, 9000)), False
        else:
            units = (inter(at, 1500),)
        for datagram in self.rig.datagrams(3600 * at, *units, octets=1000):
            self.sent[fast.unpack(datagram)[2]] = datagram
            if not self.lose():
                self.rig.stream.on_rtp(datagram, self.rig.now)

    def listen(self):
        """Do what the requests ask for that have come."""
        reports, self.heard = self.rig.reports[self.heard :], len(self.rig.reports)
        for report in reports:
            for each in [] if self.lose() else parse_compound(report):
                self.wants_key |= isinstance(each, Pli | Fir)
                for sequence in each.lost() if isinstance(each, Nack) else ():
                    if not self.lose():
                        self.rig.stream.on_rtp(self.sent[sequence], self.rig.now)
        self.wants_key |= len(self.rig.asked) > self.asked  # INFO, which SIP repeats until it came
        self.asked = len(self.rig.asked)

    def live(self):
        for picture in range(int(SECONDS / FRAME)):
            self.rig.wait(picture * FRAME)
            self.listen()
            self.film()

    def seen(self):
        """Number and kind of each picture that was passed on."""
        bodies = [body for *_, body in self.rig.tags if not is_sequence_header(body)]
        numbers, high, last = [], 0, 0
        for body in bodies:
            [unit] = split_units(VideoTag.parse(body).data)
            high += 256 * (unit[3] < last)
            last = unit[3]
            numbers.append((high + last, unit[0] & 31 == 5))
            assert len(unit) in (1504, 9004) and len(set(unit[4:])) == 1  # whole
        return numbers


@pytest.mark.parametrize("feedback", [(), ("nack pli",), ("ccm fir",), ("nack", "nack pli")])
def test_a_player_sees_whole_pictures_and_never_waits_two_seconds(feedback):
    """Covers RFC 6184 §5.8: frozen from a lost picture to the next key frame, which is asked for
    by INFO, PLI or FIR; with NACK hardly ever.
    """
    phone = Phone(feedback)
    phone.live()
    seen = phone.seen()
    assert seen[0][1]
    for (before, _), (number, is_key) in pairwise(seen):
        assert number == before + 1 or (is_key and number > before)
    gaps = [after[0] - before[0] for before, after in pairwise(seen)]
    assert max(gaps) * FRAME <= 2.0
    share = len(seen) / phone.number
    assert share > (0.99 if "nack" in feedback else 0.5)
