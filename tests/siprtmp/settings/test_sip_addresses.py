"""The addresses of --sip, of which there may be one of each family, and the domains they make."""

import pytest

from siprtmp.operation.arguments import ConfigError
from siprtmp.settings.load import load
from siprtmp.settings.table import Settings


def test_a_user_of_either_address_of_sip_is_one_of_ours():
    """Without a domain, calls are served by the names and addresses of this machine."""
    settings = load(["--sip", "127.0.0.2:0", "--sip", "[::1]:0"])
    assert set(settings.for_sip.domains) == {"localhost", "127.0.0.1", "127.0.0.2", "::1"}
    assert settings.listeners.is_local


@pytest.mark.parametrize(
    ("given", "domains"),
    [
        ({}, ("localhost", "127.0.0.1")),
        ({"domain": ("a.example",)}, ("a.example",)),
        ({"ws": (("127.0.0.2", 1), ("::1", 1))}, ("localhost", "127.0.0.1", "127.0.0.2", "::1")),
        ({"sip": ()}, ("localhost", "127.0.0.1")),
        ({"sip": (("192.0.2.1", 5060),)}, ("localhost", "127.0.0.1", "192.0.2.1")),
        (
            {"sip": (("0.0.0.0", 5060),), "external_ip": "192.0.2.1"},
            ("localhost", "127.0.0.1", "192.0.2.1"),
        ),
    ],
)
def test_the_domains_served_without_being_named(given, domains):
    assert Settings.of(**given).for_sip.domains == domains


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--sip", "127.0.0.1:1", "127.0.0.2:1"], "--sip: one address of IPv4 and one of IPv6"),
        (["--ws", "127.0.0.1:1", "127.0.0.2:1"], "--ws: one address of IPv4 and one of IPv6"),
        (["--sips", "127.0.0.1:1", "[::1]:1"], "--sips needs --tls-cert"),
        (["--ws", "127.0.0.1:1", "[2001:db8::1]:1"], "--ws 2001:db8::1:1 can be reached"),
        (["--sip", "127.0.0.1:1", "--sip", "[2001:db8::1]:1"], "other machines"),
        (
            ["--sip", "0.0.0.0:1", "[::]:1", "--external-ip", "192.0.2.1", "--allow-anonymous"],
            "--sip ::: name the address",
        ),
    ],
)
def test_what_cannot_be_served(words, reason):
    """An address beyond loopback, or one that nobody knows, is refused also as the second one."""
    with pytest.raises(ConfigError, match=reason):
        load(words)
