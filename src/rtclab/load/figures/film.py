"""What publishers send: pictures and sound made here, or a recording, again and again.

Own design: the pictures are real H.264 of 320 by 240, all grey, and cost nothing to make: a key
frame predicts each macroblock from nothing, and all other frames repeat it.  Filler units of
H.264 bring them to the size that the wished bit rate asks for.  The sound is the silence
of G.711 with the mark in it (FLV 10.1 §E.4.2.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from rtclab.load.figures.stamp import mark, sei_unit
from rtmplite.flv.file import read_flv
from rtmplite.flv.tag import TagType
from rtmplite.flv.video import AvcPacketType, is_key_frame, is_sequence_header

FPS, SOUND_MS, GROUP = 25, 20, 50  # pictures a second; ms of a sound; pictures to a key frame
WIDTH, HEIGHT = 320, 240
BLOCKS: Final = WIDTH // 16 * (HEIGHT // 16)
ULAW: Final = b"\x82"  # FLV 10.1 §E.4.2.1: G.711 mu-law, 8 kHz
SILENCE: Final = b"\xff" * 160
_SPS, _PPS, _IDR, _SLICE, _FILLER = 0x67, 0x68, 0x65, 0x41, 0x0C


@dataclass(frozen=True, slots=True)
class Item:
    """A message to publish: its tag type, its time in ms, its body, and what it counts as."""

    kind: int
    time_ms: int
    body: bytes
    is_key: bool = False
    is_header: bool = False


class MediaSource(Protocol):
    """Where a publisher's media comes from: a made film or a recording."""

    def start(self) -> Iterator[Item]:
        """What goes first."""

    def at(self, turn: int, now_ns: int) -> Iterator[Item]:
        """What is due `turn` times 20 ms after the start, made at a time of the system's clock."""


class _Bits:
    """Writes the bits of a NAL unit."""

    def __init__(self) -> None:
        self._bits = ""

    def fixed(self, value: int, count: int) -> "_Bits":
        self._bits += f"{value:0{count}b}"
        return self

    def ue(self, *values: int) -> "_Bits":
        """Exponential Golomb codes, ue(v) of H.264."""
        for value in values:
            code = f"{value + 1:b}"
            self._bits += "0" * (len(code) - 1) + code
        return self

    def unit(self, kind: int) -> bytes:
        """The whole unit, with its trailing bits, and guarded against start codes."""
        bits = self._bits + "1"
        bits += "0" * (-len(bits) % 8)
        body, zeros = bytearray(), 0
        for octet in int(bits, 2).to_bytes(len(bits) // 8, "big"):
            if zeros >= 2 and octet <= 3:
                body.append(3)
                zeros = 0
            body.append(octet)
            zeros = zeros + 1 if octet == 0 else 0
        return bytes([kind]) + bytes(body)


def _parameter_sets() -> tuple[bytes, bytes]:
    # Baseline, level 1.3: frame numbers of 4 bits, no picture order, one reference, no filter.
    sps = _Bits().fixed(66, 8).fixed(0xC0, 8).fixed(13, 8).ue(0, 0, 2, 1).fixed(0, 1)
    sps.ue(WIDTH // 16 - 1, HEIGHT // 16 - 1).fixed(0b1100, 4)
    pps = _Bits().ue(0, 0).fixed(0, 2).ue(0, 0, 0).fixed(0, 3).ue(0, 0, 0).fixed(0b100, 3)
    return sps.unit(_SPS), pps.unit(_PPS)


def _key_slice() -> bytes:
    # Slice type 7; macroblocks of type I_16x16_2_0_0 without a residual.
    bits = _Bits().ue(0, 7, 0).fixed(0, 4).ue(0).fixed(0, 2).ue(0).ue(1)
    for _ in range(BLOCKS):
        bits.ue(3, 0, 0).fixed(1, 1)
    return bits.unit(_IDR)


def _repeating_slice(number: int) -> bytes:
    # Slice type 5, with all macroblocks skipped.
    bits = _Bits().ue(0, 5, 0).fixed(number % 16, 4).fixed(0, 3).ue(0).ue(1).ue(BLOCKS)
    return bits.unit(_SLICE)


SPS, PPS = _parameter_sets()
_KEY: Final = _key_slice()
_REPEATS: Final = tuple(_repeating_slice(number) for number in range(16))


def header() -> bytes:
    """The body of the tag that goes first: FLV 10.1 §E.4.3.1 with the sets of the pictures."""
    record = bytes([1, *SPS[1:4], 0xFF, 0xE1]) + len(SPS).to_bytes(2, "big") + SPS
    return b"\x17\0\0\0\0" + record + b"\1" + len(PPS).to_bytes(2, "big") + PPS


def picture(number: int, now_ns: int, size: int) -> bytes:
    """The body of the tag of one picture, filled up to `size` bytes."""
    at = number % GROUP
    units = [sei_unit(number, now_ns), _KEY if at == 0 else _REPEATS[at % 16]]
    body = b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)
    head = bytes([0x17 if at == 0 else 0x27, AvcPacketType.NALU, 0, 0, 0])
    fill = size - len(head) - len(body) - 6
    if fill > 0:
        body += (fill + 2).to_bytes(4, "big") + bytes([_FILLER]) + b"\xff" * fill + b"\x80"
    return head + body


def sound(number: int, now_ns: int) -> bytes:
    """20 ms of G.711 with a mark."""
    marked = mark(number, now_ns)
    return marked + SILENCE[len(marked) :]


class MadeFilm:
    """Pictures and sound without an end, at a bit rate."""

    def __init__(self, bps: float, *, video: bool = True) -> None:
        self._size = int(bps / 8 / FPS) if video else 0

    def start(self) -> Iterator[Item]:
        """What a publisher sends first."""
        if self._size:
            yield Item(TagType.VIDEO, 0, header(), is_header=True)

    def at(self, turn: int, now_ns: int) -> Iterator[Item]:
        """What is due `turn` times 20 ms after the start."""
        time_ms = turn * SOUND_MS
        if self._size and turn % 2 == 0:
            number = turn // 2
            body = picture(number, now_ns, self._size)
            yield Item(TagType.VIDEO, time_ms, body, is_key=number % GROUP == 0)
        yield Item(TagType.AUDIO, time_ms, ULAW + sound(turn, now_ns))


class Recording:
    """A file of FLV, which begins again when it ends.  Raises RemoteError for a broken one."""

    def __init__(self, data: bytes) -> None:
        _, tags = read_flv(data)
        found = [
            Item(
                each.tag_type,
                each.timestamp,
                each.data,
                is_key=each.tag_type == TagType.VIDEO and is_key_frame(each.data),
                is_header=each.tag_type == TagType.VIDEO and is_sequence_header(each.data),
            )
            for each in tags
        ]
        self._items = sorted(found, key=lambda each: each.time_ms)
        last = self._items[-1].time_ms if self._items else 0
        self._length = (last // SOUND_MS + 2) * SOUND_MS
        self._by_turn: dict[int, list[Item]] = {}
        for each in self._items:
            self._by_turn.setdefault(max(0, each.time_ms) // SOUND_MS, []).append(each)

    def start(self) -> Iterator[Item]:
        """Nothing: all that a player needs is at the start of the file."""
        yield from ()

    def at(self, turn: int, now_ns: int) -> Iterator[Item]:
        """What is due `turn` times 20 ms after the start, in whichever round."""
        rounds, within = divmod(turn, self._length // SOUND_MS)
        for each in self._by_turn.get(within, ()):
            time_ms = each.time_ms + rounds * self._length
            yield Item(each.kind, time_ms, each.body, each.is_key, each.is_header)
