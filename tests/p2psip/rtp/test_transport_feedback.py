"""Transport-wide feedback and ceilings: their bytes, and what a receiver tells of arrivals."""

import struct
from itertools import count
from random import Random

import pytest

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.arrivals import INTERVAL, MAX_SPAN, MAX_WAITING, Arrivals
from p2psip.rtp.fast import one_byte_element
from p2psip.rtp.feedback import OtherFeedback
from p2psip.rtp.packet import Extension, RtpPacket
from p2psip.rtp.rtcp import ReceiverReport, parse_compound, parse_readable
from p2psip.rtp.transport_feedback import TICK, Remb, TransportFeedback

HEAD = bytes.fromhex("8fcd0005 00000001 00000002 0007")


def message(*deltas, base=7, reference=0, number=0):
    return TransportFeedback(1, 2, base, reference, number, deltas)


@pytest.mark.parametrize(
    ("deltas", "chunks"),
    [
        ((1, 2, 3), "2003 010203"),
        ((1, None, 3, 4), "ac00 010304"),
        ((None,) * 221 + (1,), "00dd 2001 01"),
        ((1, -1, None, 300, None, None, None, 5), "d880 2001 01ffff012c05"),
    ],
)
def test_the_bytes_are_those_of_the_draft(deltas, chunks):
    """Covers Transport-wide CC 01 §3.1 [type-of-the-message] [packet-type-205], §3.1.3
    [run-of-a-symbol], §3.1.4 [vector-of-symbols], §3.1.5 [small-in-an-octet] [large-in-two].
    """
    data = bytes(message(*deltas))
    assert data[:2] == HEAD[:2] and data[4:14] == HEAD[4:14]
    wanted = len(deltas).to_bytes(2, "big") + bytes(4) + bytes.fromhex(chunks)
    assert data[14:] == wanted + bytes(-len(data[:14] + wanted) % 4)
    assert TransportFeedback.parse(data) == message(*deltas)


def test_browsers_pad_a_part_of_a_word():
    """As libwebrtc does; the report before it is not lost with it."""
    body = bytes.fromhex("00000001 00000002 00070002 00000000 2002 0102 00000004")
    for padding in (1, 2, 3):
        tail = bytes(padding - 1) + bytes([padding])
        data = bytes.fromhex("afcd0006") + body[: len(body) - padding] + tail
        report, told = parse_compound(bytes(ReceiverReport(1)) + data)
        assert report == ReceiverReport(1)
        assert told == message(1, 2)


def test_vectors_of_one_bit_are_read():
    """Covers Transport-wide CC 01 §3.1.4 [vector-of-symbols]: the first example of the draft."""
    body = bytes.fromhex("00000001 00000002 0007000e 00000000 9f1c 0102030405060708")
    data = bytes.fromhex("8fcd0007") + body + bytes(2)
    read = TransportFeedback.parse(data)
    assert read.deltas == (None, 1, 2, 3, 4, 5, None, None, None, 6, 7, 8, None, None)


def test_times_are_counted_from_the_reference():
    """Covers Transport-wide CC 01 §3.1 [reference-time] [first-from-the-reference]."""
    assert message(4, 4, reference=1).arrivals() == [(7, 0.065), (8, 0.066)]
    early = TransportFeedback.parse(bytes(message(4, reference=-1)))
    assert early.reference == -1 and early.arrivals() == [(7, -0.063)]


@pytest.mark.parametrize(
    ("statuses", "rest"),
    [
        (3, ""),
        (3, "2003"),
        (3, "20030102"),
        (1, "400101"),
        (1, "600101"),
        (3, "0000"),
        (20, "8000"),
    ],
    ids=["no chunk", "no delta", "few", "half a delta", "reserved", "run of none", "few symbols"],
)
def test_what_does_not_add_up_is_refused(statuses, rest):
    body = struct.pack("!IIHHI", 1, 2, 7, statuses, 0) + bytes.fromhex(rest)
    with pytest.raises(RemoteError):
        TransportFeedback._read(15, body)


def test_a_value_has_limits():
    for deltas in ((), (40000,), (None,) * 65536):
        with pytest.raises(LocalError):
            message(*deltas)
    with pytest.raises(LocalError):
        Remb(1, 64, 0, ())


def test_a_ceiling_is_read_and_written():
    """Field §"Ceilings of a receiver": as libwebrtc writes them."""
    data = bytes.fromhex("8fce0005 00000001 00000000 52454d42 010a2625 00000007".replace(" ", ""))
    read = Remb.parse(data)
    assert (read.sender_ssrc, read.ssrcs, read.rate) == (1, (7,), 0x22625 << 2)
    assert bytes(read) == data and Remb.of(1, read.rate, (7,)).rate == read.rate
    assert parse_compound(bytes.fromhex("80c90001 00000001") + data)[1] == read
    other = OtherFeedback(206, 15, 1, 2, b"name")
    assert parse_readable(bytes(other)) == [other]
    with pytest.raises(RemoteError):
        Remb.parse(data[:3] + b"\x04" + data[4:-4])


def told(arrivals, now):
    return arrivals.feedback(1, 2, now)


def test_what_arrived_is_told_twenty_times_a_second():
    """Covers Transport-wide CC 01 §3.1 [first-from-the-reference] [messages-are-counted]."""
    arrivals = Arrivals()
    assert arrivals.deadline is None and told(arrivals, 5.0) is None
    for number, at in ((65534, 1.0), (65535, 1.001), (1, 1.002), (0, 1.004)):
        arrivals.heard(number, at)
    assert arrivals.deadline == 1.0 + INTERVAL and told(arrivals, 1.049) is None
    first = told(arrivals, 1.05)
    assert [number for number, _ in first.arrivals()] == [65534, 65535, 0, 1]
    times = [round(at - first.arrivals()[0][1], 6) for _, at in first.arrivals()]
    assert times == [0.0, 0.001, 0.004, 0.002] and first.deltas[3] == -8
    assert arrivals.deadline is None
    arrivals.heard(0, 1.06)  # told of already, or as missing
    assert arrivals.deadline is None
    arrivals.heard(4, 1.07)
    second = told(arrivals, 1.2)
    assert (second.base, second.count, first.count) == (2, 1, 0)
    assert second.deltas[:2] == (None, None) and second.arrivals()[0][0] == 4
    passed = second.arrivals()[0][1] - first.arrivals()[0][1]
    assert abs(passed - 0.07) < TICK


def test_what_is_far_apart_is_told_apart():
    """Covers Transport-wide CC 01 §3.1.5 [far-ones-apart]."""
    arrivals = Arrivals()
    arrivals.heard(1, 1.0)
    arrivals.heard(2, 20.0)
    first, second = told(arrivals, 20.0), told(arrivals, 20.0)
    assert (len(first.deltas), second.base, arrivals.deadline) == (1, 2, None)
    assert abs(second.arrivals()[0][1] - first.arrivals()[0][1] - 19.0) < TICK


def test_a_flood_and_a_jump_are_bounded():
    arrivals, numbers = Arrivals(), count()
    for _ in range(MAX_WAITING):
        arrivals.heard(next(numbers), 1.0)
    arrivals.heard(next(numbers), 1.01)
    assert arrivals.deadline == 1.01
    assert len(told(arrivals, 1.01).deltas) == MAX_WAITING + 1
    arrivals.heard(next(numbers) + MAX_SPAN + 9, 1.1)
    assert len(told(arrivals, 2.0).deltas) == 1


def test_each_packet_is_told_of_once_over_a_bad_link():
    random, arrivals, now, heard = Random(1), Arrivals(), 1.0, []
    seen = []
    for number in range(70000):
        now += random.random() * 0.004
        if random.random() < 0.9:
            arrivals.heard(number & 0xFFFF, now)
            heard.append(number & 0xFFFF)
        if arrivals.deadline is not None and now >= arrivals.deadline:
            message = told(arrivals, now)
            assert TransportFeedback.parse(bytes(message)) == message
            seen += [number for number, _ in message.arrivals()]
    assert seen == heard[: len(seen)] and len(heard) - len(seen) < 100


def extended(data, profile=0xBEDE):
    packet = RtpPacket(96, 1, 0, 5, b"x", csrcs=(8, 9), extension=Extension(profile, data))
    return bytes(packet)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("31abcd00", "abcd"),
        ("10aa000031abcd00", "abcd"),
        ("f100000031abcd00", ""),
        ("32ab0000", "ab0000"),
        ("3fab0000", "ab0000"),
        ("11aabb00", ""),
        ("", ""),
    ],
    ids=["first", "behind padding", "behind fifteen", "whole", "cut off", "absent", "empty"],
)
def test_an_element_of_a_header_extension_is_found(data, found):
    """Covers RFC 8285 §4.2 [bede-marks-it] [element-has-id-and-length] [fifteen-ends-it]."""
    assert one_byte_element(extended(bytes.fromhex(data)), 3).hex() == found
    assert one_byte_element(extended(bytes.fromhex(data), 0x1000), 3) == b""


def test_an_element_is_never_read_beyond_the_packet():
    packet = extended(bytes.fromhex("10aa00003fabcdef"))
    for length in range(len(packet)):
        one_byte_element(packet[:length], 3)
    assert one_byte_element(bytes(RtpPacket(96, 1, 0, 5, b"x")), 3) == b""
