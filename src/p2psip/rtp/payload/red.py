"""Redundant audio: a payload, and older ones that may have been lost, in one packet.

Implements RFC 2198 §3.

    >>> payload = RedundantPayload(0, b"now", (RedundantBlock(5, 160, b"then"),))
    >>> bytes(payload).hex(" ", 1)
    '85 02 80 04 00 74 68 65 6e 6e 6f 77'
    >>> RedundantPayload.parse(bytes(payload)) == payload
    True
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError

MAX_OFFSET: Final = (1 << 14) - 1  # ticks. Source: §3
MAX_LENGTH: Final = (1 << 10) - 1  # octets. Source: §3
MAX_BLOCKS: Final = 32  # Own design: a second of packets; memory must be bounded
_MORE: Final = 0x80
_HEADER: Final = Struct("!I")


@dataclass(frozen=True, slots=True)
class RedundantBlock:
    """A payload that was sent before: §3; `offset` in ticks before the packet's timestamp."""

    payload_type: int
    offset: int
    data: bytes

    def __post_init__(self) -> None:
        if self.payload_type >> 7 or not 0 <= self.offset <= MAX_OFFSET:
            raise LocalError("payload type and offset have 7 and 14 bits")
        if len(self.data) > MAX_LENGTH:
            raise LocalError(f"a redundant block has up to {MAX_LENGTH} octets")


@dataclass(frozen=True, slots=True)
class RedundantPayload:
    """The newest payload, and the older ones, the oldest first: §3."""

    payload_type: int
    data: bytes
    older: tuple[RedundantBlock, ...] = ()

    def __post_init__(self) -> None:
        if self.payload_type >> 7 or len(self.older) > MAX_BLOCKS:
            raise LocalError(f"a payload type of 7 bits, and up to {MAX_BLOCKS} older blocks")

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read a payload, or raise RemoteError: §3."""
        data = bytes(payload)
        headers: list[tuple[int, int, int]] = []
        at = 0
        while at < len(data) and data[at] & _MORE:  # §3 [last-header-is-short]
            if at + _HEADER.size > len(data) or len(headers) == MAX_BLOCKS:
                raise RemoteError("redundant blocks beyond the end, or too many")
            (word,) = _HEADER.unpack_from(data, at)
            headers.append((word >> 24 & 0x7F, word >> 10 & MAX_OFFSET, word & MAX_LENGTH))
            at += _HEADER.size
        if at >= len(data):
            raise RemoteError("redundant payload without a primary one")
        kind, at = data[at], at + 1
        blocks = []
        for payload_type, offset, length in headers:
            if at + length > len(data):
                raise RemoteError("redundant block beyond the end")
            blocks.append(RedundantBlock(payload_type, offset, data[at : at + length]))
            at += length
        return cls(kind, data[at:], tuple(blocks))

    def __bytes__(self) -> bytes:
        headers = b"".join(
            _HEADER.pack((_MORE | each.payload_type) << 24 | each.offset << 10 | len(each.data))
            for each in self.older
        )
        blocks = b"".join(each.data for each in self.older)  # §3 [last-header-is-short]
        return headers + bytes((self.payload_type,)) + blocks + self.data


class RedundantSender:
    """Keeps the last payload of a stream, for the packet after it: §3.

    >>> ours = RedundantSender()
    >>> ours.packed(0, 97, b"one", 0)
    (97, b'\\x00one')
    >>> ours.packed(0, 97, b"two", 160)
    (97, b'\\x80\\x02\\x80\\x03\\x00onetwo')
    """

    def __init__(self) -> None:
        self._said: tuple[int, bytes] | None = None  # position and payload

    def packed(
        self, kind: int, red: int | None, payload: bytes, position: int
    ) -> tuple[int, bytes]:
        """The payload to send, redundant if `red` is its type, after `position` ticks: §3."""
        before, self._said = self._said, (position, payload)
        if red is None:
            return kind, payload
        older: tuple[RedundantBlock, ...] = ()
        offset = position - before[0] if before is not None else 0
        if before is not None and 0 < offset <= MAX_OFFSET and len(before[1]) <= MAX_LENGTH:
            # §3 [same-clock] [copy-of-the-primary] [no-more-bandwidth]
            older = (RedundantBlock(kind, offset, before[1]),)
        return red, bytes(RedundantPayload(kind, payload, older))
