"""What a worker inherits: its number, its listening sockets, its ends of the bus, shared counts.

Own design: the supervisor opens all of it once, before the first worker, and keeps it open.  So a
worker that is started again finds what its predecessor had, and a client that connects meanwhile
waits in the queue of a socket instead of being refused.
"""

import os
import shutil
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from p2psip.net.driver import PortsElsewhere, SipPorts
from rtmplite.net.addresses import not_had, written
from rtmplite.net.server.rtmp_listener import listening
from siprtmp.edge.workers.kept_figures import KeptFigures
from siprtmp.edge.workers.rtmfp_sockets import ids_of, rtmfp_sockets
from siprtmp.edge.workers.shared_counts import SharedConnectionLimit, SharedCounts
from siprtmp.edge.workers.sip_sockets import sip_ports
from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.table import ListenerSettings

SHARED: Final = ("rtmp", "rtmps", "http")  # the listeners that all workers serve
BACKLOG: Final = 64
_CREDENTIALS: Final = struct.Struct("=iII")  # Source: struct ucred of Linux: pid, uid, gid


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """The place of worker `index` among `count`; the first one is 0.

    `opened` are its sockets by the names of options.  `bus` and `streams` listen for the other
    workers, which find them by `bus_path` and `streams_path` of its index.  The first one has the
    sockets of SIP.
    """

    index: int
    count: int
    folder: Path
    opened: dict[str, socket.socket]
    bus: socket.socket
    streams: socket.socket
    counts: SharedCounts
    kept: KeptFigures
    sip: SipPorts | PortsElsewhere | None = None

    @property
    def is_first(self) -> bool:
        """Whether this worker has what only one process can have."""
        return self.index == 0

    @property
    def session_ids(self) -> range:
        """The RTMFP session IDs of this worker: see `rtmfp_sockets`."""
        return ids_of(self.index, self.count)

    @property
    def others(self) -> list[int]:
        """The numbers of the other workers."""
        return [each for each in range(self.count) if each != self.index]

    def bus_path(self, index: int) -> str:
        """Where a worker takes messages."""
        return str(self.folder / f"bus-{index}")

    def streams_path(self, index: int) -> str:
        """Where a worker gives out its streams."""
        return str(self.folder / f"streams-{index}")

    def limit(self, most: int, most_of_one: int) -> SharedConnectionLimit:
        """Limit the connections of all workers together."""
        return SharedConnectionLimit(self.counts, self.index, most, most_of_one)

    def close(self) -> None:
        """Close the sockets."""
        for each in (*self.opened.values(), self.bus, self.streams):
            each.close()
        if self.sip is not None:
            self.sip.close()


def is_ours(connected: Any) -> bool:
    """Whether a process of the same user is at the other end of a Unix socket."""
    said = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(said)[1] == os.getuid())


def open_places(at: ListenerSettings, count: int) -> list[WorkerPlace]:
    """Open the sockets of all workers.  Raises ConfigError for an address that can't be had.

    The folder of the bus is its owner's alone.  ConfigError also if there can be none.
    """
    shared = {name: _listening(name, getattr(at, name), count) for name in SHARED}
    if at.rtmfp is not None:
        shared["rtmfp"] = rtmfp_sockets(at.rtmfp, count)
    sip = sip_ports(at) if at.sip else None
    elsewhere = None if sip is None else PortsElsewhere(sip)
    folder, counts, kept = Path(_made(count)), SharedCounts(count), KeptFigures(count)
    places = []
    try:
        for index in range(count):
            opened = {name: each[index] for name, each in shared.items() if each}
            bus, streams = (_local(folder / f"{name}-{index}") for name in ("bus", "streams"))
            of_sip = elsewhere if index else sip
            place = WorkerPlace(index, count, folder, opened, bus, streams, counts, kept, of_sip)
            places.append(place)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _no_folder(count, error, f"{folder}: ") from None
    return places


def close_places(places: Sequence[WorkerPlace]) -> None:
    """Close all sockets, and delete the folder."""
    for place in places:
        place.close()
    remove_folder(places[0])


def remove_folder(place: WorkerPlace) -> None:
    """Delete the folder of the bus."""
    shutil.rmtree(place.folder, ignore_errors=True)


def _made(count: int) -> str:
    try:
        return mkdtemp(prefix="siprtmp-")
    except OSError as error:
        raise _no_folder(count, error) from None


def _no_folder(count: int, error: OSError, at: str = "") -> ConfigError:
    reason = error.strerror or error  # without a number if a path is too long
    return ConfigError(f"--workers {count}: {at}{reason}: another TMPDIR may do")


def _listening(name: str, at: tuple[str, int] | None, count: int) -> list[socket.socket]:
    """Open a socket for each worker at one address, between which the system divides clients.

    The first attempt is without SO_REUSEPORT, since that would share the port of another gateway.
    """
    if at is None:
        return []
    host, port = at
    try:
        trial = listening(host, port)
        port = trial.getsockname()[1]
        trial.close()
        several = partial(listening, host, port, socket.SO_REUSEPORT)
        return [several() for _ in range(count)]
    except OSError as error:
        raise ConfigError(f"--{name} {written(*at)}: {not_had(error, at[1])}") from None


def _local(path: Path) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        opened.bind(str(path))
        opened.listen(BACKLOG)
    finally:
        os.umask(mask)
    return opened
