"""Access units out of NAL units, however many slices each has and wherever the marker is.

Implements RFC 6184 §5.1, with the losses of §5.8.

The marker ends an access unit, which spares the wait for the next one, but a receiver may not rely
on it: it gets lost, some senders never set it, and some set it on every slice (Field §"Markers of
pictures").  So the first access unit waits for the next timestamp, and so do all, once a slice that
does not begin an access unit has come behind a marker.

Where packets are lost between two access units, a key frame is whole if its beginning has come: a
unit that only begins access units, or the slice with their first macroblock.

    >>> assembler = AccessUnitAssembler()
    >>> sps, first, second = b"\\x67", b"\\x65\\x88", b"\\x65\\x42"
    >>> [assembler.push(NalUnit(each, 3000, each is second)) for each in (sps, first, second)]
    [[], [], []]
    >>> assembler.push(NalUnit(b"\\x41\\x88", 6000, True))
    [AccessUnit(units=(b'g', b'e\\x88', b'eB'), timestamp=3000, damaged=False), \
AccessUnit(units=(b'A\\x88',), timestamp=6000, damaged=False)]
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from p2psip.rtp.payload.h264_unpacker import MAX_UNIT_OCTETS, H264Damage, NalUnit

SLICES: Final = range(1, 6)  # types of NAL units, data partitions included: §5.2 Table 1
IDR: Final = 5  # the type of a slice that needs no access unit before it
OPENING: Final = (7, 9)  # types of what stands before all slices: §5.2 Table 1, SPS and delimiter
MAX_UNITS: Final = 4096  # of one access unit, Own design: memory must be bounded
MAX_OCTETS: Final = MAX_UNIT_OCTETS


@dataclass(frozen=True, slots=True)
class AccessUnit:
    """The NAL units of one timestamp: §5.1; `damaged` if some of it, or before it, is missing."""

    units: tuple[bytes, ...]
    timestamp: int
    damaged: bool

    @property
    def is_key(self) -> bool:
        """Whether a decoder can begin here: a slice is of an IDR picture, §5.3."""
        return any(unit[0] & 0x1F == IDR for unit in self.units)


class AccessUnitAssembler:
    """Puts NAL units together, and marks the access units of which some are missing: §5.1."""

    _access_unit: ClassVar[type[AccessUnit]] = AccessUnit

    def __init__(self) -> None:
        self._units: list[bytes] = []
        self._timestamp: int | None = None  # of the access unit that is being put together
        self._octets = 0
        self._damaged = self._has_slice = self._marked = False
        self._is_behind_loss = self._has_begun = False  # packets lost before it; its beginning
        self._last: int | None = None  # the timestamp of the access unit before
        self._trusts: bool | None = None  # the marker; None as long as none was put to the test

    def push(self, item: NalUnit | H264Damage) -> list[AccessUnit]:
        """Take what `H264Unpacker` gives; the access units that it completes: §5.1."""
        out: list[AccessUnit] = []
        if isinstance(item, H264Damage):
            self._damage(item, out)
            return out
        if item.timestamp != self._timestamp:  # §5.1 [marker-is-a-hint]
            self._finish(out)
            self._timestamp = item.timestamp
        unit = item.data
        if not self._has_slice:
            self._has_begun |= self._opens(unit)
        if self._is_slice(unit):
            self._slice(unit)
        self._octets += len(unit)
        if len(self._units) < MAX_UNITS and self._octets <= MAX_OCTETS:
            self._units.append(unit)
        else:
            self._damaged = True
        if item.last and self._has_slice:
            self._marked = True
            if self._trusts:
                self._finish(out)  # §5.1 [marker-on-last]
        return out

    @property
    def is_between(self) -> bool:
        """Whether the next one begins anew, and ends with its marker: §5.1."""
        return self._timestamp is None and bool(self._trusts)

    def went_on(self, timestamp: int) -> None:
        """Follow whole access units of another assembler, the last one of this time: §5.1."""
        self._last = timestamp

    @staticmethod
    def _is_slice(unit: bytes) -> bool:
        return unit[0] & 0x1F in SLICES

    @staticmethod
    def _opens(unit: bytes) -> bool:
        """Whether a NAL unit only comes where an access unit begins."""
        return unit[0] & 0x1F in OPENING

    @staticmethod
    def _begins(unit: bytes) -> bool:
        """Whether a slice is the first one of its access unit."""
        return len(unit) > 1 and bool(unit[1] & 0x80)

    def _slice(self, unit: bytes) -> None:
        """Look at the number of its first macroblock, 0 where an access unit begins."""
        if self._marked:
            self._trusts = False  # §5.1 [marker-is-a-hint]
        elif not self._has_slice and not self._begins(unit):
            if self._last is None:
                self._damaged = True  # the stream was joined within an access unit
            elif self._last == self._timestamp and self._trusts:
                self._trusts = False  # §5.1 [marker-is-a-hint]
                self._damaged = True  # the access unit went out without this slice
        self._has_begun |= not self._has_slice and self._begins(unit)
        self._has_slice = True

    def _damage(self, damage: H264Damage, out: list[AccessUnit]) -> None:
        """Mark the access unit in the making, and the one at the end of the damage: §5.8."""
        if self._timestamp is not None:
            self._damaged = True
            if damage.until == self._timestamp:
                return
            self._finish(out)
        self._timestamp = damage.until
        self._is_behind_loss = damage.lost > 0 and damage.since != damage.until
        self._damaged = not self._is_behind_loss

    def _finish(self, out: list[AccessUnit]) -> None:
        if self._timestamp is None:
            return
        access_unit = self._access_unit(tuple(self._units), self._timestamp, self._damaged)
        if self._is_behind_loss and not (self._has_begun and access_unit.is_key):
            access_unit = replace(access_unit, damaged=True)  # §5.8
        out.append(access_unit)
        if self._trusts is None and self._marked and not access_unit.damaged:
            self._trusts = True
        self._last, self._timestamp = self._timestamp, None
        self._units, self._octets = [], 0
        self._damaged = self._has_slice = self._marked = False
        self._is_behind_loss = self._has_begun = False
