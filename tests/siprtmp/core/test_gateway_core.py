"""What is composed once is the same for operators, for programs and for tests."""

import ast

import pytest
from support.gateway.gateway_world import GatewayWorld
from support.pages import REPO
from support.sip.homes import Home

from p2psip import SipServer
from p2psip.server import domain_server
from p2psip.server.proxy import Proxy
from siprtmp.calls.conference.room_app import RoomApplication
from siprtmp.core import gateway_core
from siprtmp.edge.gateway import Gateway
from siprtmp.settings.table import Settings

FREE = ("127.0.0.1", 0)
PARTS = {  # what a composer makes, and a helper of the tests does not
    *("Registrar", "Proxy", "SipElement", "Domains", "DigestServer", "Tolls", "NameRights"),
    *("CallContext", "SipApplication", "CallApplication", "RoomApplication", "MixedCalls"),
    *("Routes", "AuditLog"),
}


@pytest.fixture
def core():
    """That of a gateway at its sockets, made when it is called."""
    made = []

    def make():
        gateway = Gateway(
            Settings.of(rtmp=FREE, rtmfp=None, sip=(FREE,), http=None, room=("team",))
        )
        made.append(gateway)
        gateway.start()
        return gateway.sip.core

    yield make
    for gateway in made:
        gateway.stop()


@pytest.mark.sources
def test_another_part_of_the_domains_is_in_every_server(monkeypatch, core):
    class Other(Proxy):
        """It stands for a part that is new."""

    monkeypatch.setattr(domain_server, "Proxy", Other)
    servers = [Home(), core().server, GatewayWorld().gateway.core.server]
    assert [type(each.proxy) for each in servers] == [Other] * 3
    with SipServer([FREE]) as server:
        assert any(isinstance(each, Other) for each in server._driver.machines)


def test_another_application_is_in_the_gateway_and_in_the_world_of_the_tests(monkeypatch, core):
    class Other(RoomApplication):
        """It stands for a part that is new."""

    monkeypatch.setattr(gateway_core, "RoomApplication", Other)
    world = GatewayWorld()
    assert isinstance(core().applications["room"], Other)
    assert isinstance(world.application_for("room"), Other)


def test_the_helpers_of_tests_connect_no_parts_of_their_own():
    found = [
        f"{path.name}:{node.lineno} {node.func.id}"
        for path in (REPO / "tests" / "support").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in PARTS
    ]
    assert found == []
