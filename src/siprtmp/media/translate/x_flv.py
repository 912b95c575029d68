"""The payload x-flv: whole RTMP messages in RTP, between two gateways.

Own design: the format of the original gateway, which no specification has, kept so that its peers
understand it.  A message is assembled as four fields, big-endian: type, length of the body, time in
milliseconds (32 bits each), and the body.  It is cut into pieces, one in each RTP payload:

    magic "RTMP" | number of the message | number of the piece | [length of the message] | piece
        32                 32                     16                     16

The length is in piece 0 alone.  Its 16 bits cannot say 64 KiB or more; such a message is not sent.
Of a message that lacks a piece nothing can be used.

A frame is never sent in one piece, however small.  So whoever misses more packets than messages
has missed a frame, even if nothing of it came, and can wait for the next key frame; one packet
and one message less were some audio.

    >>> pieces = pack(TunnelMessage(8, 1000, b"some sound"), number=7)
    >>> [piece.hex(" ", -4) for piece in pieces]
    ['52544d50 00000007 00000016 00000008 0000000a 000003e8 736f6d65 20736f75 6e64']
    >>> TunnelAssembler().put(pieces[0])
    TunnelMessage(type_id=8, timestamp=1000, body=b'some sound')
"""

import struct
from typing import Final, NamedTuple

from p2psip.errors import LocalError, RemoteError

MAGIC: Final = 0x52544D50
PIECE: Final = 1000  # octets of a message in one payload
MAX_MESSAGE: Final = 0xFFFF  # octets that the field for the length can say
VIDEO: Final = 9  # a message type: RTMP 1.0 §7.1.5

_PIECE: Final = struct.Struct("!IIH")
_LENGTH: Final = struct.Struct("!H")
_MESSAGE: Final = struct.Struct("!III")


class TunnelMessage(NamedTuple):
    """One RTMP message: RTMP 1.0 §6.1.  `timestamp` is in ms."""

    type_id: int
    timestamp: int
    body: bytes


def pack(message: TunnelMessage, number: int) -> list[bytes]:
    """The RTP payloads of a message.  Raises LocalError if it is too large."""
    head = _MESSAGE.pack(message.type_id, len(message.body), message.timestamp & 0xFFFFFFFF)
    whole = head + message.body
    if len(whole) > MAX_MESSAGE:
        raise LocalError(f"a message of {len(message.body)} octets")
    size = PIECE
    if message.type_id == VIDEO and len(whole) <= PIECE:
        size = max(_MESSAGE.size, (len(whole) + 1) // 2)
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    payloads = [_PIECE.pack(MAGIC, number, at) + piece for at, piece in enumerate(pieces)]
    payloads[0] = _PIECE.pack(MAGIC, number, 0) + _LENGTH.pack(len(whole)) + pieces[0]
    return payloads


class TunnelAssembler:
    """Makes messages of payloads, which come in order, perhaps with gaps.

    `lost` counts messages that did not come, or not whole.  `has_lost_frame` tells that one of
    these may have been a frame, until the owner clears it: the first piece says what it was, and
    audio fits into one.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.has_lost_frame = False
        self._number: int | None = None
        self._length = 0  # of the message that is under way, 0 if there is none
        self._next = self._size = 0
        self._pieces: list[bytes] = []

    def put(self, payload: bytes, missing: int = 0) -> TunnelMessage | None:
        """Take a payload, after `missing` lost ones; a message if that is whole.  RemoteError."""
        if len(payload) < _PIECE.size:
            raise RemoteError(f"x-flv of {len(payload)} octets")
        magic, number, piece = _PIECE.unpack_from(payload)
        if magic != MAGIC:
            raise RemoteError("x-flv without its magic")
        if piece == 0:
            return self._first(number, payload, missing)
        if number != self._number or piece != self._next or not self._length:
            self._miss(number, missing)
            return None
        return self._add(payload[_PIECE.size :])

    def _first(self, number: int, payload: bytes, missing: int) -> TunnelMessage | None:
        if self._length:
            self._give_up()
        between = self._between(number, missing)
        self.lost += between
        self.has_lost_frame |= missing > between and self._number is not None
        start = _PIECE.size + _LENGTH.size
        if len(payload) < start + _MESSAGE.size:
            raise RemoteError(f"x-flv of {len(payload)} octets")
        [self._length] = _LENGTH.unpack_from(payload, _PIECE.size)
        self._number, self._next, self._size = number, 0, 0
        return self._add(payload[start:])

    def _add(self, piece: bytes) -> TunnelMessage | None:
        if not piece:  # which `pack` never makes: any number of them would be kept
            self._give_up()
            raise RemoteError("an empty piece of x-flv")
        self._pieces.append(piece)
        self._next += 1
        self._size = size = self._size + len(piece)
        if size < self._length:
            return None
        whole, length = b"".join(self._pieces), self._length
        self._pieces, self._length = [], 0
        type_id, body_length, timestamp = _MESSAGE.unpack_from(whole)
        if size != length or body_length != length - _MESSAGE.size:
            raise RemoteError("x-flv whose lengths differ")
        return TunnelMessage(type_id, timestamp, whole[_MESSAGE.size :])

    def _between(self, number: int, missing: int) -> int:
        """The messages before this one of which nothing came; each was a packet at least."""
        return 0 if self._number is None else min((number - self._number - 1) & 0xFFFFFFFF, missing)

    def _miss(self, number: int, missing: int) -> None:
        """A piece before this one was lost, and so is the message; it is counted once."""
        if self._length:
            self._give_up()
        if number != self._number:
            self.lost += 1 + self._between(number, missing)
            self.has_lost_frame = True  # a message of several pieces, whose first was lost
        self._number = number

    def _give_up(self) -> None:
        self.lost += 1
        [type_id] = struct.unpack_from("!I", self._pieces[0])
        self.has_lost_frame |= type_id == VIDEO
        self._pieces, self._length = [], 0
