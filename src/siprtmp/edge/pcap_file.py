"""Writes a capture: datagrams and streams, with headers of IP, UDP and TCP made for them.

Own design: what a program reads from its sockets has lost its headers.  They are made anew, good
enough for Wireshark and `rtclab lint`: sequence numbers count what was read and written, and a
connection begins when its first octets come.  The link type is that of IP without a link.

    >>> import io
    >>> file = io.BytesIO()
    >>> pcap = PcapFile(file)
    >>> pcap.datagram(("192.0.2.1", 5060), ("192.0.2.2", 5060), b"hello", 1.5)
    >>> file.getvalue()[40:].hex(" ", -4)
    '45000021 00000000 4011f6c8 c0000201 c0000202 13c413c4 000d1076 68656c6c 6f'
"""

import ipaddress
from dataclasses import dataclass, field
from struct import Struct
from typing import BinaryIO, Final

Address = tuple[str, int]

_FILE: Final = Struct("<IHHiIII")
_RECORD: Final = Struct("<IIII")
_UDP: Final = Struct("!HHHH")
_TCP: Final = Struct("!HHIIBBHHH")
_IP4: Final = Struct("!BBHHHBBH4s4s")
_IP6: Final = Struct("!IHBB16s16s")
_LINK_RAW: Final = 101
_SNAP: Final = 0x40000
_UDP_NUMBER, _TCP_NUMBER = 17, 6
_FIN, _SYN, _PUSH, _ACK = 1, 2, 8, 16
_MOST: Final = 32768  # octets in a segment
_MAPPED: Final = "::ffff:"  # how a socket for both families shows IPv4


@dataclass(slots=True)
class CapturedConnection:
    """A connection as it is told: how much each end has said, and whether it has ended."""

    near: Address
    far: Address
    sent: dict[Address, int] = field(default_factory=dict)
    ended: set[Address] = field(default_factory=set)


class PcapFile:
    """A file that is written; `size` is in octets.  Own design: see the module."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        header = _FILE.pack(0xA1B2C3D4, 2, 4, 0, 0, _SNAP, _LINK_RAW)
        self._file.write(header)
        self.size = len(header)

    def datagram(self, source: Address, target: Address, data: bytes, at: float) -> None:
        """Write a UDP packet; `at` is in seconds since 1970."""
        header = _UDP.pack(source[1], target[1], 8 + len(data), 0)
        self._transported(source, target, _UDP_NUMBER, header, data, at, 6)

    def piece(
        self, connection: CapturedConnection, source: Address, data: bytes, at: float
    ) -> None:
        """Write what one end of a connection has sent."""
        if not connection.sent:
            self._begin(connection, source, at)
        for start in range(0, len(data), _MOST):
            part = data[start : start + _MOST]
            self._segment(connection, source, _PUSH | _ACK, part, at)
            connection.sent[source] += len(part)

    def end(self, connection: CapturedConnection, source: Address, at: float) -> None:
        if connection.sent and source not in connection.ended:
            connection.ended.add(source)
            self._segment(connection, source, _FIN | _ACK, b"", at)
            connection.sent[source] += 1

    def _begin(self, connection: CapturedConnection, first: Address, at: float) -> None:
        """The three packets by which a connection would have begun."""
        second = connection.far if first == connection.near else connection.near
        connection.sent |= {connection.near: 0, connection.far: 0}
        self._segment(connection, first, _SYN, b"", at)
        connection.sent[first] = 1
        self._segment(connection, second, _SYN | _ACK, b"", at)
        connection.sent[second] = 1
        self._segment(connection, first, _ACK, b"", at)

    def _segment(
        self, connection: CapturedConnection, source: Address, flags: int, data: bytes, at: float
    ) -> None:
        target = connection.far if source == connection.near else connection.near
        number = connection.sent[source] % (1 << 32)
        answered = connection.sent[target] % (1 << 32) if flags & _ACK else 0
        ports = source[1], target[1]
        header = _TCP.pack(*ports, number, answered, 5 << 4, flags, 0xFFFF, 0, 0)
        self._transported(source, target, _TCP_NUMBER, header, data, at, 16)

    def _transported(
        self,
        source: Address,
        target: Address,
        number: int,
        header: bytes,
        data: bytes,
        at: float,
        place: int,
    ) -> None:
        """Write a packet; `place` is where its checksum stands in the header."""
        hosts = [ipaddress.ip_address(_plain(each[0])).packed for each in (source, target)]
        size = len(header) + len(data)
        pseudo = b"".join(hosts) + size.to_bytes(4, "big") + number.to_bytes(4, "big")
        checked = _checksum(pseudo + header + data) or 0xFFFF
        header = header[:place] + checked.to_bytes(2, "big") + header[place + 2 :]
        self._write(_ip(hosts, number, size) + header + data, at)

    def _write(self, packet: bytes, at: float) -> None:
        head = _RECORD.pack(*divmod(round(at * 1e6), 1_000_000), len(packet), len(packet))
        self._file.write(head + packet)
        self.size += len(head) + len(packet)


def _plain(host: str) -> str:
    """An address without the zone, and IPv4 as such."""
    return host.partition("%")[0].removeprefix(_MAPPED)


def _ip(hosts: list[bytes], number: int, size: int) -> bytes:
    if len(hosts[0]) == len(hosts[1]) == 16:
        return _IP6.pack(6 << 28, size, number, 64, *hosts)
    header = _IP4.pack(0x45, 0, 20 + size, 0, 0, 64, number, 0, *hosts)
    return header[:10] + _checksum(header).to_bytes(2, "big") + header[12:]


def _checksum(data: bytes) -> int:
    """The checksum of the Internet: RFC 1071 §1; a large number modulo 2**16 - 1 is its sum."""
    padded = data + b"\0" * (len(data) % 2)
    return 0xFFFF - (int.from_bytes(padded, "big") % 0xFFFF or 0xFFFF)
