"""What both families need they do alike, though neither knows the other."""

import pytest
from support.host_ports import BAD, GOOD

import p2psip
import rtmplite.errors
from p2psip.net import addresses as sip_addresses
from p2psip.stack.routing import is_loopback as sip_is_loopback
from p2psip.transaction.flow import rate_limit_key as sip_key
from rtmplite.limits.rate_limit_key import rate_limit_key as rtmp_key
from rtmplite.net import addresses as rtmp_addresses
from rtmplite.net.server.access import is_loopback as rtmp_is_loopback
from rtmplite.rtmp.wire import url
from siprtmp.settings.table import is_loopback

READERS = {
    "p2psip": (sip_addresses.parse, p2psip.LocalError),
    "rtmplite": (rtmp_addresses.parse, rtmplite.errors.LocalError),
}


@pytest.mark.parametrize("family", READERS)
@pytest.mark.parametrize("text", GOOD)
def test_host_and_port(family, text):
    read, _ = READERS[family]
    assert read(text) == GOOD[text]


@pytest.mark.parametrize("family", READERS)
@pytest.mark.parametrize("text", [*BAD, "[::1]", "[::1]x:80", "[::1:80", "::1", "a b:80", "x:80 "])
def test_what_is_no_host_and_port(family, text):
    """An IPv6 address without brackets above all: its last group might be meant as the port."""
    read, error = READERS[family]
    with pytest.raises(error):
        read(text)


KEYS = {
    "192.0.2.7": "192.0.2.7",
    "::ffff:192.0.2.7": "192.0.2.7",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
    "2001:DB8:1:2::9": "2001:db8:1:2::/64",
    "fe80::1%eth0": "fe80::/64",
    "example.com": "example.com",
}


@pytest.mark.parametrize("address", KEYS)
def test_the_host_that_a_limit_counts_for(address):
    assert sip_key(address) == rtmp_key(address) == KEYS[address]


LOOPBACK = {
    **{"127.0.0.1": True, "127.9.8.7": True, "::1": True, "::ffff:127.0.0.1": True},
    **{"192.0.2.7": False, "::": False, "::ffff:192.0.2.7": False},
}


@pytest.mark.parametrize("host", LOOPBACK)
def test_which_addresses_are_this_machine_alone(host):
    """An address of IPv4 as a socket for both families writes it is the same one."""
    found = {is_loopback(host), rtmp_is_loopback(host), sip_is_loopback(host)}
    assert found == {LOOPBACK[host]}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "example.com", ""])
def test_which_names_are_this_machine_alone(host):
    found = {is_loopback(host), rtmp_is_loopback(host), sip_is_loopback(host)}
    assert found == {host.lower() == "localhost"}


# What stands behind the scheme, and its host and port; None for what is no URL.
URLS = {
    "//example.com": ("example.com", None),
    "//EXAMPLE.com:5060": ("example.com", 5060),
    "//192.0.2.7:0": ("192.0.2.7", 0),
    "//[2001:db8::7]:1935": ("2001:db8::7", 1935),
    "//[::1]": ("::1", None),
    "//bob@example.com:5060": ("example.com", 5060),
    "//[::1:1935": None,
    "//example.com:x": None,
    "//example.com:65536": None,
    "//::1:1935": None,
}


@pytest.mark.parametrize("text", URLS)
def test_the_host_and_port_of_a_url(text):
    """A SIP URI has no slashes; host and port follow the same rules."""

    def sip():
        uri = p2psip.Uri.parse(f"sip:{text[2:]}")
        return uri.host, uri.port

    def rtmp():
        parts = url.split(f"rtmp:{text}/live")
        return parts.host, parts.port

    for read, error in ((sip, p2psip.RemoteError), (rtmp, rtmplite.errors.LocalError)):
        if URLS[text] is None:
            with pytest.raises(error):
                read()
        else:
            assert read() == URLS[text]
