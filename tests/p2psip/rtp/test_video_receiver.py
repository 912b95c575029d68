"""A video receiver: its requests, and the order and the sources of its packets."""

from itertools import pairwise
from random import Random

import pytest

from p2psip.rtp.feedback import Fir, Nack, Pli
from p2psip.rtp.losses import GIVE_UP_AFTER
from p2psip.rtp.reorder import HOLD_SECONDS
from p2psip.rtp.reporter import Reporter
from p2psip.rtp.rtcp import parse_compound
from p2psip.rtp.sender import Sender
from p2psip.rtp.video_receiver import (
    COMMAND_TIMES,
    DEPTH,
    MAX_WAITING,
    REQUEST_SECONDS,
    VideoReceiver,
)

EVERYTHING = {"nack", "nack pli", "ccm fir"}


class Bench:
    """A receiver, the reporter that asks for it, and a peer that sends."""

    def __init__(self, feedback=EVERYTHING):
        self.ours, self.peer = (Sender(ssrc, 90000, Random(ssrc).randbytes) for ssrc in (1, 2))
        self.reporter = Reporter(
            "us@host", Random(3).randbytes, 0.0, [self.ours], [], bandwidth=9000.0, early=True
        )
        self.video = VideoReceiver(90000, self.reporter, feedback, {96})

    def packets(self, count):
        return [self.peer.send(96, b"part", 3000, False, 0.0) for _ in range(count)]

    def asked(self, until, now=0.0):
        """All that is asked for until then, with its time."""
        found = []
        while (at := min(self.reporter.deadline, self.video.deadline or until)) < until:
            now = max(now, at)
            self.video.tick(now)
            for datagram in self.reporter.tick(now):
                found += [
                    (round(now, 2), each)
                    for each in parse_compound(datagram)
                    if isinstance(each, Nack | Pli | Fir)
                ]
        return found


def number_of(packet):
    return int.from_bytes(packet[2:4], "big")


def test_a_gap_is_asked_for_and_what_comes_late_is_put_in_order():
    """Covers RFC 4585 §4.2 [feedback-is-given] and §6.2.1."""
    bench = Bench()
    packets = bench.packets(5)
    heard = [bench.video.received(each, 0.0) for each in (packets[0], packets[3], packets[4])]
    assert [len(each) for each in heard] == [1, 0, 0]
    at, request = bench.asked(0.1)[0]
    assert at == 0.01 and request == Nack.of(1, 2, map(number_of, packets[1:3]))
    out = [*bench.video.received(packets[2], 0.12), *bench.video.received(packets[1], 0.12)]
    assert [each.sequence for each in out] == list(range(out[0].sequence, out[0].sequence + 4))
    assert bench.asked(5.0, 0.12) == [] and bench.video.losses.recovered == 2


def test_a_packet_far_behind_is_still_in_time():
    """Covers RFC 3550 §A.1: sent again, it is neither a stray nor the beginning of another."""
    bench = Bench()
    packets = bench.packets(DEPTH - 1)
    for each in (packets[0], *packets[3:]):
        bench.video.received(each, 0.0)
    out = bench.video.received(packets[1], 0.1) + bench.video.received(packets[2], 0.1)
    assert len(out) == DEPTH - 2 and bench.video.invalid == 0


def test_long_packets_wait_within_a_limit_of_octets():
    """Own design: 512 packets of 64 KiB would be 32 MiB for each stream."""
    bench = Bench()
    first, lost, *rest = (
        bench.peer.send(96, bytes(60_000), 3000, False, 0.0)
        for _ in range(2 * MAX_WAITING // 60_000)
    )
    out = [packet for each in (first, *rest) for packet in bench.video.received(each, 0.0)]
    assert len(rest) - (len(out) - 1) <= MAX_WAITING // 60_000
    assert [packet.sequence & 0xFFFF for packet in out] == [
        number_of(each) for each in (first, *rest[: len(out) - 1])
    ]
    assert bench.video.received(lost, 0.1) == []


def test_without_nack_a_gap_is_not_waited_for():
    """Covers RFC 4585 §4.2 [nothing-unlisted]."""
    bench = Bench({"nack pli"})
    first, _, third = bench.packets(3)
    bench.video.received(first, 0.0)
    assert bench.video.received(third, 0.0) == [] and bench.video.deadline == HOLD_SECONDS
    assert len(bench.video.tick(HOLD_SECONDS)) == 1 and bench.asked(3.0) == []


def test_packets_that_nobody_repeats_are_given_up():
    """Covers RFC 4585 §4.2 [requests-may-be-in-vain] [nothing-unlisted]."""
    bench = Bench({"nack"})
    first, _, third = bench.packets(3)
    bench.video.received(first, 0.0)
    assert bench.video.received(third, 0.0) == []
    assert (
        bench.video.tick(GIVE_UP_AFTER - 0.01) == [] and len(bench.video.tick(GIVE_UP_AFTER)) == 1
    )


def test_a_key_frame_is_not_asked_for_where_that_was_not_agreed_on():
    """Covers RFC 4585 §4.2 [nothing-unlisted]."""
    for feedback, asked in (({"nack"}, []), ({"nack pli"}, [Pli(1, 2)])):
        bench = Bench(feedback)
        bench.video.received(*bench.packets(1), 0.0)
        bench.video.damaged(0.0)
        assert [request for _, request in bench.asked(REQUEST_SECONDS)] == asked


def test_a_key_frame_is_asked_for_until_it_comes():
    """Covers RFC 4585 §6.3.1, without a command."""
    bench = Bench()
    bench.video.damaged(0.0)  # before anything has come
    assert bench.asked(REQUEST_SECONDS) == []
    bench.video.received(*bench.packets(1), 0.4)
    bench.video.damaged(0.45)
    found = bench.asked(1.9, 0.45)
    assert {request for _, request in found} == {Pli(1, 2)} and len(found) == 3
    bench.video.refreshed()
    assert bench.asked(9.0, 2.0) == []


@pytest.mark.parametrize("only_fir", [False, True])
def test_a_command_is_repeated_and_then_given_anew(only_fir):
    """Covers RFC 5104 §4.3.1.1 [command-counts] [repetition-keeps-its-number].

    Covers RFC 5104 §4.3.1.3 [fir-repeated-after-a-round-trip].
    """
    bench = Bench({"ccm fir"} if only_fir else EVERYTHING)
    bench.video.received(*bench.packets(1), 0.0)
    bench.video.damaged(0.0) if only_fir else bench.video.join(0.0)
    bench.video.join(0.1)  # a command is in force already
    found = bench.asked(1.9)
    numbers = [request.requests for _, request in found]
    assert numbers == [((2, 1),)] * COMMAND_TIMES + [((2, 2),)] * COMMAND_TIMES
    times = [at for at, _ in found]
    assert all(later - at >= REQUEST_SECONDS - 0.1 for at, later in pairwise(times))


def test_a_command_names_its_stream_beside_the_header():
    """Covers RFC 5104 §4.3.1.2 [media-source-is-zero]."""
    octets = "84ce0006 00000001 00000000 00000002 03000000 00000004 05000000"
    assert bytes(Fir(1, ((2, 3), (4, 5)))).hex(" ", -4) == octets


def test_a_viewer_asks_by_pli_where_there_is_no_command():
    """Covers RFC 4585 §4.2 and RFC 5104 §7.2 [agreed-commands-alone]."""
    bench = Bench({"nack pli"})
    bench.video.received(*bench.packets(1), 0.0)
    bench.video.join(0.0)
    assert {request for _, request in bench.asked(1.0)} == {Pli(1, 2)}


def test_another_source_begins_without_a_gap():
    """Covers RFC 3550 §8.2: the packets that waited come out, and none between is missing."""
    bench = Bench()
    packets = bench.packets(3)
    bench.video.received(packets[0], 0.0)
    assert bench.video.received(packets[2], 0.0) == []
    bench.peer.take_ssrc()
    out = [item for each in bench.packets(3) for item in bench.video.received(each, 0.1)]
    assert len(out) == 3 and bench.video.losses.deadline is None
    assert bench.video.losses.given_up == 1


def test_what_is_no_packet_of_the_stream_is_dropped():
    """Covers RFC 3550 §A.1, §8.2."""
    bench = Bench()
    audio = bench.peer.send(0, b"sound", 0, False, 0.0)
    own = bench.ours.send(96, b"part", 0, False, 0.0)
    assert [bench.video.received(each, 0.0) for each in (b"", audio)] == [[], []]
    assert bench.video.received(own, 0.0) != [] and bench.ours.ssrc != 1  # somebody has our number
    assert bench.video.received(bench.peer.send(96, b"", 0, False, 0.0), 0.1) == []
    assert bench.video.invalid == 3
