"""The packet pump in the event loop: one watcher for the RTP sockets of all calls.

Own design: the C of `_pump.c` has an epoll of its own, which the loop watches as one descriptor.
Where it is not compiled, or `SIPRTMP_PURE` is set, there is none, and each port watches its socket.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gevent import get_hub

if TYPE_CHECKING:
    from siprtmp.pump._pump import Flow
    from siprtmp.pump._to_phone import ToPhone

_READ: Final = 1  # the event an io watcher waits for, in libev's numbers


class PumpFigures(NamedTuple):
    """Packets of phones that were handled here and that were not; messages to phones likewise."""

    passed: int = 0
    handed: int = 0
    sent: int = 0
    taken: int = 0


class PacketPump:
    """The usual packets of calls, without Python; raises ImportError where it is not compiled."""

    def __init__(self) -> None:
        from siprtmp.pump._pump import Pump
        from siprtmp.pump._to_phone import ToPhone, figures

        self._pump, self._make_outlet, self._sent = Pump(), ToPhone, figures
        self._watcher: Any = get_hub().loop.io(self._pump.fileno(), _READ, ref=False)
        self._watcher.start(self._pump.turn)

    def open(
        self,
        fd: int,
        take: Callable[[bytes, Any, float], None],
        failed: Callable[[Exception], None],
    ) -> "Flow":
        """Read a socket: `take(data, source, now)` is given all that is not handled here."""
        return self._pump.open(fd, take, failed)

    def outlet(self, fd: int, take: Callable[..., None]) -> "ToPhone":
        """Send by a socket: `take` is given the published messages that are not sent here."""
        return self._make_outlet(fd, take)

    def close(self) -> None:
        """Read no more."""
        self._watcher.stop()
        self._watcher.close()

    @property
    def figures(self) -> PumpFigures:
        """The counts so far."""
        return PumpFigures(self._pump.passed, self._pump.handed, *self._sent())


def packet_pump() -> PacketPump | None:
    """A pump, or None where Python handles all packets."""
    if os.environ.get("SIPRTMP_PURE"):
        return None
    try:
        return PacketPump()
    except ImportError:
        return None
