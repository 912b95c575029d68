"""The index of a file: its key frames by time and position, and the headers for a decoder.

Own design over FLV 10.1 §E.3; the text says nothing of an index.  What tools write into onMetaData
(Field §"Keyframes in metadata") is used if it proves true, otherwise every tag header is looked at
once.  Our own files also tell where codec headers are; in others that have an index, headers are
looked for in front of each key frame, since new video begins there, and new audio with it.  An
hour takes some hundredths of a second so, as against some seconds for all of its tags.

    >>> from rtmplite.flv.file import MemoryFile, write_flv
    >>> raw = write_flv(Tag(TagType.VIDEO, at, b"\\x12 a picture") for at in (0, 400, 800))
    >>> index = scan(MemoryFile(raw))
    >>> index.duration, index.before(500), index.after(500)
    (800, IndexPlace(timestamp=400, position=39), IndexPlace(timestamp=800, position=65))
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from rtmplite.amf.values import Value, is_number
from rtmplite.errors import RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.audio import is_sequence_header as is_audio_header
from rtmplite.flv.file import Source, first_tag
from rtmplite.flv.headers import HeaderPlaces, in_force, is_header
from rtmplite.flv.tag import HEADER_SIZE, Tag, TagType
from rtmplite.flv.video import is_key_frame
from rtmplite.flv.video import is_sequence_header as is_video_header
from rtmplite.flv.walk import Step, Walk, load, load_script

KEYFRAMES: Final = "keyframes"  # Field §"Keyframes in metadata"
TIMES: Final = "times"
POSITIONS: Final = "filepositions"
FILLER: Final = "filler"
HEADERS: Final = "headerpositions"  # Own design: where the headers are that replace others

AUDIO_STEP: Final = 1000  # ms between the places of a file without video
HEAD_TAGS: Final = 64  # how far into a file metadata and codec headers are looked for
MAX_HEADERS: Final = 256  # positions of headers in metadata
BEFORE_KEY: Final = 32  # tags in front of a key frame that are looked at, down to a frame
MAX_METADATA: Final = 1 << 20  # bytes of a script tag that we decode; a day has 43200 key frames
TOLERANCE: Final = 50  # ms between what metadata says and the tag; some tools round to 1/25 s


_HEADERS: Final = {TagType.AUDIO: is_audio_header, TagType.VIDEO: is_video_header}
_HEAD: Final = (TagType.SCRIPT, *_HEADERS)  # what players want first, in that order


class IndexPlace(NamedTuple):
    """Own design: a tag where playing can begin, by time in ms and position in bytes."""

    timestamp: int
    position: int


@dataclass(frozen=True, slots=True)
class Index:
    """Own design: the positions and times of a file that a player needs.

    `head` is the metadata and the first codec headers; `first` the position of the first tag, `end`
    that after the last whole one; `duration` the time of the last tag, in ms; `kinds` the tag
    types; `headers` all codec headers by position, empty where the file does not tell.
    """

    head: tuple[Tag, ...]
    first: int
    end: int
    duration: int
    kinds: frozenset[int]
    times: "array[int]"
    positions: "array[int]"
    headers: tuple[tuple[int, Tag], ...] = ()

    def head_at(self, position: int) -> tuple[Tag, ...]:
        """Own design: the metadata, and the codec headers that are in force at a position."""
        if not self.headers:
            return self.head
        before = [tag for at, tag in self.headers if at < position]
        return (*(tag for tag in self.head if tag.tag_type == TagType.SCRIPT), *in_force(before))

    @property
    def start(self) -> IndexPlace:
        """Own design: the first tag of the file."""
        return IndexPlace(self.times[0] if self.times else 0, self.first)

    def before(self, milliseconds: float) -> IndexPlace:
        """Own design: the last place at or before a time, else the first."""
        at = bisect_right(self.times, milliseconds) - 1
        return IndexPlace(self.times[at], self.positions[at]) if at >= 0 else self.start

    def after(self, milliseconds: float) -> IndexPlace | None:
        """Own design: the first place at or after a time."""
        at = bisect_left(self.times, milliseconds)
        return IndexPlace(self.times[at], self.positions[at]) if at < len(self.times) else None

    @property
    def members(self) -> dict[str, Value]:
        """The members of the file's onMetaData, if it has one: FLV 10.1 §E.5."""
        for tag in self.head:
            if tag.tag_type == TagType.SCRIPT:
                return dict(metadata.read(tag.data) or {})
        return {}


class Indexer:
    """Makes an index of tags given in order.  Own design: also while recording."""

    def __init__(self) -> None:
        self.kinds: set[int] = set()
        self.duration = 0
        self._video = _Places()
        self._audio = _Places()

    def note(self, tag_type: int, timestamp: int, position: int, peek: bytes) -> None:
        """Own design: take one tag; `peek` is the beginning of its body."""
        self.kinds.add(tag_type)
        if tag_type not in (TagType.AUDIO, TagType.VIDEO):
            return
        self.duration = max(self.duration, timestamp)
        if tag_type == TagType.VIDEO and is_key_frame(peek):
            self._video.add(timestamp, position, 1)
        elif tag_type == TagType.AUDIO and not is_audio_header(peek):
            self._audio.add(timestamp, position, AUDIO_STEP)

    @property
    def places(self) -> tuple["array[int]", "array[int]"]:
        """Own design: times and positions of key frames, or of some audio if there are none."""
        chosen = self._video if self._video.times else self._audio
        return chosen.times, chosen.positions


class _Places:
    """Two columns of numbers, since files may have a hundred thousand key frames."""

    def __init__(self) -> None:
        self.times, self.positions = array("q"), array("q")

    def add(self, timestamp: int, position: int, step: int) -> None:
        if not self.times or timestamp >= self.times[-1] + step:
            self.times.append(timestamp)
            self.positions.append(position)


def scan(source: Source) -> Index:
    """Make an index of every tag header: FLV 10.1 §E.4.1.  RemoteError if it is not FLV."""
    walk, indexer, head, headers = Walk(source), Indexer(), dict[int, Tag](), HeaderPlaces()
    for number, step in enumerate(walk):
        indexer.note(step.tag_type, step.timestamp, step.position, step.peek)
        if is_header(step.tag_type, step.peek):
            headers.note(step.position, load(source, step))
        if number < HEAD_TAGS:
            _note_head(head, source, step)
    return Index(
        _in_order(head),
        first_tag(source.read(0, 9)),
        walk.end,
        indexer.duration,
        frozenset(indexer.kinds),
        *indexer.places,
        tuple(headers.found),
    )


def load_index(source: Source) -> Index:
    """Give the index in the metadata if it is right, otherwise that of `scan`.

    Own design: the end of the file and three key frames are looked at, some ten reads in all; and
    what is in front of the other key frames, if the file does not tell where its headers are.
    Raises RemoteError if this is no FLV file.
    """
    walk, head, kinds, early = Walk(source), dict[int, Tag](), set[int](), dict[int, Step]()
    for number, step in enumerate(walk):
        kinds.add(step.tag_type)
        _note_head(head, source, step)
        if is_header(step.tag_type, step.peek):
            early[step.position] = step
        if number >= HEAD_TAGS or len(head) == len(_HEAD):
            break
    last = _before(source, source.size)
    columns = _columns(head.get(TagType.SCRIPT))
    if last is None or columns is None or not _proves_true(source, *columns):
        return scan(source)
    members = _members(head[TagType.SCRIPT]) or {}
    if HEADERS in members:
        headers = _told_headers(source, members[HEADERS])
    elif any(name.startswith(FILLER) for name in members):
        headers = None  # a file of ours that is older than they are
    else:
        headers = _found_headers(source, columns[1], early)
    if headers is None:
        return scan(source)
    first = first_tag(source.read(0, 9))
    duration = max(last.timestamp, columns[0][-1])
    found = frozenset(kinds)
    return Index(_in_order(head), first, source.size, duration, found, *columns, headers)


def _note_head(head: dict[int, Tag], source: Source, step: Step) -> None:
    """Keep the first metadata and the first header of each medium."""
    kind = step.tag_type if step.tag_type in _HEADERS else TagType.SCRIPT
    if kind in head:
        return
    if kind in _HEADERS:
        if _HEADERS[TagType(kind)](step.peek):
            head[kind] = load(source, step)
    elif step.size <= MAX_METADATA:
        tag = load_script(source, step)
        if tag is not None and _members(tag) is not None:
            head[kind] = tag


def _told_headers(source: Source, told: Value) -> tuple[tuple[int, Tag], ...] | None:
    """Read the headers at the positions in metadata; None if one is wrong."""
    if not isinstance(told, list) or len(told) > MAX_HEADERS:
        return None
    found = []
    for at in told:
        step = next(iter(Walk(source, int(at))), None) if is_number(at) and at >= 0 else None
        if step is None or step.position != at or not is_header(step.tag_type, step.peek):
            return None
        found.append((step.position, load(source, step)))
    return tuple(found)


def _found_headers(
    source: Source, positions: Iterable[int], early: dict[int, Step]
) -> tuple[tuple[int, Tag], ...]:
    """Look for headers in front of key frames; `early` has those at the beginning."""
    found = dict(early)
    for position in positions:
        for _ in range(BEFORE_KEY):
            step = _before(source, position)
            if step is None:
                break
            position = step.position
            if is_header(step.tag_type, step.peek):
                found[position] = step
            elif step.tag_type == TagType.VIDEO:
                break
    places = HeaderPlaces()
    for position in sorted(found):
        places.note(position, load(source, found[position]))
    return tuple(places.found)


def _in_order(head: Mapping[int, Tag]) -> tuple[Tag, ...]:
    return tuple(head[kind] for kind in _HEAD if kind in head)


def _members(tag: Tag) -> dict[str, Value] | None:
    try:
        return metadata.read(tag.data)
    except RemoteError:
        return None


def _before(source: Source, end: int) -> Step | None:
    """The tag that ends at a position, found by the size behind it: FLV 10.1 §E.3."""
    size = int.from_bytes(source.read(end - 4, 4), "big")
    start = end - 4 - size
    if size < HEADER_SIZE or start < 0:
        return None
    step = next(iter(Walk(source, start)), None)
    return step if step is not None and step.end == end else None


def _columns(tag: Tag | None) -> "tuple[array[int], array[int]] | None":
    """Read `keyframes`; None unless both lists have as many rising numbers."""
    keyframes = (_members(tag) or {}).get(KEYFRAMES) if tag is not None else None
    if not isinstance(keyframes, dict):
        return None
    times, positions = keyframes.get(TIMES), keyframes.get(POSITIONS)
    if not isinstance(times, list) or not isinstance(positions, list):
        return None
    if not times or len(times) != len(positions):
        return None
    if not all(is_number(n) and 0 <= n < 1 << 52 for n in [*times, *positions]):
        return None
    columns = (
        array("q", (round(seconds * 1000) for seconds in times)),  # type: ignore[operator, arg-type]
        array("q", map(int, positions)),  # type: ignore[arg-type]
    )
    rises = all(one < two for column in columns for one, two in pairwise(column))
    return columns if rises else None


def _proves_true(source: Source, times: "array[int]", positions: "array[int]") -> bool:
    """Whether the first, middle and last entries are key frames; tools put headers among them."""
    for at in {0, len(times) // 2, len(times) - 1}:
        step = next(iter(Walk(source, positions[at])), None)
        if step is None or step.position != positions[at] or step.tag_type != TagType.VIDEO:
            return False
        if not is_key_frame(step.peek) and not (at == 0 and is_video_header(step.peek)):
            return False
        if abs(step.timestamp - times[at]) > TOLERANCE:
            return False
    return True
