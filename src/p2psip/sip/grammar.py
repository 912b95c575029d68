"""The smallest pieces of SIP's grammar: tokens, quoted strings, lists, numbers, hosts.

Implements RFC 3261 §25.1.

Everything here takes and gives `str`.  Octets become text by UTF-8 with surrogate
escapes, so that a header in some older encoding passes through unchanged.  Every
pattern is possessive or a single character class: no input makes one backtrack.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from ipaddress import AddressValueError, IPv6Address
from typing import Final, TypeVar

from p2psip.errors import RemoteError
from p2psip.sip.known import Known

_T = TypeVar("_T")

MAX_VALUES: Final = 72  # of one header, all lines; Max-Forwards starts at 70: §8.1.1.6

LWS: Final = " \t"  # white space once lines are unfolded; Unicode has more that is not

# RFC 4475 §3.1.1.5 [percent-is-a-letter]
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-.!%*_+`'~]++")
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9._\-]++")  # "_": not in the grammar, common in practice
_QUOTED: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TO_ESCAPE: Final = re.compile(r'["\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f]')  # all but `qdtext`
_PAIR: Final = re.compile(r"\\(.)", re.DOTALL)
# What a separator may hide in, or the separator itself; an open quote or bracket runs to the end.
# The look-ahead lets the search run to the next of them at one go.
_SKIP: Final = {
    separator: re.compile(
        rf'(?=["<{separator}])(?:"(?:[^"\\]++|\\.)*+("?)|<[^>]*+(>?)|{separator})', re.DOTALL
    )
    for separator in ",;"
}


def text_of(data: bytes | memoryview | str) -> str:
    """Decode octets as UTF-8, without loss: RFC 3261 §7.3.1 makes opaque values UTF-8."""
    # RFC 3261 §7 [utf-8]
    return data if isinstance(data, str) else bytes(data).decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Encode, inverse to `text_of` (RFC 3261 §7.3.1); UnicodeEncodeError for other surrogates."""
    return text.encode("utf-8", "surrogateescape")


def is_token(text: str) -> bool:
    """Whether `text` is a `token`: §25.1."""
    return _TOKENS.of(text)


def _is_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


_TOKENS: Final = Known(_is_token)


def is_quoted(text: str) -> bool:
    """Whether `text` is one whole `quoted-string`: §25.1."""
    return _QUOTED.fullmatch(text) is not None


def quote(text: str) -> str:
    """Write `text` as a `quoted-string` (§25.1).

    >>> print(quote('Bob "the builder"'))
    "Bob \\"the builder\\""
    """
    return '"' + _TO_ESCAPE.sub(r"\\\g<0>", text) + '"'


def unquote(text: str) -> str:
    """Read a `quoted-string` (§25.1); any other text is returned as it is."""
    if text[:1] != '"' or not is_quoted(text):
        return text
    # §25.1 [escapes-in-quotes]
    return _PAIR.sub(r"\1", text[1:-1]) if "\\" in text else text[1:-1]


def split(text: str, separator: str, *, lenient: bool = False) -> list[str]:
    """Cut at each "," or ";" that is outside of quotes and angle brackets (§7.3.1).

    Pieces lose their outer white space and may be empty.  Raises RemoteError when a
    quote or bracket never closes, where the last piece begins if `lenient`; and for more than
    `MAX_VALUES` pieces.
    """
    if '"' not in text and "<" not in text:
        if text.count(separator) >= MAX_VALUES:
            raise RemoteError("Message Too Large", 513)
        return [piece.strip(LWS) for piece in text.split(separator)]
    if separator not in text and '"' not in text and text.rfind("<") < text.rfind(">"):
        return [text.strip(LWS)]  # one value, as most are
    pieces: list[str] = []
    start = 0
    for found in _SKIP[separator].finditer(text):
        if found[0] == separator:
            pieces.append(text[start : found.start()].strip(LWS))
            start = found.end()
        elif found[1] == "" or found[2] == "":
            if lenient:
                break
            raise RemoteError("Unbalanced Quotes")  # RFC 4475 §3.1.2.6 [open-quote-refused]
        if len(pieces) >= MAX_VALUES:
            raise RemoteError("Message Too Large", 513)
    pieces.append(text[start:].strip(LWS))
    return pieces


def split_list(text: str) -> list[str]:
    """Split a comma-separated header into its values (§7.3.1).

    Empty headers and a comma at the end are forgiven: Field §"Separators too many".  Raises
    RemoteError where `split` does, and for any other empty value: RFC 4475 §3.1.2.1.
    """
    values = split(text, ",")
    if not values[-1]:
        values.pop()
    if "" in values:
        # RFC 4475 §3.1.2.1 [empty-values-refused]
        raise RemoteError("Empty Header Value")
    return values


def readable(text: str, parse: Callable[[str], _T]) -> list[_T]:
    """Parse the values of a comma-separated header that can be parsed, and skip the others.

    Own design: for responses, where there is nobody to tell.

    >>> readable('7, x, 8, ", 9', lambda value: number(value, 9))
    [7, 8]
    """
    values: list[_T] = []
    for value in split(text, ",", lenient=True):
        with suppress(RemoteError):
            values.append(parse(value))
    return values


def first_word(text: str) -> tuple[str, str]:
    """Split at the first white space: the word before it, and the rest (§25.1 `LWS`)."""
    word, _, rest = text.strip(LWS).partition(" ")
    if "\t" in word:
        word, _, rest = text.strip(LWS).partition("\t")
    return word, rest.lstrip(LWS)


def number(text: str, maximum: int) -> int:
    """Read a decimal number up to `maximum`; leading zeros are fine (RFC 4475 §3.1.1.1).

    Raises RemoteError for anything else, without ever converting a huge text.
    """
    digits = text.lstrip("0") or text[-1:]  # RFC 4475 §3.1.1.1 [tortuous-is-read]
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(maximum)):
        # RFC 4475 §3.1.2.3 [negative-length-refused] [never-negative] [no-negative-index]
        # RFC 4475 §3.1.2.4 [huge-number-refused]
        raise RemoteError("Bad Number")
    if (value := int(digits)) > maximum:
        raise RemoteError("Number Out Of Range")
    return value


def host_port(text: str) -> tuple[str, int | None]:
    """Read `hostport` of §25.1: the host in lower case, IPv6 without brackets, and the port.

    White space around the colon, which Via allows, is tolerated; a caller who must not
    allow it checks first.  The three colons of RFC 5118 §4.10 are read as two.
    """
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        rest = rest.strip(LWS)
        host = _ipv6(host) if closed and rest[:1] in ("", ":") else ""
        # RFC 5118 §4.3 [port-outside-brackets], §4.9 [port-of-a-mapped-one]
        colon, port = rest[:1], rest[1:].strip(LWS)
    else:
        host, colon, port = text.partition(":")
        host, port = host.rstrip(LWS).lower(), port.lstrip(LWS)
        host = host if _HOST_NAME.fullmatch(host) else ""
    if not host:
        raise RemoteError("Bad Host")
    # RFC 5118 §4.2 [no-brackets-refused]: the colons would be the port's
    return host, number(port, 65535) if colon else None


def bracketed(host: str) -> str:
    """Write `host` as in a URI or Via: an IPv6 address gets brackets (§25.1)."""
    return f"[{host}]" if ":" in host else host


def _ipv6(text: str) -> str:
    text = text.lower().replace(":::", "::")  # RFC 5118 §4.10 [three-colons-read]
    try:
        IPv6Address(text)  # RFC 5118 §4.9 [mapped-is-read]
    except AddressValueError as error:
        raise RemoteError("Bad IPv6 Address") from error
    if "%" in text:  # a zone has a meaning on its own machine alone
        raise RemoteError("Bad IPv6 Address")
    return text
