"""Who is let in when it is full, whichever door they come to."""

import os

import gevent
import pytest
from gevent import socket
from support.limits import patience

from rtmplite.limits.rate_limit_key import rate_limit_key
from rtmplite.live.streams import Registry
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.connection_limit import ConnectionLimit
from rtmplite.net.http.rtmpt import TunnelServer
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.server import ServerConnection


def test_there_is_room_for_so_many_and_no_more(caplog):
    """In all, and from one address; who leaves makes room."""
    connection_limit = ConnectionLimit(most=3, most_of_one=2)
    assert connection_limit.admits("192.0.2.1") and connection_limit.admits("192.0.2.1")
    assert not connection_limit.admits("192.0.2.1")
    assert connection_limit.admits("192.0.2.2") and not connection_limit.admits("192.0.2.3")
    assert [record.getMessage() for record in caplog.records] == [
        "refusing 192.0.2.1: 2 connections of its own",
        "refusing 192.0.2.3: 3 connections",
    ]
    connection_limit.leaves("192.0.2.1")
    assert connection_limit.admits("192.0.2.3") and len(connection_limit) == 3
    for host in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
        connection_limit.leaves(host)
    assert len(connection_limit) == 0 and not connection_limit._from


@pytest.mark.parametrize(
    ("host", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
    ],
)
def test_an_address_is_what_one_customer_has(host, source):
    """Own design: a /64 of IPv6 is one."""
    assert rate_limit_key(host) == source


def ask(address, path):
    """One RTMPT request: status and body."""
    with socket.create_connection(address, timeout=20) as http:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n"
        http.sendall(head.encode() + b"\0")
        answer = http.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode("latin-1").strip()


def test_listeners_share_their_limits():
    """Two by RTMP and RTMPT together; a tunnel that is closed makes room, and one that is lost."""
    registry, application, connection_limit = Registry(), LiveApplication(), ConnectionLimit(most=2)

    def connection(address):
        return ServerConnection({"live": application}.get, registry, os.urandom, now())

    plain = RtmpListener("127.0.0.1", 0, connection, connection_limit=connection_limit)
    tunnels = TunnelServer("127.0.0.1", 0, connection, connection_limit=connection_limit)
    plain.start()
    tunnels.start()
    url = "rtmp://{}:{}/live".format(*plain.address)
    status, name = ask(tunnels.address, "/open/1")
    first = RtmpClient.connect(url)
    assert status == 200 and len(connection_limit) == 2
    assert ask(tunnels.address, "/open/1")[0] == 503
    with socket.create_connection(plain.address, timeout=20) as third:
        assert third.recv(1) == b""
    assert ask(tunnels.address, f"/close/{name}/0")[0] == 200 and len(connection_limit) == 1
    second = RtmpClient.connect(url)
    second.close()
    with patience(20):
        while len(connection_limit) > 1:
            gevent.sleep(0.01)
    status, name = ask(tunnels.address, "/open/1")
    assert status == 200
    tunnels.stop()
    plain.stop()
    first.close()
    assert len(connection_limit) == 0
