"""Trunks at real providers: Kamailio registers the gateway and asks its calls for a password."""

import json

import pytest
from support.attacks.hostile_sip import Callee, sdp
from support.gateway.richclient import wait_for
from support.peers.peers import LASTING, Ffmpeg, Kamailio, Sipp
from support.sip.phones import answering

from p2psip.agent import Agent
from p2psip.net.phone.settings import Account

PASSWORD = "zanzibar"


def table(name, address, numbers, server="", password=PASSWORD):
    lines = [f'name = "{name}"', f'address = "sip:{address}"', f'numbers = ["{numbers}"]']
    lines += [f'server = "sip:{server}"'] if server else []
    return "\n".join(["[[trunk]]", *lines, f'password = "{password}"', ""])


@pytest.fixture
def trunked(gateway, tmp_path):
    """`trunked(TABLE, ...)`: a gateway with these tables."""

    def run(*tables, domain="localhost"):
        path = tmp_path / "siprtmp.toml"
        path.write_text("\n".join(['call-records = "calls.jsonl"', *tables]))
        path.chmod(0o644)
        return gateway("--config", str(path), "--sip-t1", "100", "--domain", domain)

    return run


@pytest.mark.needs("kamailio", "ffmpeg")
def test_a_call_leaves_by_a_trunk_that_wants_a_password(start, trunked, tmp_path):
    """Kamailio asks for the password of the REGISTER and of the INVITE."""
    provider = start(Kamailio, users={"us": PASSWORD, "+4930123": PASSWORD})
    server = trunked(table("berlin", "us@127.0.0.1", "+49*", provider.address), domain="gw.invalid")
    server.wait_status({"trunks": 1, "trunks_registered": 1})
    assert "trunk-registered trunk=berlin" in server.output
    assert "password-readable" in server.output and PASSWORD not in server.output
    at = {"registrar": provider.address, "password": PASSWORD}
    with Agent(Account("+4930123", "127.0.0.1", **at)) as phone:
        calls = answering(phone)
        phone.register(timeout=20)
        tool = start(Ffmpeg.publish, server.url("call", "tel:+49-30-123"), seconds=LASTING)
        wait_for(lambda: calls, "the call", timeout=20)
        assert str(calls[0].remote.uri) == "sip:us@127.0.0.1"
        wait_for(lambda: calls[0].statistics.packets_received > 50, "its sound", timeout=20)
        tool.stop()
        wait_for(lambda: calls[0].is_over, "the end of the call", timeout=20)
    server.wait_status({"calls": 0})
    [line] = (tmp_path / "calls.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["trunk"], record["codec"], record["direction"]) == ("berlin", "pcmu", "out")
    assert record["sent"] > 50 and record["seconds"] > 0 and record["end"].endswith("Z")


@pytest.mark.needs("kamailio", "sipp", "ffmpeg")
def test_the_second_trunk_stands_in_for_one_with_a_wrong_password(start, trunked):
    """The first provider refuses the REGISTER, so its trunk comes last."""
    provider = start(Kamailio, users={"us": PASSWORD})
    other = start(Sipp.uas, codec="PCMU/8000")
    server = trunked(
        table("wrong", "us@127.0.0.1", "*", provider.address, "no such"),
        table("there", f"us@127.0.0.1:{other.port}", "*") + "register = false\n",
    )
    wait_for(lambda: "trunk-failed trunk=wrong" in server.output, "the refusal", timeout=20)
    tool = start(Ffmpeg.publish, server.url("call", "tel:0800123"), seconds=LASTING)
    wait_for(lambda: "call-answer" in server.output, "the answer", timeout=20)
    assert "trunk-next" not in server.output
    tool.stop()
    server.wait_status({"calls": 0, "trunks": 2, "trunks_registered": 0})


@pytest.mark.needs("kamailio")
def test_a_provider_that_has_died_is_not_shown_as_registered(start, trunked):
    """It had granted an hour; one that comes back has forgotten us, and is told."""
    provider = start(Kamailio, users={"us": PASSWORD})
    one = table("one", "us@127.0.0.1", "*", provider.address, PASSWORD) + "refresh = 5\n"
    server = trunked(one)
    server.wait_status({"trunks_registered": 1})
    provider.stop()
    server.wait_status({"trunks_registered": 0}, timeout=90)
    assert "trunk-failed trunk=one" in server.output
    provider.start()
    server.wait_status({"trunks_registered": 1}, timeout=90)


@pytest.mark.parametrize("called", ["us", "4930123"])
def test_a_provider_may_call_by_its_own_domain(gateway, tmp_path, called):
    """Covers Field §"Calls to the address itself": from where the trunk is registered, alone.

    Then the user of the Request-URI is called here.
    """
    path = tmp_path / "siprtmp.toml"
    route = f'[[route]]\nmatch = "{called}@gw.invalid"\nstream = "show"\n'
    provider = Callee(gateway())
    path.write_text(
        route + table("one", "us@provider.example", "+49*", f"127.0.0.1:{provider.port}")
    )
    server = gateway("--config", str(path), "--sip-t1", "100", "--domain", "gw.invalid")
    stranger = Callee(server, "127.0.0.2")
    provider.gateway = stranger.gateway
    provider.settle(provider.heard())
    server.wait_status({"trunks_registered": 1})
    asked = [(provider, "provider.example"), (provider, "else.example")]
    asked += [(stranger, "provider.example")]
    told = []
    for phone, host in asked:
        uri = f"sip:{called}@{host}"
        told.append(phone.ask("INVITE", uri, body=sdp(), Content_Type="application/sdp"))
        phone.drain()
    assert told == [200, 403, 403]
