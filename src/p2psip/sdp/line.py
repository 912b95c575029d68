"""The lines of a session description: one value for each type letter that has a form.

Implements RFC 8866 §5, with the grammar of §9.

    >>> Connection.parse("IN IP4 233.252.0.1/127/3")
    Connection(network_type='IN', address_type='IP4', address='233.252.0.1', ttl=127, count=3)
    >>> str(Attribute("rtpmap", "97 speex/16000")), str(Attribute("sendonly"))
    ('rtpmap:97 speex/16000', 'sendonly')

`parse` takes what stands behind the `=`, and `str` gives it back.
"""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError

_WORD: Final = re.compile(r"[^ ]++")
MAX_DIGITS: Final = 40  # Own design: §9 leaves numbers unbounded, real ones have 20 digits at most


@dataclass(frozen=True, slots=True)
class Origin:
    """The maker of this description, and its version: §5.2 (the `o=` line)."""

    username: str = "-"
    session_id: int = 0
    version: int = 0
    network_type: str = "IN"
    address_type: str = "IP4"
    address: str = "127.0.0.1"

    def __post_init__(self) -> None:
        if " " in self.username:  # §5.2 [username-without-space]
            raise LocalError("a user name in SDP has no space")

    @classmethod
    def at(cls, host: str, session_id: int, username: str = "-") -> Self:
        """Make the first version for a session at `host`, below 2**62: §5.2, RFC 3264 §5."""
        return cls(username, session_id, session_id, address_type=address_type(host), address=host)

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the value of an `o=` line, or raise RemoteError: §5.2.

        Own design: spaces in the user name, which must not be there, become underscores, and
        numbers below zero, which phones make of large ones, are read as large ones again.
        """
        match words(value):
            case [*names, session_id, version, network, kind, address] if names:
                name = "_".join(names)
                ids = _large(session_id), _large(version)
                return cls(name, *ids, network.upper(), kind.upper(), address)
        raise RemoteError("Bad o= line")

    def __str__(self) -> str:
        """Write the value of an `o=` line: §5.2."""
        return (
            f"{self.username} {self.session_id} {self.version}"
            f" {self.network_type} {self.address_type} {self.address}"
        )


@dataclass(frozen=True, slots=True)
class Connection:
    """Where media goes: §5.7 (a `c=` line); `ttl` and `count` are for multicast."""

    network_type: str
    address_type: str
    address: str
    ttl: int | None = None
    count: int = 1

    @classmethod
    def to(cls, host: str) -> Self:
        """Name a unicast address of this host: §5.7."""
        return cls("IN", address_type(host), host)  # §5.7 [no-slash-for-unicast]

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the value of a `c=` line, or raise RemoteError: §5.7.

        One number after an IP4 address is a time to live, after an IP6 address a count.
        """
        match words(value):
            case [network, kind, where]:
                address, *numbers = where.split("/")
                network, kind = network.upper(), kind.upper()  # some phones write "in ip4"
            case _:
                raise RemoteError("Bad c= line")
        match [number(text) for text in numbers]:
            case []:
                return cls(network, kind, address)
            case [count] if kind == "IP6":  # §5.7 [no-ttl-for-ip6]
                return cls(network, kind, address, None, count)
            case [ttl]:
                return cls(network, kind, address, ttl)
            case [ttl, count] if kind != "IP6":  # §5.7 [no-ttl-for-ip6]
                return cls(network, kind, address, ttl, count)
        raise RemoteError("Bad c= line")

    def __str__(self) -> str:
        """Write the value of a `c=` line: §5.7."""
        ttl = "" if self.ttl is None else f"/{self.ttl}"
        count = "" if self.count == 1 else f"/{self.count}"
        return f"{self.network_type} {self.address_type} {self.address}{ttl}{count}"


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A ceiling on the traffic: §5.8; `value` is in kilobits per second for CT and AS."""

    kind: str
    value: int

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the value of a `b=` line, or raise RemoteError: §5.8.

        Own design: of "AS:64.5", which some phones write, a part of a kilobit is dropped.
        """
        kind, _, amount = value.partition(":")
        whole, dot, part = amount.strip(" ").partition(".")
        if dot:
            number(part)
        return cls(kind, number(whole))

    def __str__(self) -> str:
        """Write the value of a `b=` line: §5.8."""
        return f"{self.kind}:{self.value}"


@dataclass(frozen=True, slots=True)
class Timing:
    """When the session is active: §5.9, with its `r=` (§5.10) and `z=` (§5.11) lines as text.

    Seconds since 1900; 0 and 0 mean at any time, as calls do (RFC 3264 §5).
    """

    start: int = 0  # RFC 3264 §5 [active-at-any-time]
    stop: int = 0
    repeats: tuple[str, ...] = ()
    zone: str = ""

    @classmethod
    def parse(cls, value: str) -> Self:
        """Read the value of a `t=` line, or raise RemoteError: §5.9."""
        match words(value):
            case [start, stop]:
                return cls(number(start), number(stop))
        raise RemoteError("Bad t= line")

    def lines(self) -> Iterator[str]:
        """Write the `t=`, `r=` and `z=` lines: §5.9."""
        yield f"t={self.start} {self.stop}"
        yield from (f"r={repeat}" for repeat in self.repeats)
        if self.zone:
            yield f"z={self.zone}"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A property (`value` is None) or a named value: §5.13 (an `a=` line)."""

    name: str
    value: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the value of an `a=` line, or raise RemoteError: §5.13.

        Spaces around the name, which must not be there, are dropped.
        """
        name, colon, value = text.partition(":")
        if not (name := name.strip(" ")):
            raise RemoteError("Bad a= line")
        return cls(name, value if colon else None)

    def __str__(self) -> str:
        """Write the value of an `a=` line: §5.13."""
        return self.name if self.value is None else f"{self.name}:{self.value}"


Attributes = tuple[Attribute, ...]


def find_all(attributes: Attributes, name: str) -> Iterator[str]:
    """The values of an attribute, trimmed: §5.13, Field §"Descriptions with something amiss"."""
    # §5 [unknown-attribute-ignored] and §5.13 [not-understood-ignored]
    return (
        (attribute.value or "").strip(" ") for attribute in attributes if attribute.name == name
    )


def number(text: str) -> int:
    """Read the digits of a number, or raise RemoteError: §9."""
    if len(text) <= MAX_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    raise RemoteError("Bad number in SDP")


def _large(text: str) -> int:
    """Read a number that a phone may have written as one below zero: 64 bits with a sign."""
    if not text.startswith("-"):
        return number(text)
    return -number(text[1:]) % 2**64


def address_type(host: str) -> str:
    """Give "IP6" for an IPv6 address, else "IP4", which a domain name may have too: §5.7."""
    return "IP6" if ":" in host else "IP4"


def is_unspecified(host: str) -> bool:
    """Whether this is 0.0.0.0, a hold (RFC 3264 §8.4), or its twin: Field §"Hold by address"."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def is_multicast(host: str) -> bool:
    """Say whether this is a numeric multicast address: §5.7."""
    try:
        return ipaddress.ip_address(host).is_multicast
    except ValueError:
        return False


def words(value: str) -> list[str]:
    """Split at spaces, forgiving a run of them or one at the end: §9."""
    return _WORD.findall(value)


def reaches(host: str, remote: str) -> bool:
    """Tell whether media can go from `host` to `remote`: addresses of one family, and no name.

    Not done: RFC 8866 §5.7: a name in "c=", which would have a stranger make us ask the DNS.
    """
    if "%" in remote:
        return False  # a zone of the peer's machine, not of ours
    try:
        return ipaddress.ip_address(host).version == ipaddress.ip_address(remote).version
    except ValueError:
        return False


def in_reach(host: str, where: Connection | None) -> bool:
    """Whether `host` is of the family of a `c=` line: Field §"Media by the other family"."""
    if where is None or is_unspecified(where.address):
        return True
    return where.address_type == address_type(host)
