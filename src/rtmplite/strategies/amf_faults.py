"""AMF0 and AMF3 that every reader must refuse.

Own design, over the grammars of AMF0 §2 and AMF3 §3.  The broken value may come after whole ones,
and may be a member of an object or an item of an array.
"""

from struct import pack
from typing import Final

from hypothesis import strategies as st

from rtmplite.amf import amf0, amf3, u29
from rtmplite.amf.values import Value
from rtmplite.strategies.faults import Fault, Octets, cut

# Few and fixed: what is drawn here is the broken value.
_WHOLE: Final[tuple[Value, ...]] = (None, 1.5, "play", [None, "a"], {"a": {"b": True}})
_TEXT: Final = st.text("aé€", min_size=1, max_size=12).map(str.encode)
_EIGHT: Final = st.binary(min_size=8, max_size=8)
_AHEAD: Final = st.integers(5000, 0xFFFF)  # an index beyond what any of these messages has


def _amf0(name: str, section: str, octets: Octets) -> Fault[bytes]:
    """Put the broken octets behind whole values, or within a container."""
    before = st.sampled_from([b"", *map(amf0.encode, _WHOLE)])
    around = st.sampled_from([b"", b"", b"\x03\x00\x01a", b"\x0a\x00\x00\x00\x01"])
    return Fault(name, f"AMF0 §{section}", st.tuples(before, around, octets).map(b"".join))


def _members(head: Octets) -> Octets:
    """A container that has names, and is not ended."""
    member = _TEXT.map(lambda name: pack(">H", len(name)) + name + b"\x05")
    return st.tuples(head, st.lists(member, max_size=3).map(b"".join)).map(b"".join)


def _counted(marker: bytes, size: str) -> Octets:
    """A text behind its length."""
    return _TEXT.map(lambda text: marker + pack(size, len(text)) + text)


def _after(marker: bytes, octets: Octets) -> Octets:
    return octets.map(marker.__add__)


_NAMED: Final = _counted(b"\x10", ">H")
_ARRAY_HEAD: Final = st.integers(0, 9).map(lambda count: b"\x08" + pack(">I", count))

AMF0_FAULTS: Final = (
    _amf0("unknown marker", "2.1", st.integers(0x12, 0xFF).map(lambda marker: bytes((marker,)))),
    _amf0("number cut", "2.2", cut(_after(b"\x00", _EIGHT), 1)),
    _amf0("boolean cut", "2.3", st.just(b"\x01")),
    _amf0("string cut", "2.4", cut(_counted(b"\x02", ">H"), 1)),
    _amf0("object not ended", "2.5", _members(st.just(b"\x03"))),
    _amf0("movie clip", "2.6", _after(b"\x04", st.binary(max_size=4))),
    _amf0("reference ahead", "2.9", _AHEAD.map(lambda index: b"\x07" + pack(">H", index))),
    _amf0("array with names not ended", "2.10", _members(_ARRAY_HEAD)),
    _amf0("end of no object", "2.11", _after(b"\x09", st.binary(max_size=4))),
    _amf0(
        "too few items",
        "2.12",
        st.integers(1, 0xFFFFFFFF).map(lambda n: b"\x0a" + pack(">I", n) + b"\x05" * min(n - 1, 9)),
    ),
    _amf0("date cut", "2.13", cut(_after(b"\x0b", st.binary(min_size=10, max_size=10)), 1)),
    _amf0("long string cut", "2.14", cut(_counted(b"\x0c", ">I"), 1)),
    _amf0("record set", "2.16", _after(b"\x0e", st.binary(max_size=4))),
    _amf0("document cut", "2.17", cut(_counted(b"\x0f", ">I"), 1)),
    _amf0("instance not ended", "2.18", _members(_NAMED)),
    _amf0("switch to nothing", "3.1", st.just(b"\x11")),
)
"""Every fault of AMF0: AMF0 §2, §3.1."""


def _amf3(name: str, section: str, octets: Octets) -> Fault[bytes]:
    before = st.sampled_from([b"", *map(amf3.encode, _WHOLE)])
    around = st.sampled_from([b"", b"", b"\x0a\x0b\x01\x03a", b"\x09\x03\x01"])
    return Fault(name, f"AMF3 §{section}", st.tuples(before, around, octets).map(b"".join))


def _sized(marker: bytes, content: Octets) -> Octets:
    """Content behind its length, the lowest bit of which says that it follows."""
    return content.map(lambda data: marker + u29.pack(len(data) << 1 | 1) + data)


def _short(marker: bytes, rest: bytes, item: bytes) -> Octets:
    """A count, more octets, and at least one item less than the count says."""
    counts = st.integers(1, u29.MAX >> 1)
    return counts.map(lambda n: marker + u29.pack(n << 1 | 1) + rest + item * min(n - 1, 9))


AMF3_FAULTS: Final = (
    _amf3(
        "integer cut",
        "1.3.1",
        st.lists(st.integers(0x80, 0xFF), max_size=3).map(lambda more: b"\x04" + bytes(more)),
    ),
    _amf3("string reference ahead", "1.3.2", _AHEAD.map(lambda n: b"\x06" + u29.pack(n << 1))),
    _amf3("unknown marker", "3.1", st.integers(0x12, 0xFF).map(lambda marker: bytes((marker,)))),
    _amf3(
        "object reference ahead",
        "2.2",
        st.tuples(st.sampled_from([7, 8, *range(9, 18)]), _AHEAD).map(
            lambda drawn: bytes((drawn[0],)) + u29.pack(drawn[1] << 1)
        ),
    ),
    _amf3("double cut", "3.7", cut(_after(b"\x05", _EIGHT), 1)),
    _amf3("string cut", "3.8", cut(_sized(b"\x06", _TEXT), 1)),
    _amf3("old document cut", "3.9", cut(_sized(b"\x07", _TEXT), 1)),
    _amf3("date cut", "3.10", cut(_after(b"\x08\x01", _EIGHT), 1)),
    _amf3("too few items", "3.11", _short(b"\x09", b"\x01", b"\x01")),
    _amf3("traits reference ahead", "3.12", _AHEAD.map(lambda n: b"\x0a" + u29.pack(n << 2 | 1))),
    _amf3("sealed member missing", "3.12", st.just(b"\x0a\x23\x01\x03a\x03b\x01")),
    _amf3(
        "members not ended",
        "3.12",
        st.integers(0, 3).map(lambda n: b"\x0a\x0b\x01" + b"\x03a\1" * n),
    ),
    _amf3("document cut", "3.13", cut(_sized(b"\x0b", _TEXT), 1)),
    _amf3("bytes cut", "3.14", cut(_sized(b"\x0c", st.binary(min_size=1, max_size=12)), 1)),
    _amf3("vector cut", "3.15", _short(b"\x0d", b"\x00", bytes(4))),
    _amf3("dictionary cut", "3.16", _short(b"\x11", b"\x00", b"\x01\x01")),
)
"""Every fault of AMF3: AMF3 §1.3.1 to §3.16."""
