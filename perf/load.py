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
_TIME = struct.Struct("!Q")
SPEEX_8K = bytes([0x18]) + bytes(19)  # mode 3: 160 bits
SPEEX_16K = SPEEX_8K + bytes([0x90, 0, 0, 0, 0x07])  # and wideband mode 1, then a terminator
RTP = struct.Struct("!BBHII")
CHUNK = struct.Struct("!B3xBHBB")  # chunk header type 1 of an audio message, with its tag byte


def stamp(body: bytes, at: int = 1) -> bytes:
    """The same bytes but for the time of their making, which is written at offset `at`."""
    return body[:at] + _TIME.pack(time.monotonic_ns()) + body[at + 8 :]


class Reader(Protocol):
    """Where frames come out."""

    def receive(self) -> Iterable[int]:
        """The stamps of all frames that can be read from `fileno` at once."""

    def fileno(self) -> int:
        """The socket to watch."""

    def close(self) -> None:
        """Close the socket."""


class Leg(Reader, Protocol):
    """One direction: where frames go in, and one (perhaps another leg's) where frames come out."""

    def send(self) -> int:
        """Send the stamped frames of 20 ms, mostly one; how many they were."""


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
        if not self.late_ns:
            return 0.0
        ordered = sorted(self.late_ns)
        return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)] / 1e6


class _Window:
    """Counts only frames stamped within it, so that warming up and draining do not blur it."""

    def __init__(self) -> None:
        self.tally, self.begin, self.end = Tally(), 1 << 63, 1 << 63

    def sent(self, made: int, frames: int) -> None:
        self.tally.sent += frames * (self.begin <= made < self.end)

    def received(self, stamps: Iterable[int]) -> None:
        now = time.monotonic_ns()
        for made in stamps:
            if self.begin <= made < self.end:
                self.tally.received += 1
                self.tally.late_ns.append(now - made)


def drive(
    legs: Sequence[Leg],
    seconds: float,
    arrivals: Arrivals,
    on_window: Callable[[bool], None],
    audience: Sequence[Reader] | None = None,
    warm_up: float | None = None,
) -> Tally:
    """Run the load for `seconds` after `warm_up` (`WARM_UP` without a word).

    `on_window(True)` begins the window, False ends it.

    Every frame should arrive once; with an `audience`, once at each of its members.
    """
    warm_up = WARM_UP if warm_up is None else warm_up
    with select.epoll() as poller:
        by_fd: dict[int, Reader] = {leg.fileno(): leg for leg in (*legs, *(audience or ()))}
        for fd in by_fd:
            poller.register(fd, select.EPOLLIN)
        window = _Window()

        def serve(until: float) -> None:
            while (left := until - time.monotonic()) > 0:
                for fd, _ in poller.poll(0 if left < 0.002 else left - 0.001):
                    window.received(by_fd[fd].receive())

        step = INTERVAL / len(legs) if arrivals == "spread" else 0.0
        start = time.monotonic()
        rounds, warm = int((warm_up + seconds) / INTERVAL), int(warm_up / INTERVAL)
        for turn in range(rounds):
            if turn == warm:
                window.begin = time.monotonic_ns()
                on_window(True)
            for number, leg in enumerate(legs):
                serve(start + turn * INTERVAL + number * step)
                made = time.monotonic_ns()
                window.sent(made, leg.send())
        serve(start + rounds * INTERVAL)
        window.end = time.monotonic_ns()
        on_window(False)
        serve(time.monotonic() + DRAIN)
    if audience is not None:
        window.tally.sent *= len(audience)
    return window.tally


class Phone:
    """A phone's RTP socket: frames in RTP to `target`, frames in RTP from wherever."""

    def __init__(
        self, frame: bytes, payload_type: int = 97, *, target: tuple[str, int] | None = None
    ) -> None:
        """`frame` is SPEEX_8K or SPEEX_16K."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.setblocking(False)
        self.payload_type = payload_type
        self._frame, self._sequence = frame, 0
        self._ticks = 320 if len(frame) > len(SPEEX_8K) else 160
        if target is not None:
            self.aim(target)

    def aim(self, target: tuple[str, int]) -> None:
        """Send there, and hear nobody else."""
        self.socket.connect(target)

    def fileno(self) -> int:
        """The socket to watch."""
        return self.socket.fileno()

    def send(self) -> int:
        """One RTP packet."""
        number, self._sequence = self._sequence, self._sequence + 1
        header = RTP.pack(
            0x80, self.payload_type, number & 0xFFFF, number * self._ticks & 0xFFFFFFFF, 1
        )
        self.socket.send(header + stamp(self._frame))
        return 1

    def receive(self) -> list[int]:
        """One datagram a wake-up, as a phone does."""
        data = self.socket.recv(2048)
        return [STAMP.unpack_from(data, RTP.size)[0]]

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


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

    def send(self) -> int:
        """One message."""
        header = CHUNK.pack(0x44, 0, len(self._frame) + 1, 8, 0xB2)
        self.socket.sendall(header + stamp(self._frame))
        return 1

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

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()
