"""What only a server over RTMFP does."""

import os

import gevent

from rtmplite.net.clock import now
from rtmplite.net.rtmfp_client import RtmfpClient
from rtmplite.net.rtmfp_server import RtmfpServer
from rtmplite.rtmfp.flash_server import RtmfpServerConnection
from rtmplite.rtmp.live import LiveApplication
from rtmplite.streams import Registry


def test_clients_are_asked_to_leave_a_server_that_is_drained():
    """As with RTMP: E-RTMP v2 §"NetConnection Commands".  The server waits until they have."""
    registry, applications = Registry(), {"live": LiveApplication()}.get
    server = RtmfpServer(
        "127.0.0.1",
        0,
        lambda peer: RtmfpServerConnection(applications, registry, os.urandom, now()),
    )
    server.start()
    client = RtmfpClient.connect("rtmfp://{}:{}/live".format(*server.address))
    stopping = gevent.spawn(server.stop, 30.0, "rtmfp://192.0.2.7/live")
    with gevent.Timeout(5):
        while client.reconnect_to is None:
            gevent.sleep(0.01)
    assert client.reconnect_to == "rtmfp://192.0.2.7/live"
    assert not client.closed and not stopping.ready()
    client.close()
    stopping.get(timeout=5)
    assert server.connections == []
