"""Load on a clock: stamped media frames into many legs, bunched or spread, and what came of them.

A leg is one direction of one call or one player. `drive` sends a frame on each leg every 20 ms,
reads whatever arrives, and counts. Every frame carries the time it was sent, so the latency is
that of the server and the two hops through the kernel; the driver spins on its core rather than
oversleep, which is why server and load must have a core each.
"""

import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Arrivals = Literal["bunched", "spread"]

INTERVAL = 0.02  # seconds between the frames of a leg
WARM_UP = 1.0  # seconds before the window
DRAIN = 0.3  # seconds after it, for what is on its way
STAMP = struct.Struct("!xQ")  # monotonic ns behind the first byte of a frame
SPEEX_8K = bytes([0x18]) + bytes(19)  # mode 3: 160 bits
SPEEX_16K = SPEEX_8K + bytes([0x90, 0, 0, 0, 0x07])  # and wideband mode 1, then a terminator
RTP = struct.Struct("!BBHII")
CHUNK = struct.Struct("!B3xBHBB")  # chunk header type 1 of an audio message, with its tag byte


def stamped(frame: bytes) -> bytes:
    """A valid Speex frame that carries the time of its making."""
    return frame[:1] + struct.pack("!Q", time.monotonic_ns()) + frame[9:]


class Leg(Protocol):
    """One direction: where frames go in, and one (perhaps another leg's) where frames come out."""

    def send(self) -> None:
        """Send one stamped frame."""

    def receive(self) -> Iterable[int]:
        """The stamps of all frames that can be read from `fileno` at once."""

    def fileno(self) -> int:
        """The socket to watch."""


@dataclass(slots=True)
class Tally:
    """What was sent and what arrived of it, within the window."""

    sent: int = 0
    received: int = 0
    late_ns: list[int] = field(default_factory=list)

    @property
    def lost(self) -> int:
        """Frames that never arrived."""
        return self.sent - self.received

    def percentile_ms(self, percent: float) -> float:
        """The latency that `percent` of the frames stayed within, in ms."""
        ordered = sorted(self.late_ns)
        return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)] / 1e6


class _Window:
    """Counts only frames stamped within it, so that warming up and draining do not blur it."""

    def __init__(self) -> None:
        self.tally, self.begin, self.end = Tally(), 1 << 63, 1 << 63

    def sent(self, stamp: int) -> None:
        self.tally.sent += self.begin <= stamp < self.end

    def received(self, stamps: Iterable[int]) -> None:
        now = time.monotonic_ns()
        for stamp in stamps:
            if self.begin <= stamp < self.end:
                self.tally.received += 1
                self.tally.late_ns.append(now - stamp)


def drive(
    legs: Sequence[Leg],
    seconds: float,
    arrivals: Arrivals,
    on_window: Callable[[bool], None],
    copies: int = 1,
) -> Tally:
    """Run the load for `seconds` after warming up; `on_window(True)` begins it, False ends it.

    `copies` is how many frames should arrive for each that is sent (players of a stream).
    """
    with select.epoll() as poller:
        by_fd = {leg.fileno(): leg for leg in legs}
        for fd in by_fd:
            poller.register(fd, select.EPOLLIN)
        window = _Window()

        def serve(until: float) -> None:
            while (left := until - time.monotonic()) > 0:
                for fd, _ in poller.poll(0 if left < 0.002 else left - 0.001):
                    window.received(by_fd[fd].receive())

        step = INTERVAL / len(legs) if arrivals == "spread" else 0.0
        start = time.monotonic()
        rounds, warm = int((WARM_UP + seconds) / INTERVAL), int(WARM_UP / INTERVAL)
        for turn in range(rounds):
            if turn == warm:
                window.begin = time.monotonic_ns()
                on_window(True)
            for number, leg in enumerate(legs):
                serve(start + turn * INTERVAL + number * step)
                window.sent(time.monotonic_ns())
                leg.send()
        serve(start + rounds * INTERVAL)
        window.end = time.monotonic_ns()
        on_window(False)
        serve(time.monotonic() + DRAIN)
    window.tally.sent *= copies
    return window.tally


class Phone:
    """A phone's RTP socket: frames in RTP to `target`, frames in RTP from wherever."""

    def __init__(self, target: tuple[str, int], frame: bytes) -> None:
        """`frame` is SPEEX_8K or SPEEX_16K."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self._target, self._frame, self._sequence = target, frame, 0
        self._ticks = 320 if len(frame) > len(SPEEX_8K) else 160

    def fileno(self) -> int:
        """The socket to watch."""
        return self.socket.fileno()

    def send(self) -> None:
        """One RTP packet."""
        number, self._sequence = self._sequence, self._sequence + 1
        header = RTP.pack(0x80, 97, number & 0xFFFF, number * self._ticks & 0xFFFFFFFF, 1)
        self.socket.sendto(header + stamped(self._frame), self._target)

    def receive(self) -> list[int]:
        """One datagram a wake-up, as a phone does."""
        data = self.socket.recv(2048)
        return [STAMP.unpack_from(data, RTP.size)[0]]


class RelayClient:
    """The relay's TCP side: frames as one-chunk audio messages, both ways."""

    def __init__(self, port: int, frame: bytes) -> None:
        """Connect; the relay gives the next of its UDP ports to this connection."""
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self._frame, self._buffer = frame, b""

    def fileno(self) -> int:
        """The socket to watch."""
        return self.socket.fileno()

    def send(self) -> None:
        """One message."""
        header = CHUNK.pack(0x44, 0, len(self._frame) + 1, 8, 0xB2)
        self.socket.sendall(header + stamped(self._frame))

    def receive(self) -> list[int]:
        """The stamps of all whole messages."""
        data, at, stamps = self._buffer + self.socket.recv(65536), 0, []
        while at + CHUNK.size <= len(data):
            _, _, body, _, _ = CHUNK.unpack_from(data, at)
            end = at + CHUNK.size - 1 + body
            if end > len(data):
                break
            stamps.append(STAMP.unpack_from(data, at + CHUNK.size)[0])
            at = end
        self._buffer = data[at:]
        return stamps
