"""A gateway without sockets, a phone, and a rich client who is logged in."""

import pytest
from support.gateway.gateway_world import Desk, GatewayWorld


@pytest.fixture
def world():
    """Everything, at time 0."""
    return GatewayWorld()


@pytest.fixture
def desk(world):
    """A phone that answers with PCMU."""
    return Desk(world.link)


@pytest.fixture
def alice(world):
    """alice@home, who needs no password here."""
    alice = world.rich("alice@home")
    assert alice.connected
    return alice
