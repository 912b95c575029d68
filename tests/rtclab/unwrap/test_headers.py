"""From the link to UDP and TCP: what lies between, and fragments of both versions of IP."""

import itertools
import struct

import pytest
from support.lint.frames import (
    ETHERNET,
    OPTIONS,
    RAW,
    TCP,
    UDP,
    ethernet,
    extension,
    ip,
    parts,
    pcap,
    tcp,
    udp,
)

from rtclab.lint.packets import read_capture
from rtclab.unwrap.headers import MOST_PENDING, PATIENCE

V6 = {"source": "2001:db8::1", "target": "2001:db8::2"}
PACKET, PACKET6 = ip(udp(b"hello")), ip(udp(b"hello"), **V6)
LOOPBACK, LOOPBACK_BIG, PPP, SLL, SLL2 = 0, 108, 9, 113, 276
SNAP = b"\xaa\xaa\x03\0\0\0\x08\0"


def heard(*frames, **words):
    return read_capture(pcap(*frames, **words)).packets


FRAMES = {
    "Ethernet": (ETHERNET, ethernet(PACKET)),
    "with padding": (ETHERNET, ethernet(PACKET) + b"padding"),
    "VLAN": (ETHERNET, ethernet(PACKET, 0x0800, 0x8100)),
    "QinQ": (ETHERNET, ethernet(PACKET6, 0x86DD, 0x88A8, 0x8100)),
    "three tags": (ETHERNET, ethernet(PACKET, 0x0800, 0x88A8, 0x8100, 0x8100)),
    "SNAP": (ETHERNET, ethernet(SNAP + PACKET, 8 + len(PACKET)) + b"padding"),
    "MPLS": (ETHERNET, ethernet(b"\0\1\0\x40\0\2\1\x40" + PACKET, 0x8847)),
    "PPPoE": (
        ETHERNET,
        ethernet(b"\x11\0\0\1" + struct.pack("!H", 2 + len(PACKET)) + b"\0\x21" + PACKET, 0x8864),
    ),
    "PPP": (PPP, b"\xff\x03\0\x57" + PACKET6),
    "SLL": (SLL, bytes(14) + b"\x08\0" + PACKET),
    "SLL with a VLAN": (SLL, bytes(14) + b"\x81\0\0\5\x08\0" + PACKET),
    "SLL2": (SLL2, b"\x08\0" + bytes(18) + PACKET),
    "SLL2 of IPv6": (SLL2, b"\x86\xdd" + bytes(18) + PACKET6),
    "loopback": (LOOPBACK, b"\2\0\0\0" + PACKET),
    "loopback of another machine": (LOOPBACK, b"\0\0\0\x0a" + PACKET6),
    "loopback of OpenBSD": (LOOPBACK_BIG, b"\0\0\0\x18" + PACKET6),
    "raw IPv6": (RAW, PACKET6),
    "raw by version": (229, PACKET6),
    "IP in IP": (RAW, ip(PACKET, 4, "198.51.100.1", "198.51.100.2")),
    "IPv6 in IP": (RAW, ip(PACKET6, 41)),
    "GRE with a key": (RAW, ip(b"\x20\0\x08\0" + bytes(4) + PACKET, 47)),
    "options": (RAW, ip(extension(UDP, udp(b"hello"), 16), 0, **V6)),
    "two options": (RAW, ip(extension(OPTIONS, extension(UDP, udp(b"hello"))), OPTIONS, **V6)),
    "routing": (RAW, ip(extension(UDP, udp(b"hello"), 24), 43, **V6)),
    "authentication": (RAW, ip(b"\x11\4" + bytes(22) + udp(b"hello"), 51, **V6)),
    "a fragment that is alone": (RAW, ip(b"\x11\0\0\0\0\0\0\7" + udp(b"hello"), 44, **V6)),
}


@pytest.mark.parametrize(("link", "frame"), FRAMES.values(), ids=FRAMES)
def test_a_datagram_is_found_behind_any_headers(link, frame):
    [packet] = heard(frame, link=link)
    assert packet.data == b"hello"
    assert packet.source in ("192.0.2.1:5060", "[2001:db8::1]:5060")


@pytest.mark.parametrize(("link", "frame"), FRAMES.values(), ids=FRAMES)
def test_a_frame_that_is_cut_anywhere_is_nothing_or_the_datagram(link, frame):
    for size in range(len(frame)):
        packets = heard(frame[:size], link=link)
        assert [each.data for each in packets] in ([], [b"hello"])


WHOLE = udp(bytes(range(256)) * 2)


@pytest.mark.parametrize("words", [{}, V6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_fragments_in_any_order_make_the_datagram(words, order):
    pieces = parts(WHOLE, **words)
    assert len(pieces) == 4
    [packet] = heard(*(pieces[each] for each in order))
    assert (packet.number, packet.data) == (4, WHOLE[8:])
    assert packet.target in ("192.0.2.2:5060", "[2001:db8::2]:5060")


@pytest.mark.parametrize("words", [{}, V6], ids=["IPv4", "IPv6"])
def test_fragments_that_come_twice_or_overlap_are_taken_once(words):
    one, two, three, four = parts(WHOLE, **words)
    over = ip(WHOLE[80:320], at=80, more=True, **words)
    [packet] = heard(one, one, over, two, three, four)
    assert packet.data == WHOLE[8:]


@pytest.mark.parametrize("words", [{}, V6], ids=["IPv4", "IPv6"])
def test_fragments_of_tcp_and_behind_other_headers(words):
    segment = tcp(bytes(range(256)), 5)
    [packet] = heard(*parts(segment, 128, protocol=TCP, **words))
    assert (packet.segment.sequence, packet.data) == (5, bytes(range(256)))
    [packet] = heard(*(ip(each, 41 if words else 4) for each in parts(WHOLE, **words)))
    assert packet.data == WHOLE[8:]


def test_options_before_the_fragment_header():
    """Their own header must not hide that the packet is a fragment."""
    pieces = [ip(extension(44, each[40:]), 0, **V6) for each in reversed(parts(WHOLE, **V6))]
    [packet] = heard(*pieces)
    assert packet.data == WHOLE[8:]


@pytest.mark.parametrize("words", [{}, V6], ids=["IPv4", "IPv6"])
def test_fragments_of_others_are_not_mixed(words):
    """Not those of another number, nor of the same number a minute later."""
    one, other = (parts(WHOLE, 400, number=each, **words) for each in (7, 8))
    assert heard(one[0], other[1]) == []
    late = int(PATIENCE) + 1
    assert heard(one[0], one[1], times=[0, late]) == []
    assert len(heard(one[0], one[1], one[0], times=[0, late, late])) == 1


def test_no_more_fragments_are_kept_than_a_limit():
    many = [parts(WHOLE, 400, number=each)[0] for each in range(MOST_PENDING + 1)]
    first, last = (parts(WHOLE, 400, number=each)[1] for each in (0, MOST_PENDING))
    assert [each.number for each in heard(*many, first, last)] == [MOST_PENDING + 3]


def test_a_fragment_that_waits_for_others_is_of_no_use():
    capture = read_capture(pcap(parts(WHOLE)[0], PACKET, parts(WHOLE, number=9)[1]))
    assert (len(capture.packets), capture.skipped) == (1, 2)
    assert read_capture(pcap(*parts(WHOLE))).skipped == 0


@pytest.mark.parametrize("words", [{}, V6], ids=["IPv4", "IPv6"])
def test_a_length_that_the_network_card_would_have_written(words):
    packet = bytearray(ip(tcp(b"hello", 5), TCP, **words))
    place = 4 if words else 2
    packet[place : place + 2] = b"\0\0"
    [heard_packet] = heard(bytes(packet))
    assert heard_packet.data == b"hello"


def test_what_a_capture_has_a_part_of_is_left_out():
    """Of a stream the part is taken: the rest is a gap."""
    assert heard(PACKET[:-1]) == []
    assert [each.data for each in heard(ip(tcp(b"hello", 5), TCP)[:-1])] == [b"hell"]
    assert heard(*(each[:-1] for each in parts(WHOLE))) == []
