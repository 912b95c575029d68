"""A large audience for a long time: one publisher, and every message of every player accounted for.

`load.drive` keeps each frame's latency in a list, which after ten minutes of 500 players would be
twenty million; here they go into classes of `STEP_NS`. Each player has a count, and the sum of the
stamps that it got: equal sums mean that nothing came twice in place of something lost.
"""

import gc
import select
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from load import DRAIN, INTERVAL, WARM_UP
from rtmp_load import Player, Publisher, Session

STEP_NS = 50_000  # how finely latencies are told apart
SECOND = round(1 / INTERVAL)  # turns of the publisher
NARROW, SMALL = 1448, 4096  # a segment of Ethernet; a small receive buffer, in bytes


class Attendance:
    """What each of an audience should have got, what it got, and how late."""

    def __init__(self, players: int) -> None:
        self.sent = 0  # to each
        self.counts, self.sums = [0] * players, [0] * players
        self._late = Counter[int]()
        self._begin = self._end = 1 << 63

    def begin(self) -> None:
        """Count what is stamped from now on."""
        self._begin = time.monotonic_ns()

    def end(self) -> None:
        """Count only what was stamped before now; it may still be on its way."""
        self._end = time.monotonic_ns()

    def went(self, made: int, frames: int) -> None:
        """So many frames were sent at `made`."""
        if self._begin <= made < self._end:
            self.sent += frames

    def came(self, player: int, stamps: Iterable[int]) -> None:
        """These frames have arrived."""
        now = time.monotonic_ns()
        for made in stamps:
            if self._begin <= made < self._end:
                self.counts[player] += 1
                self.sums[player] += made
                self._late[(now - made) // STEP_NS] += 1

    @property
    def lost(self) -> int:
        """Frames that never arrived, of all players; one that got other things lost one at least.

        What most players got is what was sent.
        """
        common, _ = Counter(zip(self.counts, self.sums, strict=True)).most_common(1)[0]
        pairs = zip(self.counts, self.sums, strict=True)
        return sum(max(abs(self.sent - count), (count, total) != common) for count, total in pairs)

    @property
    def worst(self) -> int:
        """The most that any one player lost."""
        return max(self.sent - count for count in self.counts)

    def percentile_ms(self, percent: float) -> float:
        """The latency that `percent` of the frames stayed within, in ms."""
        left = sum(self._late.values()) * percent / 100
        for step in sorted(self._late):
            left -= self._late[step]
            if left <= 0:
                return (step + 1) * STEP_NS / 1e6
        return 0.0


class Stopped:
    """A player that has stopped reading.

    Its segments are those of Ethernet: over those of the loopback, of 64 KiB, the system itself
    would take in a minute of stream before the server notices anything.
    """

    def __init__(self, url: str, name: str) -> None:
        self._session = Session(url, prepare=_narrow)
        self._session.play(name)

    def close(self) -> None:
        """Close the socket."""
        self._session.close()


def attend(
    publisher: Publisher,
    players: Sequence[Player],
    seconds: float,
    on_window: Callable[[bool], None],
    on_second: Callable[[float], None],
) -> Attendance:
    """Publish for `seconds` after warming up; `on_window(True)` begins it, False ends it.

    `on_second` is called with the time in the window, about once a second, between two frames.
    """
    attendance = Attendance(len(players))
    with select.epoll() as poller:
        by_fd = {player.fileno(): (number, player) for number, player in enumerate(players)}
        for fd in (publisher.fileno(), *by_fd):
            poller.register(fd, select.EPOLLIN)

        def serve(until: float) -> None:
            while (left := until - time.monotonic()) > 0:
                for fd, _ in poller.poll(0 if left < 0.002 else left - 0.001):
                    if fd in by_fd:
                        number, player = by_fd[fd]
                        attendance.came(number, player.receive())
                    else:
                        publisher.receive()

        gc.freeze()  # or a collection now and then would look like a slow server
        start = time.monotonic()
        rounds, warm = int((WARM_UP + seconds) / INTERVAL), int(WARM_UP / INTERVAL)
        for turn in range(rounds):
            if turn == warm:
                attendance.begin()
                on_window(True)
            serve(start + turn * INTERVAL)
            attendance.went(time.monotonic_ns(), publisher.send())
            if turn >= warm and (turn - warm) % SECOND == 0:
                on_second((turn - warm) * INTERVAL)
        serve(start + rounds * INTERVAL)
        attendance.end()
        on_window(False)
        serve(time.monotonic() + DRAIN)
    return attendance


def _narrow(connecting: socket.socket) -> None:
    connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, NARROW)
    connecting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
