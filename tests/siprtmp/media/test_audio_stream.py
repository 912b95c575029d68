"""A call's media: tags to packets and packets to tags, at the pace and in the order of sound."""

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.gateway.audio_rig import ALAW, AUDIO, SPEEX, ULAW, Rig, plan

from p2psip.rtp.rtcp import Bye, ReceiverReport, SenderReport, compound, parse_compound
from siprtmp.media.translate.audio_formats import NARROWBAND, PCMA, PCMU, WIDEBAND


def test_live_sound_leaves_at_once_numbered_and_stamped():
    """Covers RFC 3550 §5.1 and RFC 3551 §4.1."""
    rig = Rig(PCMU)
    for i in range(50):
        rig.now = i * 0.02
        rig.publish(ULAW, 1000 + 20 * i)
    assert [at for at, *_ in rig.sent] == [i * 0.02 for i in range(50)]
    assert {(b - a) & 0xFFFFFFFF for a, b in pairwise(rig.stamps)} == {160}
    numbers = [number for _, _, _, number, _, _, _ in rig.sent]
    assert {(b - a) & 0xFFFF for a, b in pairwise(numbers)} == {1}
    assert [marker for _, _, marker, *_ in rig.sent] == [True] + [False] * 49
    assert rig.stream.sent == 50 and not rig.holding


def test_a_file_is_held_back_and_leaves_in_time():
    """Own design: more than half a second is not read; nothing is lost."""
    rig, published = Rig(PCMU), 0
    while published < 300 or rig.stream.deadline is None:
        if not rig.holding and published < 300:
            rig.publish(ULAW, 20 * published)
            published += 1
        else:
            rig.wait(rig.stream.deadline)
    assert 5.4 < rig.now < 6.0
    rig.stream.publish_ended(rig.now)
    assert not rig.drained
    rig.wait(6.5)
    assert rig.drained == 1 and len(rig.sent) == 300 and not rig.holding
    assert all(b[0] - a[0] > 0.0099 for a, b in pairwise(rig.sent))


def test_the_last_half_packet_is_filled_up_and_sent():
    """Covers RFC 3551 §4.2."""
    rig = Rig(PCMU)
    rig.publish(ULAW[:81], 0)
    assert not rig.sent
    rig.stream.publish_ended(0.01)
    rig.wait(1.0)
    assert rig.sent[0][-1] == b"u" * 80 + b"\xff" * 80 and rig.drained == 1


def test_the_other_law_and_what_cannot_be_sent():
    """Covers RFC 3551 §4.5.14."""
    rig = Rig(PCMA)
    rig.publish(ULAW, 0)
    assert rig.sent[0][1] == PCMA.payload_type
    for tag in (b"\xaf\x01aac", b"", b"\x82", b"\xb2"):
        rig.publish(tag, 20)
    rig.stream.publish(9, 40, b"video", 0.0)
    assert len(rig.sent) == 1 and rig.stream.unsuitable == 3


def test_a_second_publisher_goes_on_where_the_clock_of_the_first_would_be():
    """Covers RFC 3550 §5.1."""
    rig = Rig(PCMU)
    rig.publish(ULAW, 0)
    rig.stream.publish_ended(0.02)
    rig.now = 2.0
    rig.publish(ULAW, 777_000)
    assert (rig.stamps[1] - rig.stamps[0]) & 0xFFFFFFFF == 16000
    assert rig.sent[1][2]  # a talk spurt of its own


def test_a_publisher_that_is_replaced_while_held_back_is_let_go():
    """Own design: what held it back went with the codec."""
    rig = Rig(PCMU, WIDEBAND)
    rig.publish(ULAW, 0, 60)
    assert rig.holding
    rig.start(plan(PCMA), 0.0)
    rig.publish(ULAW, 1200)
    assert not rig.holding and rig.sent[-1][1] == PCMA.payload_type
    rig.publish(ULAW, 1220, 60)
    assert rig.holding
    rig.stream.close(0.1)
    assert not rig.holding and rig.closed == 1 and rig.stream.deadline is None


def test_a_new_packet_time_counts_from_the_next_packet():
    """Covers RFC 3264 §8.3.

    Covers RFC 3264 §8.3.4 [new-parameters-at-once].
    """
    rig = Rig(PCMU)
    rig.publish(ULAW, 0)
    rig.start(plan(PCMU, ptime=40), 0.0)
    rig.now = 0.02
    rig.publish(ULAW, 20)
    assert len(rig.sent) == 1
    rig.now = 0.04
    rig.publish(ULAW, 40)
    assert len(rig.sent[1][-1]) == 320


def test_a_new_format_and_a_new_address_are_used_at_once():
    """Covers RFC 3264 §8.3.1 [follows-at-once], §8.3.2 [new-formats-at-once] [no-old-formats]."""
    rig = Rig(PCMU)
    rig.publish(ULAW, 0)
    rig.start(plan(PCMA, port=6004), 0.01)
    assert rig.remote == ("192.0.2.9", 6004)
    for i in (1, 2, 3):
        rig.now = 0.02 * i
        rig.publish(ULAW, 20 * i)
    assert [kind for _, kind, *_ in rig.sent] == [0, 8, 8, 8]


def test_another_clock_rate_is_another_source():
    """Covers RFC 3550 §5.2."""
    rig = Rig(PCMU)
    rig.publish(ULAW, 0)
    rig.start(plan(WIDEBAND), 1.0)
    rig.start(plan(PCMA), 2.0)
    rig.now = 2.0
    rig.publish(ALAW, 2000)
    assert rig.sent[0][5] != rig.sent[1][5]


@pytest.mark.parametrize(("tag", "rate"), [(ULAW, 8000), (SPEEX, 16000)])
def test_reports_count_by_the_clock_of_the_codec_that_is_sent(tag, rate):
    """Covers RFC 3550 §6.4.1: the timestamp is that of the report's own time."""
    rig = Rig(PCMU, WIDEBAND)
    rig.remote_rtcp = ("192.0.2.9", 5005)
    rig.publish(tag, 0)
    while not rig.reports:
        rig.wait(rig.stream.deadline)
    report = parse_compound(rig.reports[0])[0]
    [(at, *_, stamp, ssrc, _)] = rig.sent
    assert report.ssrc == ssrc and rig.now - at > 1.0
    assert abs((report.timestamp - stamp & 0xFFFFFFFF) - (rig.now - at) * rate) <= 1


def test_a_publisher_with_another_clock_is_another_source():
    """Covers RFC 3550 §5.2: an SSRC has one timing; what the phone says is counted on."""
    rig = Rig(PCMU, WIDEBAND)
    rig.remote_rtcp = ("192.0.2.9", 5005)
    rig.publish(ULAW, 0)
    rig.hear(1)
    rig.publish(SPEEX, 20)
    rig.wait(10.0)
    [(*_, first, _), (*_, second, _)] = rig.sent
    report = parse_compound(rig.reports[0])[0]
    assert first != second == report.ssrc
    assert report.packets == 1 and len(report.reports) == 1


@pytest.mark.parametrize("direction", ["recvonly", "inactive"])
def test_nothing_is_sent_on_hold_though_time_goes_on(direction):
    """Covers RFC 3264 §8.4, and RFC 3551 §4.1 for what follows."""
    rig = Rig(PCMU)
    rig.publish(ULAW, 0)
    rig.start(plan(PCMU, direction=direction, held=True), 0.01)
    for i in range(1, 100):
        rig.now = 0.02 * i
        rig.publish(ULAW, 20 * i)
    rig.start(plan(PCMU), 2.0)
    for i in (100, 101):
        rig.now = 0.02 * i
        rig.publish(ULAW, 20 * i)
    assert len(rig.sent) == 3 and (rig.stamps[1] - rig.stamps[0]) & 0xFFFFFFFF == 16000
    assert [marker for _, _, marker, *_ in rig.sent] == [True, True, False]


@pytest.mark.parametrize("direction", ["recvonly", "inactive", "sendonly"])
def test_reports_do_not_heed_the_direction(direction):
    """Covers RFC 8866 §6.7.1 [reports-while-receiving] and §6.7.4 [reports-while-inactive].

    Covers RFC 8866 §6.7.3 [reports-while-sending].
    Covers RFC 3550 §6 [reports-everywhere] and §6.2 [never-off].
    """
    rig = Rig(PCMU, direction=direction)
    rig.wait(20.0)
    assert len(rig.reports) >= 2
    rig.stream.on_rtcp(compound(SenderReport(9, 0, 0, 0, 0)), 20.0)
    assert rig.stream.statistics.invalid == 0
    assert rig.stream._session.last_heard == 20.0


@pytest.mark.parametrize(("hosts", "packets"), [(("192.0.2.9",), 250), ((), 5)])
def test_a_stranger_cannot_aim_sound_at_a_third_party(hosts, packets):
    """Covers RFC 8866 §7 [care-with-addresses]."""
    rig = Rig(PCMU, hosts=hosts)
    for i in range(250):
        rig.now = 0.02 * i
        rig.publish(ULAW, 20 * i)
    assert len(rig.sent) == packets


def test_packets_become_tags_in_order():
    """Covers RFC 3550 §A.1 and RTMP 1.0 §5.4.1.

    Covers RFC 3264 §6.1 [hears-after-the-answer].
    Covers RFC 3550 §5.1 [unknown-types-ignored].
    """
    rig = Rig(PCMU, PCMA)
    for number in (1, 2, 4, 3, 3, 5):
        rig.hear(number, bytes([number]) * 160)
    rig.hear(6, payload_type=8)
    rig.hear(7, payload_type=101)  # a digit, for which there is no use yet
    rig.stream.on_rtp(b"garbage", 0.0)
    assert [tag[1] for _, tag in rig.tags[:5]] == [1, 2, 3, 4, 5]
    assert [tag[0] for _, tag in rig.tags] == [0x82] * 5 + [0x72]
    assert [b[0] - a[0] for a, b in pairwise(rig.tags)] == [20] * 5
    assert rig.stream.received == 6


def test_a_missing_packet_is_waited_for_and_then_not():
    """Covers RFC 3550 §A.1."""
    rig = Rig(PCMU)
    rig.hear(1)
    rig.hear(3)
    assert len(rig.tags) == 1 and rig.stream.deadline <= 0.06
    rig.wait(0.1)
    assert [at for at, _ in rig.tags] == [0, 40]


def test_reports_are_sent_and_a_goodbye_at_the_end():
    """Covers RFC 3550 §6.2 and §6.6."""
    rig = Rig(PCMU)
    rig.remote_rtcp = ("192.0.2.9", 5005)
    rig.publish(ULAW, 0)
    rig.hear(1)
    rig.wait(20.0)
    assert rig.reports
    rig.stream.on_rtcp(rig.reports[0], rig.now)
    rig.stream.close(rig.now)
    rig.stream.close(rig.now)
    assert any(isinstance(packet, Bye) for packet in parse_compound(rig.reports[-1]))
    assert rig.closed == 1
    rig.publish(ULAW, 20)
    rig.hear(2)
    rig.stream.on_rtcp(b"", 0.0)
    rig.start(plan(PCMU), 0.0)
    rig.stream.publish_ended(0.0)
    rig.stream.tick(99.0)
    assert len(rig.sent) == 1 and len(rig.tags) == 1 and not rig.drained


def test_nothing_is_sent_at_the_end_of_a_call_without_sound():
    """Covers RFC 3550 §6.3.7: no goodbye, and no empty datagram in its place."""
    rig = Rig(PCMU)
    rig.remote_rtcp = ("192.0.2.9", 5005)
    rig.stream.close(rig.now)
    assert rig.reports == [] and rig.closed == 1


LIFE = {  # what a phone may do, and whether that shows that it lives
    "nothing": (lambda rig, i: None, False),
    "hears": (lambda rig, i: rig.publish(ULAW, 1000 * i), False),
    "speaks": (lambda rig, i: rig.hear(i), True),
    "noise": (lambda rig, i: rig.hear(i, b"n", payload_type=13), True),
    "reports": (lambda rig, i: rig.stream.on_rtcp(bytes(ReceiverReport(7)), rig.now), True),
    "nonsense": (lambda rig, i: rig.stream.on_rtcp(b"nonsense", rig.now), False),
    "answers": (lambda rig, i: rig.asked and rig.stream.shared.alive(rig.now), True),
}


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("side", LIFE)
def test_a_phone_that_shows_no_life_is_asked_and_then_given_up(side, held):
    """Covers Field §"Calls without reports"; comfort noise and digits are signs of life too."""
    act, lives = LIFE[side]
    rig = Rig(PCMU, media_timeout=5.0, held=held)
    for i in range(20):
        rig.wait(i * 0.5)
        act(rig, i)
    assert (rig.ended is not None) == (not lives)
    if lives:
        rig.wait(30.0)
        assert rig.ended == pytest.approx(14.5) and rig.asked[-1] == pytest.approx(12.0)
    else:
        assert rig.ended == pytest.approx(5.0) and rig.asked == [pytest.approx(2.5)]


def test_a_long_time_out_is_waited_for_to_its_end():
    """Own design: a question that SIP gives up after 32 s would end the call before its time."""
    rig = Rig(PCMU, media_timeout=300.0)
    rig.wait(400.0)
    assert rig.asked == [pytest.approx(270.0)] and rig.ended == pytest.approx(300.0)


def test_a_phone_is_asked_once_before_it_is_given_up_however_late():
    """Own design: a process that stood still has not heard anybody."""
    rig = Rig(PCMU, media_timeout=5.0)
    rig.stream.tick(rig.now + 100.0)
    assert rig.asked == [100.0] and rig.ended is None
    rig.wait(200.0)
    assert rig.ended == pytest.approx(102.5) and rig.asked == [100.0]


def test_a_phone_cannot_tell_where_time_begins_and_knows_us_by_one_name():
    """Covers RFC 3550 §5.1 [timestamp-is-drawn] and §6.5.1 [cname-stays]."""
    rig = Rig(PCMU)
    rig.publish(ULAW, 0)
    assert rig.stamps[0] not in (0, 160) and rig.stamps[0] == rig.stream._origin
    names = set()
    for codec in (PCMU, WIDEBAND):
        rig.start(plan(codec), rig.now)
        rig.reports.clear()
        rig.wait(rig.now + 20.0)
        names |= {parse_compound(data)[1].chunks[0].cname for data in rig.reports}
    assert names == {"c"}


def test_what_only_rings_may_be_silent():
    """Covers RFC 3960 §3."""
    rig = Rig(media_timeout=5.0)
    assert rig.stream.plan is None and rig.stream.deadline is None
    rig.stream.publish(AUDIO, 0, ULAW, 0.0)  # before there is anybody to hear it
    rig.hear(0)
    rig.start(plan(PCMU), 0.0, early=True)
    rig.wait(30.0)
    assert rig.ended is None and not rig.asked
    rig.start(plan(PCMU), 30.0)
    rig.wait(40.0)
    assert rig.ended == pytest.approx(35.0)


class Media(RuleBasedStateMachine):
    """Publishers, phones and answers in any order: sound leaves in order, in time, unharmed."""

    @initialize(codecs=st.permutations([PCMU, PCMA, WIDEBAND, NARROWBAND]), timeout=st.floats(1, 9))
    def begin(self, codecs, timeout):
        self.rig = Rig(*codecs[:2], media_timeout=timeout)
        self.at, self.number = 0, 0

    @rule(
        count=st.integers(1, 60),
        size=st.integers(1, 400),
        head=st.sampled_from([0x82, 0x72, 0xB2, 0xAF]),
        leap=st.sampled_from([0, 0, 0, 30, 60, 5000, 2_000_000_000, 3_000_000_000, -500]),
    )
    def publish(self, count, size, head, leap):
        self.at = (self.at + leap) % (1 << 32)
        for _ in range(count):
            if self.rig.holding:
                return
            self.rig.publish(bytes([head]) + bytes(size), self.at)
            self.at = (self.at + size // 8) % (1 << 32)

    @rule(
        step=st.integers(-3, 5),
        payload_type=st.sampled_from([0, 8, 13, 96, 98]),
        ssrc=st.sampled_from([7, 7, 7, 8]),
    )
    def hear(self, step, payload_type, ssrc):
        self.number = (self.number + step) % 65536
        self.rig.hear(self.number, payload_type=payload_type, ssrc=ssrc)

    @rule(
        codecs=st.permutations([PCMU, PCMA, WIDEBAND, NARROWBAND]),
        ptime=st.sampled_from([10, 20, 60, 200]),
        direction=st.sampled_from(["sendrecv", "sendrecv", "inactive"]),
    )
    def answer(self, codecs, ptime, direction):
        held = direction == "inactive"
        self.rig.start(plan(*codecs[:3], ptime=ptime, direction=direction, held=held), self.rig.now)

    @rule()
    def unpublish(self):
        self.rig.stream.publish_ended(self.rig.now)

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.02, 0.1, 1.0, 4.0]))
    def wait(self, seconds):
        self.rig.wait(self.rig.now + seconds)

    @invariant()
    def sound_is_whole(self):
        if not hasattr(self, "rig"):
            return
        rig = self.rig
        for before, after in pairwise(rig.sent):
            assert after[0] >= before[0]
            if before[5] == after[5]:
                assert (after[3] - before[3]) & 0xFFFF == 1
        assert all(b[0] >= a[0] for a, b in pairwise(rig.tags))
        if rig.holding:  # who is held back is let go again by a timer
            assert rig.stream.deadline is not None and rig.stream.deadline < rig.now + 6.0

    def teardown(self):
        if hasattr(self, "rig"):
            self.rig.wait(self.rig.now + 60.0)
            assert not self.rig.holding and (self.rig.closed or self.rig.stream.plan.media.held)


TestMedia = Media.TestCase
TestMedia.settings = settings(stateful_step_count=25, deadline=None)
