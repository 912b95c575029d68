"""Calls intercepted by name: by who publishes or plays it, or claims it as an identity."""

import pytest
from support.attacks.hostile_sip import SPEEX, Account, Callee, SipAttacker, sdp
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient

from rtmplite.errors import RemoteError
from rtmplite.net.client.rtmp_client import RtmpClient

BODY = sdp(SPEEX.format(port=40000))
NUMBER = "4930123456"
TRUNK = f"""
[[trunk]]
name = "berlin"
address = "sip:{NUMBER}@provider.example"
numbers = ["0*"]
register = false
"""


def takes(server, app, name, how):
    """How the gateway refuses a name to a stock tool, empty if it does not."""
    with RtmpClient.connect(f"rtmp://{server.rtmp}/{app}") as client:
        try:
            getattr(client.create_stream(), how)(name)
        except RemoteError as error:
            return f"{error.code} {error}"
    return ""


def claims(server, identity, *words):
    """How the gateway refuses an identity to a rich client, empty if it does not."""
    try:
        RichClient(server.rtmp, identity, *words).close()
    except RemoteError as error:
        return f"{error.code} {error}"
    return ""


def test_bobs_calls_reach_bob_alone(gateway, tmp_path):
    """Covers RFC 3261 §26.1.1: neither eve's password nor a place on this machine is bob's."""
    server = gateway("--users", users_file(tmp_path, "alice", "bob", "eve"), "--sip-t1", "200")
    alice, bob = Account(server, "alice"), Account(server, "bob")
    for query in ("", f"?user=eve&pass={PASSWORD}", "?user=bob&pass=guess"):
        assert "Publish.BadName" in takes(server, "call", f"bob{query}", "publish")
        assert "Play.Failed" in takes(server, "call", f"bob{query}", "play")
    assert "Connect.Rejected: 403" in claims(server, "bob@127.0.0.1")
    lines = [line for line in server.tail().splitlines() if " refused " in line]
    assert len(lines) == 6 and all("name=bob" in each and "password" in each for each in lines)
    bob.register()
    alice.send(alice.request("INVITE", bob.aor, body=BODY))
    alice.proven("INVITE", bob.aor, body=BODY)
    assert bob.invite().startswith(b"INVITE sip:bob@")
    proof = f"?user=bob&pass={PASSWORD}"
    assert takes(server, "call", f"bob{proof}", "publish") == ""
    assert takes(server, "call", f"bob{proof}", "play") == ""
    assert PASSWORD not in server.tail() and "guess" not in server.tail()


def test_without_users_the_first_one_keeps_a_name(gateway):
    """A phone that has registered is not robbed; the names of streams are as free as ever."""
    server = gateway("--sip-t1", "200", "--mix-calls")
    phone, caller = Callee(server), SipAttacker(server)
    contact, aor = f"<sip:bob@127.0.0.1:{phone.port}>", "sip:bob@127.0.0.1"
    assert phone.ask("REGISTER", "sip:127.0.0.1", To=f"<{aor}>", From=f"<{aor}>;tag=1",
                     Contact=contact) == 200  # fmt: skip
    for app, how in (("call", "publish"), ("call", "play"), ("mixed", "play")):
        assert "a phone has registered" in takes(server, app, "bob", how)
    assert "a phone has registered" in claims(server, "bob@127.0.0.1")
    assert "a phone has registered" in claims(server, "bob@localhost", "bob", "any word")
    caller.send(caller.request("INVITE", aor, body=BODY))
    assert phone.invite().startswith(b"INVITE sip:bob@")
    with RtmpClient.connect(f"rtmp://{server.rtmp}/call") as tool:
        tool.create_stream().publish("studio")
        assert takes(server, "call", "studio", "play") == ""  # from another program, as ever
        assert "another client" in claims(server, "studio@127.0.0.1")


def test_to_leads_no_call_to_a_line(gateway):
    """Covers RFC 3261 §16.5: only the Request-URI names who is called."""
    server = gateway()
    caller, line = SipAttacker(server), RichClient(server.rtmp, "dora@elsewhere.example")
    to = "<sip:dora@elsewhere.example>"
    for uri in ("sip:dora@127.0.0.1", "sip:bob@127.0.0.1"):
        assert caller.ask("INVITE", uri, To=to, body=BODY) == 480
    assert not line.calls.qsize()
    line.close()
    line = RichClient(server.rtmp, "carol@127.0.0.1")
    caller.send(caller.request("INVITE", "sip:carol@127.0.0.1", To=to, body=BODY))
    line.expect("invited")
    line.close()


@pytest.mark.parametrize("owned", [False, True])
def test_a_trunks_number_is_nobodys_but_its_users(gateway, tmp_path, owned):
    """Covers RFC 3261 §26.1.1."""
    path = tmp_path / "siprtmp.toml"
    path.write_text(TRUNK + 'user = "alice"\n' * owned)
    users = users_file(tmp_path, "alice", "eve")
    server = gateway("--config", str(path), "--users", users)
    refusal = "needs a password" if owned else "the number of a trunk that names no user"
    for identity in (f"{NUMBER}@provider.example", f"{NUMBER}@127.0.0.1"):
        said = claims(server, identity)
        assert "Connect.Rejected: 403 Forbidden: " in said and refusal in said
    for how in ("publish", "play"):
        for query in ("", f"?user=eve&pass={PASSWORD}"):
            assert refusal in takes(server, "call", NUMBER + query, how)
        said = takes(server, "call", f"{NUMBER}?user=alice&pass={PASSWORD}", how)
        assert said == "" if owned else "names no user" in said
