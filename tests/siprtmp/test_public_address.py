"""A gateway behind a router tells phones outside the address that a STUN server sees."""

import re
import socket
from contextlib import suppress

import pytest
from support.gateway.gateway import Gateway
from support.sip.stun_servers import OUTSIDE, StunServer, outside

from rtmplite.net.client.rtmp_client import RtmpClient
from siprtmp.edge.sip_side import StunSide
from siprtmp.operation.logs import Log


@pytest.fixture
def server():
    running = StunServer()
    yield running
    running.close()


@pytest.fixture
def phone():
    """A phone that is known by a name only, and so counts as outside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        bound.settimeout(20)
        yield bound


def test_a_phone_outside_is_told_the_ports_that_the_router_gives(tmp_path, server, phone):
    """Covers RFC 3261 §8.1.1.8 and RFC 8866 §5.14."""
    asked = ":".join(map(str, server.address))
    with Gateway(tmp_path / "gateway", "--stun", asked, "--domain", "home.example") as gateway:
        gateway.wait_until(lambda: "public-address" in gateway.output, what="the address")
        gateway.wait_until(lambda: len(set(server.asked)) == 9, what="questions about four pairs")
        assert gateway.status()["media_legs"] == 0
        client = RtmpClient.connect(gateway.url("call"))
        with suppress(TimeoutError):  # it would wait until the phone answers
            client.create_stream().publish(f"bob@localhost:{phone.getsockname()[1]}", timeout=0.1)
        invite = phone.recv(65_535).decode()
        port = outside(int(gateway.sip.rpartition(":")[2]))
        assert f"\r\nContact: <sip:call@{OUTSIDE}:{port}" in invite
        assert f"\r\nc=IN IP4 {OUTSIDE}\r\n" in invite
        told = int(re.search(r"^m=audio (\d+)", invite, re.M)[1])
        named = re.search(r"^a=rtcp:(\d+)", invite, re.M)
        rtcp = int(named[1]) if named else told + 1
        assert {told, rtcp} <= {outside(port) for _, port in server.asked}
        client.close()


def test_servers_that_are_silent_or_disagree_are_told_of(caplog):
    side = StunSide(None, None, None, None, Log("test"))
    side.on_silence(("192.0.2.1", 3478))
    side.on_symmetric([("203.0.113.7", 1), ("203.0.113.8", 2)])
    silent, symmetric = caplog.records
    assert (silent.msg, silent.values) == ("stun-silent", {"server": "192.0.2.1:3478"})
    assert symmetric.msg == "nat-symmetric"
    assert symmetric.values == {"addresses": "203.0.113.7:1,203.0.113.8:2"}
