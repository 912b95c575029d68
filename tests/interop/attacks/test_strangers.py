"""Strangers and users with bad intentions: whose calls, passwords and names they do not get."""

import re

import pytest
from support.attacks.doors import by
from support.attacks.hostile_sip import SPEEX, Account, Callee, Caller, SipAttacker, sdp
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.richclient import RichClient

from p2psip.sip.message import Request, parse_message

BODY = sdp(SPEEX.format(port=40000))
SECRETS = ("Authorization", "Proxy-Authorization")
NAMES = ("P-Asserted-Identity", "P-Preferred-Identity", "Remote-Party-ID")
SAYS = dict.fromkeys((name.replace("-", "_") for name in NAMES), "<sip:president@127.0.0.1>")


@pytest.fixture
def server(gateway, tmp_path):
    """A gateway with the users alice, bob and eve."""
    return gateway("--users", users_file(tmp_path, "alice", "bob", "eve"), "--sip-t1", "200")


def hears_nothing(*attackers):
    """Whether none of them is sent any request."""
    return all(
        heard is None or heard.startswith(b"SIP/2.0")
        for attacker in attackers
        for heard in (attacker.news(0.2), attacker.news(0.05))
    )


def requests(*phones):
    """The next request that each hears."""
    heard = []
    for phone in phones:
        while (data := phone.news()).startswith(b"SIP/2.0"):
            pass
        heard.append(parse_message(data))
    return heard


def test_a_contact_takes_no_calls_of_others(server):
    """Covers RFC 3261 §16.5: a flow serves the bindings of its own address-of-record alone."""
    alice, bob = Account(server, "alice"), Account(server, "bob")
    eve = by("TCP", Account)(server, "eve")
    outside = Callee(server, "127.0.0.2")
    gateway = Callee(server, "127.0.0.3")  # to the telephone network, say
    for ours in (f"<sip:alice@{server.sip}>", "<sip:bob@127.0.0.1>"):
        eve.register(ours, status=403)
    eve.register(
        f"<sip:bob@127.0.0.1:{bob.port}>, <sip:phone@127.0.0.2:{outside.port}>,"
        f" <sip:+15551234@127.0.0.3:{gateway.port}>"
    )
    bob.register()
    number = f"sip:+15551234@127.0.0.3:{gateway.port}"
    elsewhere = f"sip:phone@127.0.0.2:{outside.port}"
    for uri, callee in ((bob.aor, bob), (elsewhere, outside), (number, gateway)):
        alice.proven("INVITE", uri, body=BODY, Call_ID=f"{callee.port}")
        [invite] = requests(callee)
        assert invite.method == "INVITE" and invite.to.uri.user == uri[4:].partition("@")[0]
    client = RichClient(server.rtmp, "alice@127.0.0.1", "", PASSWORD)
    for uri, callee in ((bob.aor, bob), (elsewhere, outside), (number, gateway)):
        client.call("invite", uri)
        callee.respond(callee.invite(), "486 Busy Here")
        client.expect("rejected")
    assert hears_nothing(eve)
    client.close()


@pytest.mark.parametrize("answered", [False, True])
def test_our_route_is_read_and_leads_nowhere_else(server, answered):
    """Covers RFC 3261 §16.5 and §12.2: whatever the method, the target or the From."""
    bob, caller = Account(server, "bob"), SipAttacker(server, "127.0.0.2")
    bob.register()
    victim = SipAttacker(server, "127.0.0.3")
    there, eve = f"sip:x@127.0.0.3:{victim.port}", "<sip:mallory@evil.invalid>;tag=1"
    caller.send(caller.request("INVITE", bob.aor, body=BODY, From=eve, Call_ID="c"))
    invite = bob.invite()
    bob.respond(invite, "200 OK" if answered else "180 Ringing", tag="b", body=BODY)
    while not (heard := caller.heard()).startswith((b"SIP/2.0 180", b"SIP/2.0 200")):
        pass
    route = re.search(rb"\r\nRecord-Route: ([^\r]*)", heard)[1].decode()
    stranger = SipAttacker(server, "127.0.0.4")
    fixed = {"Call_ID": "c", "From": eve}
    for number, method in enumerate(["MESSAGE", "BYE", "INVITE", "REGISTER", "SUBSCRIBE", "ACK"]):
        for to in (f"<{bob.aor}>;tag=b", f"<{bob.aor}>;tag=x", f"<{bob.aor}>"):
            for routes in (route, f"{route}, <sip:127.0.0.3:{victim.port};lr>"):
                for transport in ("", ";transport=tcp"):
                    cseq = f"{100 + number} {method}"
                    asked = fixed | {"To": to, "CSeq": cseq, "Route": routes}
                    stranger.send(stranger.request(method, there + transport, **asked))
    seen = {stranger.heard()[8:11]}
    seen |= {status for status in iter(lambda: (stranger.heard(0.5) or b"")[8:11], b"")}
    assert seen <= {b"403", b"405", b"481", b"100"} and b"481" in seen
    for forged in ("<sip:alice@127.0.0.1>;tag=1", f"<{bob.aor}>;tag=1"):
        asked = fixed | {"To": f"<{bob.aor}>;tag=b", "Route": route, "CSeq": "200 MESSAGE"}
        assert stranger.ask("MESSAGE", there, **asked | {"From": forged}) in (403, 407)
    assert hears_nothing(victim, bob)
    # The caller itself reaches bob, and bob alone.
    asked = fixed | {"To": f"<{bob.aor}>;tag=b", "Route": route, "CSeq": "300 INFO"}
    caller.send(caller.request("INFO", there, **asked))
    [info] = requests(bob)
    assert str(info.uri) == f"sip:phone@127.0.0.1:{bob.port}" and hears_nothing(victim)


@pytest.mark.parametrize("status", ["401 Unauthorized", "407 Proxy Authentication Required"])
def test_a_callee_gets_no_proof_of_a_password(server, status):
    """Covers RFC 3261 §22.1: whoever is called may ask, and would try words on the answer."""
    alice = RichClient(server.rtmp, "alice@127.0.0.1", "", PASSWORD)
    eve, outside = Account(server, "eve"), Callee(server, "127.0.0.2")
    eve.register()
    name = "WWW-Authenticate" if status.startswith("401") else "Proxy-Authenticate"
    for callee, uri in ((outside, f"sip:x@127.0.0.2:{outside.port}"), (eve, eve.aor)):
        for realm in ("127.0.0.1", "evil"):
            alice.call("invite", uri)
            more = f'{name}: Digest realm="{realm}", nonce="n", algorithm=MD5\r\n'
            invite = callee.invite()
            assert not any(secret in parse_message(invite).headers for secret in SECRETS)
            callee.respond(invite, status, more=more)
            assert alice.expect("rejected")[0].startswith("40")
            while heard := callee.heard(0.1):  # its ACK, and copies of the INVITE
                assert not any(secret in parse_message(heard).headers for secret in SECRETS)
    alice.close()


def test_what_was_meant_for_us_goes_no_further(server):
    """Covers RFC 3261 §22.3 and RFC 3325 §5: in INVITE, ACK, re-INVITE and BYE."""
    alice, bob = Account(server, "alice"), Account(server, "bob")
    bob.register()
    sent = parse_message(alice.proven("INVITE", bob.aor, body=BODY, **SAYS))
    bob.respond(
        invite := bob.invite(),
        "200 OK",
        body=BODY,
        more="".join(f"{name}: <sip:bob@president>\r\n" for name in NAMES),
    )
    while not (heard := alice.heard()).startswith(b"SIP/2.0 200"):
        pass
    fine, passed = parse_message(heard), [parse_message(invite)]
    asked = {"From": sent.from_, "Call_ID": sent.call_id, "To": fine.to, **alice.proof, **SAYS}
    asked["Route"] = ", ".join(map(str, fine.record_routes))
    for cseq, method in enumerate(["ACK", "INVITE", "BYE"], 2):
        target = str(fine.contacts[0].uri)
        alice.send(alice.request(method, target, CSeq=f"{cseq} {method}", **asked))
        passed += requests(bob)
        assert passed[-1].method == method and isinstance(passed[-1], Request)
        if method == "INVITE":
            bob.respond(bytes(passed[-1]), "488 No")
            requests(bob)  # its ACK, hop by hop
    for message in passed:
        assert not any(name in message.headers for name in SECRETS + NAMES)
    assert "Proxy-Authorization" in sent.headers
    assert not any(name in fine.headers for name in NAMES)


def test_a_bye_from_elsewhere_ends_nothing(server):
    """Covers RFC 3261 §26.1.4: the tags are right, the place is not; the user has a password."""
    carol = RichClient(server.rtmp, "carol@127.0.0.1")
    peer = Caller(server, "carol")
    peer.call(carol)
    elsewhere = SipAttacker(server, "127.0.0.2")
    assert elsewhere.ask_raw(elsewhere_than(peer, elsewhere, peer.within("BYE"))) == 403
    moved = peer.within("INVITE", body=BODY)
    assert elsewhere.ask_raw(elsewhere_than(peer, elsewhere, moved)) == 403
    assert carol.calls.empty()
    again = SipAttacker(server)  # another port of the peer's own host
    assert again.ask_raw(elsewhere_than(peer, again, peer.within("BYE"))) == 200
    carol.expect("byed")

    alice, bob = Account(server, "alice"), Account(server, "bob")
    bob.register()
    sent = parse_message(alice.proven("INVITE", bob.aor, body=BODY))
    bob.respond(bob.invite(), "200 OK", body=BODY)
    while not (heard := alice.heard()).startswith(b"SIP/2.0 200"):
        pass
    fine, moved = parse_message(heard), Account(server, "alice", "127.0.0.2")
    route = ", ".join(map(str, fine.record_routes))
    asked = {"From": sent.from_, "Call_ID": sent.call_id, "To": fine.to, "Route": route}
    bye = moved.request("BYE", bob.aor, CSeq="9 BYE", **asked)
    moved.send(bye)
    challenged = moved.final(bye)
    assert challenged.startswith(b"SIP/2.0 407") and hears_nothing(bob)
    moved.send_signed("BYE", bob.aor, challenged, **asked)
    assert [request.method for request in requests(bob)] == ["BYE"]
    carol.close()


def elsewhere_than(peer, other, data):
    """A request of the dialog's peer, as another socket says it."""
    return data.replace(f"{peer.host}:{peer.port}".encode(), f"{other.host}:{other.port}".encode())


@pytest.mark.parametrize("part", ["target", "route", "contact"])
def test_sips_never_goes_on_in_the_clear(server, part):
    """Covers RFC 3261 §26.2.2: there is no TLS here, and so no way for it."""
    alice, victim = Account(server, "alice"), SipAttacker(server, "127.0.0.2")
    place = f"127.0.0.2:{victim.port};transport=tcp"
    uri = f"sips:x@{place}" if part == "target" else f"sip:x@{place[:-14]}"
    more = {"route": {"Route": f"<sips:{place};lr>"}, "contact": {"Contact": f"<sips:{place}>"}}
    asked = {"From": f"<{alice.aor}>;tag=1", "body": BODY, **more.get(part, {})}
    assert alice.ask("INVITE", uri, **asked) == (400 if part == "contact" else 416)
    register = {"To": f"<{alice.aor}>", "Contact": f"<sips:{place}>"}
    assert alice.ask("REGISTER", "sip:127.0.0.1", **register) == 400
    assert hears_nothing(victim)
