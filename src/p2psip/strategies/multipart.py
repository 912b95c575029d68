"""Bodies of several parts, valid and broken.

Implements RFC 2046 §5.1.1 in reverse, for the bodies of RFC 3261 §7.4.1.

Own design: a body comes with its Content-Type in front, as an entity of MIME, so that any reader of
MIME can be given it.
"""

from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.sip.headers import NO_HEADERS, Headers
from p2psip.sip.multipart import MAX_DEPTH, MAX_PARTS, Part, write_multipart
from p2psip.strategies.faults import by_clause

_TYPES: Final = st.sampled_from(["application/sdp", "text/plain;charset=utf-8", "application/isup"])
_BODIES: Final = st.binary(max_size=30) | st.sampled_from(
    [b"", b"\r\n", b"--b2", b"\r\n\r\n--", b"-b1", b"\r\n--", b"--"]
)
_BOUNDARIES: Final = st.sampled_from(["unique-", "=_0/x:y", "'(a)+,?.", "a" * 69])
_KINDS: Final = st.sampled_from(["multipart/mixed", "Multipart/Alternative", "multipart/x"])
_BEFORE: Final = st.sampled_from([b"", b"to be ignored\r\n", b"--\r\n", b"\r\n"])
_BEHIND: Final = st.sampled_from([b"", b"to be ignored", b"--"])
_SHAPES: Final = st.lists(st.booleans(), min_size=1, max_size=3)  # whether a part has parts


def parts() -> SearchStrategy[Part]:
    """Parts with a type of their own or without one: RFC 2046 §5.1.1."""
    typed = _TYPES.map(lambda kind: Headers([("Content-Type", kind)]))
    return st.builds(Part, st.just(NO_HEADERS) | typed, _BODIES)


@st.composite
def _several(draw: DrawFn, depth: int) -> tuple[Part, list[Part]]:
    """A part that has parts, `depth` deep at most, and the innermost ones."""
    inner: list[Part] = []
    leaves: list[Part] = []
    for is_several in draw(_SHAPES):
        part, own = draw(_several(depth - 1)) if is_several and depth > 1 else (draw(parts()), [])
        inner.append(part)
        leaves += own or [part]
    boundary = draw(_BOUNDARIES) + str(depth)
    kind = f'{draw(_KINDS)};boundary="{boundary}"'
    body = draw(_BEFORE) + write_multipart(inner, boundary) + draw(_BEHIND)
    return Part(Headers([("Content-Type", kind)]), body), leaves


def entities() -> SearchStrategy[tuple[bytes, list[Part]]]:
    """An entity, and the parts in it that have no parts themselves: RFC 2046 §5.1.1."""
    return _several(MAX_DEPTH).map(lambda pair: (_octets(pair[0]), pair[1]))


def _octets(part: Part) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in part.headers)
    return head.encode() + b"\r\n" + part.body


def _entity(parameters: str, *bodies: bytes) -> SearchStrategy[bytes]:
    head = f"Content-Type: multipart/mixed{parameters}\r\n\r\n".encode()
    return st.sampled_from([head + body for body in bodies])


_BODY: Final = b"--b\r\n\r\nx\r\n--b--"
_SPACED: Final = b"--b \r\n\r\nx\r\n--b --"
_OPEN: Final = b"--b\r\n\r\nx\r\n"

MULTIPART_FAULTS: Final = by_clause(
    {
        "RFC 2046 §5.1.1": {
            "no boundary": _entity("", _BODY) | _entity(";x=b", _BODY),
            "boundary of nothing": _entity(';boundary=""', b"--\r\n\r\nx\r\n----"),
            "boundary of 71 characters": _entity(f";boundary={'b' * 71}", _BODY, b"x"),
            "boundary that ends in a space": _entity(';boundary="b "', _SPACED),
            "boundary with a star": _entity(";boundary=b*", b"--b*\r\n\r\nx\r\n--b*--"),
            "no end": _entity(";boundary=b", _OPEN, _OPEN + b"--b", _OPEN + b"--b-"),
            "no part": _entity(";boundary=b", b"", b"x", b"-b--", b"x--b--"),
            "line without colon": _entity(
                ";boundary=b",
                b"--b\r\nx\r\n\r\n--b--",
                b"--b\r\nA: b\r\nno colon\r\n\r\nx\r\n--b--",
            ),
            "bare line feed": _entity(";boundary=b", b"--b\r\nA: b\nC: d\r\n\r\nx\r\n--b--"),
        },
    }
)
"""Every fault of a body of several parts: RFC 2046 §5.1.1."""


def _nested(depth: int) -> bytes:
    part = Part(NO_HEADERS, b"x")
    for level in range(depth):
        kind = f"multipart/mixed;boundary=b{level}"
        part = Part(Headers([("Content-Type", kind)]), write_multipart([part], f"b{level}"))
    return _octets(part)


MULTIPART_LIMITS: Final = by_clause(
    {
        "RFC 2046 §5.1.1": {
            "too many parts": _entity(
                ";boundary=b", b"--b\r\n\r\nx\r\n" * (MAX_PARTS + 1) + b"--b--"
            ),
            "parts too deep": st.just(_nested(MAX_DEPTH + 1)),
        },
    }
)
"""Bodies that are well-formed, and more than ours takes: RFC 2046 §5.1.1."""
