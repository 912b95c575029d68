"""What only a server over RTMFP does."""

import argparse
import os

import gevent
from support.limits import patience

from rtmplite.cli import serve
from rtmplite.live.streams import Registry
from rtmplite.net.client.rtmfp_client import RtmfpClient
from rtmplite.net.clock import now
from rtmplite.net.server import access
from rtmplite.net.server.rtmfp_listener import RtmfpListener
from rtmplite.net.server.settings import TransportSettings
from rtmplite.net.server.transports import Transports
from rtmplite.net.settings import parsed
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmp.application import LiveApplication


def test_clients_are_asked_to_leave_a_server_that_is_drained():
    """As with RTMP: E-RTMP v2 §"NetConnection Commands".  The server waits until they have."""
    registry, applications = Registry(), {"live": LiveApplication()}.get
    server = RtmfpListener(
        "127.0.0.1",
        0,
        lambda peer: RtmfpServerConnection(applications, registry, os.urandom, now()),
    )
    server.start()
    client = RtmfpClient.connect("rtmfp://{}:{}/live".format(*server.address))
    stopping = gevent.spawn(server.stop, 30.0, "rtmfp://192.0.2.7/live")
    with patience(20):
        while client.reconnect_to is None:
            gevent.sleep(0.01)
    assert client.reconnect_to == "rtmfp://192.0.2.7/live"
    assert not client.closed and not stopping.ready()
    client.close()
    stopping.get(timeout=20)
    assert server.connections == []


def test_an_operator_says_how_much_memory_all_sessions_may_take():
    """Own design: the budget of the port that listens."""
    parser = argparse.ArgumentParser()
    serve.add_to(parser.add_subparsers())
    words = ["--max-rtmfp-memory", "2000000", "--rtmp", "off", "--rtmfp", "127.0.0.1:0"]
    settings = parsed(serve.ServeSettings, parser.parse_args(["serve", *words]))
    connection_limit, limits = (
        access.connection_limit(settings.limits),
        access.limits(settings.limits),
    )
    ways = Transports(TransportSettings.of(settings), {}.get, Registry(), limits, connection_limit)
    assert ways._servers["rtmfp"]._port.endpoint.budget.limit == 2000000
