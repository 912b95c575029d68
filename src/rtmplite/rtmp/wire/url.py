"""Splits the URLs that operators, servers that redirect, and web services give.

Own design: the one place that takes a URL apart.  The standard library raises ValueError for what
is none, some of it only when a part is asked for, and the system's resolver for a name that cannot
be one; here everything is looked at once, and LocalError says what is wrong.

    >>> split("rtmp://ann:secret@[::1]:1936/live/demo?key=x").host
    '::1'
    >>> split("rtmp://[::1/live")
    Traceback (most recent call last):
    rtmplite.errors.LocalError: rtmp://[::1/live is no URL: Invalid IPv6 URL
"""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from rtmplite.errors import LocalError

MAX_URL: Final = 8192  # letters; those in use have some hundred
MAX_HOST: Final = 255  # letters of a name, the limit of DNS


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL: RFC 3986 §3.

    Own design: `port` is None where none is written, `authority` is without the user, and all but
    the user and the password stand as they are written.
    """

    scheme: str
    host: str
    port: int | None
    authority: str
    path: str
    query: str
    fragment: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)


def split(text: str) -> Url:
    """Split a URL, or a part of one: RFC 3986 §3.  LocalError if it is none."""
    if len(text) > MAX_URL:
        raise LocalError(f"a URL of {len(text)} letters")
    try:
        text.encode()  # a lone surrogate can be sent to nobody
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        check_host(host)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError as error:
        shown = text.encode(errors="backslashreplace").decode()
        raise LocalError(f"{shown} is no URL: {_why(error)}") from None
    authority = parts.netloc.rpartition("@")[2]
    return Url(
        parts.scheme, host, port, authority, parts.path, parts.query, parts.fragment, user, password
    )


def join(base: str, reference: str) -> str:
    """Resolve a relative reference: RFC 3986 §5.  LocalError if it is none, or has no base."""
    if split(reference).scheme:
        return reference
    scheme, _, rest = base.partition(":")
    try:
        return scheme + urljoin("http:" + rest, reference).removeprefix("http")
    except ValueError as error:
        raise LocalError(f"{reference} is no URL: {_why(error)}") from None


def check_host(host: str) -> None:
    """ValueError for a name that the resolver cannot encode.  Own design: it raises no OSError."""
    if len(host) > MAX_HOST or not host.isprintable() or " " in host:
        raise ValueError("no name of a host")
    if ":" not in host:
        host.encode("idna")


def _why(error: ValueError) -> str:
    if isinstance(error, UnicodeError):
        return "no name of a host"
    return str(error)
