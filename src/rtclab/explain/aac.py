"""AAC's AudioSpecificConfig, which stands in the sequence header of FLV.

Own design: see `explain.fields.field`; the layout is that of ISO 14496-3 (its clause 1.6.2.1),
which is not in the catalogue.

    >>> field = configuration(Span.all(bytes.fromhex("1210")))
    >>> [f"{each.name} {each.value} {each.meaning}" for each in field.children][:3]
    ['object type 2 AAC LC', 'frequency index 4 44100 Hz', 'channels 2 ']
"""

from typing import Final

from rtclab.explain.fields.field import Field, Span
from rtclab.explain.fields.layout import Layout, explained

_TYPES: Final = {1: "AAC Main", 2: "AAC LC", 3: "AAC SSR", 4: "AAC LTP", 5: "SBR", 29: "PS"}
_RATES: Final = (
    *(96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350),
)
_EXPLICIT: Final = 15


def configuration(span: Span) -> Field:
    """Describe a configuration; what comes behind the channels is left as octets."""
    head = int.from_bytes(bytes(span)[:2].ljust(2, b"\0"), "big")

    def rate(index: int) -> str:
        return f"{_RATES[index]} Hz" if index < len(_RATES) else ""

    def walk(layout: Layout) -> None:
        if head >> 11 == 31 or head >> 7 & 15 == _EXPLICIT:  # of other lengths
            layout.octets("fields", meaning="of a long form")
            return
        layout.bits(
            *(2, ("object type", 5, lambda kind: _TYPES.get(kind, ""))),
            *(("frequency index", 4, rate), ("channels", 4), ("specific", 3)),
        )
        if layout.left:
            layout.octets("more")

    return explained("AAC configuration", span, None, walk)
