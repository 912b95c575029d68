"""NAL units and access units of H.265 out of a stream of packets, and what is missing.

Implements RFC 7798 §6, with the losses of §4.4.3.

Own design: the machines are those of H.264, whose fragments and markers work alike; what differs is
how a payload is read, and which bit of a slice says that an access unit begins.
"""

from typing import ClassVar, Final

from p2psip.rtp.payload.h264 import Fragment
from p2psip.rtp.payload.h264_access_units import AccessUnit, AccessUnitAssembler
from p2psip.rtp.payload.h264_unpacker import H264Unpacker
from p2psip.rtp.payload.h265 import kind_of, read_h265

SLICES: Final = range(32)  # types of NAL units with a part of an access unit: RFC 7798 §1.1.4
OPENING: Final = (32, 33, 35)  # of what stands before all slices: VPS, SPS, delimiter
INTRA: Final = range(16, 24)  # of those where a decoder can begin: BLA, IDR, CRA


class H265Unpacker(H264Unpacker):
    """Puts fragments together, and notices what is missing: §6."""

    @staticmethod
    def _read(payload: bytes | memoryview) -> tuple[bytes, ...] | Fragment:
        return read_h265(payload)


class H265AccessUnit(AccessUnit):
    """The NAL units of one timestamp in decoding order: §4.1."""

    __slots__ = ()

    @property
    def is_key(self) -> bool:
        return any(kind_of(unit) in INTRA for unit in self.units)


class H265AccessUnitAssembler(AccessUnitAssembler):
    """Puts NAL units together, and marks the access units of which some are missing: §4.1."""

    _access_unit: ClassVar[type[AccessUnit]] = H265AccessUnit

    @staticmethod
    def _is_slice(unit: bytes) -> bool:
        return kind_of(unit) in SLICES

    @staticmethod
    def _opens(unit: bytes) -> bool:
        return kind_of(unit) in OPENING

    @staticmethod
    def _begins(unit: bytes) -> bool:
        return len(unit) > 2 and bool(unit[2] & 0x80)
