"""Media as a weapon, or stolen: third parties flooded, ports sprayed, phones that vanish."""

import re
from contextlib import ExitStack, closing
from types import SimpleNamespace

import gevent
import pytest
from gevent.event import Event
from support.attacks.hostile import ports_of
from support.attacks.hostile_sip import Callee, SipAttacker, sdp
from support.attacks.media_attack import OUTER_OCTETS, Ear, Stranger, Tool
from support.gateway.richclient import wait_for
from support.peers.process import PATIENCE

T1 = ("--sip-t1", "100")  # ms: 64 of these are waited for an ACK
VICTIM, CALLER, OTHER = "127.0.0.3", "127.0.0.2", "127.0.0.4"


@pytest.fixture
def opened():
    """Close what a test opened."""
    with ExitStack() as stack:
        yield lambda thing: stack.enter_context(closing(thing))


def unacknowledged(server, name, opened):
    ear = opened(Ear(VICTIM))
    caller = Stranger(server, name, CALLER, ear)
    caller.invite()
    return caller, ear


def forged_source(server, name, opened):
    ear = opened(Ear(CALLER))
    caller = Stranger(server, name, CALLER, ear)
    caller.invite()
    return caller, ear


def acknowledged(server, name, opened):
    caller, ear = unacknowledged(server, name, opened)
    caller.ack()
    return caller, ear


def moved(server, name, opened):
    caller, ear = Stranger(server, name, CALLER, opened(Ear(CALLER))), opened(Ear(VICTIM))
    caller.invite()
    caller.ack()
    caller.invite(ear)
    return caller, ear


FORGED = "INVITE, no ACK, a forged source: SIP too"
CASES = {  # what draws media to somebody, and whether any at all
    "INVITE, no ACK, a third party's address": (unacknowledged, False),
    FORGED: (forged_source, True),
    "re-INVITE, no ACK, a third party's address": (moved, False),
    "INVITE and ACK, a silent third party": (acknowledged, True),
}


def test_media_goes_to_nobody_who_has_not_asked_for_it(gateway, opened):
    """Own design: the table of what one packet of an attacker draws, in packets and octets."""
    server = gateway("--sip-t1", "100")
    victims, tools = {}, []
    for number, (case, (begin, _)) in enumerate(CASES.items()):
        tools.append(opened(Tool(server, f"name{number}")))
        victims[case] = begin(server, f"name{number}", opened)
    caller, bounded = victims["INVITE and ACK, a silent third party"]
    wait_for(lambda: server.status()["calls"] == 1, "the end of the calls without an ACK")
    before, tool = bounded.count(), tools[-1]
    heard_by_nobody = tool.said + 50
    wait_for(lambda: tool.said > heard_by_nobody, "a second of sound")
    assert bounded.count() == before  # it has stayed silent, and is left alone
    print(f"\n{'':44}{'packets':>18}{'octets':>18}")
    for case, (attacker, ear) in victims.items():
        ear.count()
        drawn = list(ear.heard)
        if case == FORGED:  # all that the source gets hits the same victim
            drawn += attacker.everything()
        packets, octets = len(drawn), sum(len(data) + OUTER_OCTETS for data in drawn)
        print(
            f"{case:44}{packets:6} /{attacker.packets:3} ={packets / attacker.packets:6.1f}"
            f"{octets:6} /{attacker.octets:5} ={octets / attacker.octets:5.1f}"
        )
        assert bool(packets) == CASES[case][1], case
        assert packets < 3 * attacker.packets and octets < 3 * attacker.octets, case
    bounded.say(1, caller.where)
    wait_for(lambda: bounded.count() > before + 20, "sound for a third party that speaks")


@pytest.mark.parametrize("nat", [(), ("--nat",)])
def test_a_spray_over_all_ports_takes_none_of_ten_calls(gateway, opened, nat):
    """Covers RFC 7362 §5: 2,000 packets a second, from before the first sound on."""
    server = gateway(*T1, *nat)
    tools = [opened(Tool(server, f"name{number}")) for number in range(10)]
    phones = [Stranger(server, f"name{i}", CALLER, opened(Ear(CALLER))) for i in range(10)]
    attacker = opened(Ear(OTHER))
    for phone in phones:
        phone.invite()
    everywhere = ports_of(server)
    assert {phone.where[1] for phone in phones} <= set(everywhere)

    has_begun = Event()

    def spray():
        for sequence in range(4000 // len(everywhere)):
            for port in everywhere:
                attacker.say(sequence, ("127.0.0.1", port), b"x" * 160)
            has_begun.set()
            gevent.sleep(len(everywhere) / 2000)

    spraying = gevent.spawn(spray)
    has_begun.wait()
    for phone in phones:
        phone.ack()
    for sequence in range(75):
        for phone in phones:
            phone.media.say(sequence, phone.where)
        gevent.sleep(0.02)
    spraying.get(timeout=PATIENCE)
    for phone, tool in zip(phones, tools, strict=True):
        wait_for(lambda tool=tool: len(tool.heard) >= 75, "all that the phone said")
        assert set(tool.heard) == {b"p" * 160}
        wait_for(lambda phone=phone: phone.media.count() > 50, "sound for the phone")
    assert attacker.count() == 0


def test_a_phone_behind_a_nat_is_followed_wherever_its_nat_puts_it(gateway, opened):
    """Covers RFC 7362 §4: its host is that of its SIP; again after the NAT has forgotten it."""
    server = gateway(*T1, "--nat")
    tool, first, second = opened(Tool(server, "studio")), opened(Ear(CALLER)), opened(Ear(CALLER))
    phone = Stranger(server, "studio", CALLER, SimpleNamespace(ip="192.0.2.1", port=4000))
    phone.invite()
    phone.ack()
    for ear in (first, second):
        before = len(tool.heard)
        for sequence in range(150):
            ear.say(sequence, phone.where)
            gevent.sleep(0.01)
        wait_for(lambda before=before: len(tool.heard) > before + 20, "sound of the phone")
        wait_for(lambda ear=ear: ear.count() > 5, "sound for the phone")
        phone.invite(phone.media)  # a session timer, say: the same address again
        phone.ack()
        heard = ear.count()
        wait_for(lambda ear=ear, heard=heard: ear.count() > heard + 5, "sound all the same")


def test_another_port_of_the_signalled_host_is_heard(gateway, opened):
    """Own design: ours goes where it was asked for, theirs comes from where it likes."""
    server = gateway(*T1)
    tool, ear = opened(Tool(server, "studio")), opened(Ear(CALLER))
    phone = Stranger(server, "studio", CALLER, opened(Ear(CALLER)))
    phone.invite()
    phone.ack()
    for sequence in range(50):
        ear.say(sequence, phone.where)
        gevent.sleep(0.005)
    wait_for(lambda: len(tool.heard) == 50, "sound from another port")
    wait_for(lambda: phone.media.count() > 0, "sound for the phone")
    assert ear.count() == 0


def test_sound_that_precedes_the_answer_is_heard_if_the_answer_names_its_host(gateway, opened):
    """Covers RFC 3264 §5.1."""
    server = gateway(*T1)
    phone, ear, stranger = Callee(server), opened(Ear("127.0.0.1")), opened(Ear(OTHER))
    tool = opened(Tool(server, f"phone@127.0.0.1:{phone.port}", wait=False))
    invite = phone.invite()
    where = ("127.0.0.1", int(re.search(rb"m=audio (\d+)", invite)[1]))
    for sequence in range(20):
        ear.say(sequence, where)
        stranger.say(sequence, where, b"x" * 160)
    for _ in range(3):  # by now the gateway has read all that
        assert SipAttacker(server).ask("OPTIONS", f"sip:{server.sip}") == 200
    phone.respond(invite, "200 OK", body=sdp(f"m=audio {ear.port} RTP/AVP 0\r\n"))
    wait_for(lambda: len(tool.heard) == 20, "what was said before the answer")
    assert set(tool.heard) == {b"p" * 160}


def test_a_phone_that_vanishes_is_asked_and_then_hung_up(gateway, opened):
    """Own design: `--media-timeout`; sound for it goes on, and it is no sign of its life."""
    server = gateway("--sip-t1", "100", "--media-timeout", "1")  # 6.4 s to answer in
    opened(Tool(server, "dead"))
    opened(Tool(server, "alive"))
    dead, alive = (
        Stranger(server, name, CALLER, opened(Ear(CALLER))) for name in ("dead", "alive")
    )
    for phone in (dead, alive):
        phone.invite()
        phone.ack()
    questions = 0
    while questions < 6:  # three times as long as the other one is waited for
        request = alive.asked()
        assert request.startswith(b"OPTIONS ")
        alive.answer(request, "405 Method Not Allowed")  # even so
        questions += 1
    requests = []
    while not any(request.startswith(b"BYE ") for request in requests):
        requests.append(dead.asked())
    assert requests[0].startswith(b"OPTIONS ")
    assert b"\r\nReason: SIP;cause=408" in requests[-1]
    server.wait_status({"calls": 1})
    assert 'reason="media timeout"' in server.output
