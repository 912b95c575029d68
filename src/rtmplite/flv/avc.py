"""AVC in FLV: the record with a decoder's parameter sets, and NAL units with their lengths.

Implements FLV 10.1 §E.4.3.2, which names the AVCDecoderConfigurationRecord of ISO 14496-15
(its clause 5.2.4.1, with the fields for High profiles).

    >>> sps, pps = bytes.fromhex("6742c01eda0a0fd0"), bytes.fromhex("68ce3c80")
    >>> record = AvcConfig.of([sps], [pps])
    >>> bytes(record).hex(" ", -4)
    '0142c01e ffe10008 6742c01e da0a0fd0 01000468 ce3c80'
    >>> AvcConfig.parse(bytes(record)) == record
    True
    >>> join_units([pps]).hex(" ", 4), split_units(join_units([sps, pps])) == [sps, pps]
    ('00000004 68ce3c80', True)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.avc_sps import HIGH_PROFILES, SequenceParameters

VERSION: Final = 1  # of the record
MAX_SPS, MAX_PPS = 31, 255  # sets that a record can count
LENGTH_SIZE: Final = 4  # octets of a NAL unit's length, as everybody writes it
_MAX_SET: Final = 0xFFFF  # octets of one set
_RESERVED_LENGTH, _RESERVED_SPS = 0xFC, 0xE0  # bits that are ones


@dataclass(frozen=True, slots=True)
class AvcConfig:
    """The contents of a sequence header: §E.4.3.2.

    `profile`, `compatibility` and `level` are the three octets that a sequence parameter set begins
    with; `sps` and `pps` are whole NAL units; `extension` is what follows them, as it is: chroma
    format and depths of High profiles.
    """

    profile: int
    compatibility: int
    level: int
    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]
    length_size: int = LENGTH_SIZE
    extension: bytes = b""

    @classmethod
    def of(cls, sps: Sequence[bytes], pps: Sequence[bytes]) -> Self:
        """Make the record of these NAL units, its extension included: §E.4.3.2.

        The first sequence parameter set tells profile and level.  LocalError without one,
        RemoteError if it is of a High profile and makes no sense.
        """
        if not sps or len(sps[0]) < 4:
            raise LocalError("a record needs a sequence parameter set")
        profile, compatibility, level = sps[0][1:4]
        extension = b""
        if profile in HIGH_PROFILES:
            read = SequenceParameters.parse(sps[0])
            depths = 0xF8 | read.luma_depth - 8, 0xF8 | read.chroma_depth - 8
            extension = bytes((0xFC | read.chroma_format, *depths, 0))
        return cls(profile, compatibility, level, tuple(sps), tuple(pps), extension=extension)

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read a sequence header behind its five octets: §E.4.3.2.  RemoteError if malformed."""
        data = bytes(data)
        if len(data) < 6:
            raise RemoteError(f"an AVC record of {len(data)} octets")
        if data[0] != VERSION:
            raise RemoteError(f"an AVC record of version {data[0]}")
        # §E.4.3.2 [decoder-configuration]
        sps, at = _read_sets(data, 6, data[5] & ~_RESERVED_SPS)
        if at == len(data):
            raise RemoteError("an AVC record without picture parameter sets")
        pps, at = _read_sets(data, at + 1, data[at])
        return cls(data[1], data[2], data[3], sps, pps, (data[4] & 3) + 1, data[at:])

    def __bytes__(self) -> bytes:
        """Write the body of a sequence header: §E.4.3.2.  LocalError if a set does not fit."""
        if len(self.sps) > MAX_SPS or len(self.pps) > MAX_PPS:
            raise LocalError(f"{len(self.sps)} and {len(self.pps)} parameter sets")
        if not 1 <= self.length_size <= 4:
            raise LocalError(f"lengths of {self.length_size} octets")
        # §E.4.3.2 [decoder-configuration]
        head = VERSION, self.profile, self.compatibility, self.level
        counts = _RESERVED_LENGTH | self.length_size - 1, _RESERVED_SPS | len(self.sps)
        parts = [bytes((*head, *counts)), *map(_written, self.sps), bytes((len(self.pps),))]
        return b"".join((*parts, *map(_written, self.pps), self.extension))


def _read_sets(data: bytes, at: int, count: int) -> tuple[tuple[bytes, ...], int]:
    """Read `count` parameter sets; the second result is where the rest begins."""
    sets: list[bytes] = []
    for _ in range(count):
        size = int.from_bytes(data[at : at + 2], "big")
        unit, at = data[at + 2 : at + 2 + size], at + 2 + size
        if not unit or at > len(data):
            raise RemoteError("a parameter set is empty or cut short")
        sets.append(unit)
    return tuple(sets), at


def _written(unit: bytes) -> bytes:
    if not 0 < len(unit) <= _MAX_SET:
        raise LocalError(f"a parameter set of {len(unit)} octets")
    return len(unit).to_bytes(2, "big") + unit


def split_units(data: bytes | memoryview, length_size: int = LENGTH_SIZE) -> list[bytes]:
    """Split a tag into NAL units that are not empty: §E.4.3.2.  RemoteError if cut short."""
    data, at, end = bytes(data), 0, len(data)
    units: list[bytes] = []
    while at < end:
        begin = at + length_size
        at = begin + int.from_bytes(data[at:begin], "big")
        if at > end or begin > end:
            raise RemoteError("a NAL unit is cut short")
        if at > begin:
            units.append(data[begin:at])
    return units


def join_units(units: Iterable[bytes]) -> bytes:
    """Write NAL units, each after its length in four octets: §E.4.3.2."""
    parts: list[bytes] = []
    for unit in units:
        parts += len(unit).to_bytes(LENGTH_SIZE, "big"), unit
    return b"".join(parts)
