"""RTMP between the workers of one server, over Unix sockets.

Own design: a worker takes a stream from another one as any player would, so that nothing new has to
be written for it: one player more for the worker that has the publisher, and the messages come in
the form in which all players get them.
"""

import os
import socket
from collections.abc import Callable
from typing import Any

from gevent import socket as waiting_socket

from rtmplite.live.streams import LiveStream, Registry
from rtmplite.net.client.dialer import Dialer
from rtmplite.net.clock import now
from rtmplite.net.tcp_connections import WATCH_READ, Socket, TcpConnections
from rtmplite.relay.link import ReconnectBackoff
from rtmplite.relay.pull import Pull
from rtmplite.relay.session import ChunkSession
from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import NetConnection
from rtmplite.rtmp.netstream import ServerStream
from rtmplite.rtmp.server import ServerConnection
from siprtmp.edge.workers.place import is_ours

BACKOFF = ReconnectBackoff(first=0.1, most=1.0)
MAX_CONNECTIONS = 10_000  # the streams that other workers take
NOBODY = ("127.0.0.1", 0)  # as the address of a peer without one


class Copy(Pull):
    """A stream that is taken from worker `owner`, for the players here."""

    is_copy = True

    def __init__(
        self,
        live: LiveStream,
        owner: int,
        dial: Callable[[Any], None],
        limits: ConnectionLimits,
    ) -> None:
        host = f"worker-{owner}"
        target = Target(host, owner, live.app, live.name, f"rtmp://{host}/{live.app}")
        super().__init__(live, target, dial, os.urandom, BACKOFF)
        self.owner, self._limits = owner, limits


class LocalDialer(Dialer):
    """Connects to other workers; `path` gives the socket of one by its number."""

    def __init__(self, path: Callable[[int], str], merge_ms: float) -> None:
        super().__init__(merge_ms=merge_ms)
        self._path = path

    def _dial(self, machine: ChunkSession) -> None:
        connecting = waiting_socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connecting.connect(self._path(machine.target.port))
        except OSError as error:
            connecting.close()
            machine.transport.connection_lost(now(), error.strerror or str(error))
            return
        connected = Socket(fileno=connecting.detach())
        if machine.closed:
            connected.close()
            return
        connected.setblocking(False)
        machine.transport.peer_address = NOBODY
        self.adopt(connected, machine)


class LocalListener(TcpConnections[ServerConnection]):
    """Gives the streams that are published here to the other workers.

    They may wait for those that are pulled here, by `pulls(app, name)`.
    """

    def __init__(
        self,
        listener: socket.socket,
        registry: Registry,
        limits: ConnectionLimits,
        merge_ms: float,
        pulls: Callable[[str, str], bool],
    ) -> None:
        super().__init__(merge_ms)
        listener.setblocking(False)
        self._listener, self._registry, self._limits = listener, registry, limits
        self._application = _OwnStreams(pulls)
        self._acceptor = self._loop.io(listener.fileno(), WATCH_READ)

    def start(self) -> None:
        """Listen."""
        self._acceptor.start(self._accept)
        super().start()

    def stop(self) -> None:
        """Close all."""
        self._acceptor.stop()
        self._acceptor.close()
        self._listener.close()
        super().stop()

    @property
    def players(self) -> int:
        """The streams that other workers play now."""
        streams = (each for one in self.connections for each in one.streams.values())
        return sum(stream.is_used for stream in streams)

    def _accept(self) -> None:
        try:
            connected, _ = self._listener.accept()
        except OSError:
            return
        if not is_ours(connected) or len(self.connections) >= MAX_CONNECTIONS:
            connected.close()
            return
        connected.setblocking(False)
        machine = ServerConnection(
            lambda name: self._application, self._registry, os.urandom, now(), limits=self._limits
        )
        machine.transport.peer_address = NOBODY
        self.adopt(connected, machine)


class _OwnStreams(OpenApplication):
    """Plays the streams whose publishers are here, of all applications, and those of `pulls`."""

    def __init__(self, pulls: Callable[[str, str], bool]) -> None:
        self._pulls = pulls

    def on_play(
        self, connection: NetConnection, stream: ServerStream, name: str, now: float
    ) -> None:
        live = connection.registry.get(connection.app, name)
        is_here = live is not None and live.publishing
        if not is_here and self._pulls(connection.app, name):
            live = connection.registry.open(connection.app, name)
        elif not is_here or live is None or live.is_copy:
            stream.reject_play("NetStream.Play.StreamNotFound", "It has ended.", now)
            return
        stream.accept_play(live, now)
