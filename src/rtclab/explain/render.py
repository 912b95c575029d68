"""Prints the tree of fields: a line for each as text, or JSON.

Own design: a line has the position, the octets (of a part of an octet its bits), name, value and
meaning, and where they are new, section and class.  Positions in a buffer that was decrypted or
put together begin with a plus sign.  Keys of SRTP in a description are stars, as an output is
passed on more often than a capture: they open what was said.

    >>> inner = Field("version", 0, 1, "2", "of RTP", bits=(0, 2))
    >>> root = Field("packet", 0, 2, children=(inner,), source=Source("RFC 3550 §5.1", "p.Packet"))
    >>> print("\\n".join(text_lines(root, b"\\x81\\x00")))
         0  81 00                    packet  -- RFC 3550 §5.1, p.Packet
         0  10.. ....                  version = 2  (of RTP)
    >>> as_json(root, b"\\x81\\x00")["fields"][0]["bits"]
    [0, 2]
    >>> hidden(b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:c2VjcmV0|2^20")
    b'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:********|2^20'
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from rtclab.explain.fields.field import Field, plain
from rtclab.explain.fields.source import Fault, Source

SHOWN: Final = 8  # octets of a line
_WIDTH: Final = 3 * SHOWN
_KEY: Final = re.compile(rb"(?<=inline:)[^\s|;]+", re.IGNORECASE)


def hidden(octets: bytes) -> bytes:
    """Write stars for the keys of `a=crypto` attributes: RFC 4568 §8."""
    return _KEY.sub(lambda found: b"*" * len(found[0]), octets)


def text_lines(field: Field, data: bytes) -> Iterator[str]:
    """Yield the lines of a tree over the buffer `data`."""
    waiting: list[tuple[Field, bytes, int, int, Source | None]] = [
        (field, hidden(data), 0, 0, None)
    ]
    while waiting:
        each, buffer, depth, made, above = waiting.pop()
        indent = "  " * depth
        octets = "" if each.is_part else octets_of(each, buffer)
        shown = f"{_place(each, made)}  {octets:<{_WIDTH}}"
        yield f"{shown} {indent}{_said(each, above)}"
        if each.fault is not None:
            yield f"{'':8}{'':{_WIDTH}} {indent}^ error: {_fault(each.fault)}"
        inner = buffer if each.octets is None else hidden(each.octets)
        source = each.source or above
        more = made + (each.octets is not None)
        before = [source, *(child.source for child in each.children)]
        waiting.extend(
            (child, inner, depth + 1, more, _known(child, source, last))
            for child, last in reversed(list(zip(each.children, before, strict=False)))
        )


def _known(field: Field, above: Source | None, before: Source | None) -> Source | None:
    """The source that needs no mention: that of the whole, or of the piece before."""
    return before if field.source is not None and field.source == before else above


def _place(field: Field, made: int) -> str:
    return f"{'+' * made}{field.start}".rjust(6)


def octets_of(field: Field, data: bytes) -> str:
    """Write the octets of a field in hexadecimal, or its bits, within `SHOWN` octets."""
    if field.bits is not None and field.end - field.start == 1:
        first, width = field.bits
        written = f"{data[field.start]:08b}"
        marks = "".join(
            each if first <= at < first + width else "." for at, each in enumerate(written)
        )
        return f"{marks[:4]} {marks[4:]}"
    shown = data[field.start : min(field.end, field.start + SHOWN)].hex(" ")
    if field.end - field.start <= SHOWN:
        return shown
    return shown[:-2] + ".."


def _said(field: Field, above: Source | None) -> str:
    value = f" = {plain(_hidden(field.value))}" if field.value else ""
    meaning = f"  ({plain(field.meaning)})" if field.meaning else ""
    source = ""
    if field.source is not None and field.source != above:
        source = "  -- " + ", ".join(filter(None, (field.source.citation, field.source.name)))
    return f"{plain(field.name)}{value}{meaning}{source}"


def _hidden(text: str) -> str:
    return hidden(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _fault(fault: Fault) -> str:
    where = ", ".join(filter(None, (fault.citation, fault.name)))
    return plain(fault.reason) + (f"  -- {where}" if where else "")


def as_json(field: Field, data: bytes) -> dict[str, Any]:
    """Make a tree of plain values; octets are in hexadecimal, and only where nothing is within."""
    return _tree(field, hidden(data))


def _tree(field: Field, data: bytes) -> dict[str, Any]:
    inner = data if field.octets is None else hidden(field.octets)
    shown: dict[str, Any] = {"name": field.name, "start": field.start, "end": field.end}
    if field.bits is not None:
        shown["bits"] = list(field.bits)
    if not field.children and not field.is_part:
        shown["octets"] = data[field.start : field.end].hex()
    if field.value:
        shown["value"] = _hidden(field.value)
    if field.meaning:
        shown["meaning"] = field.meaning
    if field.source is not None:
        shown["section"], shown["class"] = field.source.citation, field.source.name
    if field.fault is not None:
        fault = field.fault
        shown["error"] = {
            "reason": fault.reason,
            "section": fault.citation,
            "function": fault.name,
        }
    if field.octets is not None:
        shown["made"] = inner.hex()
    if field.children:
        shown["fields"] = [_tree(each, inner) for each in field.children]
    return shown
