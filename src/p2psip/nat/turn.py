"""TURN's methods and attributes, and ChannelData, the short form of relayed data.

Implements RFC 8656 §12.4, §12.5, §17 and §18.1; all but ChannelData are STUN messages
(`p2psip.nat.stun`).

    >>> channel_data(0x4001, b"RTP").hex(" ", -2)
    '4001 0003 5254 50'
    >>> read_channel_data(channel_data(0x4001, b"RTP"))
    (16385, b'RTP')
"""

import struct
from enum import IntEnum
from typing import Final

from p2psip.errors import LocalError, RemoteError

UDP: Final = 17  # the protocol number of REQUESTED-TRANSPORT: §18.8
CHANNELS: Final = range(0x4000, 0x5000)  # Source: §12, Table 4
OVERHEAD: Final = 4  # octets of a ChannelData message before its data

_HEADER: Final = struct.Struct("!HH")


class TurnMethod(IntEnum):
    """The STUN methods of TURN: §17."""

    ALLOCATE = 0x003
    REFRESH = 0x004
    SEND = 0x006
    DATA = 0x007
    CREATE_PERMISSION = 0x008
    CHANNEL_BIND = 0x009


class TurnType(IntEnum):
    """The types of TURN's attributes: from §18.1 on."""

    CHANNEL_NUMBER = 0x000C
    LIFETIME = 0x000D
    XOR_PEER_ADDRESS = 0x0012
    DATA = 0x0013
    XOR_RELAYED_ADDRESS = 0x0016
    REQUESTED_ADDRESS_FAMILY = 0x0017
    EVEN_PORT = 0x0018
    REQUESTED_TRANSPORT = 0x0019
    DONT_FRAGMENT = 0x001A
    RESERVATION_TOKEN = 0x0022
    ADDITIONAL_ADDRESS_FAMILY = 0x8000
    ADDRESS_ERROR_CODE = 0x8001
    ICMP = 0x8004


def channel_data(channel: int, data: bytes) -> bytes:
    """Write a ChannelData message as UDP carries it, without padding: §12.4, §12.5."""
    if channel not in CHANNELS or len(data) > 0xFFFF:
        raise LocalError("a channel is 0x4000 to 0x4FFF, its data at most 65535 octets")
    return _HEADER.pack(channel, len(data)) + data  # §12.5 [no-padding-by-udp]


def read_channel_data(datagram: bytes) -> tuple[int, bytes] | None:
    """Read channel and data of a datagram, padding or not; None for others: §12.4, §12.6."""
    if len(datagram) < OVERHEAD:
        return None
    channel, length = _HEADER.unpack_from(datagram)
    if channel not in CHANNELS or OVERHEAD + length > len(datagram):
        return None
    return channel, datagram[OVERHEAD : OVERHEAD + length]


def write_lifetime(seconds: int) -> bytes:
    """Write LIFETIME: §18.2."""
    return struct.pack("!I", seconds)


def read_lifetime(value: bytes | None) -> int:
    """Read LIFETIME in seconds: §18.2.  Raises RemoteError where it is missing or no such value."""
    if value is None or len(value) != 4:
        raise RemoteError("no LIFETIME of 32 bits")
    return int.from_bytes(value)


def write_channel(channel: int) -> bytes:
    """Write CHANNEL-NUMBER, whose last two octets are reserved: §18.1."""
    return _HEADER.pack(channel, 0)  # §18.1 [rest-is-zero]


def write_transport(protocol: int = UDP) -> bytes:
    """Write REQUESTED-TRANSPORT: §18.8."""
    return bytes((protocol, 0, 0, 0))  # §18.8 [rest-is-zero]


def write_family(is_ipv6: bool) -> bytes:
    """Write REQUESTED-ADDRESS-FAMILY: §18.6."""
    return bytes((2 if is_ipv6 else 1, 0, 0, 0))  # §18.6 [rest-is-zero]
