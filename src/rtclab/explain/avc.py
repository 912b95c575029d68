"""H.264 itself: NAL units, parameter sets, and the record that FLV keeps them in.

Own design: see `explain.fields.field`.  The names of the types are those of ITU-T H.264, which is
not in the catalogue.

    >>> field = unit(Span.all(bytes.fromhex("6742c00cda0507ec0440000003004000000603c50aa8")))
    >>> field.value, [f"{each.name} {each.value}" for each in field.children][:3]
    ('sequence parameter set', ['F 0', 'NRI 3', 'type 7'])
    >>> field.children[-1].meaning
    '320x240, profile 66, level 12'
"""

from typing import Final

from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import REFUSALS, Layout, explained
from rtmplite.flv.avc import PPS, SPS, AvcConfig, SequenceParameters, pps_ids, split_units

_NAMES: Final = {
    1: "slice",
    2: "data partition A",
    3: "data partition B",
    4: "data partition C",
    5: "slice of a key picture",
    6: "supplemental enhancement information",
    SPS: "sequence parameter set",
    PPS: "picture parameter set",
    9: "access unit delimiter",
    10: "end of sequence",
    11: "end of stream",
    12: "filler",
}


def kind_name(kind: int) -> str:
    """Name a type of NAL unit."""
    return _NAMES.get(kind, "")


def unit(span: Span) -> Field:
    """Describe one NAL unit."""
    kind = span.data[span.start] & 0x1F if len(span) else 0
    of = SequenceParameters if kind == SPS else None
    parse = SequenceParameters.parse if kind == SPS else pps_ids if kind == PPS else None
    return explained("NAL unit", span, parse, unit_walk, of)


def unit_walk(layout: Layout) -> str:
    """Walk through a NAL unit; the value is the name of its type."""
    _, _, kind = layout.bits(1, ("F", 1), ("NRI", 2), ("type", 5, kind_name))
    data = bytes(layout.span)
    said = ""
    try:
        if kind == SPS:
            read = SequenceParameters.parse(data)
            said = f"{read.width}x{read.height}, profile {read.profile}, level {read.level}"
        elif kind == PPS:
            said = "set {}, of sequence set {}".format(*pps_ids(data))
    except REFUSALS:
        pass
    if layout.left:
        layout.octets("content", meaning=said)
    return kind_name(kind)


def record(span: Span) -> Field:
    """Describe an AVCDecoderConfigurationRecord."""

    def walk(layout: Layout) -> None:
        layout.number("version", 1)
        layout.number("profile", 1)
        layout.number("compatibility", 1, show="#04x")
        layout.number("level", 1, lambda level: f"level {level / 10:g}")
        layout.bits(1, ("reserved", 6), ("length size", 2, "octets of a NAL unit's length, less 1"))
        _, count = layout.bits(1, ("reserved", 3), ("sequence parameter sets", 5))
        for name in ("", "picture parameter sets"):
            count = layout.number(name, 1) if name else count
            for _ in range(count):
                size = layout.number("size", 2)
                layout.add(unit(layout.take(size)))
        if layout.left:
            layout.octets("extension", meaning="chroma format and depths")

    return explained("AVC record", span, AvcConfig.parse, walk, AvcConfig)


def units(span: Span, length_size: int = 4) -> Field:
    """Describe NAL units, each after its length."""

    def walk(layout: Layout) -> None:
        while layout.left:
            if size := layout.number("length", length_size):
                layout.add(unit(layout.take(size)))

    def parse(data: bytes) -> object:
        return split_units(data, length_size)

    return explained("NAL units", span, parse, walk, split_units)
