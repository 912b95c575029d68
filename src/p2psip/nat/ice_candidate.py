"""The candidates of ICE: where an agent may be reached, and the attribute that says it.

Implements RFC 8445 §5.1 and RFC 8839 §5.1, and for candidates of TCP RFC 6544 §4.2 and §4.5.

    >>> text = "7 1 UDP 1694498815 203.0.113.9 4000 typ srflx raddr 10.0.0.9 rport 5000"
    >>> candidate = IceCandidate.parse(text)
    >>> candidate.type, candidate.address, str(candidate) == text
    (<CandidateType.SERVER_REFLEXIVE: 'srflx'>, ('203.0.113.9', 4000), True)
"""

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Self

from p2psip.errors import RemoteError

COMPONENT: Final = 1  # of RTP, and of RTCP that shares its port.  Source: RFC 8839 §5.1
RTCP: Final = 2  # the component of RTCP at a port of its own.  Source: RFC 8839 §5.1
MAX_PREFERENCE: Final = 0xFFFF  # of a local preference.  Source: RFC 8445 §5.1.2.1
MAX_OTHER: Final = 8191  # what a local preference has beside its direction. Source: RFC 6544 §4.2
ACTIVE_PORT: Final = 9  # of a candidate that only connects.  Source: RFC 6544 §4.5
HIDDEN: Final = {4: ("0.0.0.0", 9), 6: ("::", 9)}  # Source: RFC 8839 §5.1

_ICE_CHARS: Final = re.compile(r"[A-Za-z0-9+/]{1,32}")  # Source: RFC 8839 §5.1

HostPort = tuple[str, int]


class CandidateType(StrEnum):
    """The types of candidates, the most preferred first: RFC 8445 §5.1.2.2."""

    HOST = "host"
    PEER_REFLEXIVE = "prflx"
    SERVER_REFLEXIVE = "srflx"
    RELAYED = "relay"


# RFC 8445 §5.1.2.2 [type-preferences], §5.1.2.1 [peer-reflexive-before-server-reflexive]
TYPE_PREFERENCES: Final = {
    CandidateType.HOST: 126,
    CandidateType.PEER_REFLEXIVE: 110,
    CandidateType.SERVER_REFLEXIVE: 100,
    CandidateType.RELAYED: 0,
}


# Below all of UDP but its relays, as media had better not wait for lost packets: RFC 6544 §4.2
# [udp-before-tcp] [all-of-udp-before-tcp] [relays-come-last]
TCP_TYPE_PREFERENCES: Final = {
    CandidateType.HOST: 96,
    CandidateType.PEER_REFLEXIVE: 80,
    CandidateType.SERVER_REFLEXIVE: 70,
    CandidateType.RELAYED: 0,
}


class TcpType(StrEnum):
    """Which side connects, for a candidate of TCP: RFC 6544 §4.5."""

    ACTIVE = "active"
    PASSIVE = "passive"
    SIMULTANEOUS_OPEN = "so"


class TcpBase(NamedTuple):
    """Where connections leave from, or where they come to: RFC 6544 §4.1.

    The port of one that only connects is chosen for each connection.
    """

    host: str
    port: int
    type: TcpType


IceBase = HostPort | TcpBase

# RFC 6544 §4.2 [directions-by-type] [directions-from-0-to-7]
_DIRECT: Final = {TcpType.ACTIVE: 6, TcpType.PASSIVE: 4, TcpType.SIMULTANEOUS_OPEN: 2}
_REFLECTED: Final = {TcpType.ACTIVE: 4, TcpType.PASSIVE: 2, TcpType.SIMULTANEOUS_OPEN: 6}


def tcp_preference(kind: CandidateType, direction: TcpType, other: int = MAX_OTHER) -> int:
    """The local preference of a candidate of TCP: RFC 6544 §4.2."""
    is_direct = kind in (CandidateType.HOST, CandidateType.RELAYED)
    # RFC 6544 §4.2 [direction-is-in-the-preference] [others-from-0-to-8191]
    return (_DIRECT if is_direct else _REFLECTED)[direction] << 13 | max(0, other)


def priority(
    kind: CandidateType,
    preference: int = MAX_PREFERENCE,
    *,
    is_tcp: bool = False,
    component: int = COMPONENT,
) -> int:
    """The priority of a candidate, by the recommended formula: RFC 8445 §5.1.2.1."""
    # RFC 6544 §4.2 [same-formula] [types-of-tcp-are-lower]
    types = TCP_TYPE_PREFERENCES if is_tcp else TYPE_PREFERENCES
    # RFC 8445 §5.1.2.1 [priority-by-formula]
    return types[kind] << 24 | preference << 8 | 256 - component


@dataclass(frozen=True, slots=True)
class IceCandidate:
    """One candidate: RFC 8839 §5.1; `related` is its base, or where a relay sees it from.

    Parts that are not known are kept in `more`, as pairs of a name and a value.
    """

    foundation: str
    component: int
    transport: str
    priority: int
    host: str
    port: int
    type: CandidateType
    related: HostPort | None = None
    more: tuple[tuple[str, str], ...] = ()

    @property
    def address(self) -> HostPort:
        """Where its packets go: RFC 8839 §5.1."""
        return self.host, self.port

    @property
    def is_tcp(self) -> bool:
        """Whether its packets go by connections: RFC 6544 §4.5."""
        return self.transport.lower() == "tcp"

    @property
    def tcp_type(self) -> TcpType | None:
        """Which side connects, None for one of UDP and for unknown words: RFC 6544 §4.5."""
        said = next((value for name, value in self.more if name == "tcptype"), None)
        return TcpType(said) if self.is_tcp and said in _TCP_TYPES else None

    @property
    def version(self) -> int | None:
        """The version of IP, None for a name, as the hosts of browsers have it: RFC 8839 §5.1."""
        try:
            return ipaddress.ip_address(self.host).version
        except ValueError:
            return None

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the value of the attribute; RemoteError for another grammar or type."""
        words = value.split()
        if len(words) < 8 or words[6] != "typ" or len(words) % 2:
            raise RemoteError("Not a candidate of ICE")
        foundation, component, transport, priority_, host, port, _, kind, *rest = words
        if not _ICE_CHARS.fullmatch(foundation) or kind not in _TYPES:
            raise RemoteError("A candidate of another type or foundation")
        # RFC 8839 §5.1 [unknown-pairs-are-ignored]
        more = list(zip(rest[::2], rest[1::2], strict=True))
        related = _related(more)
        return cls(
            foundation,
            _number(component, 1, 256),
            transport,
            _number(priority_, 1, 0x7FFFFFFF),
            host,
            _number(port, 0, 0xFFFF),
            CandidateType(kind),
            related,
            tuple(more[2 if related else 0 :]),
        )

    def __str__(self) -> str:
        """Write the value of the attribute: RFC 8839 §5.1."""
        head = f"{self.foundation} {self.component} {self.transport} {self.priority}"
        # RFC 8839 §5.1 [others-have-related]
        related = "" if self.related is None else " raddr {} rport {}".format(*self.related)
        more = "".join(f" {name} {value}" for name, value in self.more)
        return f"{head} {self.host} {self.port} typ {self.type.value}{related}{more}"


_TYPES: Final = frozenset(each.value for each in CandidateType)
_TCP_TYPES: Final = frozenset(each.value for each in TcpType)


def _related(more: list[tuple[str, str]]) -> HostPort | None:
    """The related address, which stands first: RFC 8839 §5.1."""
    if [name for name, _ in more[:2]] != ["raddr", "rport"]:
        return None
    return more[0][1], _number(more[1][1], 0, 0xFFFF)


def _number(text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 10:
        raise RemoteError("A candidate with a number that is none")
    if not least <= int(text) <= most:
        raise RemoteError("A candidate with a number out of range")
    return int(text)
