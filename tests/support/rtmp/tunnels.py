"""A server of RTMPT with real sockets."""

import os
from contextlib import contextmanager

from rtmplite.live.streams import Registry
from rtmplite.net.clock import now
from rtmplite.net.http.rtmpt import TunnelServer
from rtmplite.rtmp.server import ServerConnection


@contextmanager
def tunnel_server(application):
    """A running server whose application `live` is this one."""
    registry = Registry()

    def connection(address):
        return ServerConnection({"live": application}.get, registry, os.urandom, now())

    made = TunnelServer("127.0.0.1", 0, connection)
    made.budget = registry.budget
    made.start()
    yield made
    made.stop()
