"""Limits of users against a running gateway: phones through its proxy, and clients by RTMP."""

import re

import pytest
from gevent import socket
from support.attacks.hostile_sip import SPEEX, Callee, SipAttacker, sdp
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient

from p2psip.sip.auth import Challenge, answer
from rtmplite.errors import RemoteError
from rtmplite.net.client.rtmp_client import RtmpClient


class User(Callee):
    """A phone of a user with a password."""

    def __init__(self, server, name):
        super().__init__(server)
        self.name, self.me = name, f"sip:{name}@127.0.0.1"

    def prove(self, method, uri, **fields):
        """A request, and again with the password."""
        fields |= {
            "From": f"<{self.me}>;tag={self.number}",
            "Call_ID": f"{self.port}-{self.number}",
        }
        fields["branch"] = f"z9hG4bKasked{self.port}-{self.number}"
        self.send(self.request(method, uri, **fields))
        mine = f"branch={fields['branch']};".encode()
        while not (asked := self.heard()).startswith((b"SIP/2.0 401", b"SIP/2.0 407")):
            assert asked.startswith(b"SIP/2.0 1") or mine not in asked  # or a late copy
        name, value = re.search(rb"(\w+)-Authenticate: ([^\r]*)", asked).groups()
        proof = answer(Challenge.parse(value.decode()), method, uri, self.name, PASSWORD,
                       cnonce="c0ffee", nc=1, body=fields.get("body", b""))  # fmt: skip
        if method == "INVITE":
            self.acknowledge(self.request(method, uri, **fields), asked)
        header = {"WWW": "Authorization", "Proxy": "Proxy-Authorization"}[name.decode()]
        fields |= {header: proof, "CSeq": f"2 {method}", "branch": fields["branch"] + "again"}
        sent = self.request(method, uri, **fields)
        self.sent = sent
        self.send(sent)

    def register(self):
        contact = f"<sip:{self.name}@127.0.0.1:{self.port}>"
        self.prove("REGISTER", "sip:127.0.0.1", To=f"<{self.me}>", Contact=contact)
        assert self.final() == 200

    def invite_user(self, uri):
        """Call somebody."""
        contact = f"<sip:{self.name}@127.0.0.1:{self.port}>"
        self.prove("INVITE", uri, body=sdp(), Contact=contact)

    def final(self):
        """The status of the next final response."""
        while answer := self.heard():
            is_mine = re.search(rb"branch=[^;\r]*", self.sent)[0] in answer
            if answer.startswith(b"SIP/2.0 ") and answer[8:9] != b"1" and is_mine:
                if self.sent.startswith(b"INVITE") and answer[8:9] != b"2":
                    self.acknowledge(self.sent, answer)
                return int(answer[8:11])
        return None


def test_a_phone_has_one_call_at_once_and_calls_nobody_elsewhere(gateway, tmp_path):
    """Covers RFC 3261 §21.4.4."""
    users = users_file(tmp_path, "alice", "bob")
    limits = ("--max-user-calls", "1", "--allow-targets", "+49*@127.0.0.1")
    server = gateway("--users", users, "--sip-t1", "50", *limits)
    alice, thief, bob = User(server, "alice"), User(server, "alice"), User(server, "bob")
    stranger = SipAttacker(server)
    bob.register()
    alice.invite_user("sip:bob@127.0.0.1")
    first = bob.invite()
    thief.invite_user("sip:bob@127.0.0.1")
    assert thief.final() == 403
    bob.respond(first, "486 Busy Here")
    assert alice.final() == 486
    for elsewhere in ("sip:+1900@127.0.0.1", "sip:bob@127.0.0.2"):
        thief.invite_user(f"{elsewhere}:{stranger.port}")
        assert thief.final() == 403
    assert stranger.heard(0.2) is None
    alice.invite_user(f"sip:+491@127.0.0.1:{stranger.port}")
    assert stranger.heard().startswith(b"INVITE sip:+491@")
    refused = [line for line in server.output.splitlines() if "call-refused" in line]
    assert [line.split("403 ")[1].strip('"') for line in refused if "403 " in line] == [
        "Too Many Calls at Once",
        *["Target Not Allowed"] * 2,
    ]


def test_a_rich_client_and_a_stock_tool_have_the_same_limits(gateway, tmp_path):
    server = gateway("--allow-targets", "+49*@127.0.0.1", "--max-user-calls-per-hour", "2")
    phone = Callee(server)
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    for uri, said in (
        (f"sip:+1900@127.0.0.1:{phone.port}", "403 Target Not Allowed"),
        (f"sip:+491@127.0.0.1:{phone.port}", "486 Busy Here"),
        (f"sip:+492@127.0.0.1:{phone.port}", "486 Busy Here"),
        (f"sip:+491@127.0.0.1:{phone.port}", "403 Too Many Calls an Hour"),
    ):
        alice.call("invite", uri)
        if said.startswith("486"):
            phone.respond(phone.invite(), said)
        assert alice.expect("rejected") == (said,)
    tool = RtmpClient.connect(server.url("call"))
    with pytest.raises(RemoteError, match="403 Target Not Allowed"):
        tool.create_stream().publish(f"+1900@127.0.0.1:{phone.port}")
    assert server.output.count("call-refused") == 3
    alice.close()


def test_a_callee_sends_no_caller_to_a_third_party(gateway):
    """Covers RFC 3261 §12.2.1.1: its ACK and BYE go to where the callee was seen."""
    server = gateway("--allow-targets", "+49*@127.0.0.1", "--sip-t1", "20")
    phone, victim = Callee(server), SipAttacker(server, "127.0.0.5")
    listening = socket.create_server((victim.host, victim.port))
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    for named in (";transport=tcp", ""):
        alice.call("invite", f"sip:+491@127.0.0.1:{phone.port}")
        invite, there = phone.invite(), f"Contact: <sip:v@{victim.host}:{victim.port}{named}>\r\n"
        body = sdp(SPEEX.format(port=40000))
        phone.respond(invite, "200 OK", contact=False, more=there, body=body)
        assert phone.news().startswith(b"ACK sip:v@127.0.0.5")
        alice.expect("accepted")
        alice.call("bye")
        while not (request := phone.news()).startswith(b"BYE"):
            continue
        phone.settle(request)
    victim.send(victim.request("OPTIONS", victim.uri))
    assert victim.heard().startswith(b"SIP/2.0 200")  # and nothing came before
    listening.setblocking(False)
    with pytest.raises(BlockingIOError):
        listening.accept()
    listening.close()
    alice.close()
