"""A request within a dialog is its peer's: from the peer's place, or with the peer's password."""

import pytest
from support.rtmfp.link import Link
from support.sip.elements import PORT
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    HOME,
    Home,
    Member,
    answer_to,
    finals,
    forked,
    methods,
    register,
    request,
    signed,
    store,
)

from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.request_origin import hosts_named, origin
from p2psip.stack.stack import Flow


class Owner(Member):
    """Owns the calls of a user who lives in the home's own process."""

    def __init__(self):
        self.log = []


def home_of_ann(link=None, **options):
    """A home where ann lives in the process itself, and answers."""
    owner = Owner()

    def route(asked):
        if asked.uri.user != "ann":
            return None
        contact = home.stack.contact("ann")
        return lambda server, now: home.agent.incoming(server, contact, owner, now).accept(
            b"yes", now
        )

    home = Home(link, route=route, **options)
    home.owner = owner
    return home


def called(home, transport="UDP", **options):
    """A call for ann: the tag of her dialog."""
    sent = home.hear(request("INVITE", "sip:ann@home", **options), transport=transport)
    if finals(sent) == [407]:
        sent = home.hear(signed(request("INVITE", "sip:ann@home"), answer_to(sent), cseq=1))
    return f";tag={answer_to(sent).to.tag}"


def to_ann(method, tag, *more, cseq=2, **options):
    return request(method, "sip:ann@home", *more, to=tag, cseq=cseq, **options)


@pytest.mark.parametrize("method", ["BYE", "INVITE", "UPDATE", "INFO", "OPTIONS"])
def test_whoever_has_overheard_a_dialog_is_not_its_peer(method):
    """Covers RFC 3261 §26.1.4."""
    home = home_of_ann()
    tag = called(home)
    home.hear(to_ann("ACK", tag, cseq=1))
    moved = ("Contact", f"<sip:mallory@{FAR}>")
    assert finals(home.hear(to_ann(method, tag, moved), source=FAR)) == [403]
    assert home.owner.events() == ["accepted"]
    [call] = home.agent.core.calls
    assert call.dialog.target.host == ALICE and call.dialog.remote_cseq == 1
    assert finals(home.hear(to_ann("BYE", tag, cseq=3))) == [200]
    assert home.owner.events() == ["accepted", "ended"]


def test_a_user_of_ours_who_has_moved_proves_it():
    """Covers RFC 3261 §22.2: with the password of the dialog's own user, and no other's."""
    home = home_of_ann(users=store("alice", "eve"))
    tag = called(home)
    home.hear(to_ann("ACK", tag, cseq=1))
    asked = home.hear(to_ann("BYE", tag), source=FAR)
    assert finals(asked) == [401]
    as_eve = to_ann("BYE", tag, ("From", "<sip:eve@home>;tag=a"), cseq=3)
    assert finals(home.hear(as_eve, source=FAR)) == [403]
    by_eve = signed(to_ann("BYE", tag), answer_to(asked), user="eve", cseq=4)
    assert finals(home.hear(by_eve, source=FAR)) == [403]
    assert home.owner.events() == ["accepted"]
    by_alice = signed(to_ann("BYE", tag), answer_to(asked), nc=2, cseq=5)
    assert finals(home.hear(by_alice, source=FAR)) == [200]
    assert home.owner.events() == ["accepted", "ended"]


def test_nobody_speaks_for_another_user_within_a_dialog():
    """Covers RFC 3261 §22.3: the tags name the dialog, the From names who speaks."""
    home, branches = forked(BOB)
    home.hear(response_to(branches[BOB], 200, to_tag="t"), source=BOB)
    for name, expected in (("alice", [("MESSAGE", BOB)]), ("boss", [])):
        fields = [("From", f"<sip:{name}@home>;tag=a"), ("Route", "<sip:home;lr>")]
        said = request("MESSAGE", "sip:bob@home", *fields, to=";tag=t", cseq=2, call="call")
        assert methods(home.hear(said.replace(headers=said.headers.with_("Via", via(name))))) == (
            expected
        )


def via(name):
    return f"SIP/2.0/UDP {ALICE};rport;branch=z9hG4bK{name}"


@pytest.mark.parametrize("brings", [b"", b"answer"])
def test_an_ack_from_elsewhere_brings_no_answer(brings):
    """Covers RFC 3261 §22.1 [ack-not-challenged]."""
    home = home_of_ann()
    tag = called(home)
    ack = to_ann("ACK", tag, ("Content-Type", "application/sdp"), cseq=1).replace(body=brings)
    home.hear(ack, source=FAR)
    assert home.owner.events() == ([] if brings else ["accepted"])
    home.hear(ack)
    assert home.owner.events() == ["accepted"]


@pytest.mark.parametrize(("transport", "nat"), [("TCP", False), ("UDP", True), ("UDP", False)])
def test_a_caller_is_reached_the_way_it_came(transport, nat):
    """Covers RFC 5626 §5.3: our BYE takes the connection, or where --nat says so the source."""
    link = Link()
    home = home_of_ann(link, nat=nat)
    alice = Member(link, ALICE, "alice", transport=transport)
    alice.contact = alice.contact.replace(host=CAROL)
    call = alice.call("ann", link.now)
    link.run(until=1.0)
    assert alice.events(call) == ["accepted"]
    [ours] = home.agent.core.calls
    ours.bye(link.now)
    link.run(until=50.0)
    assert (alice.events(call) == ["accepted", "ended"]) == (transport == "TCP" or nat)


def test_a_phone_called_from_here_may_connect_again():
    """Covers RFC 5626 §5.3: what it says counts from its host, and we answer by the new way."""
    home, owner = Home(), Owner()
    contact = "<sip:bob@192.168.0.7;transport=tcp>"
    home.hear(register(contact=contact), source=BOB, transport="TCP")
    to, me = (Address(Uri("sip", user, None, "home")) for user in ("bob", "ann"))
    call = home.agent.invite(to, me, home.stack.contact("ann"), b"offer", owner, 0.0)
    home.stack.tick(0.0)
    [(invite, to, how)] = home.said()
    assert (to, how) == (BOB, "TCP") and len(invite.record_routes) == 1
    fine = response_to(invite, 200, to_tag="b", headers=[("Contact", contact)])
    [(ack, to, how)] = home.hear(fine, source=BOB, transport="TCP")
    assert (ack.method, to, how) == ("ACK", BOB, "TCP") and owner.events() == ["accepted"]

    def of_bob(method, cseq):
        fields = [("From", "<sip:bob@home>;tag=b"), ("Route", invite.record_routes[0])]
        asked = request(method, str(invite.contacts[0].uri), *fields, cseq=cseq, call=call.id)
        ours = asked.headers.with_("To", str(invite.from_)).with_("Via", via(f"{method}{cseq}"))
        return asked.replace(headers=ours)

    assert finals(home.hear(of_bob("BYE", 5), source=FAR)) == [403]
    again = Flow("TCP", (BOB, 40_000), (HOME, PORT))
    home.stack.flow_failed(Flow("TCP", (BOB, PORT), (HOME, PORT)), 0.0)
    home.stack.receive(bytes(of_bob("OPTIONS", 6)), again, 0.0)
    assert finals(home.said()) == [200]
    call.info("text/plain", b"hello", 0.0)
    home.stack.tick(0.0)
    flows = [order.flow for order in home.stack.take_orders()]
    assert flows == [again]
    assert finals(home.hear(of_bob("BYE", 7), source=BOB, transport="TCP")) == [200]
    home.wait(100.0)
    assert owner.events() == ["accepted", "ended"] and home.idle
    assert not home.proxy.dialogs._known and home.proxy.deadline is None


def test_a_phone_that_has_registered_again_is_reached_where_it_is():
    """Covers RFC 5626 §5.3: by the binding of the dialog's own user, and by nobody else's."""
    contact, first = "<sip:bob@192.168.0.7;transport=tcp>", Flow("TCP", (BOB, PORT), (HOME, PORT))
    home = Home()
    home.hear(register(contact=contact), source=BOB, transport="TCP")
    [invite] = [m for m, to, _ in home.hear(request()) if to == BOB]
    fine = response_to(invite, 200, to_tag="t", headers=[("Contact", contact)])
    home.hear(fine, source=BOB, transport="TCP")
    home.hear(register("eve", contact, call="e"), source=CAROL, transport="TCP")
    home.stack.flow_failed(first, 0.0)
    home.said()
    again = Flow("TCP", (BOB, 40_000), (HOME, PORT))
    renewed = register(contact=contact, cseq=2)
    home.stack.receive(bytes(renewed), again, 0.0)
    home.said()
    bye = request("BYE", "sip:x", ("Route", "<sip:home;lr>"), to=";tag=t", cseq=2)
    home.stack.receive(bytes(bye), Flow("UDP", (ALICE, PORT), (HOME, PORT)), 0.0)
    assert [order.flow for order in home.stack.take_orders()] == [again]


def test_a_caller_that_has_registered_again_is_hung_up_where_it_is():
    """Covers RFC 5626 §5.3: our own BYE takes the connection of the latest registration, too."""
    home, contact = home_of_ann(), "<sip:alice@192.168.0.7;transport=tcp>"
    invite = request("INVITE", "sip:ann@home", ("Contact", contact))
    tag = f";tag={answer_to(home.hear(invite, transport='TCP')).to.tag}"
    home.hear(to_ann("ACK", tag, cseq=1), transport="TCP")
    [call] = home.agent.core.calls
    home.stack.flow_failed(Flow("TCP", (ALICE, PORT), (HOME, PORT)), 0.0)
    home.said()
    again = Flow("TCP", (ALICE, 40_000), (HOME, PORT))
    home.stack.receive(bytes(register("alice", contact)), again, 0.0)
    home.said()
    call.bye(0.0)
    assert [order.flow for order in home.stack.take_orders()] == [again]


def test_what_a_stranger_sends_around_us_is_still_hers():
    """A name that leads to ourselves makes nobody local: the Via that we stamped is read."""
    ours = f"SIP/2.0/UDP {HOME};branch=z9hG4bKours"
    hers = f"SIP/2.0/UDP {FAR};branch=z9hG4bKhers"
    here, there = Flow("LOCAL", (HOME, PORT)), Flow("UDP", (FAR, PORT))

    def of(*vias):
        return parse_message(bytes(request("BYE", "sip:x", *(("Via", each) for each in vias))))

    assert origin(of(ours), here) == "LOCAL" and origin(of(hers), there) == FAR
    assert origin(of(ours, hers), here) == FAR
    assert origin(of(ours, f"{hers};received={CAROL}"), here) == CAROL
    assert hosts_named(Uri.parse("sip:[2001:db8:1:2::5]")) == {"2001:db8:1:2::/64"}
    assert hosts_named(Uri.parse("sip:there.example")) == frozenset()
    home, lie = Home(), f"SIP/2.0/UDP {FAR};branch=z9hG4bK1;received={ALICE}"
    [(answer, *_)] = home.hear(request("OPTIONS", "sip:home", ("Via", lie)), source=FAR)
    assert answer.via.received == FAR
