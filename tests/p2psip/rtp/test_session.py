"""Two sessions over a bad line agree on what was sent, what was lost, and who is there."""

import random

from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.mutations import mutations

from p2psip.rtp.rtcp import (
    App,
    Bye,
    Fir,
    Nack,
    Pli,
    ReceiverReport,
    ReportBlock,
    SenderReport,
    UnknownPacket,
    compound,
    ntp_time,
    parse_compound,
)
from p2psip.rtp.session import RtpSession
from p2psip.strategies.rtp import compounds, rtp_packets

UNIX = 1_700_000_000.0  # what the wall clock shows at 0.0 of the test's clock


def session(ssrc=None, seed=1, **options):
    randbytes = random.Random(seed).randbytes
    return RtpSession(ssrc, 8000, f"user{seed}@host", randbytes, 0.0, wallclock=UNIX, **options)


def reports(packets):
    return [p for p in packets if isinstance(p, SenderReport | ReceiverReport)]


class BadLine(RuleBasedStateMachine):
    """Packets each way, lost, doubled and overtaken, with reports when they are due."""

    @initialize(first=st.integers(0, 0xFFFF))
    def call(self, first):
        """Covers RFC 3550 §5.1: first numbers are anything."""
        self.now, self.sessions = 0.0, [session(1, 1), session(2, 2)]
        self.sessions[0]._sequence = first
        self.sent, self.arrived = [0, 0], [[], []]
        self.last = [None, None]

    @rule(who=st.integers(0, 1), copies=st.sampled_from([0, 1, 1, 1, 1, 2]), gap=st.floats(0, 0.1))
    def speak(self, who, copies, gap):
        """Covers RFC 3550 §A.1: every copy that arrives has the number it was sent with."""
        self.now += gap
        data = self.sessions[who].send(0, bytes(160), int(self.now * 8000), False, self.now)
        self.sent[who] += 1
        for _ in range(copies):
            header = self.sessions[1 - who].received_rtp(data, self.now + 0.05)
            assert header[2] & 0xFFFF == int.from_bytes(data[2:4], "big")
            self.arrived[who].append(header[2])

    @rule(seconds=st.floats(0, 10))
    def wait(self, seconds):
        """Covers RFC 3550 §6.4: who sent lately reports as a sender, who did not as a receiver."""
        self.now += seconds
        for who, each in enumerate(self.sessions):
            if each.deadline > self.now:
                continue
            for data in each.tick(self.now):
                first, *_ = packets = parse_compound(data, strict=True)
                assert len(packets) == 2 and packets[1].chunks[0].cname == f"user{who + 1}@host"
                if isinstance(first, SenderReport):
                    assert first.packets == self.sent[who]
                    assert first.octets == 160 * self.sent[who]
                    assert abs(first.timestamp - int(self.now * 8000)) <= 1
                    assert first.ntp == ntp_time(self.now + UNIX)
                self.last[who] = first
                assert self.sessions[1 - who].received_rtcp(data, self.now + 0.05) == []
            assert each.deadline > self.now

    @invariant()
    def loss_is_true(self):
        """Covers RFC 3550 §A.3.

        Covers RFC 3551 §2 [watches-loss].
        """
        for who in range(2):
            numbers = self.arrived[who]
            if numbers:
                statistics = self.sessions[1 - who].statistics
                assert statistics.lost == max(numbers) - numbers[0] + 1 - len(numbers)
                assert statistics.packets_received == len(numbers)
                assert statistics.octets_received == 160 * len(numbers)


TestBadLine = BadLine.TestCase


def test_a_round_trip_is_measured():
    """Covers RFC 3550 §6.4.1: the peer's delay is subtracted."""
    ours, peer = session(1, 1), session(2, 2)
    for i in range(500):
        now = i * 0.02
        peer.received_rtp(ours.send(0, b"x" * 160, i * 160, False, now), now + 0.04)
        for source, target in ((ours, peer), (peer, ours)):
            if source.deadline <= now:
                for data in source.tick(now):
                    target.received_rtcp(data, now + 0.04)
    assert abs(ours.statistics.rtt - 0.08) < 0.001 and peer.statistics.rtt is None
    assert peer.reception.sender_clock is not None and peer.remote_cname == "user1@host"
    statistics = ours.statistics
    assert (statistics.remote_lost, statistics.remote_fraction_lost) == (0, 0.0)
    assert statistics.remote_jitter_ms == 0.0 and statistics.jitter_ms == 0.0


def test_a_round_trip_of_nonsense_is_not():
    """Covers RFC 3550 §6.4.1: a delay longer than the trip is a clock's fault."""
    ours = session(1)
    block = ReportBlock(1, 0, 3, 0, 8, last_sr=ntp_time(UNIX) >> 16 & 0xFFFFFFFF, delay=1 << 20)
    ours.received_rtcp(compound(ReceiverReport(2, (block,))), 1.0)
    assert ours.rtt is None and ours.statistics.remote_lost == 3
    assert ours.statistics.remote_jitter_ms == 1.0
    ours.received_rtcp(compound(ReceiverReport(2, (ReportBlock(7, 0, 9, 0, 0),))), 1.0)
    assert ours.statistics.remote_lost == 3


def test_feedback_for_us_is_passed_on():
    """Covers RFC 4585 §6.1: by the SSRC it is about."""
    ours = session(1)
    asked = [Pli(2, 1), Nack.of(2, 1, [5]), Fir(2, ((1, 0), (9, 0)))]
    others = [Pli(2, 9), Nack.of(2, 9, [5]), Fir(2, ((9, 0),)), Bye((9,))]
    assert ours.received_rtcp(compound(ReceiverReport(2), *asked, *others), 1.0) == asked


def test_the_peer_leaves():
    """Covers RFC 3550 §6.6: and whoever comes next is heard from the first packet."""
    ours, peer, other = session(1, 1), session(2, 2), session(3, 3)
    ours.received_rtp(peer.send(0, b"", 0, True, 0.0), 0.1)
    assert ours.received_rtcp(peer.bye(0.1, "hung up"), 0.2) == [Bye((2,), b"hung up")]
    assert ours.received_rtp(other.send(0, b"", 0, True, 0.3), 0.3) is not None
    assert ours.reception.ssrc == 3


def test_who_never_spoke_says_no_goodbye():
    """Covers RFC 3550 §6.3.7.

    Covers RFC 3550 §6.3.7 [no-bye-of-the-silent] [bye-is-sent] and §6.1 [bye-last].
    """
    silent = session(1)
    assert silent.bye(1.0) == b""
    while not silent.tick(silent.deadline):
        pass
    report, _, bye = parse_compound(silent.bye(9.0, "x" * 300), strict=True)
    assert isinstance(report, ReceiverReport) and bye == Bye((1,), b"x" * 255)


def test_who_stops_sending_reports_as_a_receiver():
    """Covers RFC 3550 §6.4: after two intervals of silence.

    Covers RFC 3551 §2 [senders-can-report].
    Covers RFC 3550 §6.4 [reports-as-it-sends].
    """
    ours = session(1)
    ours.send(0, b"", 0, True, 0.0)
    kinds = []
    while len(kinds) < 8:
        kinds += [type(r) for d in ours.tick(ours.deadline) for r in reports(parse_compound(d))]
    assert kinds[0] is SenderReport and kinds[-1] is ReceiverReport
    assert kinds == sorted(kinds, key=lambda kind: kind is ReceiverReport)


def test_a_collision_is_resolved_once_and_a_loop_is_dropped():
    """Covers RFC 3550 §8.2: BYE for the old SSRC, a new one, and then no more.

    Covers RFC 3550 §8.2 [collisions-are-noticed] [loops-are-dropped] [loops-are-told]
    [bye-for-the-old] [another-ssrc].
    """
    ours = session(1)
    looped = ours.send(0, b"first", 0, True, 0.0)
    assert ours.received_rtp(looped, 0.1) is not None  # from whoever had that SSRC as well
    assert ours.ssrc != 1 and ours.deadline == float("-inf")
    [farewell] = ours.tick(0.1)
    assert parse_compound(farewell)[-1] == Bye((1,)) and ours.deadline > 0.1
    looped = ours.send(0, b"second", 160, False, 0.2)
    assert int.from_bytes(looped[8:12], "big") == ours.ssrc
    before = ours.ssrc
    assert ours.received_rtp(looped, 0.3) is None and ours.invalid == 1
    ours.received_rtcp(compound(SenderReport(before, 0, 0, 0, 0)), 0.3)
    assert ours.ssrc == before and ours.tick(0.3) == []


def test_a_collision_before_we_spoke_needs_no_goodbye():
    """Covers RFC 3550 §8.2, noticed in RTCP."""
    ours = session(1)
    assert ours.received_rtcp(compound(SenderReport(1, 0, 0, 0, 0)), 0.1) == []
    assert ours.ssrc != 1 and ours.tick(0.1) == []


def test_an_echo_is_heard_if_we_want_it():
    """Covers RFC 3550 §8.2: SIPp's reflector sends our packets back as they are.

    Covers Field §"Packets sent back".
    """
    ours = session(1, echo=True)
    for i in range(3):
        header = ours.received_rtp(ours.send(0, b"me", i * 160, False, i * 0.02), i * 0.02)
        assert header is not None and ours.ssrc == 1


@given(mutations(rtp_packets().map(bytes)), mutations(compounds().map(lambda c: compound(*c))))
def test_garbage_disturbs_nothing(rtp, rtcp):
    """Covers RFC 3550 §A.1 and §A.2: the call goes on, and reports can still be written."""
    ours, peer = session(1, 1), session(2, 2)
    for i in range(6):
        good = peer.send(0, b"sound", i * 160, False, i * 0.02)
        header = ours.received_rtp(good, i * 0.02)
        assert header is not None or ours.reception.ssrc != 2
        event("heard" if ours.received_rtp(rtp, i * 0.02) else "dropped")
        ours.received_rtcp(rtcp, i * 0.02)
        ours.received_rtcp(rtp, i * 0.02)
    assert all(map(parse_compound, ours.tick(60.0)))


def test_a_source_without_ssrc_draws_one():
    """Covers RFC 3550 §5.1: at random.

    Covers RFC 3550 §5.1 [ssrc-is-drawn].
    """
    assert session(seed=1).ssrc != session(seed=2).ssrc
    assert session(seed=1).send(0, b"", 0, False, 0.0) != session(seed=2).send(0, b"", 0, False, 0)


def test_numbers_begin_anywhere():
    """Covers RFC 3550 §5.1 [sequence-is-drawn]."""
    begun = {session(1, seed).send(0, b"", 0, False, 0.0)[2:4] for seed in range(8)}
    assert len(begun) > 4


def test_what_nobody_knows_is_passed_over():
    """Covers RFC 3550 §6.1 [unknown-packets-ignored] and §6.7 [unknown-app-ignored]."""
    ours = session(1)
    strange = (UnknownPacket(210, 3, bytes(8)), App(1, 2, b"what", bytes(4)))
    assert ours.received_rtcp(compound(ReceiverReport(2), *strange, Bye((9,))), 1.0) == []
    assert ours.invalid == 0 and ours.last_heard == 1.0


def test_a_captured_call(capture):
    """Covers RFC 3550 §6.4.1: no loss, little jitter, and the reports of GStreamer understood."""
    ours = session(1)
    first = None
    for datagram in capture("rtp/pcma_with_rtcp.pcap"):
        first = first or datagram.time
        now = datagram.time - first
        if datagram.port == 20012:
            assert ours.received_rtp(datagram.data, now) is not None
        else:
            events = ours.received_rtcp(datagram.data, now)
    assert [type(each) for each in events] == [Bye]
    statistics = ours.statistics
    assert (statistics.packets_received, statistics.lost, statistics.invalid) == (702, 0, 0)
    assert statistics.jitter_ms < 1 and ours.reception.sender_clock is not None
