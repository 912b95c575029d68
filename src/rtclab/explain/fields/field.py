"""The tree that explains octets: what stands where, what it means, and what is wrong with it.

Own design: the describers around this room make the tree, and two renderers print it.  A describer
does not read a protocol a second time: the codec does, and says what is wrong, while the describer
tells which octets the codec took each value from.

    >>> flags = Field("version", 0, 1, "2", bits=(0, 2))
    >>> packet = Field("packet", 0, 3, children=(flags, Field("payload", 1, 3)))
    >>> [each.name for each in packet.walk()], flags.span
    (['packet', 'version', 'payload'], (0, 2))
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rtclab.explain.fields.source import Fault, Source

MAX_TEXT = 120  # characters of a value that are kept


@dataclass(frozen=True, slots=True)
class Field:
    """One piece of a buffer, octets `start` up to `end`, and the pieces within it.

    `bits` are those bits alone: how many of the octets' bits are skipped, and how many are taken.
    With `octets` the children are not pieces of this buffer but of that one, which was made of
    this field: decrypted, or put together.  A part of what is put together elsewhere may begin or
    end within a secret, so that its octets are not printed.
    """

    name: str
    start: int
    end: int
    value: str = ""
    meaning: str = ""
    source: Source | None = None
    children: tuple["Field", ...] = ()
    bits: tuple[int, int] | None = None
    fault: Fault | None = None
    octets: bytes | None = None
    is_part: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """The field's first bit in the buffer, and the bit behind its last."""
        if self.bits is None:
            return 8 * self.start, 8 * self.end
        first = 8 * self.start + self.bits[0]
        return first, first + self.bits[1]

    def walk(self) -> Iterator["Field"]:
        """Yield this field and all within it, in order."""
        waiting = [self]
        while waiting:
            each = waiting.pop()
            yield each
            waiting.extend(reversed(each.children))

    def faults(self) -> Iterator[Fault]:
        """Yield what is wrong, in order."""
        return (each.fault for each in self.walk() if each.fault is not None)


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a buffer that is to be explained."""

    data: bytes
    start: int
    end: int

    @classmethod
    def all(cls, data: bytes) -> "Span":
        """Span a whole buffer."""
        return cls(data, 0, len(data))

    def __bytes__(self) -> bytes:
        return self.data[self.start : self.end]

    def __len__(self) -> int:
        return self.end - self.start

    def part(self, start: int, end: int | None = None) -> "Span":
        """Give a part; positions are those of the buffer, and kept within this span."""
        end = self.end if end is None else max(self.start, min(end, self.end))
        return Span(self.data, max(self.start, min(start, end)), end)


def counted(number: int, noun: str) -> str:
    """Write how many there are.

    >>> counted(0, "packet"), counted(1, "packet"), counted(2, "packet")
    ('no packets', '1 packet', '2 packets')
    """
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def plain(text: str) -> str:
    """Make a text fit for a terminal, and no longer than `MAX_TEXT`."""
    shown = text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "..."
    if shown.isprintable():
        return shown
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in shown)
