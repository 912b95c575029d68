"""Reads and writes the headers of media packets without an object for each.

Implements RFC 7016 §2.2.4 and §2.3.11 a second time, for speed: `packet.Packet` and
`flow_chunks.UserData` do the same in a way that is easier to read, and tests compare the two.
"""

from struct import Struct
from typing import Final

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.wire.option import Option, parse_option_list
from rtmplite.rtmfp.wire.vlu import decode_vlu

_TIMESTAMP, _ECHO = 0x08, 0x04  # bits TS and TSE: §2.2.4
_OPTIONS, _ABANDON = 0x80, 0x02  # bits OPT and ABN: §2.3.11
_FLAGS_TIME: Final = Struct("!BH")
_FLAGS_TIMES: Final = Struct("!BHH")

Ranges = list[tuple[int, int]]
Fields = tuple[int, int, int, int, bytes, tuple[Option, ...] | None]


def encode_header(flags: int, timestamp: int | None, echo: int | None) -> bytes:
    """Write the beginning of a packet; `flags` lack only the bits of the two times: §2.2.4."""
    if timestamp is None:
        if echo is None:
            return bytes((flags,))
        return _FLAGS_TIME.pack(flags | _ECHO, echo)
    if echo is None:
        return _FLAGS_TIME.pack(flags | _TIMESTAMP, timestamp)
    return _FLAGS_TIMES.pack(flags | _TIMESTAMP | _ECHO, timestamp, echo)


def read_header(packet: bytes) -> tuple[int, int | None, int | None, int]:
    """Return flags, time, echo, index of the first chunk; RemoteError if cut off: §2.2.4."""
    try:
        flags, at = packet[0], 1
        timestamp = echo = None
        if flags & _TIMESTAMP:
            timestamp, at = packet[1] << 8 | packet[2], 3
        if flags & _ECHO:
            echo, at = packet[at] << 8 | packet[at + 1], at + 2
    except IndexError:
        raise RemoteError("a packet cut off in its header") from None
    return flags, timestamp, echo, at


def read_user_data(packet: bytes, at: int, end: int) -> Fields:
    """Return flow, number, FSN, flags, data, options, as `UserData.parse` does: §2.3.11."""
    if at >= end:
        raise RemoteError("user data without flags")
    flags = packet[at]
    at += 1
    flow_id = packet[at] if at < end else 0x80
    if flow_id < 0x80:
        at += 1
    else:
        flow_id, at = decode_vlu(packet[:end], at)
    number, at = decode_vlu(packet, at)
    offset, at = decode_vlu(packet, at)
    if at > end:
        raise RemoteError("user data is cut off")
    if offset > number or not (offset or flags & _ABANDON):
        raise RemoteError(f"a forward sequence number {offset} behind {number}")
    options = None
    if flags & _OPTIONS:
        options, at = parse_option_list(packet[:end], at)
    return flow_id, number, number - offset, flags, packet[at:end], options


def read_next_user_data(
    packet: bytes, at: int, end: int
) -> tuple[int, bytes, tuple[Option, ...] | None]:
    """Return flags, data, options; RemoteError as `NextUserData.parse`: §2.3.12."""
    if at >= end:
        raise RemoteError("next user data without flags")
    flags = packet[at]
    options = None
    at += 1
    if flags & _OPTIONS:
        options, at = parse_option_list(packet[:end], at)
    return flags, packet[at:end], options


def read_range_ack(payload: bytes) -> tuple[int, int, Ranges]:
    """Return flow, blocks and ranges, as `DataAckRanges` does: §2.3.14."""
    flow_id, at = decode_vlu(payload)
    blocks, at = decode_vlu(payload, at)
    last, at = decode_vlu(payload, at)
    ranges = [(0, last)]
    while at < len(payload):
        try:
            missing, at = decode_vlu(payload, at)
            received, at = decode_vlu(payload, at)
        except RemoteError:  # the range that is cut off is not there
            break
        first = last + missing + 2
        last = first + received
        ranges.append((first, last))
    return flow_id, blocks, ranges
