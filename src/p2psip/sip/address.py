"""Addresses in headers: From, To, Contact, Route, Record-Route and the like.

Implements RFC 3261 §20.10, §20.20, §20.30, §20.34 and §20.39, with `name-addr` of §25.1.

    >>> bob = Address.parse('"Bob" <sip:bob@biloxi.example.com;lr>;tag=a6c85cf')
    >>> bob.display, bob.uri.user, bob.tag
    ('Bob', 'bob', 'a6c85cf')
"""

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Final, Self

from p2psip.errors import RemoteError
from p2psip.sip.grammar import LWS, quote, split, split_list, text_of, unquote
from p2psip.sip.known import Known
from p2psip.sip.params import Params, find, parse_params, put, write_params
from p2psip.sip.uri import Uri

# What may stand before a "<" without quotes: tokens, and bare letters beyond ASCII, which many
# phones write and which harm nobody.
_TOKENS: Final = re.compile(r"[A-Za-z0-9\-.!%*_+`'~ \t\u0080-\U0010ffff]*+")
# What phones write there as well, such as "Bell, A. (home)": RFC 4475 §3.1.2.15 lets us see quotes.
_UNQUOTED: Final = re.compile(r'[^"<>\\\x00-\x08\x0a-\x1f\x7f]*+')
_QUOTED: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"[ \t]*+', re.DOTALL)
# Field §"Quotes within quotes"
_DOUBLED: Final = re.compile(r'""([^"<>\\\x00-\x08\x0a-\x1f\x7f]++)""[ \t]*+')


@dataclass(frozen=True, slots=True, init=False)
class Address:
    """A URI with a display name and header parameters (§25.1 `name-addr`, `addr-spec`).

    `display` is unquoted; `params` keep their quotes, and `param` takes them off.
    """

    uri: Uri
    display: str = ""
    params: Params = ()

    def __init__(
        self,
        uri: Uri,
        display: str = "",
        params: Params = (),
    ) -> None:
        object.__setattr__(self, "uri", uri)
        object.__setattr__(self, "display", display)
        object.__setattr__(self, "params", params)

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> "Address":
        """Read one address, or the "*" of a Contact (§25.1).

        Raises RemoteError; also where a bare URI would need brackets: without them the
        parameters are the header's, and a question mark is refused (§20.10).
        """
        return _KNOWN.of(text_of(data).strip(LWS))

    @classmethod
    def _read(cls, text: str) -> Self:
        """Read an address that is not known yet (§25.1)."""
        if text == "*":
            return cls(Uri("", opaque="*"))
        first, *rest = split(text, ";")
        # RFC 4475 §3.1.1.6 [name-beside-the-bracket]
        display, bracket, tail = _cut_at_bracket(first)
        if bracket == "<":
            spec, _, junk = tail.partition(">")
            if doubled := _DOUBLED.fullmatch(display):
                display = doubled[1]
            elif not (_UNQUOTED.fullmatch(display) or _QUOTED.fullmatch(display)):
                raise RemoteError("Bad Address")
            if junk:
                raise RemoteError("Bad Address")
        elif "?" in first or "," in first:
            # RFC 4475 §3.1.2.13 [question-needs-brackets]
            raise RemoteError("Address Needs Angle Brackets")
        else:
            display, spec = "", first  # §20 [bare-uri-without-parameters]
        # §20 [unknown-parameters-ignored]
        # RFC 4475 §3.3.12 [contact-parameter], §3.3.13 [uri-parameter]
        return cls(Uri.parse(spec), unquote(display.strip(LWS)), parse_params(rest) if rest else ())

    @classmethod
    def parse_list(cls, data: bytes | memoryview | str) -> "tuple[Address, ...]":
        """Read a comma-separated list (§7.3.1).  Raises RemoteError."""
        return tuple(cls.parse(value) for value in split_list(text_of(data)))

    def __str__(self) -> str:
        if self.is_star:
            return "*"
        display = quote(self.display) + " " if self.display else ""
        # §20 [brackets-are-written], §20.10 [brackets-are-written], §20.20 [brackets-are-written]
        return f"{display}<{self.uri}>{write_params(self.params)}"

    @property
    def is_star(self) -> bool:
        """Whether this is the Contact that stands for all bindings (§10.2.2)."""
        return not self.uri.scheme and self.uri.opaque == "*"

    @property
    def tag(self) -> str | None:
        """The tag, which names this side in a dialog; None before there is one (§19.3)."""
        return find(self.params, "tag")

    @property
    def instance(self) -> str | None:
        """The device that a contact names, None if it names none: RFC 5626 §4.1.

        Without the brackets, and in lower case, since a UUID means the same in capitals.
        """
        return (self.param("+sip.instance") or "").strip("<> ").lower() or None

    def with_tag(self, tag: str) -> Self:
        """Return a copy with this tag (§19.3)."""
        return self.with_param("tag", tag)

    def param(self, name: str) -> str | None:
        """Return a header parameter, unquoted; "" if it has no value, None if absent (§7.3.1)."""
        return find(self.params, name)

    def with_param(self, name: str, value: str | None) -> Self:
        """Return a copy with a header parameter set (§7.3.1)."""
        return self.replace(params=put(self.params, name, value))

    def replace(self, **fields: Any) -> Self:
        """Return a copy with other fields, by `dataclasses.replace` (§25.1)."""
        return dataclasses.replace(self, **fields)


def with_quotes(value: str) -> str:
    """Mend the quotes of a display name, and change nothing else: RFC 4475 §3.1.2.15.

    A proxy must not repeat the error of a sender.

    >>> print(with_quotes("Bell, A. <sip:a.g.bell@example.com>;tag=43"))
    "Bell, A." <sip:a.g.bell@example.com>;tag=43
    """
    return _MENDED.of(value)


def _with_quotes(value: str) -> str:
    display, bracket, rest = _cut_at_bracket(value)
    if not bracket or _TOKENS.fullmatch(display) or _QUOTED.fullmatch(display):
        return value
    if doubled := _DOUBLED.fullmatch(display):
        display = doubled[1]
    return f"{quote(display.strip(LWS))} <{rest}"


def _cut_at_bracket(text: str) -> tuple[str, str, str]:
    """Part a name-addr around its "<", which a quoted display name may hold as well."""
    if not text.startswith('"'):
        return text.partition("<")
    found = _DOUBLED.match(text) or _QUOTED.match(text)
    end = found.end() if found else 0
    return text[:end], text[end : end + 1], text[end + 1 :]


_KNOWN: Final = Known(Address._read)
_MENDED: Final = Known(_with_quotes)
STAR: Final = Address(Uri("", opaque="*"))  # "Contact: *": §10.2.2
