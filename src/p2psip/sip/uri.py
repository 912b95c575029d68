"""SIP, SIPS and tel URIs: a user, and the host to ask for that user.

Implements RFC 3261 §19.1 and the URIs of §25.1.

    >>> uri = Uri.parse("sip:%61lice@Example.COM:5070;transport=tcp;lr")
    >>> uri.user, uri.host, uri.port, uri.param("transport"), uri.param("lr")
    ('alice', 'example.com', 5070, 'tcp', '')
    >>> print(uri.without_params("lr").replace(port=None))
    sip:alice@example.com;transport=tcp

User, password, parameters and headers are held unescaped, and escaped again when
written: `%` has no other meaning here, and is undone exactly once (RFC 4475 §3.1.1.3).
"""

import dataclasses
import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any, Final, Self
from urllib.parse import quote

from p2psip.errors import RemoteError
from p2psip.sip.grammar import MAX_VALUES, bracketed, bytes_of, host_port, text_of
from p2psip.sip.known import Known
from p2psip.sip.params import MAX_PARAMS, Params, drop, find, without_empty_end

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+\-.]*+")
_NEVER_IN_A_URI: Final = re.compile(r'[\x00-\x20"<>\x7f]')
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")

# Characters that stand for themselves beside letters, digits and "_.-~": §25.1.
_MARK: Final = "!*'()"
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]*+")
_USER_SAFE: Final = _MARK + "&=+$,;?/"
_PASSWORD_SAFE: Final = _MARK + "&=+$,"
_PARAM_SAFE: Final = _MARK + "[]/:&+$"
_HEADER_SAFE: Final = _MARK + "[]/?:+$"

# Parameters whose presence alone tells two URIs apart: §19.1.4 and its examples.
_TELLING: Final = ("user", "ttl", "method", "maddr", "transport")


@dataclass(frozen=True, slots=True, init=False)
class Uri:
    """A URI of any scheme; only sip, sips and tel are looked into (§19.1.1).

    `host` is in lower case and without brackets; `port` is None unless written.  For tel
    the number is in `opaque` and in `user`; any other scheme is all `opaque`, and as written.

    Departs from RFC 3261 §19.1.1 [user-not-empty]: an empty user is read, and written as it came,
    since phones without a number write it.
    """

    scheme: str = "sip"
    user: str | None = None
    password: str | None = None
    host: str = ""
    port: int | None = None
    params: Params = ()
    headers: tuple[tuple[str, str], ...] = ()
    opaque: str = ""

    def __init__(
        self,
        scheme: str = "sip",
        user: str | None = None,
        password: str | None = None,
        host: str = "",
        port: int | None = None,
        params: Params = (),
        headers: tuple[tuple[str, str], ...] = (),
        opaque: str = "",
    ) -> None:
        object.__setattr__(self, "scheme", scheme)
        object.__setattr__(self, "user", user)
        object.__setattr__(self, "password", password)
        object.__setattr__(self, "host", host)
        object.__setattr__(self, "port", port)
        object.__setattr__(self, "params", params)
        object.__setattr__(self, "headers", headers)
        object.__setattr__(self, "opaque", opaque)

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> "Uri":
        """Read one URI without surrounding white space or brackets (§25.1).

        Raises RemoteError when it is not one.
        """
        return _KNOWN.of(text_of(data))

    @classmethod
    def _read(cls, text: str) -> Self:
        """Read a URI that is not known yet (§25.1)."""
        scheme, colon, rest = text.partition(":")
        # §7.1 [no-spaces-in-the-uri] [no-brackets-around-the-uri]
        if not (colon and rest and _SCHEME.fullmatch(scheme)) or _NEVER_IN_A_URI.search(text):
            # §19.1.2 [no-space]; RFC 4475 §3.1.2.14 [spaces-in-a-uri-refused]
            raise RemoteError("Bad URI")
        written, scheme = scheme, scheme.lower()
        if scheme in ("sip", "sips"):  # §8.1.1.2 [sip-uris] [sips-uris]
            return cls._parse_sip(scheme, rest)
        if scheme == "tel":  # RFC 3966 §3
            subscriber, *params = rest.split(";")
            number = _unescape(subscriber)
            return cls(scheme, user=number, params=_parse_params(params), opaque=number)
        # RFC 3261 §8.2.2.1 [any-to]
        # RFC 4475 §3.3.4 [any-scheme-is-read], §3.3.2 [unknown-scheme-is-read]
        # RFC 4475 §3.3.3 [odd-scheme-is-read]
        return cls(written, opaque=rest)  # RFC 4475 §3.3.4 [any-scheme-is-read]

    @classmethod
    def _parse_sip(cls, scheme: str, rest: str) -> Self:
        # A user may hold ";" and "?" but never "@": RFC 4475 §3.1.1.9.  "sip:@host", which phones
        # without a number write, has an empty user.
        userinfo, at, tail = rest.partition("@")
        user, colon, password = userinfo.partition(":") if at else ("", "", "")
        tail, question, headers = (tail if at else rest).partition("?")
        hostport, *params = tail.split(";")
        host, port = host_port(hostport)  # §19.1.2 [host-as-it-is]
        return cls(
            scheme,
            _unescape(user) if at else None,
            _unescape(password) if colon else None,
            host,
            port,
            _parse_params(params) if params else (),
            _parse_headers(headers) if question else (),
        )

    def __str__(self) -> str:
        # RFC 3966 §3 [escaped-in-values]; RFC 3986 §2.1 [capital-hex], §2.2 [conflicts-are-escaped]
        # RFC 3986 §2.2 [reserved-is-escaped]
        params = "".join(
            [
                f";{_escape(name, _PARAM_SAFE)}"
                + ("" if value is None else f"={_escape(value, _PARAM_SAFE)}")
                for name, value in self.params
            ]
        )
        if self.scheme == "tel":
            # RFC 3966 §3 [delimiters-stand]
            return f"tel:{_escape(self.opaque, _PARAM_SAFE)}{params}"
        if self.opaque:
            return f"{self.scheme}:{self.opaque}" if self.scheme else self.opaque
        user = ""
        if self.user is not None:
            # §19.1.2 [rest-is-escaped] [escaped-in-numbers]
            user = _escape(self.user, _USER_SAFE)  # §25.1 [numbers-are-escaped]
            if self.password is not None:
                user += ":" + _escape(self.password, _PASSWORD_SAFE)
            user += "@"
        port = "" if self.port is None else f":{self.port}"
        headers = "&".join(  # §19.1.2 [escaped-in-headers]
            f"{_escape(name, _HEADER_SAFE)}={_escape(value, _HEADER_SAFE)}"
            for name, value in self.headers
        )
        question = "?" if headers else ""
        return f"{self.scheme}:{user}{bracketed(self.host)}{port}{params}{question}{headers}"

    def __bytes__(self) -> bytes:
        return bytes_of(str(self))

    def param(self, name: str) -> str | None:
        """Return a URI parameter: "" when it has no value, None when absent (§19.1.1)."""
        return find(self.params, name)

    @property
    def is_gruu(self) -> bool:
        """Whether it leads to one device of a user, from anywhere: RFC 5627 §4.5."""
        return self.scheme in ("sip", "sips") and self.param("gr") is not None

    def with_params(self, **values: str | None) -> Self:
        """Return a copy with these parameters set; None sets one without a value (§19.1.1)."""
        kept = drop(self.params, *values)  # §19.1.1 [no-param-twice]
        return self._with(kept + tuple(values.items()))

    def without_params(self, *names: str) -> Self:
        """Return a copy without these parameters (§19.1.1)."""
        params = drop(self.params, *names)
        return self if len(params) == len(self.params) else self._with(params)

    def _with(self, params: Params) -> Self:
        """A copy with these parameters; `replace` takes six times as long."""
        cls, place = type(self), (self.user, self.password, self.host, self.port)
        return cls(self.scheme, *place, params, self.headers, self.opaque)

    def replace(self, **fields: Any) -> Self:
        """Return a copy with other fields, by `dataclasses.replace` (§19.1)."""
        return dataclasses.replace(self, **fields)


_KNOWN: Final = Known(Uri._read)


def equivalent(a: Uri, b: Uri) -> bool:
    """Whether two URIs name the same resource by the rules of §19.1.4.

    >>> equivalent(Uri.parse("sip:carol@chicago.com"), Uri.parse("sip:carol@Chicago.com;new=5"))
    True
    """
    if (a.scheme.lower(), a.user, a.password, a.port, a.opaque) != (
        (b.scheme.lower(), b.user, b.password, b.port, b.opaque)
    ) or not _same_host(a.host, b.host):
        return False
    mine, yours = ({k.lower(): (v or "").lower() for k, v in uri.params} for uri in (a, b))
    # RFC 5627 §5.4 [different-devices-differ]
    if any(mine[name] != yours[name] for name in mine.keys() & yours.keys()):
        return False
    if any((name in mine) != (name in yours) for name in _TELLING):
        return False
    return _header_set(a) == _header_set(b)  # §19.1.4 [same-headers]


def _same_host(a: str, b: str) -> bool:
    """Names in any capitals; IPv6 addresses in any spelling."""
    if ":" in a and ":" in b:
        return IPv6Address(a) == IPv6Address(b)
    return a.lower() == b.lower()


def _header_set(uri: Uri) -> list[tuple[str, str]]:
    return sorted((name.lower(), value) for name, value in uri.headers)


def _escape(text: str, safe: str) -> str:
    if _UNRESERVED.fullmatch(text):  # most are, and this is four times as fast
        return text
    return quote(text, safe, errors="surrogateescape")


def _unescape(text: str) -> str:
    if "%" not in text:
        return text
    if _BAD_ESCAPE.search(text):
        raise RemoteError("Bad Escape In URI")
    # RFC 4475 §3.1.1.3 [escapes-are-read] [escape-is-its-letter]
    # RFC 4475 §3.1.1.4 [escaped-zeros-are-read] [zero-ends-nothing]
    data, read, at = bytes_of(text), bytearray(), 0
    while (escape := data.find(b"%", at)) >= 0:
        read += data[at:escape]
        at = escape + 3
        read.append(int(data[escape + 1 : at], 16))
    return text_of(bytes(read + data[at:]))


def _parse_params(pieces: list[str]) -> Params:
    if len(pieces) > MAX_PARAMS:
        raise RemoteError("Too Many Parameters")
    params: list[tuple[str, str | None]] = []
    for piece in without_empty_end(pieces):
        name, equals, value = piece.partition("=")
        if not name:
            raise RemoteError("Bad URI Parameter")
        # §19.1.1 [unknown-ignored]
        params.append((_unescape(name), _unescape(value) if equals else None))
    return tuple(params)


def _parse_headers(text: str) -> tuple[tuple[str, str], ...]:
    pieces = text.split("&", MAX_VALUES)
    if len(pieces) > MAX_VALUES:
        raise RemoteError("Too Many URI Headers")
    headers = []
    for piece in pieces:
        name, equals, value = piece.partition("=")
        if not (name and equals):
            raise RemoteError("Bad URI Header")
        headers.append((_unescape(name), _unescape(value)))
    return tuple(headers)
