"""One reporter for all streams of a transport: whole reports, and early requests."""

import random
from itertools import pairwise

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from p2psip.rtp.feedback import Fir, Nack, OtherFeedback, Pli
from p2psip.rtp.reception import Reception
from p2psip.rtp.reporter import UDP_IP_OCTETS, USEFUL_SECONDS, Reporter
from p2psip.rtp.rtcp import (
    Bye,
    ReceiverReport,
    SenderReport,
    SourceDescription,
    compound,
    parse_compound,
)
from p2psip.rtp.sender import Sender

BANDWIDTH = 2000.0


def reporter(senders, receivers, seed=1, **options):
    randbytes = random.Random(seed).randbytes
    made = [Sender(ssrc, 90000, randbytes) for ssrc in senders]
    heard = [Reception(90000) for _ in range(receivers)]
    options.setdefault("bandwidth", BANDWIDTH)
    return Reporter(f"user{seed}@host", randbytes, 0.0, made, heard, **options)


def feed(source, at, now):
    """Have a receiver hear a packet of a source."""
    source.last_received = now
    assert source.heard((96, False, at & 0xFFFF, int(now * 90000), 7, 12, 22), now) is not None


def next_report(at, now):
    """Go on to the next datagram; answer when it left and what it holds."""
    while not (datagrams := at.tick(now)):
        now = max(now, at.deadline)
    return now, [packet for datagram in datagrams for packet in parse_compound(datagram)]


def test_a_compound_reports_for_all_streams():
    """Covers RFC 3550 §6.1 and §6.4: each source of ours about each that is heard.

    Covers RFC 3711 §3.4 [begins-with-a-report] and RFC 4585 §3.1 [names-with-cname].
    """
    ours = reporter([1, 2, 3], 2)
    ours.senders[0].send(96, bytes(50), 0, True, 0.1)
    for place, source in enumerate(ours.receivers):
        source.ssrc = None
        source.last_received = 0.2
        source.heard((96, False, 10, 0, 100 + place, 12, 22), 0.2)
    _, packets = next_report(ours, 0.3)
    assert [type(each) for each in packets] == [
        SenderReport, ReceiverReport, ReceiverReport, SourceDescription,
    ]  # fmt: skip
    assert [each.ssrc for each in packets[:3]] == [1, 2, 3]
    assert all({block.ssrc for block in each.reports} == {100, 101} for each in packets[:3])
    assert {(chunk.ssrc, chunk.cname) for chunk in packets[3].chunks} == {
        (ssrc, "user1@host") for ssrc in (1, 2, 3)
    }
    assert parse_compound(ours.bye(5.0, "over"))[-1] == Bye((1, 2, 3), b"over")


def test_what_encryption_adds_counts_for_the_bandwidth():
    """Covers RFC 3711 §3.4 [first-size-with-srtcp] [sizes-with-srtcp]."""
    ours = reporter([1], 1)
    before = ours._timer.avg_rtcp_size
    ours.count_below(14)
    ours.count_below(14)  # a later agreement says the same
    assert ours._timer.avg_rtcp_size == before + 14
    before += 14
    for each in (ReceiverReport(9), SourceDescription.of_cname(9, "somebody@host")):
        data = compound(ReceiverReport(9), each)
        ours.received(data, 0.0)
        before += (len(data) + UDP_IP_OCTETS + 14 - before) / 16
        assert ours._timer.avg_rtcp_size == before
    now = 0.0
    while not (sent := ours.tick(now)):
        now = max(now, ours.deadline)
    before += (len(sent[0]) + UDP_IP_OCTETS + 14 - before) / 16
    assert ours._timer.avg_rtcp_size == before


def test_requests_reach_the_stream_they_are_about():
    """Covers RFC 4585 §6.1 and RFC 5104 §4.3.1."""
    ours = reporter([1, 2], 1)
    about_ours = [Pli(9, 2), Nack.of(9, 1, [5]), Fir(9, ((2, 0),)), OtherFeedback(206, 15, 9, 1)]
    others = [Pli(9, 3), Nack.of(9, 3, [5]), Fir(9, ((3, 0),)), OtherFeedback(206, 15, 9, 3)]
    data = compound(ReceiverReport(9), *about_ours, *others)
    assert ours.received(data, 1.0) == about_ours
    assert ours.received(data[:-1], 1.0) == [] and ours.invalid == 1


def test_a_bye_frees_the_receiver_of_its_source():
    """Covers RFC 3550 §6.3.4."""
    ours = reporter([1], 2)
    for place, source in enumerate(ours.receivers):
        source.heard((96, False, 10, 0, 100 + place, 12, 22), 0.2)
    data = compound(ReceiverReport(100), Bye((100,)))
    assert ours.received(data, 1.0) == [Bye((100,))]
    assert [each.ssrc for each in ours.receivers] == [None, 101]


def test_the_round_trip_of_each_stream():
    """Covers RFC 3550 §6.4.1."""
    ours, peer = reporter([1, 2], 0), reporter([9], 2, seed=2)
    for sender, source in zip(ours.senders, peer.receivers, strict=True):
        header = sender.send(96, bytes(10), 0, True, 0.9)
        source.last_received = 0.9
        source.heard((96, False, int.from_bytes(header[2:4], "big"), 0, sender.ssrc, 12, 22), 0.9)
    now, _ = 1.0, None
    sent = ours._compound(now)
    peer.received(sent, now + 0.05)
    ours.received(peer._compound(now + 0.2), now + 0.25)
    assert [round(each.rtt, 2) for each in ours.senders] == [0.1, 0.1]


def test_a_request_leaves_at_once_and_the_next_report_is_left_out():
    """Covers RFC 4585 §3.5.2 [early-at-once] [early-skips-one-regular], §3.5.1
    [early-at-first] [no-minimum] and §3.5.3 [early-again].

    Covers RFC 4585 §3.1 [feedback-in-order] [feedback-comes-last].
    Covers RFC 4585 §3.4 [sent-at-once] [one-report-skipped], §3.5.2 [packet-of-its-own]
    [looks-at-allow-early] [leaves-at-te] and §3.5.3 [regular-reports] [adjusted-times]
    [no-minimum-later] [allowed-again-always].
    """
    assert reporter([1], 1, early=True, bandwidth=1e6).deadline < 0.01  # in other profiles 1 s
    ours = reporter([1], 1, early=True)
    feed(ours.receivers[0], 1, 0.0)
    now, _ = next_report(ours, 0.0)
    before = ours.deadline
    assert ours.ask(Pli(1, 7), now + 0.001)
    at, packets = next_report(ours, now + 0.001)
    assert at == now + 0.001 and packets[-1] == Pli(1, 7)
    assert isinstance(packets[0], ReceiverReport) and isinstance(packets[1], SourceDescription)
    assert ours.deadline == pytest.approx(before + before - now)
    regular, packets = next_report(ours, at)
    assert regular >= before and packets[-1] != Pli(1, 7)
    assert ours.ask(Pli(1, 7), regular + 0.001) and ours.deadline == float("-inf")


def test_a_request_need_not_wait_for_the_first_report():
    """Covers RFC 4585 §3.5.1 [early-at-first] and §3.5.4 [size-counts]."""
    ours = reporter([1], 1, early=True)
    before = ours._timer.avg_rtcp_size
    assert ours.ask(Pli(1, 7), 0.0)
    [early] = ours.tick(0.0)
    assert parse_compound(early)[-1] == Pli(1, 7)
    assert ours._timer.avg_rtcp_size == before + (len(early) + 28 - before) / 16


def test_a_second_request_waits_for_the_report_or_is_dropped():
    """Covers RFC 4585 §3.5.2 [too-late-is-dropped] [joins-what-waits] [regular-is-near].

    Covers RFC 4585 §3.1 [full-when-regular], §3.5.2 [looks-at-tn] [looks-at-the-next-report] and
    §6.1 [types-together].
    """
    ours = reporter([1], 1, early=True, bandwidth=40.0)
    feed(ours.receivers[0], 1, 0.0)
    now, _ = next_report(ours, 0.0)
    assert (
        ours.ask(Pli(1, 7), now) and ours.ask(Pli(1, 7), now) and ours.ask(Fir(1, ((7, 0),)), now)
    )
    assert parse_compound(ours.tick(now)[0])[-2:] == [Pli(1, 7), Fir(1, ((7, 0),))]
    tn = ours.deadline
    assert tn - now > 2 * USEFUL_SECONDS
    assert not ours.ask(Pli(1, 7), tn - 1.5 * USEFUL_SECONDS)
    assert not ours.ask(Pli(1, 7), tn - USEFUL_SECONDS)
    assert ours.ask(Pli(1, 7), tn - 0.5 * USEFUL_SECONDS) and ours.deadline == tn
    assert ours.ask(Nack.of(1, 7, [3]), tn + 0.1)
    _, packets = next_report(ours, tn + 0.1)
    assert packets[-2:] == [Pli(1, 7), Nack.of(1, 7, [3])]
    assert ours.ask(Pli(1, 7), ours.deadline) and ours.deadline == float("-inf")


def test_without_avpf_nothing_is_asked():
    """Covers RFC 4585 §4.1: a profile without feedback has none."""
    ours = reporter([1], 1)
    assert not ours.ask(Pli(1, 7), 1.0) and ours.deadline > 0


def regular_reports(interval, until, ask_at=None):
    """The times of the reports of one that asks for nothing, or once."""
    ours, times, now = reporter([1], 1, early=True, report_interval=interval), [], 0.0
    number = 0
    while (at := ours.deadline) < until:
        if ask_at is not None and now <= ask_at < max(at, now):
            now, ask_at = ask_at, None
            ours._allow_early = False  # it has to wait for the time of a report
            ours.ask(Pli(1, 7), now)
        now, number = max(now, at), number + 1
        feed(ours.receivers[0], number, now)
        times += [(now, parse_compound(each)[-1]) for each in ours.tick(now)]
    return times


def test_reports_leave_room_for_requests_by_an_interval_of_their_own():
    """Covers RFC 4585 §3.5.3 [first-is-regular] [regular-at-its-time] [interval-is-dithered]
    [suppressed-before-its-time] [times-are-noted] [last-time-is-noted] [times-are-drawn-anew].
    """
    without = [at for at, _ in regular_reports(0.0, 60.0)]
    times = [at for at, _ in regular_reports(4.0, 60.0)]
    gaps = [later - at for at, later in pairwise(times)]
    assert times[0] == without[0] and len(times) < len(without) / 5
    assert min(gaps) >= 2.0 and 3.5 < max(gaps) < 6.5


def test_a_request_leaves_at_the_time_of_a_report_that_would_be_left_out():
    """Covers RFC 4585 §3.5.3 [requests-leave-at-tn]: and the next full report keeps its time.

    Covers RFC 4585 §3.5.3 [stored-requests-leave] [t-rr-last-stays].
    """
    plain = regular_reports(4.0, 8.0)
    asking = regular_reports(4.0, 8.0, ask_at=1.0)
    [(at, _)] = [each for each in asking if each[1] == Pli(1, 7)]
    assert 1.0 < at < 1.5 and len(asking) == len(plain) + 1


def test_a_report_that_is_left_out_allows_a_request_to_be_early_again():
    """Covers RFC 4585 §3.5.2 [allowed-at-the-new-tn] and §3.5.3 [allowed-again-always]."""
    ours = reporter([1], 1, early=True, report_interval=1000.0)
    feed(ours.receivers[0], 1, 0.0)
    now, _ = next_report(ours, 0.0)
    assert ours.ask(Pli(1, 7), now) and ours.tick(now)
    tn = ours.deadline
    assert ours.ask(Pli(1, 7), tn - 0.01) and ours.deadline == tn
    now, packets = next_report(ours, tn)
    assert packets[-1] == Pli(1, 7)
    tn = ours.deadline
    assert ours.ask(Pli(1, 7), now) and ours.tick(now)
    for _ in range(5):
        now = ours.deadline
        assert now >= tn and ours.tick(now) == []
    assert ours.ask(Pli(1, 7), now + 0.001) and ours.deadline == float("-inf")


def test_a_peer_is_gone_no_sooner_than_its_reports_are_due():
    """Covers RFC 4585 §3.5.4 [timeout-by-the-interval]."""
    for interval, members in ((0.0, 1), (20.0, 2)):
        ours = reporter([1], 1, early=True, report_interval=interval)
        feed(ours.receivers[0], 1, 0.0)
        while ours.deadline < 60.0:
            ours.tick(ours.deadline)
        assert ours._timer.members == members


def test_requests_of_one_kind_are_one_request():
    """Covers RFC 4585 §3.5.2 [as-few-as-possible] and §6.1 [types-apart]: of each stream.

    Covers RFC 4585 §3.1 [minimal-compound] [minimal-when-early]: two packets before them.
    """
    ours = reporter([1], 1, early=True)
    for lost in ([3], [4, 9], [4]):
        assert ours.ask(Nack.of(1, 7, lost), 0.0)
    ours.ask(Nack.of(1, 8, [3]), 0.0)
    ours.ask(Pli(1, 7), 0.0)
    packets = parse_compound(ours.tick(0.0)[0])
    assert packets[2:] == [Nack.of(1, 7, [3, 4, 9]), Nack.of(1, 8, [3]), Pli(1, 7)]


class Requests(RuleBasedStateMachine):
    """Requests at any time, over hours: early ones cost no bandwidth, and none is told twice."""

    def __init__(self):
        super().__init__()
        self.now, self.octets, self.early, self.asked, self.told = 0.0, 0, 0, 0, 0
        self.ours = reporter([1], 1, early=True, bandwidth=200.0)
        feed(self.ours.receivers[0], 0, 0.0)
        self.number = 0

    def run_until(self, end):
        while self.ours.deadline <= end:
            self.now = max(self.now, self.ours.deadline)
            is_early = self.ours.deadline == float("-inf")
            for datagram in self.ours.tick(self.now):
                self.octets += len(datagram) + UDP_IP_OCTETS
                self.early = self.early + 1 if is_early else 0
                told = [p for p in parse_compound(datagram) if isinstance(p, Fir)]
                self.told += len(told)
                assert is_early <= bool(told)
        self.now = end

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds):
        """Covers RFC 4585 §3.5.3 [early-again]."""
        self.number += 1
        feed(self.ours.receivers[0], self.number, self.now)
        self.run_until(self.now + seconds)
        assert self.ours.deadline > self.now

    @rule(count=st.integers(1, 3))
    def ask(self, count):
        """Covers RFC 4585 §3.5.2 [joins-what-waits]: requests of one time leave together."""
        for _ in range(count):
            self.number += 1
            self.asked += self.ours.ask(Fir(1, ((7, self.number & 0xFF),)), self.now)

    @invariant()
    def early_ones_take_turns_with_regular_ones(self):
        """Covers RFC 4585 §3.5.2 [early-skips-one-regular]."""
        assert self.early <= 1

    @invariant()
    def the_bandwidth_is_kept(self):
        """Covers RFC 4585 §3.5.4 [size-counts] and §8 [bandwidth-is-kept].

        After a while, as RFC 3550 §6.3.1 has it.
        """
        assert self.octets <= 1000 + 200.0 * self.now * 1.5

    def teardown(self):
        self.run_until(self.now + 60)
        assert self.told == self.asked
        event(f"asked {min(self.asked, 3)}")


TestRequests = Requests.TestCase


@given(st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=4, unique=True))
def test_a_collision_gives_one_stream_another_number(ssrcs):
    """Covers RFC 3550 §8.2."""
    ours = reporter(ssrcs, 0)
    for sender in ours.senders:
        sender.send(96, b"", 0, False, 0.0)
    ours.received(compound(ReceiverReport(ssrcs[0])), 1.0)
    assert ours.senders[0].ssrc != ssrcs[0]
    assert [each.ssrc for each in ours.senders[1:]] == ssrcs[1:]
    [farewell] = ours.tick(1.0)
    assert parse_compound(farewell)[-1] == Bye((ssrcs[0],))
