"""Feedback of a video receiver: requests for a packet again, or for a whole picture.

Implements RFC 4585 §6.1, with the Full Intra Request of RFC 5104 §4.3.1 and the limits of bit
rates of RFC 5104 §4.2.

    >>> Nack.of(1, 2, lost=[9, 10, 65535, 0]).lost()
    (9, 10, 65535, 0)
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import rtcp_frame
from p2psip.rtp.rtcp_frame import PSFB, RTPFB, RtcpForm
from p2psip.rtp.transport_feedback import (
    APPLICATION,
    TRANSPORT_WIDE,
    Remb,
    TransportFeedback,
    is_ceiling,
)

GENERIC_NACK: Final = 1  # Source: §6.2, the message type under RTPFB
PICTURE_LOSS: Final = 1  # Source: §6.3, under PSFB
RATE_REQUEST, RATE_NOTICE = 3, 4  # Source: RFC 5104 §4.2, under RTPFB
FULL_INTRA: Final = 4  # Source: RFC 5104 §4.3.1, under PSFB
_SOURCES: Final = struct.Struct("!II")  # §6.1 [common-format]
_NACK: Final = struct.Struct("!HH")
_RATE: Final = struct.Struct("!II")
_FIR: Final = struct.Struct("!IB3x")  # RFC 5104 §4.3.1.1 [reserved-is-zero]


@dataclass(frozen=True, slots=True)
class Nack(RtcpForm):
    """A request for packets that did not arrive: §6.2.1; `lost` reads `fci`, `of` writes it."""

    packet_type = RTPFB
    sender_ssrc: int
    media_ssrc: int
    fci: bytes

    @classmethod
    def of(cls, sender_ssrc: int, media_ssrc: int, lost: Iterable[int]) -> Self:
        """Make one from 16-bit sequence numbers in order, up to 17 to a word: §6.2.1."""
        words: list[list[int]] = []
        for sequence in lost:
            ahead = sequence - words[-1][0] & 0xFFFF if words else 0
            if 1 <= ahead <= 16:
                words[-1][1] |= 1 << ahead - 1
            else:
                words.append([sequence, 0])
        if not words:  # §6.1 [at-least-one], §6.2.1 [nack-has-entries]
            raise LocalError("a NACK of nothing")
        return cls(sender_ssrc, media_ssrc, b"".join(_NACK.pack(*word) for word in words))

    def lost(self) -> tuple[int, ...]:
        """List the 16-bit sequence numbers asked for: §6.2.1."""
        return tuple(
            first + ahead & 0xFFFF
            for first, mask in _NACK.iter_unpack(self.fci)
            for ahead in range(17)
            if ahead == 0 or mask >> ahead - 1 & 1
        )

    @classmethod
    def _read(cls, message_type: int, body: bytes) -> Self:
        sender, media = rtcp_frame.unpack_from(_SOURCES, body)
        # §6.1 [at-least-one], §6.2.1 [nack-has-entries]
        if message_type != GENERIC_NACK or len(body) <= _SOURCES.size:
            raise RemoteError("not a generic NACK, or one of nothing")
        return cls(sender, media, body[_SOURCES.size :])

    def __bytes__(self) -> bytes:
        body = _SOURCES.pack(self.sender_ssrc, self.media_ssrc) + self.fci  # §6.2.1 [nack-length]
        return rtcp_frame.write(RTPFB, GENERIC_NACK, body)


@dataclass(frozen=True, slots=True)
class Pli(RtcpForm):
    """A request for a whole picture, since some of it is lost: §6.3.1."""

    packet_type = PSFB
    sender_ssrc: int
    media_ssrc: int

    @classmethod
    def _read(cls, message_type: int, body: bytes) -> Self:
        sender, media = rtcp_frame.unpack_from(_SOURCES, body)
        if message_type != PICTURE_LOSS:
            raise RemoteError("not a picture loss indication")
        return cls(sender, media)

    def __bytes__(self) -> bytes:
        """Write the packet, which needs no parameters: §6.3.1.2."""
        # §6.3.1 [one-pli], §6.3.1.2 [pli-has-no-entries]
        return rtcp_frame.write(
            PSFB, PICTURE_LOSS, _SOURCES.pack(self.sender_ssrc, self.media_ssrc)
        )


@dataclass(frozen=True, slots=True)
class Fir(RtcpForm):
    """A command to send a decoder refresh point, numbered by media sender: RFC 5104 §4.3.1."""

    packet_type = PSFB
    sender_ssrc: int
    requests: tuple[tuple[int, int], ...]

    @classmethod
    def _read(cls, message_type: int, body: bytes) -> Self:
        sender, _ = rtcp_frame.unpack_from(_SOURCES, body)
        entries = body[_SOURCES.size :]
        # RFC 5104 §4.3.1 [fir-has-entries], §4.3.1.1 [fir-length]
        if message_type != FULL_INTRA or not entries or len(entries) % _FIR.size:
            raise RemoteError("not a full intra request, or one without whole entries")
        return cls(sender, tuple((ssrc, number) for ssrc, number in _FIR.iter_unpack(entries)))

    def __bytes__(self) -> bytes:
        """Write the packet; its media SSRC is unused, and zero: RFC 5104 §4.3.1.2."""
        # RFC 5104 §4.3.1.1 [fir-length], §4.3.1.2 [media-source-is-zero]
        entries = b"".join(_FIR.pack(*request) for request in self.requests)
        return rtcp_frame.write(PSFB, FULL_INTRA, _SOURCES.pack(self.sender_ssrc, 0) + entries)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The most that a media sender may send: RFC 5104 §4.2.1.1.

    The rate is `mantissa` (17 bits) times two to the `exponent` (6 bits), in bit/s; `overhead`
    (9 bits) counts the octets of headers that go with each packet.  LocalError if one does not fit.
    """

    ssrc: int
    exponent: int
    mantissa: int
    overhead: int

    def __post_init__(self) -> None:
        if self.exponent >> 6 or self.mantissa >> 17 or self.overhead >> 9:
            raise LocalError("exponent, mantissa and overhead have 6, 17 and 9 bits")

    @classmethod
    def of(cls, ssrc: int, bits_per_second: int, overhead: int = 0) -> Self:
        """Make a limit; a rate of more than 17 bits is rounded down: RFC 5104 §4.2.1.1."""
        exponent = max(bits_per_second.bit_length() - 17, 0)
        return cls(ssrc, exponent, bits_per_second >> exponent, overhead)

    @property
    def rate(self) -> int:
        """The limit in bit/s: RFC 5104 §4.2.1.1."""
        return self.mantissa << self.exponent  # RFC 5104 §4.2.1.1 [rate-is-scaled]


@dataclass(frozen=True, slots=True)
class Tmmb(RtcpForm):
    """A request for a lower bit rate (TMMBR), or a notice (TMMBN): RFC 5104 §4.2.1, §4.2.2."""

    packet_type = RTPFB
    sender_ssrc: int
    limits: tuple[RateLimit, ...]
    notice: bool = False

    @classmethod
    def _read(cls, message_type: int, body: bytes) -> Self:
        sender, _ = rtcp_frame.unpack_from(_SOURCES, body)
        entries, notice = body[_SOURCES.size :], message_type == RATE_NOTICE
        # RFC 5104 §4.2.1.1 [length-counts-entries], §4.2.2.1 [notice-length-counts-entries]
        if message_type not in (RATE_REQUEST, RATE_NOTICE) or len(entries) % _RATE.size:
            raise RemoteError("not a limit of bit rates, or one without whole entries")
        if not entries and not notice:  # RFC 5104 §4.2.1 [request-has-entries]
            raise RemoteError("a request for no bit rate")
        limits = (
            RateLimit(ssrc, word >> 26, word >> 9 & 0x1FFFF, word & 0x1FF)
            for ssrc, word in _RATE.iter_unpack(entries)
        )
        return cls(sender, tuple(limits), notice)

    def __bytes__(self) -> bytes:
        """Write the packet; its media SSRC is unused, and zero: RFC 5104 §4.2.1.2."""
        entries = b"".join(
            _RATE.pack(each.ssrc, each.exponent << 26 | each.mantissa << 9 | each.overhead)
            for each in self.limits
        )
        kind = RATE_NOTICE if self.notice else RATE_REQUEST
        # RFC 5104 §4.2.1.1 [length-counts-entries], §4.2.2.1 [notice-length-counts-entries]
        # RFC 5104 §4.2.1.2 [media-source-is-zero], §4.2.2.2 [zero-in-notices]
        return rtcp_frame.write(RTPFB, kind, _SOURCES.pack(self.sender_ssrc, 0) + entries)


@dataclass(frozen=True, slots=True)
class OtherFeedback:
    """Any other feedback of RTPFB or PSFB: §6.1; `fci` is whole words."""

    packet_type: int
    message_type: int
    sender_ssrc: int
    media_ssrc: int
    fci: bytes = b""

    @classmethod
    def parse(cls, data: bytes | memoryview) -> Self:
        """Read one packet, or raise RemoteError: §6.1."""
        packet_type = data[1] if len(data) > 1 and data[1] in (RTPFB, PSFB) else RTPFB
        return cls._read(packet_type, *rtcp_frame.read_one(data, packet_type))

    @classmethod
    def _read(cls, packet_type: int, message_type: int, body: bytes) -> Self:
        sender, media = rtcp_frame.unpack_from(_SOURCES, body)
        return cls(packet_type, message_type, sender, media, body[_SOURCES.size :])

    def __bytes__(self) -> bytes:
        body = _SOURCES.pack(self.sender_ssrc, self.media_ssrc) + self.fci
        return rtcp_frame.write(self.packet_type, self.message_type, body)


Feedback: TypeAlias = Nack | Pli | Fir | Tmmb | TransportFeedback | Remb | OtherFeedback
"""Any feedback message: §6.1."""


_READERS: Final[Mapping[tuple[int, int], Callable[[int, bytes], Feedback]]] = {
    (RTPFB, GENERIC_NACK): Nack._read,
    (RTPFB, RATE_REQUEST): Tmmb._read,
    (RTPFB, RATE_NOTICE): Tmmb._read,
    (PSFB, PICTURE_LOSS): Pli._read,
    (PSFB, FULL_INTRA): Fir._read,
    (RTPFB, TRANSPORT_WIDE): TransportFeedback._read,
    (PSFB, APPLICATION): Remb._read,
}


def read(packet_type: int, message_type: int, body: bytes) -> Feedback:
    """Read a framed packet as the type that fits it best, or raise RemoteError: §6.1."""
    if packet_type == PSFB and message_type == APPLICATION and not is_ceiling(body):
        return OtherFeedback._read(packet_type, message_type, body)
    if reader := _READERS.get((packet_type, message_type)):
        return reader(message_type, body)
    return OtherFeedback._read(packet_type, message_type, body)
