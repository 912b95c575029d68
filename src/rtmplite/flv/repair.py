"""Repairs files, so that one cut off by a crash or a full disk plays and seeks again.

Own design over FLV 10.1 §E.3 and FLV 10.1 §E.5.  Whole tags are kept as they are; what is between
them is dropped, the sizes after them are written anew, and onMetaData tells the truth.

    >>> from rtmplite.flv.file import MemoryFile, read_flv, write_flv
    >>> raw, out = write_flv([Tag(TagType.AUDIO, 20, b"\\xb2sound")] * 2), []
    >>> repair(MemoryFile(raw[:-7]), out.append)
    Report(tags=1, lost=14, wrong_sizes=0, duration=20)
    >>> [tag.timestamp for tag in read_flv(b"".join(out))[1]]
    [0, 20]
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.describe import Facts, describe
from rtmplite.flv.file import Source, framed, start
from rtmplite.flv.headers import HeaderPlaces, is_header
from rtmplite.flv.index import MAX_METADATA, Indexer
from rtmplite.flv.tag import HEADER_SIZE, Tag, TagType
from rtmplite.flv.walk import Step, Walk, load, load_script

_LINK: Final = 4  # FLV 10.1 §E.3
_NAME: Final = metadata.ON_METADATA.encode()


@dataclass(frozen=True, slots=True)
class Report:
    """Own design: tags kept but metadata, bytes lost, wrong sizes after tags, duration in ms."""

    tags: int
    lost: int
    wrong_sizes: int
    duration: int


def repair(source: Source, write: Callable[[bytes], object]) -> Report:
    """Give a repaired copy of `source` to `write`, piece by piece.

    Own design: the file is walked twice, since metadata stands first and tells how it ends.
    Raises RemoteError if this is no FLV file, or one that changes meanwhile.
    """
    facts, indexer, headers, at = Facts(), Indexer(), HeaderPlaces(), 0
    members: dict[str, Value] = {}
    tags = wrong = 0
    walk = Walk(source)
    for step in walk:
        wrong += not step.is_linked
        found = _metadata(source, step)
        if found is not None:
            members |= found
            continue
        indexer.note(step.tag_type, step.timestamp, at, step.peek)
        facts.note(step.tag_type, step.peek)
        if is_header(step.tag_type, step.peek):
            headers.note(at, load(source, step))
        tags, at = tags + 1, at + HEADER_SIZE + step.size + _LINK
    facts.kinds, facts.duration = indexer.kinds, indexer.duration
    head = start(TagType.AUDIO in facts.kinds, TagType.VIDEO in facts.kinds)
    facts.times, facts.positions = indexer.places
    facts.headers = [position for position, _ in headers.found]
    shift = len(head) + len(_described(members, facts))  # numbers have one length
    facts.positions = [position + shift for position in facts.positions]
    facts.headers = [position + shift for position in facts.headers]
    facts.size = shift + at
    write(head + _described(members, facts))
    for step in Walk(source):
        if _metadata(source, step) is None:
            write(framed(load(source, step)))
    return Report(tags, walk.lost, wrong, indexer.duration)


def _described(members: dict[str, Value], facts: Facts) -> bytes:
    return framed(Tag(TagType.SCRIPT, 0, describe(members, facts)))


def _metadata(source: Source, step: Step) -> dict[str, Value] | None:
    """The members of an onMetaData; an empty one where it cannot be read, None for other tags."""
    if step.tag_type in (TagType.AUDIO, TagType.VIDEO) or _NAME not in step.peek:
        return None
    if step.size > MAX_METADATA:
        return {}
    try:
        tag = load_script(source, step)
        return None if tag is None else dict(metadata.read(tag.data) or {})
    except RemoteError:
        return {}
