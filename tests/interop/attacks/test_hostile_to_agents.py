"""Hostile peers of a phone: by REFER, Replaces, PRACK and SUBSCRIBE they get nothing of others.

The phone is an `Agent`, which is attacked by UDP, TLS and WebSocket.  127.0.0.2 and up play the
attackers' hosts, 127.0.0.3 a third party's.
"""

import re
from functools import partial

import pytest
from support.attacks.doors import by
from support.attacks.hostile_sip import Callee, SipAttacker, sdp
from support.certificates import certificate
from support.sip.phones import answering, uri, wait_for

from p2psip.agent import Agent
from p2psip.net.driver import SipPorts
from p2psip.net.phone.settings import Account, NetworkSettings
from p2psip.net.tls import TlsContexts, client_context, server_context
from p2psip.sip.message import Request, parse_message
from p2psip.ua.replaces import Replaces
from p2psip.ua.ua import MAX_SERVED

THEIRS, VICTIM = "127.0.0.2", "127.0.0.3"
FLOOD = 100


class Phone(Agent):
    """An agent as an attacker sees it: a place that speaks SIP."""

    @property
    def sip(self):
        return "{}:{}".format(*self.address)

    def place(self, transport):
        """Its address for one transport."""
        listeners = self._driver.ports.listeners
        return next((each.host, each.port) for each in listeners if each.transport == transport)


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    made = certificate(tmp_path_factory.mktemp("tls"))
    return TlsContexts(client_context(made.file), server_context(made.file, made.key))


@pytest.fixture
def phone(door, request, monkeypatch):
    monkeypatch.setattr("p2psip.agent.SipPorts", partial(SipPorts, ws=[("127.0.0.1", 0)]))
    tls = request.getfixturevalue("tls") if door == "TLS" else None
    with Phone(Account("bob"), NetworkSettings(tls=tls)) as found:
        yield found
        found.close(timeout=0.1)


@pytest.fixture
def enter(phone, door):
    """`enter(host)`: an attacker of that host."""
    return partial(by(door, SipAttacker), phone)


@pytest.fixture
def attacker(enter):
    return enter(THEIRS)


@pytest.fixture
def victim(phone):
    """A third party, which should hear nothing."""
    return Callee(phone, VICTIM)


def refer(attacker, target, **fields):
    """The status of a REFER outside of any call."""
    return attacker.ask("REFER", f"sip:bob@{attacker.gateway[0]}", Refer_To=target, **fields)


def test_a_stranger_has_a_phone_call_nobody(phone, attacker, victim):
    """Covers RFC 3515 §2.4.2: many wishes, each refused, and nothing left of them."""
    there = f"<sip:x@{VICTIM}:{victim.port}>"
    for _ in range(FLOOD):
        assert refer(attacker, there) == 603
    for target in (
        f"<sip:x@{VICTIM}:{victim.port};method=BYE>",
        f"<sip:x@{VICTIM}:{victim.port}?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2>",
        f"<sips:x@{VICTIM}:{victim.port}>",
        "<tel:+4912345>",
        "<http://127.0.0.3/>",
    ):
        assert refer(attacker, target) == 603
    assert refer(attacker, there, without=("Contact",)) == 603
    assert victim.heard(0.1) is None
    assert not phone.calls and phone._ua.dialogs == phone._stack.transactions == 0


def test_a_wish_that_is_followed_brings_its_target_an_invite_of_ours(phone, attacker, victim):
    """Covers RFC 3515 §2.4.3: of the headers in a Refer-To only Replaces is heeded."""
    phone.on_refer = lambda target, sender: True
    smuggled = (
        "Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2",
        f"Route=%3Csip:{THEIRS}%3E",
        "From=%3Csip:president@x%3E",
        "P-Asserted-Identity=%3Csip:president@x%3E",
        "Require=nothing",
        "Via=SIP/2.0/UDP%20127.0.0.9",
        "body=v%3D0",
    )
    there = f"sip:x@{VICTIM}:{victim.port}"
    assert refer(attacker, f"<{there};method=INVITE?{'&'.join(smuggled)}>") == 202
    invite = parse_message(victim.invite())
    assert isinstance(invite, Request) and str(invite.uri) == there
    assert invite.headers["Replaces"] == "a;to-tag=1;from-tag=2" and len(invite.vias) == 1
    assert invite.from_.uri == phone.aor.uri and invite.body.startswith(b"v=0\r\no=")
    assert not any(name in invite.headers for name in ("Route", "P-Asserted-Identity"))
    assert invite.headers.all("Require") == ("replaces",)  # ours, and not what it asked for
    for wrong, status in {
        f"<{there};method=BYE>": 603,
        f"<{there}?Replaces=a>": 400,
        f"<{there}?Replaces=a%3Bto-tag%3D1%3Bfrom-tag%3D2%0D%0AX-Evil:%201%0D%0A%0D%0A>": 400,
        f"<{there}>, <{there}>": 400,
    }.items():
        assert refer(attacker, wrong) == status
    victim.respond(bytes(invite), "486 Busy Here")
    wait_for(lambda: not phone.calls)


def test_the_place_of_others_is_not_taken(phone, attacker):
    """Covers RFC 3891 §3: by guesses, and by what was overheard, as long as nobody allows it.

    Covers RFC 3262 §9 [as-any-request].
    """
    taken = answering(phone)
    with Agent(Account("alice")) as alice:
        call = alice.call(uri(phone), 20)
        wait_for(lambda: taken)
        right = Replaces.of(call._signalling.dialog)
        guesses = [
            right._replace(to_tag="guess"),
            right._replace(from_tag="guess"),
            right._replace(call_id="guess"),
            Replaces(right.call_id, right.from_tag, right.to_tag),
        ]
        bob, offer = f"sip:bob@{phone.sip}", {"body": sdp()}
        names = {"From": f"{alice.aor};tag=1"}  # a name is no proof
        for guess in guesses:
            assert attacker.ask("INVITE", bob, Replaces=guess, **offer, **names) == 481
        assert attacker.ask("INVITE", bob, Replaces=right, **offer, **names) == 403
        early = right._replace(early_only=True)
        assert attacker.ask("INVITE", bob, Replaces=early, **offer, **names) == 486
        for nonsense in ("", ";", "a;to-tag=1", f"{right}, {right}"):
            assert attacker.ask("INVITE", bob, Replaces=nonsense, **offer) == 400
        for method in ("BYE", "REFER", "UPDATE", "PRACK", "INFO", "NOTIFY", "SUBSCRIBE"):
            within = {"Call_ID": right.call_id, "CSeq": f"99 {method}"}
            within["From"] = f"{alice.aor};tag={right.from_tag}"
            within["To"] = f"<{bob}>;tag={right.to_tag}"
            assert attacker.ask(method, bob, Refer_To="<sip:x@127.0.0.9>", **within) == 403
        assert call.is_up and taken[0].is_up and len(taken) == 1
        call.hangup()


def test_pracks_of_others_and_for_nothing(phone, enter):
    """Covers RFC 3262 §3: a call goes on ringing through a flood of PRACKs, and is answered."""
    ringing = []
    phone.on_call = ringing.append
    caller, other = enter(THEIRS), enter("127.0.0.4")
    bob, call = f"sip:bob@{phone.sip}", {"Call_ID": "c", "From": "<sip:eve@x>;tag=e"}
    caller.send(
        caller.request("INVITE", bob, body=sdp(), Require="100rel", CSeq="1 INVITE", **call)
    )
    while not (heard := caller.heard()).startswith(b"SIP/2.0 180"):
        pass
    tag, rseq = (
        re.search(pattern, heard)[1].decode()
        for pattern in (rb"\r\nTo: [^\r]*tag=([^\r;]*)", rb"\r\nRSeq: (\d+)")
    )
    within = call | {"To": f"<{bob}>;tag={tag}"}
    right = f"{rseq} 1 INVITE"
    for party, rack, status in (
        (other, right, 403),
        (caller, f"{rseq} 2 INVITE", 481),
        (caller, f"{rseq} 1 PRACK", 481),
        (caller, f"{int(rseq) + 1} 1 INVITE", 481),
        (caller, "x", 400),
        (caller, "99999999999 1 INVITE", 400),
        *[(caller, f"{number} 1 INVITE", 481) for number in range(1, FLOOD)],
        (caller, right, 200),
        *[(caller, right, 481)] * 3,
    ):
        cseq = f"{2 + caller.number} PRACK"
        assert party.ask("PRACK", bob, RAck=rack, CSeq=cseq, **within) == status, rack
    wait_for(lambda: ringing)
    ringing[0].reject()
    while not (heard := caller.heard()).startswith(b"SIP/2.0 486"):
        pass
    wait_for(lambda: not phone.calls)


def test_subscriptions_of_one_host_leave_places(phone, attacker, victim, enter, door):
    """Covers RFC 6665 §4.2.1.1: many, for very long, with the Contact of somebody else.

    By a connection the third party is told nothing at all.
    """
    bob, package = f"sip:bob@{phone.sip}", {"Event": "dialog"}
    assert attacker.ask("SUBSCRIBE", bob, **package) == 403
    assert attacker.ask("SUBSCRIBE", bob, Event="refer") == 489
    phone.serving.may_watch = lambda package, sender: True
    asked = {"Contact": f"<sip:v@{VICTIM}:{victim.port}>", "Expires": "4294967295"} | package
    subscribe = attacker.request("SUBSCRIBE", bob, **asked)
    attacker.send(subscribe)
    answer = parse_message(attacker.heard())
    assert answer.status == 200 and answer.expires == 3600
    told = victim if door == "UDP" else attacker
    notify = told.heard()
    assert notify.startswith(b"NOTIFY") and len(notify) < 3 * len(subscribe)
    assert told is victim or victim.heard(0.1) is None
    Callee.respond(told, notify, "481 Not Mine")
    wait_for(lambda: phone._ua.dialogs == 0)
    asked["Contact"] = f"<sip:v@{VICTIM}:9>"  # which does not answer
    said = [attacker.ask("SUBSCRIBE", bob, **asked) for _ in range(MAX_SERVED)]
    assert said == [200] * said.count(200) + [503] * said.count(503)
    assert said.count(200) < MAX_SERVED / 2
    assert enter("127.0.0.5").ask("SUBSCRIBE", bob, **package) == 200
    assert refer(attacker, f"<sip:x@{VICTIM}>") == 603
