"""Speex without decoding it: where frames end, and where wideband begins.

Implements RFC 5574 §3.3.

A packet is a string of bits.  A frame is 20 ms: a narrowband part, and behind it, each announced by
a 1 bit, up to two layers that widen it to 16 and then to 32 kHz.  The mode of a part tells its
size:

    0 | mode 4 | narrowband bits ...  1 | mode 3 | wideband bits ...  (the next frame)

Cutting the layers leaves a true 8 kHz stream: what Flash Player, which always encodes wideband,
needs in order to talk to a `speex/8000` phone.

Own design: the sizes are in the Speex manual, which is not in the catalogue; they are tested
against recordings of Flash Player and by libspeex, which decodes what we cut.
"""

from typing import Final

from p2psip.errors import RemoteError

FRAME_SECONDS: Final = 0.02  # Source: §3.3, every frame is 20 ms whatever its rate

# The size in bits of a part, its 5 or 4 bits of header included, by its mode.
# §4.1.1 [any-mode]
NARROWBAND_BITS: Final = {0: 5, 1: 43, 2: 119, 3: 160, 4: 220, 5: 300, 6: 364, 7: 492, 8: 79}
LAYER_BITS: Final = {0: 4, 1: 36, 2: 112, 3: 192, 4: 352}  # §4.1.1 [any-mode]

# RFC 3551 §4.2 [takes-ten-frames]
MAX_FRAMES: Final = 50  # a second in one payload, Own design: the shortest frame is 5 bits
MAX_OCTETS: Final = 8192  # of one payload, Own design: 50 of the longest frames and some more
MAX_LAYERS: Final = 2  # wideband, and ultra-wideband on top of it
TERMINATOR: Final = 15  # a mode that means: no frame follows
REQUEST: Final = 14  # an in-band message to the decoder, standing before a frame
USER_REQUEST: Final = 13  # the same with a length of its own
_REQUEST_BITS: Final = (1, 1, 4, 4, 4, 4, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64)  # by its code

_HEADER_MAGIC: Final = b"Speex   "


def count(data: bytes | memoryview) -> int:
    """Count the 20 ms frames of a payload: §3.5.  RemoteError if it is not Speex."""
    return len(_Bits(data).frames())


def split(data: bytes | memoryview, wideband: bool = True) -> list[bytes]:
    """Cut a payload into one payload per 20 ms frame, oldest first: §3.3.

    Each is padded to whole octets as a packet of its own must be.  Unless `wideband` is
    true the layers above narrowband are left out, for a receiver at 8 kHz.  A payload
    that holds just one frame comes back as it is.  RemoteError if the bits make no sense, or
    make more than `MAX_FRAMES`.
    """
    narrow_end, has_layer = one_frame(data)
    if narrow_end:
        return [bytes(data) if wideband or not has_layer else _without_layer(data, narrow_end)]
    bits = _Bits(data)
    frames = bits.frames()
    if len(frames) == 1 and (wideband or frames[0][1] == frames[0][2]):
        return [bytes(data)]
    if wideband:
        return [bits.cut(start, end) for start, _, end in frames]  # RFC 3551 §4.4 [splits-frames]
    return [bits.cut(start, narrow_end) for start, narrow_end, _ in frames]


def one_frame(data: bytes | memoryview) -> tuple[int, bool]:
    """Find where the narrowband part ends, in bits, and whether a layer follows: §3.3.

    0 unless it is surely one frame with at most one layer, as nearly all are.  Own design: a
    short cut for the media path, to `split`, which then gives the data as they are.
    """
    narrow_end = NARROWBAND_BITS.get(data[0] >> 3, 0) if data else 0
    left, at = 8 * len(data) - narrow_end, narrow_end >> 3
    has_layer = left >= 5
    if has_layer and narrow_end and at + 2 <= len(data):
        head = (data[at] << 8 | data[at + 1]) >> 12 - (narrow_end & 7) & 0x0F
        left = left - LAYER_BITS.get(head & 7, 0) if head > 7 else -1
    if not narrow_end or not 0 <= left < 5 or (left and data[-1] >> left - 1 & 1):
        return 0, False
    return narrow_end, has_layer


def narrowband(frame: bytes | memoryview) -> bytes:
    """Cut the layers off a payload, and pad it anew: §3.3.  RemoteError unless one frame."""
    frames = split(frame, wideband=False)
    if len(frames) != 1:
        raise RemoteError(f"{len(frames)} Speex frames where one was due")
    return frames[0]


def is_header(data: bytes | memoryview) -> bool:
    """Tell whether it is the 80-octet header that opens Speex in Ogg and FLV files, and no audio.

    Own design: GStreamer's muxers send it as a first packet; RFC 5574 §3.2 has no place for it.
    """
    return len(data) >= 80 and data[:8] == _HEADER_MAGIC


def is_comment(data: bytes | memoryview) -> bool:
    """Tell whether it is a comment packet: a vendor string and tags, each behind its length.

    Own design: it follows the header where there is one; RFC 5574 §3.2 has no place for it.
    """
    size = len(data)
    vendor = int.from_bytes(data[:4], "little")  # beyond the end, as a rule: it is audio
    if vendor > size or size < 4:
        return False
    at = 4 + vendor
    tags = _little_endian(data, at)
    if tags is None or tags > size:
        return False
    at += 4
    for _ in range(tags):
        length = _little_endian(data, at)
        if length is None:
            return False
        at += 4 + length
    return size - 1 <= at <= size  # some writers end with a framing octet, as Vorbis does


def is_metadata(data: bytes | memoryview) -> bool:
    """Tell whether it is a header or a comment packet, which RTP does not carry: RFC 5574 §3.2."""
    return is_header(data) or is_comment(data)


def _little_endian(data: bytes | memoryview, at: int) -> int | None:
    return int.from_bytes(data[at : at + 4], "little") if at + 4 <= len(data) else None


def _without_layer(data: bytes | memoryview, narrow_end: int) -> bytes:
    """The narrowband part alone, padded as `_Bits.cut` does it."""
    whole, over = narrow_end >> 3, narrow_end & 7
    if not over:
        return bytes(data[:whole])
    padding = 0xFF >> over
    return bytes((*data[:whole], data[whole] & ~padding | padding >> 1))  # §3.3 [whole-octets]


class _Bits:
    """A payload as one big number, from which a field is a shift and a mask."""

    __slots__ = ("_number", "_size")

    def __init__(self, data: bytes | memoryview) -> None:
        if len(data) > MAX_OCTETS:
            raise RemoteError("Speex payload of more than a second")
        self._number, self._size = int.from_bytes(data, "big"), 8 * len(data)

    def read(self, at: int, width: int) -> int:
        """Answer `width` bits at `at`; RemoteError beyond the end."""
        shift = self._size - at - width
        if shift < 0:
            raise RemoteError("Speex frame beyond the end")
        return self._number >> shift & (1 << width) - 1

    def cut(self, start: int, end: int) -> bytes:
        """Copy a frame, and pad it with a 0 and then ones: §3.3."""
        padding = start - end & 7
        number = self.read(start, end - start) << padding
        if padding:
            number |= (1 << padding - 1) - 1
        return number.to_bytes((end - start + padding) // 8, "big")  # §3.3 [whole-octets]

    def frames(self) -> list[tuple[int, int, int]]:
        """List (start, end of the narrowband part, end) of each frame, in bits."""
        found: list[tuple[int, int, int]] = []
        at = 0
        while self._size - at >= 5:
            start = self._skip_requests(at)
            if start is None:
                break
            if len(found) == MAX_FRAMES:
                raise RemoteError("Speex payload of more than a second")
            narrow_end = start + NARROWBAND_BITS.get(self.read(start, 5), self._size + 1)
            end = self._skip_layers(narrow_end)
            found.append((at, narrow_end, end))
            at = end
        if not found:
            raise RemoteError("no Speex frame")
        return found

    def _skip_requests(self, at: int) -> int | None:
        """Return the position of the frame proper, or None at the terminator."""
        while (mode := self.read(at, 5)) in (REQUEST, USER_REQUEST):
            code = self.read(at + 5, 4)
            # a user's message: the length in octets, then one octet of kind
            at += 9 + (_REQUEST_BITS[code] if mode == REQUEST else 5 + 8 * code)
        return None if mode == TERMINATOR else at

    def _skip_layers(self, at: int) -> int:
        """Answer the end of the frame whose narrowband part ends at `at`."""
        for _ in range(MAX_LAYERS):
            if at >= self._size or not self.read(at, 1):
                break
            at += LAYER_BITS.get(self.read(at, 4) & 7, self._size + 1)
        if at > self._size:
            raise RemoteError("Speex frame beyond the end, or of an unknown mode")
        return at
