"""The packet: a byte of flags, two timestamps, chunks and padding.

Implements RFC 7016 §2.2.4, and §2.2.2 for the session ID on the wire.

    >>> from rtmplite.rtmfp.wire.chunks import Ping
    >>> packet = Packet(Mode.INITIATOR, (Ping(),), timestamp=10)
    >>> packet.encode().hex(" ")
    '09 00 0a 01 00 00'
    >>> Packet.parse(bytes.fromhex("09 00 0a 01 00 00 ff ff ff")) == packet
    True

Packets are plain here: encryption, checksums and padding are the work of the Cryptography Profile.
"""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final, Self

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.chunks import (
    MAX_PAYLOAD,
    PADDING_TYPES,
    SESSION_TYPES,
    STARTUP_TYPES,
    Chunk,
    encode_chunk,
    parse_chunks,
)

_TIME_CRITICAL, _TIME_CRITICAL_REVERSE = 0x80, 0x40  # bits TC and TCR: §2.2.4
_TIMESTAMP, _TIMESTAMP_ECHO, _MODE = 0x08, 0x04, 0x03  # bits TS, TSE and MOD
_U16: Final = Struct("!H")
# §2.1.1 [big-endian]
_WORD, _TWO_WORDS, _THREE_WORDS = Struct("!I"), Struct("!2I"), Struct("!3I")


class Mode(IntEnum):
    """Which end of a session sent a packet, or that it belongs to the startup: §2.2.4."""

    # §2.2.4 [modes]
    FORBIDDEN = 0
    INITIATOR = 1
    RESPONDER = 2
    STARTUP = 3


NO_TYPES: Final = frozenset[int]()
_MODES: Final = tuple(Mode)
# The chunk types that do not belong in a packet of each mode: §2.3 [inappropriate-ignored].
_INAPPROPRIATE: Final = tuple(
    PADDING_TYPES | (SESSION_TYPES if mode == Mode.STARTUP else STARTUP_TYPES) for mode in Mode
)


@dataclass(frozen=True, slots=True)
class Packet:
    """One plain packet: §2.2.4.

    `timestamp` and `timestamp_echo` are 16 bits in ticks of 4 ms, or None.  `time_critical` says
    that the packet contains real-time data, `time_critical_reverse` that its sender receives
    real-time data from others.
    """

    mode: Mode
    chunks: tuple[Chunk, ...]
    timestamp: int | None = None
    timestamp_echo: int | None = None
    time_critical: bool = False
    time_critical_reverse: bool = False

    @classmethod
    def parse(
        cls, data: bytes | memoryview, most: int = MAX_PAYLOAD, unwanted: frozenset[int] = NO_TYPES
    ) -> Self:
        """Read a packet and its padding: §2.2.4.

        Own design: only the first `most` chunks are read, and none of `unwanted` types, so that a
        stranger's packet costs little.

        Raises RemoteError for the forbidden mode, and for timestamps that are cut off.  Chunks that
        are damaged, or do not belong to the mode, are left out: §2.3.
        """
        data = bytes(data)
        if not data:  # §2 [truncation-noticed]
            raise RemoteError("a packet without flags")
        flags, at = data[0], 1
        mode = _MODES[flags & _MODE]  # §2 [reserved-ignored]
        if mode is Mode.FORBIDDEN:  # §2.2.4 [mode-0-discarded]
            raise RemoteError("a packet of the forbidden mode")
        timestamp = timestamp_echo = None
        try:
            if flags & _TIMESTAMP:  # §2.2.4 [packet-layout]
                # §2.2.4 [packet-layout]
                timestamp, at = data[at] << 8 | data[at + 1], at + 2
            if flags & _TIMESTAMP_ECHO:  # §2.2.4 [packet-layout]
                # §2.2.4 [packet-layout]
                timestamp_echo, at = data[at] << 8 | data[at + 1], at + 2
        except IndexError:  # §2 [truncation-noticed] [errors-abort]
            raise RemoteError("a packet cut off in its timestamps") from None
        # §2.3 [inappropriate-ignored]
        chunks = tuple(parse_chunks(data, at, _INAPPROPRIATE[mode] | unwanted, most))
        critical, reverse = bool(flags & _TIME_CRITICAL), bool(flags & _TIME_CRITICAL_REVERSE)
        return cls(mode, chunks, timestamp, timestamp_echo, critical, reverse)

    def encode(self) -> bytes:
        """Write the packet without padding, the reserved bits clear.

        §2.2.4, §2.  Raises LocalError for the forbidden mode, for a chunk that does not belong to
        the mode, and for a time beyond 16 bits.
        """
        ignored = _INAPPROPRIATE[self.mode]
        # §2.2.4 [startup-chunks] [session-chunks]
        if self.mode == Mode.FORBIDDEN or any(chunk.type_id in ignored for chunk in self.chunks):
            raise LocalError(f"a receiver ignores such chunks in a packet of mode {self.mode}")
        # §2 [reserved-clear]
        flags = self.mode | self.time_critical << 7 | self.time_critical_reverse << 6
        times = []
        for bit, time in ((_TIMESTAMP, self.timestamp), (_TIMESTAMP_ECHO, self.timestamp_echo)):
            if time is not None:
                flags |= bit
                times.append(_encode_time(time))
        # §2.2.4 [packet-layout]
        return b"".join((bytes((flags,)), *times, *map(encode_chunk, self.chunks)))


def scramble(session_id: int, encrypted: bytes) -> bytes:
    """Put the session ID before an encrypted packet: §2.2.2 [multiplex-layout] [scrambled].

    Raises LocalError for a session ID beyond 32 bits.
    """
    if not 0 <= session_id < 1 << 32:
        raise LocalError(f"{session_id} is no session ID of 32 bits")
    first, second = _TWO_WORDS.unpack_from(encrypted.ljust(8, b"\0"))
    return _WORD.pack(session_id ^ first ^ second) + encrypted


def unscramble(datagram: bytes | memoryview) -> tuple[int, bytes]:
    """Return the session ID and the encrypted packet of a datagram: §2.2.2 [multiplex-layout].

    Raises RemoteError for a datagram too short for a session ID.
    """
    return session_id_of(datagram), bytes(datagram[4:])


def session_id_of(datagram: bytes | memoryview) -> int:
    """Return the session ID alone: as `unscramble`."""
    if len(datagram) < 4:  # §2 [truncation-noticed]
        raise RemoteError("a datagram too short for a session ID")
    # §2.2.2 [scrambled] [short-is-padded], §2.1.1 [big-endian]
    if len(datagram) < _THREE_WORDS.size:
        datagram = bytes(datagram).ljust(_THREE_WORDS.size, b"\0")
    scrambled, first, second = _THREE_WORDS.unpack_from(datagram)
    return int(scrambled ^ first ^ second)


def _encode_time(ticks: int) -> bytes:
    if not 0 <= ticks <= 0xFFFF:
        raise LocalError(f"{ticks} is no time of 16 bits")
    return _U16.pack(ticks)
