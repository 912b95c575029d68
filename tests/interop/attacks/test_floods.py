"""Floods of requests and of guesses: what they leave behind, and what others notice of them."""

import re
from functools import partial

from support.attacks.doors import by
from support.attacks.hostile_sip import SipAttacker, sdp
from support.gateway.accounts import PASSWORD, users_file

from p2psip.sip.auth import Challenge, answer


class Host(SipAttacker):
    """A host that logs in, or tries to."""

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


def test_a_flood_that_is_refused_leaves_nothing(gateway, listening, door):
    """Covers RFC 3261 §8.2.7: twenty hosts ask for half a minute's memory, and get none."""
    server = gateway(*listening)
    hosts = []
    for number in range(1, 21):
        hosts.append(by(door, SipAttacker)(server, f"127.0.1.{number}"))
        assert hosts[-1].ask("OPTIONS", f"sip:{server.sip}") == 200  # the silent are hung up on
    for method in ("OPTIONS", "INVITE", "SUBSCRIBE"):
        for _ in range(25 if door == "UDP" else 5):
            for host in hosts:
                host.send(host.request(method, f"sip:nobody@{server.sip}", body=b"x" * 100))
            for host in hosts:
                assert host.heard() is not None
        assert server.status()["transactions"] == 0, method
    assert SipAttacker(server).ask("OPTIONS", f"sip:{server.sip}") == 200


def test_who_guesses_waits_and_the_owner_does_not(gateway, tmp_path, listening, door):
    """Own design: ten guesses, ten lines in the log; at home nobody locks bob out."""
    users = users_file(tmp_path, "alice", "bob")
    server = gateway("--users", users, "--domain", "127.0.0.1", *listening)
    enter = partial(by(door, Host), server)
    owner = enter("127.0.0.5")
    assert owner.log_in("bob", PASSWORD).startswith("SIP/2.0 200")
    thief = enter("127.0.0.66")
    said = [thief.log_in("bob", f"guess{n}") for n in range(30)]
    assert [each[8:11] for each in said] == ["401"] * 10 + ["503"] * 20
    assert "\r\nRetry-After: " in said[-1]
    assert thief.log_in("bob", PASSWORD).startswith("SIP/2.0 503")  # nothing is learnt meanwhile
    assert owner.log_in("bob", PASSWORD).startswith("SIP/2.0 200")
    assert enter("127.0.0.7").log_in("alice", PASSWORD).startswith("SIP/2.0 200")
    server.wait_until(lambda: server.output.count("login-refused") >= 10, what="the log")
    lines = [line for line in server.output.splitlines() if "login-refused" in line]
    assert all(f"login-refused source={door}:127.0.0.66 user=" in line for line in lines)
    assert len(lines) == 10 and PASSWORD not in server.output


def test_callers_who_send_no_ack_leave_ports_for_others(gateway):
    """Own design: 130 INVITEs to a room, of less than 60 kB, hold a part of all ports."""
    server = gateway("--room", "team", "--rtp-ports", "21000-21063")
    room = f"sip:team@{server.sip}"
    greedy = SipAttacker(server, "127.0.0.2")
    flood = [greedy.request("INVITE", room, body=sdp()) for _ in range(130)]
    assert sum(map(len, flood)) < 70_000
    for invite in flood:
        greedy.send(invite)
    refused = [greedy.ask_raw(greedy.request("INVITE", room, body=sdp())) for _ in range(3)]
    assert refused == [503] * 3 and "127.0.0.2 holds too many ports" in server.output
    held = server.status()["media_legs"]
    assert 4 < held < 16
    assert SipAttacker(server).ask("INVITE", room, body=sdp()) == 200
    assert server.status()["media_legs"] == held + 1
