"""NAL units out of a stream of packets, and word of those that are missing.

Implements RFC 6184 §7.1, with the losses of §5.8.

Packets come in the order of their extended sequence numbers, as `ReorderBuffer` lets them go.  A
NAL unit comes out whole; for what does not come out there is an `H264Damage`.

    >>> unpacker = H264Unpacker()
    >>> unpacker.push(7, 3000, False, bytes.fromhex("7c8501"))
    []
    >>> unpacker.push(9, 3000, True, bytes.fromhex("7c4503"))
    [H264Damage(since=3000, until=3000, lost=1, reason='packets lost')]
    >>> unpacker.push(10, 6000, True, bytes.fromhex("4101"))
    [NalUnit(data=b'A\\x01', timestamp=6000, last=True)]
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from p2psip.errors import RemoteError
from p2psip.rtp.payload.h264 import FORBIDDEN, Fragment, read_h264

MAX_UNIT_OCTETS: Final = 1 << 22  # of one NAL unit, Own design: memory must be bounded


@dataclass(frozen=True, slots=True)
class NalUnit:
    """A whole NAL unit (§5.3); `last` says that its packet ended an access unit: §5.1."""

    data: bytes
    timestamp: int
    last: bool

    @property
    def kind(self) -> int:
        """The type of the NAL unit, 1 to 23: §5.3."""
        return self.data[0] & 0x1F


@dataclass(frozen=True, slots=True)
class H264Damage:
    """Something is missing at these timestamps and between: §5.8; `lost` packets never came."""

    since: int
    until: int
    lost: int
    reason: str


Unpacked: TypeAlias = NalUnit | H264Damage
"""What `H264Unpacker` gives: §7.1."""


class H264Unpacker:
    """Puts fragments together, and notices what is missing: §7.1."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._timestamp = 0
        self._header: int | None = None  # of the NAL unit that is being put together
        self._parts: list[bytes] = []
        self._octets = 0
        self._skipping = False  # fragments whose beginning is lost, as reported

    def push(
        self, sequence: int, timestamp: int, marker: bool, payload: bytes | memoryview
    ) -> list[Unpacked]:
        """Take the next packet, by its extended number (RFC 3550 §A.1); a late one is dropped."""
        out: list[Unpacked] = []
        if self._next is not None and sequence != self._next:
            if sequence < self._next:
                return out
            lost = sequence - self._next
            out.append(H264Damage(self._timestamp, timestamp, lost, "packets lost"))
            self._forget()
            self._skipping = True  # §5.8 [rest-discarded], RFC 7798 §4.4.3 [rest-discarded]
        self._next = sequence + 1
        if self._header is not None and timestamp != self._timestamp:
            self._give_up(timestamp, out, "a NAL unit without an end")
        self._timestamp = timestamp
        try:
            content = self._read(payload)
        except RemoteError as error:
            self._forget()
            out.append(H264Damage(timestamp, timestamp, 0, error.reason))
            return out
        if not isinstance(content, tuple):
            self._fragment(content, timestamp, marker, out)
            return out
        self._skipping = False
        if self._header is not None:
            self._give_up(timestamp, out, "a NAL unit without an end")
        for at, unit in enumerate(content, 1):  # §7.1 [order-of-the-packet]
            # §5.1 [aggregate-marker]
            self._unit(unit, timestamp, marker and at == len(content), out)
        return out

    @property
    def is_between(self) -> bool:
        """Whether no NAL unit is being put together, nor left out: §5.8."""
        return self._header is None and not self._skipping

    def went_on(self, sequence: int, timestamp: int) -> None:
        """Go on with the packet of this number, after one of this time: §7.1."""
        self._next, self._timestamp = sequence, timestamp

    def _fragment(self, part: Fragment, timestamp: int, marker: bool, out: list[Unpacked]) -> None:
        if part.start:
            if self._header is not None:
                self._give_up(timestamp, out, "a NAL unit without an end")
            self._header, self._parts, self._octets = part.header, [], len(part.head)
            self._skipping = False
        elif self._header != part.header:
            if self._header is not None:
                self._give_up(timestamp, out, "a NAL unit without an end")
            elif not self._skipping:
                out.append(H264Damage(timestamp, timestamp, 0, "a NAL unit without a beginning"))
            self._skipping = True
            return
        self._parts.append(part.data)  # §5.8 [joined-in-order]
        self._octets += len(part.data)
        if self._octets > MAX_UNIT_OCTETS or len(self._parts) > MAX_UNIT_OCTETS >> 6:
            self._give_up(timestamp, out, "a NAL unit that is too long")
            self._skipping = True
        elif part.end:
            whole = b"".join((part.head, *self._parts))  # §7.1 [fragments-in-order]
            self._forget()
            self._unit(whole, timestamp, marker, out)

    @staticmethod
    def _read(payload: bytes | memoryview) -> tuple[bytes, ...] | Fragment:
        return read_h264(payload)

    def _unit(self, unit: bytes, timestamp: int, last: bool, out: list[Unpacked]) -> None:
        if unit[0] & FORBIDDEN:  # §5.3 [errors-are-a-loss]
            out.append(H264Damage(timestamp, timestamp, 0, "a NAL unit with errors"))
        else:
            out.append(NalUnit(unit, timestamp, last))

    def _give_up(self, timestamp: int, out: list[Unpacked], reason: str) -> None:
        out.append(H264Damage(self._timestamp, timestamp, 0, reason))
        self._forget()

    def _forget(self) -> None:
        self._header, self._parts, self._octets, self._skipping = None, [], 0, False
