"""The fields of a finding's octets, as `rtclab explain` prints them, with the one in question.

Own design: a report is read on a terminal, so each case has a dozen lines.  Where there are more
fields, those are printed that differ or are wrong, with the fields around and within them.

    >>> packet = bytes.fromhex("800000070000000000000000")
    >>> [line[:45] for line in lines("rtp", packet, ("sequence",)) if ">" in line]
    ['     2  00 07                      > sequence']
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from rtclab.explain import avc, flv, rtmfp, rtmp, sdp
from rtclab.explain.fields.context import Context, Describer
from rtclab.explain.fields.field import Field, Span
from rtclab.explain.guess import PROTOCOLS
from rtclab.explain.render import text_lines

MAX_LINES: Final = 12
_NAMES: Final = 33  # where the names of fields begin in a line, or their indentation
_ERROR: Final = re.compile(r" *\^ error: ")
_MARK: Final = re.compile(r" *> ")
_SIGNS: Final = re.compile(r"[-_]")
_OTHERS: Final[Mapping[str, Describer]] = {
    "flv-tag": flv.tag,
    "enhanced-audio": flv.audio,
    "enhanced-video": flv.video,
    "rtmp": rtmp.chunks,
    "rtmfp": rtmfp.packet,
    "ice-candidate": lambda span, context: sdp.candidate(span),
    "h264-config": lambda span, context: avc.record(span),
    "h264-sps": lambda span, context: avc.unit(span),
}


def lines(codec: str, octets: bytes, place: Sequence[str]) -> Iterator[str]:
    """Print some `MAX_LINES` fields; an arrow stands before the name of those at `place`.

    The first of them is never left out, nor is the first that is wrong.  A single line is no
    shorter when it is counted, and stays.
    """
    describe = _OTHERS.get(codec) or PROTOCOLS[codec]
    field = describe(Span.all(octets), Context())
    marked = {id(each) for each in _found(field, place)}
    wanted = marked | {id(each) for each in field.walk() if each.fault is not None}
    is_long = sum(1 for _ in field.walk()) > MAX_LINES
    shown = list(text_lines(_cut(field, marked, wanted if is_long else set()), octets))
    marks = [at for at, line in enumerate(shown) if _MARK.match(line, _NAMES)][:1]
    errors = [at for at, line in enumerate(shown) if _ERROR.match(line, _NAMES)][:1]
    first = dict.fromkeys([*marks, *errors, *(at - 1 for at in errors), *range(len(shown))])
    kept = set(list(first)[:MAX_LINES])
    for is_kept, run in groupby(enumerate(shown), lambda each: each[0] in kept):
        part = [line for _, line in run]
        yield from part if is_kept or len(part) == 1 else [f"   ... and {len(part)} more"]


def _found(field: Field, place: Sequence[str]) -> list[Field]:
    """Follow the names of members as far as fields have them; no fields where none has."""
    found, named = [field], False
    for name in place:
        inner = [each for around in found for each in around.walk() if _is(each, name)]
        found, named = inner or found, named or bool(inner)
    return found if named else []


def _is(field: Field, member: str) -> bool:
    """Whether a field has the name of a member; that of a stream of SDP has its kind behind it."""
    name = _SIGNS.sub(" ", field.name.lower())
    return member == name.partition(" ")[0] == "media" or name == _SIGNS.sub(" ", member)


def _cut(field: Field, marked: set[int], wanted: set[int]) -> Field:
    """Mark the fields, and leave out those that are neither wanted nor around or within one."""
    kept = [each for each in field.children if wanted & set(map(id, each.walk()))]
    return replace(
        field,
        name=f"> {field.name}" if id(field) in marked else field.name,
        children=tuple(_cut(each, marked, wanted) for each in kept or field.children),
    )
