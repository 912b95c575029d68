"""Which address of ours a peer is told, where a router forwards another one to us."""

import pytest

from p2psip.net.local_network import LocalNetwork, is_inside

OUTSIDE = "203.0.113.7"


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("10.1.2.3", True),
        ("172.31.0.1", True),
        ("172.32.0.1", False),
        ("192.168.1.20", True),
        ("127.0.0.1", True),
        ("fd00::7", True),
        ("fe80::1", True),
        ("198.51.100.9", False),
        ("2001:db8::9", False),
        ("phone.example", False),
    ],
)
def test_who_is_inside(host, inside):
    assert is_inside(host) == inside


@pytest.mark.parametrize(
    ("external", "peers", "told"),
    [
        (OUTSIDE, ["192.168.1.20"], "192.168.1.10"),
        (OUTSIDE, ["192.168.1.20", "10.0.0.9"], "192.168.1.10"),
        (OUTSIDE, ["192.168.1.20", "198.51.100.9"], OUTSIDE),  # one offer for both of them
        (OUTSIDE, ["198.51.100.9"], OUTSIDE),
        (OUTSIDE, ["example.org"], OUTSIDE),
        (OUTSIDE, [], OUTSIDE),
        (None, ["192.168.1.20"], "192.168.1.10"),
        ("10.9.9.9", ["192.168.1.20"], "10.9.9.9"),  # of a container's host, say
    ],
)
def test_a_phone_of_the_local_network_is_told_the_inside_address(external, peers, told):
    assert LocalNetwork("192.168.1.10", external).host_for(peers) == told


def test_a_listener_on_every_interface_tells_the_one_that_leads_there():
    network = LocalNetwork("0.0.0.0", OUTSIDE)
    assert network.host_for(["127.0.0.1"]) == network.own_address("127.0.0.1") == "127.0.0.1"
    assert network.own_address("198.51.100.9") is None


@pytest.mark.parametrize(
    ("peers", "told"),
    [
        (["2001:db8::9"], "2001:db8::1"),
        (["fe80::9"], "2001:db8::1"),
        (["2001:db8::9", "198.51.100.9"], OUTSIDE),
        (["198.51.100.9"], OUTSIDE),
        (["192.168.1.20"], "192.168.1.10"),
        (["phone.example"], OUTSIDE),
        ([], OUTSIDE),
    ],
)
def test_peers_of_the_other_family_are_told_the_address_of_that(peers, told):
    """Covers RFC 8866 §5.7: of two families media has the peer's."""
    assert LocalNetwork("192.168.1.10", OUTSIDE, "2001:db8::1").host_for(peers) == told
