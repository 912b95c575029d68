"""Typed views of a message's headers, parsed when first asked for.

Implements RFC 3261 §20, one header a property.

Most messages pass through an element that looks at four or five of their headers, so
nothing is parsed before it is needed, and never twice.  A malformed value raises
RemoteError (400) from its view alone; in a list of a response it is skipped, since it is often
about somebody else, such as the Contact of another phone of a user, and nobody can be told.
"""

from collections.abc import Callable
from functools import cached_property
from typing import ClassVar, Final, NamedTuple, Self, TypeVar

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.grammar import (
    LWS,
    MAX_VALUES,
    first_word,
    is_token,
    number,
    readable,
    split,
    split_list,
    text_of,
)
from p2psip.sip.headers import Headers
from p2psip.sip.via import Via

MAX_CSEQ: Final = 2**32 - 1  # what a receiver takes: §20.16
MAX_EXPIRES: Final = 2**32 - 1  # s: §20.19
DEFAULT_EXPIRES: Final = 3600  # s, what a malformed interval counts as: §10.2

_T = TypeVar("_T")


class CSeq(NamedTuple):
    """A request's number in its dialog, and its method (§20.16)."""

    number: int
    method: str

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> Self:
        """Read a CSeq value; raises RemoteError (§20.16)."""
        digits, method = first_word(text_of(data))
        if not is_token(method):
            raise RemoteError("Bad CSeq")
        return cls(number(digits, MAX_CSEQ), method)  # §20.16 [number-of-32-bits]

    def __str__(self) -> str:
        return f"{self.number} {self.method}"


class Views:
    """Typed headers of a message (§20); each view is kept once it is parsed."""

    headers: Headers
    _skips_unreadable: ClassVar[bool] = False  # in lists

    @cached_property
    def vias(self) -> tuple[Via, ...]:
        """All hops, the latest first (§20.42).  Raises RemoteError."""
        return tuple(self._parse_all("Via", Via.parse))

    @cached_property
    def via(self) -> Via:
        """The latest hop (§18.1.2, §18.2.1).  Raises RemoteError, also when there is none.

        The others are not read for it: a response must find its way whatever they hold.
        """
        known: tuple[Via, ...] | None = self.__dict__.get("vias")
        if known and not self._skips_unreadable:
            return known[0]
        for line in self.headers.values("Via"):
            for value in split(line, ",", lenient=self._skips_unreadable):
                if value.strip(LWS):  # Field §"Separators too many"
                    return Via.parse(value)
        raise RemoteError("Missing Via")

    @cached_property
    def from_(self) -> Address:
        """The caller (§20.20).  Raises RemoteError."""
        return Address.parse(self._only("From"))

    @cached_property
    def to(self) -> Address:
        """The callee (§20.39).  Raises RemoteError."""
        return Address.parse(self._only("To"))

    @cached_property
    def call_id(self) -> str:
        """The name of the call, compared octet by octet (§20.8).  Raises RemoteError."""
        value = self._only("Call-ID")
        if not value or first_word(value)[1]:
            raise RemoteError("Bad Call-ID")
        return value

    @cached_property
    def cseq(self) -> CSeq:
        """The number and method of the request (§20.16).  Raises RemoteError."""
        return CSeq.parse(self._only("CSeq"))

    @cached_property
    def contacts(self) -> tuple[Address, ...]:
        """The URIs that reach the sender from now on (§20.10).  Raises RemoteError."""
        return tuple(self._parse_all("Contact", Address.parse))

    @cached_property
    def routes(self) -> tuple[Address, ...]:
        """The proxies still to visit (§20.34).  Raises RemoteError."""
        return tuple(self._parse_all("Route", Address.parse))

    @cached_property
    def record_routes(self) -> tuple[Address, ...]:
        """The proxies that want to see the dialog, the latest first (§20.30).

        Raises RemoteError.
        """
        return tuple(self._parse_all("Record-Route", Address.parse))

    @cached_property
    def max_forwards(self) -> int | None:
        """The number of hops left (§20.22); None from an RFC 2543 client.

        Raises RemoteError, also above 255.
        """
        if "Max-Forwards" not in self.headers:
            return None
        return number(self._only("Max-Forwards"), 255)

    @property
    def content_type(self) -> str:
        """`type/subtype` in lower case without parameters; "" when none is given (§20.15)."""
        # RFC 4475 §3.3.6 [unknown-type-is-read]
        return self.headers.get("Content-Type", "").partition(";")[0].strip(LWS).lower()

    @property
    def expires(self) -> int | None:
        """The expiry in seconds (§20.19), `DEFAULT_EXPIRES` if malformed, None if absent."""
        value = self.headers.get("Expires")
        return None if value is None else seconds(value)

    def _only(self, name: str) -> str:
        values = self.headers.values(name)
        # RFC 4475 §3.3.1 [missing-is-refused], §3.3.8 [repeated-is-refused]
        if len(values) != 1:
            # §7.3.1 [rows-of-a-list], §21.4.1 [400-says-what]
            raise RemoteError(f"{'Repeated' if values else 'Missing'} {name}")
        return values[0]

    def _parse_all(self, name: str, parse: Callable[[str], _T]) -> list[_T]:
        values: list[_T] = []
        lines = self.headers.values(name)
        if len(lines) > MAX_VALUES:
            raise RemoteError("Message Too Large", 513)
        for line in lines:
            # §7.3.1 [any-mix-of-rows] [rows-combine]
            if self._skips_unreadable:
                values += readable(line, parse)
            else:
                values += map(parse, split_list(line))
            if len(values) > MAX_VALUES:
                raise RemoteError("Message Too Large", 513)
        return values


def seconds(text: str) -> int:
    """Read an expiry interval: a malformed or too large value counts as 3600 s (§10.2).

    >>> seconds("60"), seconds("Tue, 1 Apr"), seconds("280297596632815")
    (60, 3600, 3600)
    """
    try:
        return number(text, MAX_EXPIRES)
    except RemoteError:
        return DEFAULT_EXPIRES  # §8.2.2 [odd-values-pass]; §10.2 [malformed-is-an-hour]
