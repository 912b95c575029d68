"""Packets that are sent again by RTX: their form, and both ends of a stream that lost some."""

from random import Random

import pytest
from hypothesis import given

from p2psip.rtp.fast import unpack
from p2psip.rtp.feedback import Nack
from p2psip.rtp.packet import Extension, RtpPacket
from p2psip.rtp.reporter import Reporter
from p2psip.rtp.rtcp import Bye, SourceDescription, parse_compound
from p2psip.rtp.rtx import RtxSender, original_of
from p2psip.rtp.sender import Sender
from p2psip.rtp.video_receiver import VideoReceiver
from p2psip.rtp.video_sender import VideoSender
from p2psip.strategies.rtp import repeats

OURS, THEIRS, VP8, RTX = 7, 9, 96, 97


def test_a_repeat_is_the_original_in_another_stream():
    """Covers RFC 4588 §4 [osn-is-the-number] [payload-follows-osn] [timestamp-of-the-original]
    [marker-is-copied] [numbers-by-one].
    """
    original = RtpPacket(VP8, sequence=65535, timestamp=3000, ssrc=OURS, payload=b"x", marker=True)
    stream = RtxSender(5, 90000, Random(1).randbytes)
    first, second = (RtpPacket.parse(stream.again(bytes(original), RTX, 0.0)) for _ in range(2))
    assert first.payload == b"\xff\xffx" and first.marker and not first.csrcs
    assert (first.payload_type, first.timestamp, first.ssrc) == (RTX, 3000, 5)
    assert second.sequence == first.sequence + 1 & 0xFFFF
    plain = RtpPacket(VP8, sequence=1, timestamp=0, ssrc=OURS, payload=b"x")
    assert not RtpPacket.parse(stream.again(bytes(plain), RTX, 0.0)).marker
    assert original_of(bytes(first)) == (65535, 14)


@pytest.mark.parametrize("payload", [b"", b"\x00"])
def test_padding_is_no_repeat(payload):
    """Browsers probe a path by packets of nothing."""
    extension = Extension(0xBEDE, b"\x10\x00\x00\x00")
    packet = RtpPacket(RTX, 1, 0, 5, payload, extension=extension, padding=20)
    assert original_of(bytes(packet)) is None and original_of(b"") is None


@given(repeats())
def test_any_repeat_tells_its_original(pair):
    """Covers RFC 4588 §4 [osn-is-the-number]: whatever header it has."""
    original, again = pair
    number, start = original_of(bytes(again))
    end = len(bytes(again)) - again.padding
    assert number == original.sequence and bytes(again)[start:end] == original.payload


def test_a_header_extension_stands_before_the_number():
    extension = Extension(0xBEDE, b"\x10\x00\x00\x00")
    packet = RtpPacket(RTX, 1, 0, 5, b"\x00\x09part", extension=extension)
    number, start = original_of(bytes(packet))
    assert number == 9 and bytes(packet)[start:] == b"part"


class Pair:
    """A video sender and its receiver, which agree on RTX."""

    def __init__(self):
        self.sender = VideoSender(OURS, 90000, Random(1).randbytes, lambda: None)
        self.sender.repairs = {VP8: RTX}
        there = Reporter("film", Random(2).randbytes, 0.0, [self.sender], [], early=True)
        self.sender.on_repair = there.senders.append
        self.there = there
        ours = Sender(THEIRS, 90000, Random(3).randbytes)
        self.here = Reporter("us", Random(4).randbytes, 0.0, [ours], [], early=True)
        self.video = VideoReceiver(90000, self.here, {"nack", "nack pli"}, {VP8})
        self.video.repairs = {RTX: VP8}
        self.packets = [
            self.sender.send(VP8, bytes([each]) * 9, 3000 * each, True, 0.0) for each in range(6)
        ]

    def lose(self, *lost):
        """What comes out although those are lost; the request for them is `asked`."""
        out = []
        for place, packet in enumerate(self.packets):
            if place not in lost:
                out += self.video.received(packet, 0.0)
        self.video.tick(0.01)
        self.asked = [
            each
            for datagram in self.here.tick(0.01)
            for each in parse_compound(datagram)
            if isinstance(each, Nack)
        ]
        return out

    def again(self):
        [request] = self.asked
        return self.sender.on_feedback(request, 0.1)


def test_a_lost_packet_comes_back_by_rtx_in_its_turn():
    """Covers RFC 4588 §5.3 [associated-by-requests], §6.3 [asks-by-nack], §4 [two-ssrcs]."""
    pair = Pair()
    assert len(pair.lose(2, 3)) == 2 and pair.asked[0].media_ssrc == OURS
    [third, fourth] = pair.again()
    assert unpack(third)[4] == unpack(fourth)[4] != OURS and third[1] & 0x7F == RTX
    received = pair.video.source.received
    assert pair.video.received(fourth, 0.1) == []
    out = pair.video.received(third, 0.1)
    assert [each.payload[0] for each in out] == [2, 3, 4, 5]
    assert {each.payload_type for each in out} == {VP8} and out[0].timestamp == 6000
    assert out[0].marker and pair.video.losses.recovered == 2
    assert pair.video.source.received == received and pair.video.source.lost == 2


def test_a_repeat_that_nobody_asked_for_is_passed_over():
    """Covers RFC 4588 §5.3 [associated-by-requests]: also one of another's number."""
    pair = Pair()
    pair.lose(2)
    [again] = pair.again()
    stray = again[:12] + (int.from_bytes(again[12:14], "big") + 1).to_bytes(2, "big") + b"stray"
    assert pair.video.received(stray, 0.1) == []
    assert len(pair.video.received(again, 0.1)) == 4
    assert pair.video.received(again, 0.2) == [] and pair.video.losses.recovered == 1


def test_a_repeat_before_the_request_could_be_that_of_another_stream():
    """Covers RFC 4588 §5.3 [associated-by-requests]."""
    pair = Pair()
    for place in (0, 1, 3):
        pair.video.received(pair.packets[place], 0.0)
    number = int.from_bytes(pair.packets[2][2:4], "big")
    [again] = pair.sender.on_feedback(Nack.of(THEIRS, OURS, [number]), 0.001)
    assert pair.video.received(again, 0.002) == []
    pair.video.tick(0.01)
    assert [each.payload[0] for each in pair.video.received(again, 0.02)] == [2, 3]


def test_a_lost_repeat_is_asked_for_by_the_number_of_the_original():
    """Covers RFC 4588 §6.3 [nack-for-the-original]."""
    pair = Pair()
    pair.lose(2, 3)
    _, fourth = pair.again()
    pair.video.received(fourth, 0.02)
    pair.video.tick(0.2)
    requests = [
        each
        for datagram in pair.here.tick(1e9)
        for each in parse_compound(datagram)
        if isinstance(each, Nack)
    ]
    number = int.from_bytes(pair.packets[2][2:4], "big")
    assert [(each.media_ssrc, each.lost()) for each in requests] == [(OURS, (number,))]


def test_both_streams_are_of_one_name_and_end_together():
    """Covers RFC 4588 §5.2 [one-cname], §6.1 [bye-for-both]; before the first there is one."""
    pair = Pair()
    assert len(pair.there.senders) == 1
    pair.lose(2)
    pair.again()
    packets = parse_compound(pair.there.bye(1.0))
    [names] = [each.chunks for each in packets if isinstance(each, SourceDescription)]
    assert {each.cname for each in names} == {"film"} and len(names) == 2
    [end] = [each for each in packets if isinstance(each, Bye)]
    assert set(end.ssrcs) == {each.ssrc for each in names} > {OURS}


def test_a_type_without_rtx_is_sent_again_as_it_was():
    pair = Pair()
    pair.sender.repairs = {98: 99}
    pair.lose(2)
    assert pair.again() == [pair.packets[2]]


def test_what_a_source_left_missing_is_asked_of_nobody():
    """Covers RFC 4588 §5.3 [stops-with-the-source] [associated-anew]."""
    pair = Pair()
    pair.lose(2)
    [again] = pair.again()
    pair.here.received(pair.there.bye(0.05), 0.05)
    pair.video.tick(0.3)
    assert pair.here._requests() == []
    other = VideoSender(11, 90000, Random(9).randbytes, lambda: None)
    assert pair.video.received(other.send(VP8, b"new", 0, True, 0.31), 0.31) != []
    assert pair.video.received(again, 0.32) == [] and not pair.video.losses.has_missing
