"""pcapng with all that it may have: interfaces with their clocks, sections, and odd packets."""

import struct

import pytest
from support.lint.frames import (
    ETHERNET,
    RAW,
    block,
    interface,
    ip,
    old_packet,
    option,
    packet,
    pcap,
    section,
    simple_packet,
    udp,
)

from rtclab.lint.packets import read_capture
from rtclab.unwrap.capture_file import CaptureError, frames_of

FRAME = ip(udp(b"hello"))
SECOND = 1_700_000_000
NANO, BINARY = option(9, b"\x09"), option(9, b"\x94")  # 10**-9 and 2**-20 s


def frames(file):
    return [(file[each.start : each.end], each.time, each.link) for each in frames_of(file)]


@pytest.mark.parametrize("order", ["<", ">"])
def test_each_interface_has_its_clock_and_its_link(order):
    """A packet of the second interface was at -1.7e9 s, by the clock of the first one."""
    shift = option(1, b"no clock", order) + option(14, struct.pack(f"{order}q", SECOND), order)
    file = section(order)
    for link, ticks in ((RAW, b"\x09"), (ETHERNET, b"\x06"), (RAW, b"\x94"), (RAW, None)):
        file += interface(link, b"" if ticks is None else option(9, ticks, order), order)
    file += interface(RAW, shift, order)
    for number, ticks in enumerate((10**9, 10**6, 2**20, 10**6)):
        file += packet(FRAME, SECOND * ticks + ticks // 4 * number, number, order)
    file += packet(FRAME, 10**6, 4, order)
    assert [(time - SECOND, link) for _, time, link in frames(file)] == [
        *((0.0, RAW), (0.25, ETHERNET), (0.5, RAW), (0.75, RAW), (1.0, RAW)),
    ]
    assert {data for data, *_ in frames(file)} == {FRAME}


def test_the_times_of_a_capture_count_from_its_first_packet():
    file = section() + interface(options=NANO) + interface(options=BINARY)
    file += packet(FRAME, SECOND * 10**9) + packet(FRAME, (SECOND + 2) << 20, 1)
    assert [each.time for each in read_capture(file).packets] == [0.0, 2.0]


def test_a_section_has_its_own_byte_order_and_interfaces():
    file = section("<") + interface(RAW, NANO) + packet(FRAME, 5 * 10**9)
    file += section(">") + interface(ETHERNET, b"", ">") + packet(b"other", 6 * 10**6, 0, ">")
    assert frames(file) == [(FRAME, 5.0, RAW), (b"other", 6.0, ETHERNET)]


def test_packets_of_other_blocks_are_read():
    """A Simple Packet has no time, and is cut as its interface says; others hold no packets."""
    file = section() + block(4, b"names") + interface(most=10) + old_packet(FRAME, 10**6)
    file += simple_packet(FRAME[:10], size=len(FRAME)) + block(0xBAD, b"custom") + block(5, b"")
    assert frames(file) == [(FRAME, 1.0, RAW), (FRAME[:10], None, RAW)]


def test_a_packet_without_an_interface_is_of_no_known_link():
    file = section() + packet(FRAME, 1) + interface() + packet(FRAME, 10**6) + packet(FRAME, 1, 9)
    assert [(time, link) for _, time, link in frames(file)] == [
        *((None, None), (1.0, RAW), (None, None)),
    ]
    capture = read_capture(file)
    assert ([each.number for each in capture.packets], capture.skipped) == ([2], 2)


def test_a_packet_without_a_time_is_at_that_of_the_one_before():
    file = section() + interface() + simple_packet(FRAME)
    file += packet(FRAME, SECOND * 10**6) + packet(FRAME, (SECOND + 3) * 10**6)
    file += simple_packet(FRAME)
    assert [each.time for each in read_capture(file).packets] == [0.0, 0.0, 3.0, 3.0]


LAST = packet(FRAME, 10**6)
BROKEN = {
    "cut in the head": LAST[:6],
    "cut in the body": LAST[:-9],
    "cut in the last length": LAST[:-1],
    "of two lengths": LAST[:-4] + b"\1\0\0\0",
    "of no length": struct.pack("<III", 6, 0, 0),
    "of a packet that is too long": block(6, struct.pack("<IIIII", 0, 0, 0, 99, 99)),
    "of no byte order": block(0x0A0D0D0A, b"????????????????"),
}


@pytest.mark.parametrize("tail", BROKEN.values(), ids=BROKEN)
def test_a_block_that_breaks_ends_the_capture_behind_what_is_whole(tail):
    file = section() + interface() + LAST + tail
    with pytest.raises(CaptureError):
        frames(file)
    capture = read_capture(file)
    assert (capture.frames, len(capture.packets)) == (1, 1)
    assert capture.fault == "the capture ends or breaks behind packet 1"


def test_a_pcap_may_have_nanoseconds_and_say_that_frames_end_with_a_checksum():
    file = pcap(FRAME, link=0x54000000 | RAW)
    assert frames(file) == [(FRAME, 1e9, RAW)]
    nano = struct.pack("<I", 0xA1B23C4D) + file[4:28] + struct.pack("<I", 5 * 10**8) + file[32:]
    assert frames(nano) == [(FRAME, 1e9 + 0.5, RAW)]
    long = struct.pack("<I", 0xA1B2CD34) + file[4:40] + bytes(8) + file[40:]
    assert frames(long) == [(FRAME, 1e9, RAW)]
