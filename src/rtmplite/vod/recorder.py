"""Makes an FLV file of a publication, which can be played at every moment.

Implements FLV 10.1 §E.3 for the types record and append of RTMP 1.0 §7.2.2.6.  The file begins with
an onMetaData that leaves room, so a recording that is cut off still plays.  Length and size can be
written into that room at any time, the rest at the end, above all the key frames.  The recorder
gives bytes and positions; its caller writes them.

    >>> from rtmplite.flv.file import tags
    >>> recorder = Recorder()
    >>> raw = recorder.write(8, 5000, b"\\xb2sound") + recorder.write(8, 5020, b"\\xb2sound")
    >>> [tag.timestamp for tag in tags(raw)]
    [0, 0, 20]
    >>> for at, data in recorder.patches():
    ...     raw = raw[:at] + data + raw[at + len(data) :]
    >>> metadata.read(next(tags(raw)).data)["duration"]
    0.02
"""

from array import array
from typing import Final

from rtmplite.amf.values import Value
from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv import metadata
from rtmplite.flv.describe import Facts, fit, growing
from rtmplite.flv.file import framed, start
from rtmplite.flv.headers import HeaderPlaces, is_header
from rtmplite.flv.index import Index, Indexer
from rtmplite.flv.tag import HEADER_SIZE, TIMESTAMP_MASK, Tag, TagType
from rtmplite.flv.walk import PEEK

ROOM: Final = 32 * 1024  # bytes of onMetaData; some 1700 key frames, or an hour at one in two s
MAX_MEMBERS: Final = 4 * 1024  # bytes of a publisher's metadata that are kept in it
LAST: Final = (1 << 31) - 1  # ms, the latest time a tag can have, after 24.8 days: FLV 10.1 §E.4.1
MAX_NAME: Final = 100  # characters of a file name, without its ending

_HEADER: Final = len(start(True, True))
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


class Recorder:
    """One file from one publication: bytes to append, and at the end bytes to overwrite.

    Own design: times begin at 0, or, if a file is continued, after its last one; `before` is that
    file's index.  Only files of a recorder can be continued, see `can_continue`.
    """

    def __init__(self, before: Index | None = None) -> None:
        self._before = before
        self._members: dict[str, Value] = before.members if before else {}
        self._facts, self._indexer, self._headers = Facts(), Indexer(), HeaderPlaces()
        self._size = before.end if before else 0
        self._description = before.head[0].data if before and before.head else b""
        self._shift: int | None = None
        self._time: int | None = None  # of the last message, unwrapped
        if before is not None:
            self._facts.kinds = set(before.kinds)
            for tag in before.head:
                self._facts.note(tag.tag_type, tag.data)
            for position, tag in before.headers:
                self._headers.note(position, tag)

    @property
    def is_full(self) -> bool:
        """Whether the recording needs another file, near the last time: FLV 10.1 §E.4.1."""
        return self._indexer.duration > LAST - 60_000

    @property
    def duration(self) -> int:
        """The duration of the file by now, in ms."""
        return max(self._indexer.duration, self._before.duration if self._before else 0)

    @property
    def size(self) -> int:
        """The size of the file by now, in bytes."""
        return self._size

    def write(self, type_id: int, timestamp: int, payload: bytes) -> bytes:
        """Give the bytes for a message, metadata first; time in ms, wraps: FLV 10.1 §E.4.1."""
        out = b""
        if self._size == 0:
            members = _members(type_id, payload)
            self._members = members or {}
            out = self._opening()
            self._size = len(out)
            if members is not None:
                return out
        time = self._unwrap(timestamp) if type_id != TagType.SCRIPT else self._now()
        self._indexer.note(type_id, time, self._size, payload[:PEEK])
        self._facts.note(type_id, payload)
        tag = Tag(type_id, time, payload)
        if is_header(type_id, payload):
            self._headers.note(self._size, tag)
        data = framed(tag)
        self._size += len(data)
        return out + data

    def growth(self) -> list[tuple[int, bytes]]:
        """Give positions and bytes that tell the length and the size so far; none if not ours."""
        places = growing(self._description, self.duration, self._size) if self._size else []
        return [(_HEADER + HEADER_SIZE + at, data) for at, data in places]

    def patches(self) -> list[tuple[int, bytes]]:
        """Give position and bytes to write over the beginning; none before there is a file."""
        if self._size == 0:
            return []
        facts, before = self._facts, self._before
        facts.kinds |= self._indexer.kinds
        facts.duration, facts.size = self.duration, self.size
        facts.times, facts.positions = self._indexer.places
        facts.headers = [position for position, _ in self._headers.found]
        if before is not None:
            facts.times = array("q", [*before.times, *facts.times])
            facts.positions = array("q", [*before.positions, *facts.positions])
        head = start(TagType.AUDIO in facts.kinds, TagType.VIDEO in facts.kinds)
        return [(0, head[:_HEADER] + bytes(Tag(TagType.SCRIPT, 0, self._described(facts))))]

    def _opening(self) -> bytes:
        """Announce both media, since they are not known yet; players do not mind."""
        # E-RTMP v2 §"Enhancing onMetaData" [in-script-data] [never-encrypted]
        self._description = self._described(None)
        return start(True, True) + framed(Tag(TagType.SCRIPT, 0, self._description))

    def _described(self, facts: Facts | None) -> bytes:
        try:
            return fit(self._members, facts, ROOM)
        except LocalError:  # the publisher's members need more room than there is
            return fit({}, facts, ROOM)

    def _now(self) -> int:
        """The time for a data message, since many publishers give it none."""
        return max(self._indexer.duration, self._start)

    def _unwrap(self, timestamp: int) -> int:
        """Count on beyond 32 bits: RTMP 1.0 §4."""
        if self._time is None or self._shift is None:
            # FLV 10.1 §E.4.1 [begins-at-0]
            self._time, self._shift = timestamp, self._start - timestamp
        else:  # RTMP 1.0 §4 [serial-numbers]
            ahead = (timestamp - self._time) & TIMESTAMP_MASK
            self._time += ahead if ahead < 1 << 31 else ahead - (1 << 32)
        return min(max(self._time + self._shift, self._start), LAST)

    @property
    def _start(self) -> int:
        return self._before.duration + 1 if self._before else 0


def can_continue(index: Index) -> bool:
    """Own design: whether a file has our room for metadata; rewriting would take long."""
    first = index.head[0] if index.head else None
    return (
        first is not None
        and first.tag_type == TagType.SCRIPT
        and len(first.data) == ROOM
        and index.first == _HEADER
        and index.duration < LAST // 2
    )


def file_name(path: str) -> str:
    """Make a file name of a stream's name, without folder and extension.

    Own design: each byte of a character other than plain letters, digits and "-_." is written as %
    and two digits, a slash too, and so is a leading dot.  No name leads out of the folder, and
    different names stay different up to `MAX_NAME` characters.

        >>> file_name("a b"), file_name("../x"), file_name("")
        ('a%20b', '%2E.%2Fx', '%')
    """
    letters = [
        letter if letter in _PLAIN and (at or letter != ".") else _escaped(letter)
        for at, letter in enumerate(path)
    ]
    return "".join(letters)[:MAX_NAME] or "%"


def _escaped(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _members(type_id: int, payload: bytes) -> dict[str, Value] | None:
    """The members of a publisher's onMetaData, None if the message is another."""
    if type_id != TagType.SCRIPT or len(payload) > MAX_MEMBERS + HEADER_SIZE:
        return None
    try:
        found = metadata.read(payload)
    except RemoteError:
        return None
    return None if found is None else dict(found)
