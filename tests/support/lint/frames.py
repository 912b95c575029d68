"""Frames and files of captures, written field by field."""

import ipaddress
import struct

UDP, TCP, FRAGMENT, OPTIONS = 17, 6, 44, 60
RAW, ETHERNET = 101, 1


def udp(data, source=5060, target=5060):
    return struct.pack("!HHHH", source, target, 8 + len(data), 0) + data


def tcp(data, sequence, flags=0x18, source=5060, target=5060):
    head = struct.pack("!HHIIBBHHH", source, target, sequence % 2**32, 0, 0x50, flags, 99, 0, 0)
    return head + data


def ip(data, protocol=UDP, source="192.0.2.1", target="192.0.2.2", number=7, at=0, more=False):
    """A packet of either version, as its addresses are; a part of one by `at` or `more`."""
    hosts = [ipaddress.ip_address(each).packed for each in (source, target)]
    if len(hosts[0]) == 16:
        if at or more:
            data = struct.pack("!BBHI", protocol, 0, at | more, number) + data
            protocol = FRAGMENT
        return struct.pack("!IHBB", 6 << 28, len(data), protocol, 64) + b"".join(hosts) + data
    bits = at >> 3 | (0x2000 if more else 0)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), number, bits, 64, protocol, 0)
    return head + b"".join(hosts) + data


def parts(data, size=160, **words):
    """A datagram cut into fragments of IP."""
    return [
        ip(data[at : at + size], at=at, more=at + size < len(data), **words)
        for at in range(0, len(data), size)
    ]


def extension(kind, data, size=8):
    """An extension header of IPv6, all of it padding."""
    return struct.pack("!BBBB", kind, size // 8 - 1, 1, size - 4) + bytes(size - 4) + data


def ethernet(data, kind=0x0800, *tags):
    heads = [struct.pack("!HH", each, 5) for each in tags]
    return bytes(12) + b"".join(heads) + struct.pack("!H", kind) + data


def pcap(*frames, link=RAW, times=None):
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    for number, frame in enumerate(frames):
        second = 10**9 + (times[number] if times else number)
        file += struct.pack("<IIII", second, 0, len(frame), len(frame)) + frame
    return file


def block(kind, body, order="<"):
    body += bytes(-len(body) % 4)
    size = struct.pack(f"{order}I", 12 + len(body))
    return struct.pack(f"{order}I", kind) + size + body + size


def option(code, value, order="<"):
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order="<"):
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link=RAW, options=b"", order="<", most=0):
    return block(1, struct.pack(f"{order}HHI", link, 0, most) + options, order)


def packet(frame, ticks, number=0, order="<"):
    head = struct.pack(f"{order}IIIII", number, ticks >> 32, ticks % 2**32, len(frame), len(frame))
    return block(6, head + frame, order)


def simple_packet(frame, order="<", size=None):
    return block(3, struct.pack(f"{order}I", size or len(frame)) + frame, order)


def old_packet(frame, ticks, number=0, order="<"):
    times = ticks >> 32, ticks % 2**32
    head = struct.pack(f"{order}HHIIII", number, 0, *times, len(frame), len(frame))
    return block(2, head + frame, order)
