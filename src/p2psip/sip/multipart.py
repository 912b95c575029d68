"""Bodies of several parts: multipart/mixed and its kin.

Implements RFC 2046 §5.1.1, for the bodies of RFC 3261 §7.4.1.

Departs from RFC 2046 §5.1.1 [prefix-is-enough]: a line that goes on after the boundary is none of
ours, since the boundary of an inner body may begin with that of the outer one.

    >>> parts = parse_multipart(
    ...     'multipart/mixed; boundary="x y"',
    ...     b"--x y\\r\\nContent-Type: text/plain\\r\\n\\r\\nhello\\r\\n"
    ...     b"--x y\\r\\n\\r\\nbare\\r\\n--x y--",
    ... )
    >>> [(part.content_type, part.body) for part in parts]
    [('text/plain', b'hello'), ('', b'bare')]
    >>> parse_multipart("multipart/mixed;boundary=z", write_multipart(parts, "z")) == parts
    True
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.grammar import LWS, bytes_of, split
from p2psip.sip.headers import NO_HEADERS, Headers
from p2psip.sip.message import unfold
from p2psip.sip.message_limits import check_head
from p2psip.sip.params import find, parse_params

MAX_PARTS: Final = 16  # Own design: of one body, and of each part that has parts itself
MAX_DEPTH: Final = 4  # Own design: the deepest seen in use has two

# RFC 2046 §5.1.1 [boundary-is-named]
_BOUNDARY: Final = re.compile(r"[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a body: its headers, maybe none, and its octets (RFC 2046 §5.1.1)."""

    headers: Headers = NO_HEADERS
    body: bytes = b""

    @property
    def content_type(self) -> str:
        """`type/subtype` in lower case without parameters; "" when none is given.

        RFC 3261 §20.15.
        """
        return media_type(self.headers.get("Content-Type", ""))


def media_type(value: str) -> str:
    """The `type/subtype` of a Content-Type, in lower case (RFC 3261 §20.15)."""
    return value.partition(";")[0].strip(LWS).lower()


def is_multipart(content_type: str) -> bool:
    """Whether a body of this Content-Type has parts (RFC 3261 §7.4.1)."""
    # RFC 2046 §5.1.1 [one-syntax]
    return media_type(content_type).startswith("multipart/")


def parse_multipart(content_type: str, body: bytes | memoryview) -> tuple[Part, ...]:
    """Cut a body at the boundary that its Content-Type names (RFC 2046 §5.1.1).

    Raises RemoteError without a boundary, without its last line, or for more than `MAX_PARTS`.
    """
    mark = re.escape(bytes_of(_boundary(content_type)))
    # RFC 2046 §5.1.1 [delimiter-begins-a-line] [spaces-behind-a-delimiter]
    # RFC 2046 §5.1.1 [preamble-is-ignored]
    lines = re.compile(rb"(?:\A|\r\n)--" + mark + rb"(--)?[ \t]*+(?=\r\n|\Z)")
    parts: list[Part] = []
    body = bytes(body)
    start: int | None = None
    for found in lines.finditer(body):
        if start is not None:  # RFC 2046 §5.1.1 [crlf-is-the-delimiters]
            parts.append(_part(body[start : found.start()]))
        if found[1]:
            return tuple(parts)
        if len(parts) >= MAX_PARTS:
            raise RemoteError("Too Many Body Parts")
        start = found.end()
    raise RemoteError("Body Parts Without End")


def write_multipart(parts: Sequence[Part], boundary: str) -> bytes:
    """Join parts by a boundary of the caller's choice (RFC 2046 §5.1.1).

    Raises LocalError for a boundary that is none, or that stands at a line's begin in a part.
    """
    if not _BOUNDARY.fullmatch(boundary) or not parts:
        raise LocalError(f"{boundary!r} is no boundary, or there is no part")
    delimiter = b"--" + bytes_of(boundary)
    pieces: list[bytes] = []
    for part in parts:
        head = "".join(f"{name}: {value}\r\n" for name, value in part.headers)
        piece = bytes_of(head) + b"\r\n" + part.body
        # RFC 2046 §5.1.1 [boundary-not-inside]
        is_whole = head.count("\n") == head.count("\r") == len(part.headers)
        if not is_whole or b"\r\n" + delimiter in b"\r\n" + piece:
            raise LocalError("a part that cannot be told from its boundary")
        pieces.append(delimiter + b"\r\n" + piece + b"\r\n")
    return b"".join([*pieces, delimiter, b"--\r\n"])


def leaves(content_type: str, body: bytes | memoryview, depth: int = MAX_DEPTH) -> Iterator[Part]:
    """All parts that have no parts themselves, in order (RFC 2046 §5.1.1).  Raises RemoteError."""
    for part in parse_multipart(content_type, body):
        if not is_multipart(part.content_type):
            yield part
        elif depth > 1:
            yield from leaves(part.headers["Content-Type"], part.body, depth - 1)
        else:
            raise RemoteError("Body Parts Too Deep")


def _boundary(content_type: str) -> str:
    _, *parameters = split(content_type, ";")
    boundary = find(parse_params(parameters), "boundary") or ""
    if not is_multipart(content_type) or not _BOUNDARY.fullmatch(boundary):
        raise RemoteError("Body Parts Without Boundary")
    return boundary


def _part(octets: bytes) -> Part:
    """Read what stands between two delimiters; it begins with the end of the first one's line."""
    if octets.startswith(b"\r\n\r\n") or not octets:
        return Part(NO_HEADERS, octets[4:])
    head, _, body = octets[2:].partition(b"\r\n\r\n")
    check_head(head)
    return Part(Headers.parse_lines(unfold(head)), body)
