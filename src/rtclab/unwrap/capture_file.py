"""Files of captured frames, pcap and pcapng: each frame, its time, and the link that it came from.

Own design: a capture may have interfaces of several links and clocks, sections of either byte
order, and frames without a time.  A frame is a place in the file, so that a reader can point at it.

    >>> head = bytes.fromhex("a1b2c3d4 00020004 00000000 00000000 00040000 00000065")
    >>> data = head + bytes.fromhex("00000001 0007a120 00000002 00000005 cafe")
    >>> [(each.time, each.link, data[each.start : each.end].hex()) for each in frames_of(data)]
    [(1.5, 101, 'cafe')]
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_SECTION: Final = bytes.fromhex("0a0d0d0a")  # the same in both byte orders
_ORDERS: Final = {bytes.fromhex("1a2b3c4d"): ">", bytes.fromhex("4d3c2b1a"): "<"}
# Byte order, ticks of a second, and octets of a record's header, by the first octets of a file.
_CLASSIC: Final = {
    bytes.fromhex("a1b2c3d4"): (">", 10**6, 16),
    bytes.fromhex("d4c3b2a1"): ("<", 10**6, 16),
    bytes.fromhex("a1b23c4d"): (">", 10**9, 16),
    bytes.fromhex("4d3cb2a1"): ("<", 10**9, 16),
    bytes.fromhex("a1b2cd34"): (">", 10**6, 24),  # of a Linux of the nineties
    bytes.fromhex("34cdb2a1"): ("<", 10**6, 24),
}
_FILE_HEADER: Final = 24
_LINK_BITS: Final = 0xFFFF  # those above say whether frames end with a checksum
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6  # types of blocks
_TICKS, _OFFSET = 9, 14  # options of an interface
_LEAST_BLOCK: Final = 12
_MICRO: Final = 10**6


class CaptureError(Exception):
    """A capture that cannot be read, or not any further."""


class CapturedFrame(NamedTuple):
    """One frame: octets `start` up to `end` of the file.

    `time` is in seconds since 1970, None if the file does not say it; so is `link`, the number of
    the link type.
    """

    start: int
    end: int
    time: float | None
    link: int | None


@dataclass(slots=True)
class _Interface:
    """What a section says of an interface; a time is `offset` seconds and so many ticks."""

    link: int
    most: int
    ticks: int = _MICRO
    offset: int = 0


@dataclass(slots=True)
class _Section:
    order: str
    interfaces: list[_Interface] = field(default_factory=list)


def is_capture(data: bytes) -> bool:
    """Whether a file is a capture, by its first octets."""
    return data[:4] == _SECTION or data[:4] in _CLASSIC


def frames_of(data: bytes) -> Iterator[CapturedFrame]:
    """Yield the frames of a file; raises CaptureError where it breaks or ends too soon."""
    try:
        yield from _of_blocks(data) if data[:4] == _SECTION else _of_records(data)
    except struct.error:
        raise CaptureError("cut within a header") from None


def _of_records(data: bytes) -> Iterator[CapturedFrame]:
    """The frames of a pcap."""
    if data[:4] not in _CLASSIC:
        raise CaptureError("neither pcap nor pcapng")
    order, ticks, size = _CLASSIC[data[:4]]
    [link] = struct.unpack_from(f"{order}I", data, _FILE_HEADER - 4)
    at = _FILE_HEADER
    while at < len(data):
        seconds, more, length = struct.unpack_from(f"{order}III", data, at)
        start = at + size
        at = start + length
        if at > len(data):
            raise CaptureError("cut within a packet")
        yield CapturedFrame(start, at, seconds + more / ticks, link & _LINK_BITS)


def _of_blocks(data: bytes) -> Iterator[CapturedFrame]:
    """The frames of a pcapng."""
    at, section = 0, _Section(">")
    while at < len(data):
        if data[at : at + 4] == _SECTION:
            if data[at + 8 : at + 12] not in _ORDERS:
                raise CaptureError("a section of no known byte order")
            section = _Section(_ORDERS[data[at + 8 : at + 12]])
        kind, length = struct.unpack_from(f"{section.order}II", data, at)
        end = at + length
        if end > len(data):
            raise CaptureError("cut within a block")
        if length < _LEAST_BLOCK or data[end - 4 : end] != data[at + 4 : at + 8]:
            raise CaptureError("a block whose two lengths differ")
        frame = _block(section, kind, data, at + 8, end - 4)
        if frame is not None:
            yield frame
        at = end


def _block(section: _Section, kind: int, data: bytes, at: int, end: int) -> CapturedFrame | None:
    """Read the body of a block: an interface, a frame, or what is not of use here."""
    order, interfaces = section.order, section.interfaces
    if kind == _INTERFACE:
        link, _, most = struct.unpack_from(f"{order}HHI", data, at)
        interfaces.append(_Interface(link, most))
        _options(interfaces[-1], order, data[at + 8 : end])
        return None
    if kind == _SIMPLE_PACKET:  # as long as it was, or as the first interface cuts it
        [size] = struct.unpack_from(f"{order}I", data, at)
        first = interfaces[0] if interfaces else None
        if first is not None and first.most:
            size = min(size, first.most)
        return _frame(at + 4, size, end, None, first)
    if kind not in (_PACKET, _OLD_PACKET):
        return None
    layout = "IIII" if kind == _PACKET else "HxxIII"  # the interface, the time, and the size
    number, high, low, size = struct.unpack_from(order + layout, data, at)
    known = interfaces[number] if number < len(interfaces) else None
    return _frame(at + 20, size, end, high << 32 | low, known)


def _frame(
    start: int, size: int, end: int, ticks: int | None, interface: _Interface | None
) -> CapturedFrame:
    if start + size > end:
        raise CaptureError("a packet that is longer than its block")
    if interface is None:
        return CapturedFrame(start, start + size, None, None)
    time = None if ticks is None else interface.offset + ticks / interface.ticks
    return CapturedFrame(start, start + size, time, interface.link)


def _options(interface: _Interface, order: str, options: bytes) -> None:
    """Read the clock of an interface: powers of ten or of two, and what is to be added."""
    at = 0
    while at + 4 <= len(options):
        code, size = struct.unpack_from(f"{order}HH", options, at)
        value = options[at + 4 : at + 4 + size]
        if code == 0:
            return
        if code == _TICKS and len(value) == 1:
            interface.ticks = (2 if value[0] & 0x80 else 10) ** (value[0] & 0x7F)
        elif code == _OFFSET and len(value) == 8:
            [interface.offset] = struct.unpack(f"{order}q", value)
        at += 4 + size + -size % 4
