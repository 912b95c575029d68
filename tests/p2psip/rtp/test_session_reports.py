"""When a session reports, and what about: the members it counts, the sizes, the books it keeps."""

import pytest

from p2psip.rtp.rtcp import (
    Bye,
    ReceiverReport,
    ReportBlock,
    SenderReport,
    SourceDescription,
    compound,
    ntp_time,
    parse_compound,
)
from p2psip.rtp.rtcp_timer import COMPENSATION, interval
from p2psip.rtp.session import RtpSession

OURS, PEER = 1, 2
UNIX = 1_700_000_000.0
BANDWIDTH = 10.0  # octets/s, so little that sizes and members count, not the minimum
LOWER = 28  # octets of IP and UDP headers


def session(ssrc=OURS, bandwidth=BANDWIDTH):
    """Give a session that draws the middle of every range."""

    def random(count):
        return b"\x80\0\0\0"[:count]

    return RtpSession(ssrc, 8000, "ann@host", random, 0.0, wallclock=UNIX, bandwidth=bandwidth)


class Meeting:
    """Our session, and the mean size of all the compounds that it sent or heard."""

    def __init__(self):
        self.ours, self.peer, self.size = session(), session(PEER), 128.0

    def count(self, data):
        self.size += (len(data) + LOWER - self.size) / 16

    def hears_sound(self, now):
        assert self.ours.received_rtp(self.peer.send(0, b"x", 0, False, now), now)

    def hears_report(self, now, *more):
        data = compound(ReceiverReport(PEER), SourceDescription.of_cname(PEER, "bob"), *more)
        self.ours.received_rtcp(data, now)
        self.count(data)

    def reports(self, now):
        """Tick, at once or later, until a report leaves; give the time."""
        while not (sent := self.ours.tick(now)):
            assert self.ours.deadline > now
            now = self.ours.deadline
        self.count(sent[0])
        return now

    def waits(self, members, senders, we_sent=False):
        """Say how long it waits for the next report with so many in the meeting."""
        calculated = interval(members, senders, BANDWIDTH, we_sent, self.size)
        return pytest.approx(calculated / COMPENSATION, rel=1e-9)


def test_who_is_alone_counts_one():
    """Covers RFC 3550 §6.3.1 and §6.3.3: its own compounds make the mean size."""
    meeting = Meeting()
    for _ in range(3):
        now = meeting.reports(meeting.ours.deadline)
        assert meeting.ours.deadline - now == meeting.waits(1, 0)


def test_a_peer_that_only_reports_is_a_member():
    """Covers RFC 3550 §6.3.3: and the sizes of its compounds count."""
    meeting = Meeting()
    meeting.hears_report(1.0)
    now = meeting.reports(meeting.ours.deadline)
    assert meeting.ours.deadline - now == meeting.waits(2, 0)


def test_who_sends_is_a_sender():
    """Covers RFC 3550 §6.3.5: the peer, and ourselves."""
    meeting = Meeting()
    meeting.ours.send(0, b"x", 0, False, 20.0)
    meeting.hears_sound(20.0)
    now = meeting.reports(meeting.ours.deadline)
    assert meeting.ours.deadline - now == meeting.waits(2, 2, we_sent=True)


def test_who_sends_to_nobody_is_the_only_sender():
    """Covers RFC 3550 §6.3.1: with none but senders there is no share for the others."""
    meeting = Meeting()
    meeting.ours.send(0, b"x", 0, False, 20.0)
    now = meeting.reports(20.0)
    assert meeting.ours.deadline - now == meeting.waits(1, 1, we_sent=True)


@pytest.mark.parametrize(
    ("intervals", "members", "senders"), [(1.9, 2, 1), (2.1, 2, 0), (4.9, 2, 0), (5.1, 1, 0)]
)
def test_the_silent_are_forgotten(intervals, members, senders):
    """Covers RFC 3550 §6.3.5: as a sender after two intervals, as a member after five.

    Covers RFC 3550 §6.2 [timeout-by-the-minimum], §6.2.1 [five-intervals] and §6.3.5
    [checks-silence] [checks-each-interval].
    """
    meeting = Meeting()
    meeting.hears_sound(20.0)
    now = meeting.reports(20.0)
    meeting.hears_sound(now)
    later = now + intervals * interval(2, 1, BANDWIDTH, False, meeting.size)
    assert meeting.reports(later) == later
    assert meeting.ours.deadline - later == meeting.waits(members, senders)


def test_silence_is_noticed_when_a_report_is_due():
    """Covers RFC 3550 §6.3.5 [checks-silence] [checks-each-interval]: at the very time."""
    meeting = Meeting()
    meeting.hears_sound(20.0)
    now = meeting.reports(20.0)
    for _ in range(20):
        now = meeting.reports(meeting.ours.deadline)
    assert meeting.ours.deadline - now == meeting.waits(1, 0)


def test_who_says_bye_is_gone_and_the_next_report_is_nearer():
    """Covers RFC 3550 §6.3.4: half of the members, half of the wait.

    Covers RFC 3550 §6.3.4 [reverse-reconsideration].
    """
    meeting = Meeting()
    meeting.hears_sound(20.0)
    now = meeting.reports(20.0)
    meeting.hears_sound(now)
    now = meeting.reports(meeting.ours.deadline)
    wait = meeting.ours.deadline - now
    meeting.hears_report(now, Bye((PEER,)))
    assert meeting.ours.deadline - now == pytest.approx(wait / 2)
    now = meeting.reports(meeting.ours.deadline)
    assert meeting.ours.deadline - now == meeting.waits(1, 0)


def test_a_session_begins_with_empty_books():
    """Covers RFC 3550 §6.4.4."""
    books = session().statistics
    assert books.rtt is None
    assert (books.remote_lost, books.remote_fraction_lost, books.remote_jitter_ms) == (0, 0.0, 0.0)
    assert (books.packets_sent, books.octets_sent, books.lost, books.invalid) == (0, 0, 0, 0)


def test_the_books_have_the_units_they_say():
    """Covers RFC 3550 §6.4.1: fractions of 256, ticks as ms, a round trip in s."""
    ours, peer = session(), session(PEER)
    for number, now in ((0, 0.0), (1, 0.03)):
        ours.received_rtp(peer.send(0, b"", 160 * number, False, 0.0), now)
    block = ReportBlock(OURS, 128, 5, 0, 80, ntp_time(UNIX + 1.0) >> 16 & 0xFFFFFFFF, 65536)
    ours.received_rtcp(compound(SenderReport(PEER, 0, 0, 0, 0, (block,))), 2.5)
    books = ours.statistics
    assert (books.remote_lost, books.remote_fraction_lost, books.remote_jitter_ms) == (5, 0.5, 10.0)
    assert (books.jitter_ms, books.rtt) == (0.625, 0.5)


def test_what_is_dropped_is_counted():
    """Covers RFC 3550 §A.1 and §A.2: once each."""
    ours = session()
    assert ours.received_rtp(b"\x80" * 11, 0.0) is None and ours.invalid == 1
    assert ours.received_rtcp(b"\x80\xc9", 0.0) == [] and ours.invalid == 2
    assert ours.received_rtp(b"\x80\x48" + bytes(10), 0.0) is None and ours.invalid == 3
    assert ours.last_received is None and ours.last_heard is None


def test_a_reason_is_cut_to_what_a_goodbye_can_say():
    """Covers RFC 3550 §6.6: 255 octets."""
    ours = session()
    ours.send(0, b"", 0, False, 0.0)
    bye = parse_compound(ours.bye(1.0, "x" * 256))[-1]
    assert bye == Bye((OURS,), b"x" * 255)


def test_a_looped_report_is_dropped_whole():
    """Covers RFC 3550 §8.2: what it says of us is our own.

    Covers RFC 3550 §6.4.1 [counts-start-anew].
    """
    ours = session()
    ours.send(0, b"", 0, False, 0.0)
    ours.received_rtcp(compound(SenderReport(OURS, 0, 0, 0, 0)), 0.1)
    mine = ours.ssrc
    assert mine != OURS and ours.statistics.packets_sent == ours.statistics.octets_sent == 0
    block = ReportBlock(mine, 0, 9, 0, 0)
    ours.received_rtcp(compound(SenderReport(mine, 0, 0, 0, 0, (block,))), 0.2)
    assert ours.statistics.remote_lost == 0 and ours.ssrc == mine


def test_each_report_has_the_cname_and_no_other_item():
    """Covers RFC 3551 §2 [cname-each-time] [others-seldom].

    Covers RFC 3550 §6.1 [cname-in-each] [two-packets] [empty-report] [one-an-interval] and §6.5.1
    [cname-is-there].

    Covers RFC 3550 §6.4.2 [empty-report].
    """
    ours, seen = session(), []
    while len(seen) < 5:
        seen += ours.tick(ours.deadline)
    for data in seen:
        report, described = parse_compound(data, strict=True)
        assert report == ReceiverReport(ours.ssrc)
        assert [chunk.items for chunk in described.chunks] == [((1, b"ann@host"),)]


def test_a_sender_report_ties_our_clocks():
    """Covers RFC 3550 §6.4.1: what the media clock would show at the time of the report.

    Covers RFC 3550 §6.4.1 [timestamp-of-the-report].
    """
    ours = session()
    ours.send(0, b"abc", 0xFFFFFFF0, False, 20.0)
    [data] = ours.tick(20.5)
    report = parse_compound(data)[0]
    assert report.ntp == ntp_time(UNIX + 20.5)
    assert (report.timestamp, report.packets, report.octets) == (3984, 1, 3)


def test_a_packet_about_an_earlier_time_leaves_the_clock_of_reports_alone():
    """Covers RFC 3550 §6.4.1 [timestamp-of-the-report]: after a report of a telephone event."""
    ours = session()
    ours.send(0, b"abc", 1000, False, 20.0)
    for now in (20.1, 20.2, 20.3):  # three reports of the event that began at 20.1
        ours.send_about(101, b"key!", 1800, False, now)
    [data] = ours.tick(20.5)
    assert parse_compound(data)[0].timestamp == 1000 + 4000


def test_a_first_packet_about_an_earlier_time_begins_the_clock():
    """Covers RFC 3550 §6.4.1 [timestamp-of-the-report]."""
    ours = session()
    ours.send_about(101, b"key!", 1800, False, 20.0)
    [data] = ours.tick(20.5)
    assert parse_compound(data)[0].timestamp == 1800 + 4000
