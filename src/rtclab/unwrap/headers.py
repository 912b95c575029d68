"""The headers of a frame, from its link to UDP or TCP, and the fragments of IP put together.

Own design: a walk steps from header to header by what each says of the next.  Lengths in the
headers are believed only within the frame.

    >>> datagram = bytes.fromhex("13c413c4 000a0000 6869")
    >>> packet = bytes.fromhex("4500001e 00000000 4011b6cb c0000201 c0000202") + datagram
    >>> [(each.name, packet[each.end : each.limit][:2]) for each in walk(packet, link_of(101))]
    [('IP', b'\\x13\\xc4'), ('UDP', b'hi')]
"""

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

MOST_PENDING: Final = 1000  # datagrams of which fragments are kept
PATIENCE: Final = 60.0  # s that fragments wait for the others: RFC 8200
_DEEPEST: Final = 32  # headers in a frame
_SYN, _END = 2, 5  # bits of TCP: SYN; FIN or RST
_UDP, _TCP = 17, 6

# What a header says of the next one: the numbers of link types, of Ethernet and of IP.
Kind: TypeAlias = tuple[str, int]
_IP: Final[Kind] = "link", 101  # of either version


class IpPart(NamedTuple):
    """Which fragment a packet is, `at` in octets: RFC 791, RFC 8200."""

    number: int
    at: int
    has_more: bool


class NetworkHeader(NamedTuple):
    """A header: octets `start` up to `end`; what it carries ends at `limit`.  Own design.

    `next` is what comes behind it, `lacks` how many octets of that the frame does not have.  IP has
    `hosts`, and `part` if it is a fragment; UDP and TCP have `ports`, and TCP the rest.
    """

    name: str
    start: int
    end: int
    limit: int
    next: Kind | None = None
    lacks: int = 0
    hosts: tuple[str, str] | None = None
    part: IpPart | None = None
    ports: tuple[int, int] | None = None
    sequence: int | None = None
    is_syn: bool = False
    is_end: bool = False


_Reader: TypeAlias = Callable[[bytes, int, int], NetworkHeader | None]


def link_of(number: int | None) -> Kind:
    """The kind of a frame by the number of its link type: own design."""
    return "link", -1 if number is None else number


def walk(
    data: bytes, kind: Kind | None, start: int = 0, end: int | None = None
) -> Iterator[NetworkHeader]:
    """Yield the headers up to UDP or TCP, to a fragment, or to one that is not known here.

    Those behind a header of IP have its hosts too.
    """
    end = len(data) if end is None else end
    hosts: tuple[str, str] | None = None
    for _ in range(_DEEPEST):
        reader = _READERS.get(kind) if kind is not None else None
        header = reader(data, start, end) if reader is not None else None
        if header is None or header.end > header.limit:
            return
        hosts = header.hosts or hosts
        yield header._replace(hosts=hosts)
        if header.part is not None:
            return
        kind, start, end = header.next, header.end, header.limit


class IpFragments:
    """The fragments whose datagrams are not whole yet: RFC 791, RFC 8200."""

    def __init__(self) -> None:
        self._pending: dict[object, tuple[float, dict[int, tuple[bytes, bool]]]] = {}

    @property
    def waiting(self) -> int:
        """How many fragments wait for the others."""
        return sum(len(pieces) for _, pieces in self._pending.values())

    def joined(self, header: NetworkHeader, data: bytes, now: float) -> bytes | None:
        """Take what a fragment carries; give what it completes."""
        part = header.part
        assert part is not None
        key = header.hosts, header.next, part.number
        began, pieces = self._pending.pop(key, (now, {}))
        if abs(now - began) > PATIENCE:  # numbers come again
            began, pieces = now, {}
        pieces[part.at] = data, part.has_more
        whole = bytearray()
        for at, (piece, has_more) in sorted(pieces.items()):
            if at > len(whole):
                break
            whole += piece[len(whole) - at :]
            if not has_more:
                return bytes(whole)
        self._pending[key] = began, pieces
        if len(self._pending) > MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        return None


# -- links ---------------------------------------------------------------------------------


def _number(data: bytes, at: int, size: int = 2) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _plain(name: str, size: int, place: int) -> _Reader:
    """A header that says at a place which protocol of Ethernet follows."""

    def read(data: bytes, at: int, end: int) -> NetworkHeader | None:
        return NetworkHeader(name, at, at + size, end, ("ether", _number(data, at + place)))

    return read


def _ethernet(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """Ethernet II, or a length and LLC with SNAP behind it."""
    kind = _number(data, at + 12)
    if kind > 1500:
        return NetworkHeader("Ethernet", at, at + 14, end, ("ether", kind))
    if data[at + 14 : at + 20] == b"\xaa\xaa\x03\0\0\0":
        limit = min(end, at + 14 + kind)
        return NetworkHeader("Ethernet", at, at + 22, limit, ("ether", _number(data, at + 20)))
    return NetworkHeader("Ethernet", at, at + 14, end)


def _loopback(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """The address family, whose number for IPv6 differs by machine: the packet tells better."""
    return NetworkHeader("Loopback", at, at + 4, end, _IP)


def _any_version(data: bytes, at: int, end: int) -> NetworkHeader | None:
    if at >= end:
        return None
    return (_ip6 if data[at] >> 4 == 6 else _ip4)(data, at, end)


def _ppp(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """PPP with or without the address and control of HDLC: RFC 1661."""
    size = 4 if data[at : at + 2] == b"\xff\x03" else 2
    is_ip = _number(data, at + size - 2) in (0x21, 0x57)
    return NetworkHeader("PPP", at, at + size, end, _IP if is_ip else None)


def _pppoe(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """A session of PPP over Ethernet: RFC 2516."""
    limit = min(end, at + 6 + _number(data, at + 4))
    return NetworkHeader("PPPoE", at, at + 6, limit, ("link", 9))


def _mpls(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """A label; behind the last one a packet is known by its version: RFC 3032."""
    is_last = bool(_number(data, at, 4) & 0x100)
    return NetworkHeader("MPLS", at, at + 4, end, _IP if is_last else ("ether", 0x8847))


# -- IP ------------------------------------------------------------------------------------


def _hosts(data: bytes, at: int, size: int) -> tuple[str, str]:
    one, other = data[at : at + size], data[at + size : at + 2 * size]
    return str(ipaddress.ip_address(one)), str(ipaddress.ip_address(other))


def _ip4(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """IPv4: RFC 791.  A length of 0 is one that the network card would have written."""
    if end - at < 20 or data[at] >> 4 != 4:
        return None
    size, length = (data[at] & 15) << 2, _number(data, at + 2)
    if size < 20:
        return None
    wanted = at + length if length >= size else end
    bits, part = _number(data, at + 6), None
    if bits & 0x3FFF:
        part = IpPart(_number(data, at + 4), (bits & 0x1FFF) << 3, bool(bits & 0x2000))
    lacks, kind = max(wanted - end, 0), ("ip", data[at + 9])
    hosts = _hosts(data, at + 12, 4)
    return NetworkHeader("IP", at, at + size, min(wanted, end), kind, lacks, hosts, part)


def _ip6(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """IPv6: RFC 8200."""
    if end - at < 40 or data[at] >> 4 != 6:
        return None
    length = _number(data, at + 4)
    wanted = at + 40 + length if length else end
    hosts, kind = _hosts(data, at + 8, 16), ("ip", data[at + 6])
    return NetworkHeader("IP6", at, at + 40, min(wanted, end), kind, max(wanted - end, 0), hosts)


def _extension(name: str, unit: int = 8, more: int = 8) -> _Reader:
    """An extension header, whose length counts units: RFC 8200, RFC 4302."""

    def read(data: bytes, at: int, end: int) -> NetworkHeader | None:
        if end - at < 8:
            return None
        size = more + unit * data[at + 1]
        return NetworkHeader(name, at, at + size, end, ("ip", data[at]))

    return read


def _fragment(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """The Fragment header; one that is alone is no fragment: RFC 8200, RFC 6946."""
    if end - at < 8:
        return None
    bits, part = _number(data, at + 2), None
    if bits & 0xFFF9:
        part = IpPart(_number(data, at + 4, 4), bits & 0xFFF8, bool(bits & 1))
    return NetworkHeader("fragment header", at, at + 8, end, ("ip", data[at]), part=part)


def _gre(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """GRE of version 0, with what its first bits say: RFC 2784, RFC 2890."""
    bits = _number(data, at)
    if end - at < 4 or bits & 7:
        return None
    size = 4 + 4 * sum(bool(bits & each) for each in (0x8000, 0x2000, 0x1000))
    return NetworkHeader("GRE", at, at + size, end, ("ether", _number(data, at + 2)))


# -- transport -----------------------------------------------------------------------------


def _udp(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """UDP: RFC 768."""
    if end - at < 8:
        return None
    ports, length = (_number(data, at), _number(data, at + 2)), _number(data, at + 4)
    wanted = at + length if length >= 8 else at + 8
    lacks = max(wanted - end, 0)
    return NetworkHeader("UDP", at, at + 8, min(wanted, end), None, lacks, ports=ports)


def _tcp(data: bytes, at: int, end: int) -> NetworkHeader | None:
    """TCP: RFC 9293."""
    if end - at < 20:
        return None
    size, flags = data[at + 12] >> 4 << 2, data[at + 13]
    if size < 20:
        return None
    header = NetworkHeader("TCP", at, at + size, end, sequence=_number(data, at + 4, 4))
    ports = _number(data, at), _number(data, at + 2)
    return header._replace(ports=ports, is_syn=bool(flags & _SYN), is_end=bool(flags & _END))


_VLAN: Final = _plain("VLAN", 4, 2)
_READERS: Final[Mapping[Kind, _Reader]] = {
    **dict.fromkeys([("link", 0), ("link", 108)], _loopback),
    ("link", 1): _ethernet,
    ("link", 9): _ppp,
    **dict.fromkeys([_IP, ("link", 12), ("link", 14)], _any_version),
    ("link", 113): _plain("SLL", 16, 14),
    **dict.fromkeys([("link", 228), ("link", 229)], _any_version),
    ("link", 276): _plain("SLL2", 20, 0),
    **dict.fromkeys([("ether", 0x0800), ("ether", 0x86DD)], _any_version),
    **dict.fromkeys([("ether", 0x8100), ("ether", 0x88A8), ("ether", 0x9100)], _VLAN),
    ("ether", 0x6558): _ethernet,
    **dict.fromkeys([("ether", 0x8847), ("ether", 0x8848)], _mpls),
    ("ether", 0x8864): _pppoe,
    **dict.fromkeys([("ip", 4), ("ip", 41)], _any_version),
    **dict.fromkeys([("ip", 0), ("ip", 43), ("ip", 60), ("ip", 135)], _extension("extension")),
    ("ip", _TCP): _tcp,
    ("ip", _UDP): _udp,
    ("ip", 44): _fragment,
    ("ip", 47): _gre,
    ("ip", 51): _extension("AH", 4),
}
