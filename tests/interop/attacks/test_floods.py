"""Floods of requests and of guesses: what they leave behind, and what others notice of them."""

import re

import pytest
from gevent import socket
from support.attacks.hostile_sip import SipAttacker
from support.gateway.accounts import PASSWORD, users_file

from p2psip.sip.auth import Challenge, answer


class Host(SipAttacker):
    """An attacker at an address of its own."""

    def __init__(self, server, address):
        super().__init__(server)
        self.socket.close()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 0))
        self.port = self.socket.getsockname()[1]

    def log_in(self, user, password):
        """The status and the answer to a REGISTER with that password."""
        fields = {"To": f"<sip:{user}@127.0.0.1>", "Expires": "60"}
        self.send(self.request("REGISTER", self.uri, **fields))
        asked = self.heard().decode()
        if not asked.startswith("SIP/2.0 401"):
            return asked
        text = re.search(r"WWW-Authenticate: ([^\r]*)", asked)[1]
        proof = answer(Challenge.parse(text), "REGISTER", self.uri, user, password, cnonce="c")
        self.send(self.request("REGISTER", self.uri, **fields, Authorization=str(proof)))
        return self.heard().decode()


@pytest.mark.parametrize("method", ["OPTIONS", "INVITE", "SUBSCRIBE"])
def test_a_flood_that_is_refused_leaves_nothing(gateway, method):
    """Covers RFC 3261 §8.2.7: twenty hosts ask for half a minute's memory, and get none."""
    server = gateway()
    hosts = [Host(server, f"127.0.1.{n}") for n in range(1, 21)]
    for _ in range(25):
        for host in hosts:
            host.send(host.request(method, f"sip:nobody@{server.sip}", body=b"x" * 100))
        for host in hosts:
            assert host.heard() is not None
    assert server.status()["transactions"] == 0
    assert SipAttacker(server).ask("OPTIONS", f"sip:{server.sip}") == 200


def test_who_guesses_waits_and_the_owner_does_not(gateway, tmp_path):
    """Own design: ten guesses, ten lines in the log; at home nobody locks bob out."""
    server = gateway("--users", users_file(tmp_path, "alice", "bob"), "--domain", "127.0.0.1")
    owner, thief = Host(server, "127.0.0.5"), Host(server, "127.0.0.66")
    assert owner.log_in("bob", PASSWORD).startswith("SIP/2.0 200")
    said = [thief.log_in("bob", f"guess{n}") for n in range(30)]
    assert [each[8:11] for each in said] == ["401"] * 10 + ["503"] * 20
    assert "\r\nRetry-After: " in said[-1]
    assert thief.log_in("bob", PASSWORD).startswith("SIP/2.0 503")  # nothing is learnt meanwhile
    assert owner.log_in("bob", PASSWORD).startswith("SIP/2.0 200")
    assert Host(server, "127.0.0.7").log_in("alice", PASSWORD).startswith("SIP/2.0 200")
    server.wait_until(lambda: server.output.count("login-refused") >= 10, what="the log")
    lines = [line for line in server.output.splitlines() if "login-refused" in line]
    assert all("login-refused source=UDP:127.0.0.66 user=" in line for line in lines)
    assert len(lines) == 10 and PASSWORD not in server.output
