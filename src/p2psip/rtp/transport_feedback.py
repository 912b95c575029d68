"""What a sender needs to find its rate: when each packet of a transport arrived, or a ceiling.

Implements Transport-wide CC 01 §3.1, and the Receiver Estimated Maximum Bitrate of browsers, Field
§"Ceilings of a receiver".

    >>> TransportFeedback(1, 2, 7, 0, 3, (4, None, 300)).arrivals()
    [(7, 0.001), (9, 0.076)]
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp import rtcp_frame
from p2psip.rtp.rtcp_frame import PSFB, RTPFB, RtcpForm

TRANSPORT_WIDE: Final = 15  # Source: §3.1, the message type under RTPFB
APPLICATION: Final = 15  # Source: RFC 4585 §6.4, under PSFB
TICK: Final = 0.00025  # s. Source: §3.1.5
REFERENCE_TICKS: Final = 256  # of 64 ms. Source: §3.1
MAX_STATUSES: Final = 0xFFFF  # Source: §3.1
SMALL, LARGE = range(256), range(-0x8000, 0x8000)  # Source: §3.1.5, ticks in one octet and in two
_HEADER: Final = struct.Struct("!IIHHI")
_CHUNK: Final = struct.Struct("!H")
_LARGE: Final = struct.Struct("!h")
_NOT_RECEIVED, _SMALL, _LARGE_OR_NEGATIVE, _RESERVED = range(4)  # Source: §3.1
_MAX_RUN: Final = 0x1FFF  # Source: §3.1.3
_VECTOR: Final = 7  # Source: §3.1.4, symbols of two bits
_SSRCS, _WORD = struct.Struct("!II"), struct.Struct("!I")
NAME: Final = b"REMB"
_CEILING: Final = struct.Struct("!II4xI")


@dataclass(frozen=True, slots=True)
class TransportFeedback(RtcpForm):
    """When packets of a transport arrived: §3.1.

    `base` is the transport-wide number of the first, `reference` counts 64 ms (24 bits, signed),
    and `count` the messages.  `deltas` has for each number from `base` on its distance from the
    one before, in ticks of 250 us, the first one's from `reference`; None for a packet that has not
    arrived.  LocalError if one does not fit.
    """

    packet_type = RTPFB
    sender_ssrc: int
    media_ssrc: int
    base: int
    reference: int
    count: int
    deltas: tuple[int | None, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.deltas) <= MAX_STATUSES:
            raise LocalError("a feedback tells of 1 to 65535 packets")
        if any(each is not None and each not in LARGE for each in self.deltas):
            raise LocalError("a delta has 16 bits")

    def arrivals(self) -> list[tuple[int, float]]:
        """List number and time of each packet that has arrived, in s from some start: §3.1."""
        at, found = self.reference * REFERENCE_TICKS, []  # §3.1 [first-from-the-reference]
        for place, delta in enumerate(self.deltas):
            if delta is not None:
                at += delta
                found.append((self.base + place & 0xFFFF, at * TICK))
        return found

    @classmethod
    def _read(cls, message_type: int, body: bytes) -> Self:
        sender, media, base, statuses, word = rtcp_frame.unpack_from(_HEADER, body)
        if message_type != TRANSPORT_WIDE or not statuses:
            raise RemoteError("not a transport-wide feedback, or one of nothing")
        symbols, at = _read_symbols(body, statuses)
        reference = (word >> 8) - (word >> 31 << 24)  # §3.1 [reference-time]
        deltas = tuple(_read_deltas(body, symbols, at))
        return cls(sender, media, base, reference, word & 0xFF, deltas)

    def __bytes__(self) -> bytes:
        symbols = [_symbol(each) for each in self.deltas]
        word = (self.reference & 0xFFFFFF) << 8 | self.count & 0xFF
        head = _HEADER.pack(self.sender_ssrc, self.media_ssrc, self.base, len(symbols), word)
        # §3.1.5 [small-in-an-octet] [large-in-two]
        deltas = b"".join(
            bytes((each,)) if each in SMALL else _LARGE.pack(each)
            for each in self.deltas
            if each is not None
        )
        body = head + b"".join(map(_CHUNK.pack, _chunks(symbols))) + deltas
        body += bytes(-len(body) % 4)
        # §3.1 [type-of-the-message] [packet-type-205]
        return rtcp_frame.write(RTPFB, TRANSPORT_WIDE, body)


def _symbol(delta: int | None) -> int:
    if delta is None:
        return _NOT_RECEIVED
    return _SMALL if delta in SMALL else _LARGE_OR_NEGATIVE


def _chunks(symbols: Sequence[int]) -> Iterator[int]:
    """Write runs where they are as long as a vector, else vectors: §3.1.3, §3.1.4."""
    at = 0
    while at < len(symbols):
        _, group = next(groupby(symbols[at : at + _MAX_RUN]))
        run = len(list(group))
        if run >= _VECTOR or at + run == len(symbols):
            yield symbols[at] << 13 | run  # §3.1.3 [run-of-a-symbol]
            at += run
        else:
            width = 1 if max(symbols[at : at + 2 * _VECTOR]) <= _SMALL else 2
            size, bits = 2 * _VECTOR // width, 0
            for place in range(at, at + size):
                symbol = symbols[place] if place < len(symbols) else _NOT_RECEIVED
                bits = bits << width | symbol
            yield 0x8000 | width - 1 << 14 | bits  # §3.1.4 [vector-of-symbols]
            at += size


def _read_symbols(body: bytes, statuses: int) -> tuple[list[int], int]:
    """Read the chunks; the symbols, and where they end: §3.1.2."""
    symbols: list[int] = []
    at = _HEADER.size
    while len(symbols) < statuses:
        [chunk] = rtcp_frame.unpack_from(_CHUNK, body, at)
        at += _CHUNK.size
        if not chunk >> 15:  # §3.1.3 [run-of-a-symbol]
            symbols += [chunk >> 13 & 3] * min(chunk & _MAX_RUN, statuses - len(symbols))
        elif chunk >> 14 & 1:  # §3.1.4 [vector-of-symbols]
            symbols += [chunk >> shift & 3 for shift in range(12, -1, -2)]
        else:
            symbols += [chunk >> shift & 1 for shift in range(13, -1, -1)]
    return symbols[:statuses], at


def _read_deltas(body: bytes, symbols: Iterable[int], at: int) -> Iterator[int | None]:
    """Read a delta for each packet that has arrived: §3.1.5."""
    for symbol in symbols:
        if symbol == _NOT_RECEIVED:
            yield None
        elif symbol == _RESERVED:
            raise RemoteError("a packet status that is reserved")
        elif symbol == _SMALL:
            if at >= len(body):
                raise RemoteError("fewer deltas than packets")
            yield body[at]
            at += 1
        else:
            [delta] = rtcp_frame.unpack_from(_LARGE, body, at)
            at += _LARGE.size
            yield delta


def is_ceiling(body: bytes) -> bool:
    """Whether an application's message is a `Remb`: RFC 4585 §6.4."""
    return body[8:12] == NAME


@dataclass(frozen=True, slots=True)
class Remb(RtcpForm):
    """The most that a receiver wants of some sources together: Field §"Ceilings of a receiver".

    The rate is `mantissa` (18 bits) times two to the `exponent` (6 bits), in bit/s.  LocalError if
    one does not fit.
    """

    packet_type = PSFB
    sender_ssrc: int
    exponent: int
    mantissa: int
    ssrcs: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.exponent >> 6 or self.mantissa >> 18 or len(self.ssrcs) > 0xFF:
            raise LocalError("exponent and mantissa have 6 and 18 bits, and there are 255 sources")

    @classmethod
    def of(cls, sender_ssrc: int, bits_per_second: int, ssrcs: Iterable[int]) -> Self:
        """Make one; of a rate 18 bits count: Field §"Ceilings of a receiver"."""
        exponent = max(bits_per_second.bit_length() - 18, 0)
        return cls(sender_ssrc, exponent, bits_per_second >> exponent, tuple(ssrcs))

    @property
    def rate(self) -> int:
        """The ceiling in bit/s: Field §"Ceilings of a receiver"."""
        return self.mantissa << self.exponent

    @classmethod
    def _read(cls, message_type: int, body: bytes) -> Self:
        sender, _, word = rtcp_frame.unpack_from(_CEILING, body)
        sources = body[_CEILING.size :]
        if message_type != APPLICATION or not is_ceiling(body):
            raise RemoteError("not a ceiling of a receiver")
        if len(sources) != 4 * (word >> 24):
            raise RemoteError("another number of sources than it says")
        ssrcs = struct.unpack(f"!{word >> 24}I", sources)
        return cls(sender, word >> 18 & 0x3F, word & 0x3FFFF, ssrcs)

    def __bytes__(self) -> bytes:
        word = len(self.ssrcs) << 24 | self.exponent << 18 | self.mantissa
        head = _SSRCS.pack(self.sender_ssrc, 0) + NAME + _WORD.pack(word)
        sources = struct.pack(f"!{len(self.ssrcs)}I", *self.ssrcs)
        return rtcp_frame.write(PSFB, APPLICATION, head + sources)
