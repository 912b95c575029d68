"""Typed views of a message's headers, parsed when first asked for.

Implements RFC 3261 §20, one header a property.

Most messages pass through an element that looks at four or five of their headers.  So nothing is
parsed before it is needed, and never twice, not in copies with other headers either.  A malformed
value raises RemoteError (400) from its view alone; in a list of a response it is skipped, since it
is often about somebody else, such as the Contact of another phone of a user, and nobody can be
told.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self, TypeVar

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
from p2psip.sip.known import Known
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
    """Typed headers of a message (§20); each view is kept once it is parsed, by its `headers`."""

    headers: Headers

    @property
    def _skips_unreadable(self) -> bool:
        """Whether lists leave out what cannot be read."""
        return False

    @property
    def vias(self) -> tuple[Via, ...]:
        """All hops, the latest first (§20.42).  Raises RemoteError."""
        return self._list("Via", _VIA)

    @property
    def via(self) -> Via:
        """The latest hop (§18.1.2, §18.2.1).  Raises RemoteError, also when there is none.

        The others are not read for it: a response must find its way whatever they hold.
        """
        known: tuple[Via, ...] | None = self.headers.views.get("Via")
        if known:
            return known[0]
        for line in self.headers.values("Via"):
            for value in split(line, ",", lenient=self._skips_unreadable):
                if value.strip(LWS):  # Field §"Separators too many"
                    return Via.parse(value)
        raise RemoteError("Missing Via")

    @property
    def from_(self) -> Address:
        """The caller (§20.20).  Raises RemoteError."""
        return self._one("From", _ADDRESS)

    @property
    def to(self) -> Address:
        """The callee (§20.39).  Raises RemoteError."""
        return self._one("To", _ADDRESS)

    @property
    def call_id(self) -> str:
        """The name of the call, compared octet by octet (§20.8).  Raises RemoteError."""
        return self._one("Call-ID", _call_id)

    @property
    def cseq(self) -> CSeq:
        """The number and method of the request (§20.16).  Raises RemoteError."""
        return self._one("CSeq", _CSEQ)

    @property
    def contacts(self) -> tuple[Address, ...]:
        """The URIs that reach the sender from now on (§20.10).  Raises RemoteError."""
        return self._list("Contact", _ADDRESS)

    @property
    def routes(self) -> tuple[Address, ...]:
        """The proxies still to visit (§20.34).  Raises RemoteError."""
        return self._list("Route", _ADDRESS)

    @property
    def record_routes(self) -> tuple[Address, ...]:
        """The proxies that want to see the dialog, the latest first (§20.30).

        Raises RemoteError.
        """
        return self._list("Record-Route", _ADDRESS)

    @property
    def max_forwards(self) -> int | None:
        """The number of hops left (§20.22); None from an RFC 2543 client.

        Raises RemoteError, also above 255.
        """
        hops: int | None = self.headers.views.get("Max-Forwards")
        if hops is None and "Max-Forwards" in self.headers:
            return self._one("Max-Forwards", _hops)
        return hops

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

    def _one(self, name: str, parse: Callable[[str], _T]) -> _T:
        """The value of a header that stands on one line."""
        value: _T | None = self.headers.views.get(name)
        if value is None:
            values = self.headers.values(name)
            # RFC 4475 §3.3.1 [missing-is-refused], §3.3.8 [repeated-is-refused]
            if len(values) != 1:
                # §7.3.1 [rows-of-a-list], §21.4.1 [400-says-what]
                raise RemoteError(f"{'Repeated' if values else 'Missing'} {name}")
            self.headers.views[name] = value = parse(values[0])
        return value

    def _list(self, name: str, parse: Callable[[str], _T]) -> tuple[_T, ...]:
        """The values of a list; one with values that are skipped is read each time."""
        values: tuple[_T, ...] | None = self.headers.views.get(name)
        if values is None:
            lines = self.headers.values(name)
            try:
                self.headers.views[name] = values = _read_all(lines, parse, lenient=False)
            except RemoteError:
                if not self._skips_unreadable:
                    raise
                return _read_all(lines, parse, lenient=True)
        return values


def _read_all(lines: Sequence[str], parse: Callable[[str], _T], *, lenient: bool) -> tuple[_T, ...]:
    """The values of all lines of a list, within limits."""
    values: list[_T] = []
    if len(lines) > MAX_VALUES:
        raise RemoteError("Message Too Large", 513)
    for line in lines:
        # §7.3.1 [any-mix-of-rows] [rows-combine]
        if lenient:
            values += readable(line, parse)
        else:
            values += [parse(text) for text in split_list(line)]
        if len(values) > MAX_VALUES:
            raise RemoteError("Message Too Large", 513)
    return tuple(values)


# The readers, each taken from its class once.
_VIA: Final = Via.parse
_ADDRESS: Final = Address.parse
_CSEQ: Final = Known(CSeq.parse).of


def _call_id(text: str) -> str:
    if not text or first_word(text)[1]:
        raise RemoteError("Bad Call-ID")
    return text


def _hops(text: str) -> int:
    return number(text, 255)


def seconds(text: str) -> int:
    """Read an expiry interval: a malformed or too large value counts as 3600 s (§10.2).

    >>> seconds("60"), seconds("Tue, 1 Apr"), seconds("280297596632815")
    (60, 3600, 3600)
    """
    try:
        return number(text, MAX_EXPIRES)
    except RemoteError:
        return DEFAULT_EXPIRES  # §8.2.2 [odd-values-pass]; §10.2 [malformed-is-an-hour]
