"""Which hosts and addresses a list of the operator's admits."""

import pytest

from siprtmp.web.resources.told_hosts import ToldHost, ToldHosts

INSIDE = (
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%lo", "fd00::1", "ff02::1"),
    *("::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::"),
)
OUTSIDE = ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8")


@pytest.mark.parametrize("address", INSIDE)
def test_no_address_of_the_inside_is_admitted_by_a_name_or_by_all_networks(address):
    """Covers Resources §13.2 [public-unless-listed]."""
    hosts = ToldHosts(["crm.example", "0.0.0.0/0", "::/0"])
    assert not hosts.admits("crm.example", address, 443)
    assert not hosts.admits(address, address, 443)
    assert hosts.admits("crm.example", "8.8.8.8", 443)
    assert not hosts.admits("crm.example", "8.8.8.8", 444)
    assert ToldHosts(["crm.example"]).admits("crm.example", "8.8.8.8", 443)


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_is_admitted_by_its_name_or_its_network(address):
    assert ToldHosts(["crm.example"]).admits("CRM.example.", address, 443)
    assert not ToldHosts(["crm.example"]).admits("other.example", address, 443)
    assert not ToldHosts(["crm.example"]).admits("crm.example", address, 8443)
    assert ToldHosts(["0.0.0.0/0", "::/0"]).admits("other.example", address, 80)


@pytest.mark.parametrize(
    ("entry", "address", "port"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("127.0.0.1:8080", "::ffff:127.0.0.1", 8080),
        ("10.0.0.0/8", "10.1.2.3", 443),
        ("[fd00::/8]:8080", "fd00::1", 8080),
        ("fe80::/10", "fe80::1%lo", 80),
        ("::1", "::1", 80),
    ],
)
def test_an_address_of_the_inside_is_admitted_by_a_network_of_such(entry, address, port):
    hosts = ToldHosts([entry])
    assert hosts.admits("any.example", address, port)
    assert hosts.may_have("any.example", port) and not hosts.may_have("any.example", port + 1)
    assert not hosts.admits("any.example", address, port + 1)
    assert not hosts.admits("any.example", "127.0.0.9", port)


def test_a_network_that_has_public_addresses_too_admits_those_alone():
    hosts = ToldHosts(["172.0.0.0/8"])
    assert hosts.admits("", "172.217.1.1", 80) and not hosts.admits("", "172.16.0.1", 80)


def test_a_url_is_judged_by_what_is_known_before_its_host_is_looked_up():
    hosts = ToldHosts(["*.crm.example:8080", "10.0.0.0/8:9000"])
    assert hosts.may_have("eu.crm.example", 8080) and not hosts.may_have("crm.example", 8080)
    assert not hosts.may_have("evilcrm.example", 8080)
    assert hosts.may_have("10.1.1.1", 9000) and not hosts.may_have("127.0.0.1", 9000)
    assert not ToldHosts([]).may_have("crm.example", 443) and not ToldHosts([])
    assert not hosts.admits("eu.crm.example", "no address", 8080)


@pytest.mark.parametrize(
    "entry",
    [
        *("", "a b", "1.2.3", "10.0.0.1/8", "crm.example:0", "crm.example:65536", "2130706433"),
        *("http://crm.example", "crm.*", "*", "[crm.example]", "crm.example/8", "a..b"),
    ],
)
def test_what_is_no_host_is_refused(entry):
    with pytest.raises(ValueError, match=r"^'"):
        ToldHost.parse(entry)
