"""Trunks register when the gateway starts, and take it back at its end."""

import pytest
from support.gateway.gateway_world import Log
from support.rtmfp.link import Link, calm
from support.sip.elements import random_source
from support.sip.homes import BOB, HOME, Home, Member, store

from p2psip.server.domains import Domains
from p2psip.sip.uri import Uri
from siprtmp.calls.trunks import Trunks
from siprtmp.settings.trunks import TrunkSettings

PASSWORD = "zanzibar"


@pytest.fixture
def provider():
    """A provider with one account, and the gateway's stack at another address."""
    link = Link(calm())
    return link, Home(link, users=store("us")), Member(link, BOB, "gateway")


def trunks_of(gateway, log, **options):
    given = {"password": PASSWORD} | options
    trunk = TrunkSettings("t", Uri.parse("sip:us@home"), ("*",), **given)
    trunks = Trunks.of([trunk], gateway.stack, log)
    trunks.homes = Domains(["gw"], gateway.stack.is_own_address, distinct=True)
    return trunks


def test_a_trunk_registers_moves_and_takes_it_back(provider):
    """Covers RFC 3261 §10.2 and §10.2.2."""
    link, home, gateway = provider
    log = Log()
    trunks = trunks_of(gateway, log)
    trunks.start(gateway.stack, random_source(1), gateway.registrations, link.now)
    assert trunks.status() == {"trunks": 1, "trunks_registered": 0}
    link.run(until=1.0)
    assert trunks.status() == {"trunks": 1, "trunks_registered": 1}
    assert log.lines == [("trunk-registered", {"trunk": "t", "expires": 3600})]
    [(_, binding)] = home.registrar.everything(link.now)
    assert binding.contact.uri.param("line") == "trunk0" and binding.contact.uri.host == BOB
    assert trunks.is_at(HOME) and not trunks.is_at(BOB)
    [trunk] = trunks.trunks
    assert trunk.login.realms == {"home"} and trunk.contact() == binding.contact.uri
    trunks.stop(link.now)
    link.run()
    assert home.registrar.count(link.now) == 0 and gateway.idle


def test_a_trunk_with_a_wrong_password_is_down_and_tries_again(provider):
    link, _, gateway = provider
    log = Log()
    trunks = trunks_of(gateway, log, password="wrong")
    trunks.start(gateway.stack, random_source(1), gateway.registrations, link.now)
    link.run(until=60.0)
    [(what, values)] = log.lines  # said once
    assert what == "trunk-failed" and values["reason"].startswith("40")
    [trunk] = trunks.trunks
    assert trunk.is_down and trunk.reason == values["reason"] and not trunks.is_at(HOME + "0")


def test_a_trunk_that_does_not_register(provider):
    link, home, gateway = provider
    trunks = trunks_of(gateway, Log(), register=False)
    trunks.start(gateway.stack, random_source(1), gateway.registrations, link.now)
    link.run(until=1.0)
    assert home.registrar.count(link.now) == 0 and not trunks.is_at(HOME)
    trunks.stop(link.now)


def test_a_provider_that_has_forgotten_us_hears_of_us_again(provider):
    """Covers RFC 3261 §10.2.4: long before the hour that it had granted, and as often as set."""
    link, home, gateway = provider
    trunks = trunks_of(gateway, Log(), refresh=60)
    trunks.start(gateway.stack, random_source(1), gateway.registrations, link.now)
    link.run(until=link.now + 1.0)
    [(aor, binding)] = home.registrar.everything(link.now)
    home.registrar.remove(aor, binding, link.now)
    link.run(until=link.now + 50.0)
    assert home.registrar.count(link.now) == 0
    link.run(until=link.now + 20.0)
    assert home.registrar.count(link.now) == 1
    trunks.stop(link.now)
