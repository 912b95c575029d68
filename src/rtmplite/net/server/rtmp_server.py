"""A server of applications in a few lines: listeners for RTMP and RTMFP that share all streams.

    with RtmpServer({"live": LiveApplication()}) as server:
        print(*server.addresses["rtmp"])
        server.serve_forever()

Applications are called in the hub: they must not block.
"""

import os
from collections.abc import Mapping
from signal import SIGINT, SIGTERM
from typing import Final, Self, TypeAlias

import gevent
from gevent.event import Event

from rtmplite.live.streams import Registry
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.server.rtmfp_listener import RtmfpListener
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmp.application import applications
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import Application, NetConnection
from rtmplite.rtmp.server import ServerConnection

Address: TypeAlias = tuple[str, int]

LOOPBACK: Final = ("127.0.0.1", 1935)


class RtmpServer:
    """Serves applications, found by the first part of a URL's path; other names are refused.

    `rtmp` and `rtmfp` are the addresses to listen on, None for no such listener, port 0 for a
    free port.  `registry` has the live streams, `limits` what one connection may use.
    """

    def __init__(
        self,
        by_name: Mapping[str, Application],
        *,
        rtmp: Address | None = LOOPBACK,
        rtmfp: Address | None = None,
        registry: Registry | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.registry = registry = Registry() if registry is None else registry
        find, limit = applications(by_name), ConnectionLimit()
        each = ConnectionLimits() if limits is None else limits
        self._servers: dict[str, RtmpListener | RtmfpListener] = {}
        self._stopped = Event()

        def by_chunks(peer: Address) -> ServerConnection:
            return ServerConnection(find, registry, os.urandom, now(), limits=each)

        def by_flows(peer: Address) -> RtmfpServerConnection:
            return RtmfpServerConnection(find, registry, os.urandom, now(), limits=each)

        if rtmp is not None:
            self._servers["rtmp"] = RtmpListener(*rtmp, by_chunks, connection_limit=limit)
        if rtmfp is not None:
            self._servers["rtmfp"] = RtmfpListener(*rtmfp, by_flows, connection_limit=limit)

    def start(self) -> None:
        """Listen.  Raises OSError if an address cannot be had."""
        for server in self._servers.values():
            server.start()

    def stop(self) -> None:
        """Tell every client, and close; a second call does nothing."""
        for server in self._servers.values():
            server.stop()
        self._stopped.set()

    def serve_forever(self) -> None:
        """Serve until SIGINT or SIGTERM comes, or `stop` is called."""
        watchers = [gevent.signal_handler(each, self._stopped.set) for each in (SIGINT, SIGTERM)]
        try:
            self._stopped.wait()
        finally:
            for watcher in watchers:
                watcher.cancel()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def addresses(self) -> dict[str, Address]:
        """Host and port of each listener, by "rtmp" and "rtmfp"."""
        return {name: server.address for name, server in self._servers.items()}

    @property
    def connections(self) -> list[NetConnection]:
        """The clients that are connected, in order of arrival at each listener."""
        return [each for server in self._servers.values() for each in server.connections]
