"""What becomes of bindings when connections go, devices come back and places are full."""

import pytest
from support.sip.elements import PORT
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    HOME,
    Home,
    finals,
    forwarded,
    register,
    request,
    store,
)

from p2psip.server.location import MemoryLocation
from p2psip.server.registrar import MAX_BINDINGS, Registrar
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow

AOR = Uri.parse("sip:bob@home")
DEVICE = '+sip.instance="<urn:uuid:00000000-0000-1000-8000-000A95A0E128>"'
OTHER = '+sip.instance="<urn:uuid:00000000-0000-1000-8000-000A95A0E129>"'


def connect(home, contact, port, cseq, call="reg", source=BOB, now=0.0):
    """Register by a connection of its own; the flow and the response."""
    flow = Flow("TCP", (source, port), (HOME, PORT))
    message = register(contact=contact, cseq=cseq, call=call)
    via = f"SIP/2.0/TCP {source}:{port};branch=z9hG4bK{call}{cseq}"
    message = message.replace(headers=message.headers.with_("Via", via))
    home.stack.receive(bytes(message), flow, now)
    return flow, next(m for m, _, _ in home.said() if isinstance(m, Response))


def bound(home, now=0.0):
    return [str(binding.contact.uri) for binding in home.registrar.bindings(AOR, now)]


def invited(home, now=0.0, call="invite"):
    """Who is rung when bob is called, or the status that the caller gets."""
    sent = home.hear(request(call=call), now=now)
    return [(to, how) for _, to, how in forwarded(sent)] or finals(sent)


def test_a_phone_that_reconnects_a_hundred_times_is_rung_once():
    """Covers RFC 5626 §6: the binding of an instance is replaced, wherever it comes from."""
    home = Home()
    for number in range(100):
        port = 40000 + number
        contact = f"<sip:bob@192.168.0.7:{port};transport=tcp>;{DEVICE}"
        flow, response = connect(home, contact, port, number + 1)
        assert response.status == 200 and len(response.contacts) == 1
    [binding] = home.registrar.bindings(AOR, 0.0)
    assert binding.way(nat=False) == [flow] and invited(home) == [(BOB, "TCP")]


def test_without_an_instance_the_oldest_gives_way():
    home = Home()
    for number in range(3 * MAX_BINDINGS):
        port = 40000 + number
        _, response = connect(home, f"<sip:bob@192.168.0.7:{port}>", port, number + 1)
        assert response.status == 200
    kept = range(40000 + 2 * MAX_BINDINGS, 40000 + 3 * MAX_BINDINGS)
    assert bound(home) == [f"sip:bob@192.168.0.7:{port}" for port in kept]
    contact = f"<sip:bob@192.168.0.7:{kept[0]}>"  # one that refreshes is the youngest
    connect(home, contact, kept[0], 91)
    connect(home, "<sip:bob@192.168.0.7:1>", 50000, 92)
    assert f"sip:bob@192.168.0.7:{kept[0]}" in bound(home)
    assert f"sip:bob@192.168.0.7:{kept[1]}" not in bound(home)


def test_instances_are_told_apart_and_compared_as_uuids():
    """Covers RFC 5626 §4.1."""
    home = Home()
    connect(home, f"<sip:bob@a>;{DEVICE}", 40001, 1)
    connect(home, f"<sip:bob@b>;{OTHER}", 40002, 1, call="other")
    assert bound(home) == ["sip:bob@a", "sip:bob@b"]
    connect(home, f"<sip:bob@c>;{DEVICE.lower()}", 40003, 1, call="boot")
    assert bound(home) == ["sip:bob@b", "sip:bob@c"]
    connect(home, f"<sip:bob@d>;{OTHER}, <sip:bob@e>;{OTHER}", 40004, 2, call="other")
    assert bound(home) == ["sip:bob@c", "sip:bob@e"]  # one device, one binding


def test_a_device_takes_back_its_old_contact_and_keeps_the_new():
    home = Home()
    connect(home, f"<sip:bob@old>;{DEVICE}", 40001, 1)
    text = f"<sip:bob@new>;{DEVICE}, <sip:bob@old>;{DEVICE};expires=0"
    _, response = connect(home, text, 40002, 2)
    assert response.status == 200 and bound(home) == ["sip:bob@new"]


def test_an_overtaken_register_of_the_same_device_changes_nothing():
    """Covers RFC 3261 §10.3 step 7, for what RFC 5626 §6 makes one binding."""
    home = Home()
    connect(home, f"<sip:bob@new>;{DEVICE}", 40002, 2)
    _, response = connect(home, f"<sip:bob@old>;{DEVICE}", 40001, 1)
    assert response.status == 400 and bound(home) == ["sip:bob@new"]


@pytest.mark.parametrize(
    "contact", ["<sip:bob@192.168.0.7:5060>", f"<sip:bob@{BOB}:40001>", "<sip:bob@x>"]
)
def test_a_lost_connection_takes_what_could_be_reached_by_it_alone(contact):
    """Covers RFC 5626 §7, whoever the user is; nothing is sent to the Contact."""
    home = Home()
    flow, _ = connect(home, contact, 40001, 1)
    connect(home, f"<sip:bob@{CAROL}>", 40001, 1, call="c", source=CAROL)
    home.stack.flow_failed(flow, 0.0)
    assert not home.said() and bound(home) == [f"sip:bob@{CAROL}"]
    assert home.told == [("contact-lost", contact.strip("<>"))]
    assert invited(home) == [(CAROL, "TCP")] and home.registrar.count(0.0) == 1


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize("answers", [False, True])
def test_a_phone_that_listens_elsewhere_on_its_host_is_asked(transport, answers):
    """The Contact names another port of the host that had connected: one question tells."""
    home = Home()
    contact = f"sip:bob@{BOB}:5060;transport={transport}"
    flow, _ = connect(home, f"<{contact}>", 40001, 1)
    home.stack.flow_failed(flow, 1.0)
    [(asked, to, how)] = home.said()
    assert (asked.method, str(asked.uri), to, how.lower()) == ("OPTIONS", contact, BOB, transport)
    assert bound(home) == [] and invited(home, 1.0) == [480]
    if answers:
        home.hear(response_to(asked, 200, to_tag="x"), source=BOB, now=1.1)
        assert bound(home) == [contact] and invited(home, 1.2, "2") == [(BOB, transport.upper())]
    else:
        assert not [m for m, _, _ in home.wait(100.0) if getattr(m, "method", "") == "OPTIONS"]
        assert home.registrar.registered(AOR, 100.0) == [] and home.told
    home.wait(400.0)
    assert not len(home.registrar._probes)


def test_a_connection_of_nobody_and_datagrams_that_fail_cost_no_binding():
    home = Home()
    home.hear(register())
    connect(home, "<sip:bob@x>", 40001, 1, call="c")
    for flow in (Flow("TCP", (BOB, 7), (HOME, PORT)), Flow("UDP", (BOB, PORT))):
        home.stack.flow_failed(flow, 0.0)
    assert len(bound(home)) == 2


def test_which_connections_are_needed_and_what_the_operator_sees():
    home = Home(store=MemoryLocation())
    flow, _ = connect(home, "<sip:bob@x>", 40001, 1)
    other = Flow("TCP", (BOB, 40002), (HOME, PORT))
    assert home.registrar.keeps(flow, 0.0) and not home.registrar.keeps(other, 0.0)
    [(aor, binding)] = home.registrar.everything(0.0)
    assert aor == ("bob", "home") and binding.flow == flow
    home.registrar.remove(aor, binding, 0.0)
    assert not home.registrar.keeps(flow, 0.0) and home.registrar.everything(0.0) == []
    assert home.registrar._location.load(0.0) == []


# Another process, the same store


def test_a_connection_is_not_needed_by_a_binding_that_has_expired():
    home = Home()
    flow, _ = connect(home, "<sip:bob@192.168.0.7>", 40_000, 1)
    assert home.registrar.keeps(flow, 3599.0) and not home.registrar.keeps(flow, 3600.0)


def test_a_host_is_known_while_a_binding_was_made_from_there():
    """Own design: its address is not forged, whichever of its users are bound."""
    home = Home()
    known = home.registrar.has_host
    assert not known(BOB, 0.0)
    for number, user in enumerate(["bob", "carol", "bob"]):
        home.hear(register(user, f"<sip:{user}@{BOB}:{5070 + number}>", cseq=number), BOB)
    connect(home, "<sip:bob@192.168.0.8>", 40_000, 9, source=CAROL)
    assert known(BOB, 0.0) and known(CAROL, 0.0) and not known("192.168.0.8", 0.0)
    clear = register("bob", "*", expires=0, cseq=10)
    home.hear(clear, BOB)
    assert known(BOB, 0.0) and not known(CAROL, 0.0)  # carol is still there
    assert known(BOB, 3599.0) and not known(BOB, 3600.0)
    assert not len(home.registrar._binding_index)


def again(home, now, **options):
    """A second home that takes over what the first has stored, and what it says at once."""
    new = Home(store=home.registrar._location, **options)
    new.registrar.restore(now)
    return new, new.said()


def test_a_restart_keeps_the_phones_that_can_still_be_reached():
    home = Home(store=MemoryLocation(), nat=True)
    home.hear(register(contact="<sip:bob@192.168.0.7>"), source=BOB)
    connect(home, "<sip:bob@192.168.0.8>", 40001, 1, call="nat")
    connect(home, f"<sip:bob@{CAROL}:5070>", 40001, 1, call="own", source=CAROL)
    new, [(asked, to, _)] = again(home, 10.0, nat=True)
    assert bound(new, 10.0) == ["sip:bob@192.168.0.7"] and to == CAROL
    assert invited(new, 10.0) == [(BOB, "UDP")]  # where it had registered from
    new.hear(response_to(asked, 200, to_tag="x"), source=CAROL, now=11.0)
    assert len(bound(new, 11.0)) == 2 and new.registrar.count(3600.0) == 0
    strict, _ = again(home, 20.0)  # without --nat the first Contact leads nowhere
    assert bound(strict, 20.0) == [f"sip:bob@{CAROL}:5070"]


def test_a_restart_forgets_who_is_no_user_any_more_and_what_has_expired():
    home = Home(store=MemoryLocation())
    home.hear(register())
    home.hear(register("eve", f"<sip:eve@{ALICE}>", call="e", expires=60))
    assert again(home, 59.0)[0].registrar.count(59.0) == 2
    assert again(home, 60.0)[0].registrar.count(60.0) == 1
    assert again(home, 59.0, users=store("eve"))[0].registrar.count(59.0) == 1


def test_a_restart_takes_no_more_than_there_is_room_for():
    home = Home(store=MemoryLocation())
    for number in range(4):
        contact = f"<sip:u@{BOB}>, <sip:v@{BOB}>, <sip:w@{BOB}>"
        home.hear(register(f"u{number}", contact, call=str(number)), source=BOB)
    small = Registrar(
        home.domains,
        None,
        home.stack,
        home.random,
        store=home.registrar._location,
        max_bindings=2,
        max_users=3,
    )
    small.restore(1.0)
    assert small.count(1.0) == 6


def test_what_has_answered_stays_proven_and_pinned():
    home = Home(store=MemoryLocation())
    sent = home.hear(register(contact=f"<sip:bob@{CAROL}>"), source=BOB)
    [asked] = [m for m, _, _ in sent if isinstance(m, Request)]
    home.hear(response_to(asked, 200, to_tag="x"), source=CAROL)
    new, said = again(home, 1.0)
    assert said == [] and invited(new, 1.0) == [(CAROL, "UDP")]
