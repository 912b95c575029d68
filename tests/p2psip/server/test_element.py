"""Who gets a request: a user agent, the registrar, the proxy, or nobody."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations
from support.rtmfp.link import Link
from support.sip.elements import random_source
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    HOME,
    OUTSIDER,
    PASSWORD,
    Home,
    Member,
    answer_to,
    finals,
    forwarded,
    register,
    request,
    signed,
    store,
)

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, parse_message
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow
from p2psip.strategies import sip
from p2psip.ua.registering.registration import Registration
from p2psip.ua.requests.digest_client import Login

# What is addressed to ourselves


def test_options_to_us_is_answered():
    """Covers RFC 3261 §11 [takes-options] and §11.2 [lists-abilities]."""
    sent = Home().hear(request("OPTIONS", "sip:home", OUTSIDER))
    assert finals(sent) == [200]
    assert "REGISTER" in answer_to(sent).headers.get("Allow")
    assert answer_to(sent).headers.get("Accept") == "application/sdp"
    assert answer_to(sent).headers.get("Accept-Encoding") == "identity"
    assert answer_to(sent).headers.get("Accept-Language") == "*"
    assert "timer" in answer_to(sent).headers.all("Supported")


def test_options_with_an_extension_we_lack():
    """Covers RFC 3261 §8.2.2.3 [420-for-unknown] [unknown-are-named]."""
    asking = request("OPTIONS", "sip:home", OUTSIDER, ("Require", "100rel, nothing"))
    sent = Home().hear(asking)
    assert finals(sent) == [420] and answer_to(sent).headers.get("Unsupported") == "nothing"


def test_a_dialog_nobody_knows_is_gone():
    """Covers RFC 3261 §12.2.2."""
    for uri in ("sip:bob@home", f"sip:bob@{HOME}", f"sip:{HOME}"):
        assert finals(Home().hear(request("BYE", uri, to=";tag=x"))) == [481]
    assert Home().hear(request("ACK", "sip:bob@home", to=";tag=x")) == []


# Delivery in our domain


@pytest.mark.parametrize("uri", ["sip:bob@home", f"sip:bob@{HOME}", f"sip:bob@{HOME}:5060;x=y"])
def test_a_user_is_called_where_registered(uri):
    """Covers RFC 3261 §16.5 [looked-up-in-canonical-form], §10.1 [one-location-service]."""
    home = Home()
    home.hear(register(contact=f"<sip:bob@{BOB}>"), source=BOB)
    assert forwarded(home.hear(request("INVITE", uri, OUTSIDER))) == [
        (f"sip:bob@{BOB}", BOB, "UDP")
    ]


def test_another_port_of_this_machine_is_somebody_else():
    """Covers RFC 3261 §16.5: nothing is delivered here that was meant for a neighbour."""
    home = Home()
    home.hear(register())
    assert finals(home.hear(request("INVITE", f"sip:bob@{HOME}:5062", OUTSIDER))) == [403]


def test_who_is_not_there_and_who_is_not_at_all():
    """Covers RFC 3261 §16.5 [no-empty-set] [480-when-empty].

    A stream of any name may come, so that nobody is not found for good.
    """
    home = Home(users=store("bob"))
    assert finals(home.hear(request("INVITE", "sip:bob@home", OUTSIDER))) == [480]
    assert finals(home.hear(request("INVITE", "sip:zoe@home", OUTSIDER))) == [480]
    assert finals(home.hear(request("MESSAGE", "sip:zoe@home", OUTSIDER))) == [480]
    assert finals(Home().hear(request("INVITE", "sip:zoe@home", OUTSIDER))) == [480]


def test_the_hook_comes_before_the_bindings():
    taken = []

    def route(asked):
        if asked.uri.user != "bob" or asked.method == "SUBSCRIBE":
            return None

        def accept(server, now):
            taken.append(server.request)
            server.reply(486, now)

        return accept

    home = Home(route=route)
    home.hear(register())
    assert finals(home.hear(request("INVITE", "sip:bob@home", OUTSIDER))) == [486]
    assert finals(home.hear(request("MESSAGE", "sip:bob@home", OUTSIDER, call="2"))) == [486]
    assert [each.method for each in taken] == ["INVITE", "MESSAGE"]  # calls and messages alone
    for method in ("NOTIFY", "SUBSCRIBE"):
        assert forwarded(home.hear(request(method, "sip:bob@home", OUTSIDER, call=method)))


@pytest.mark.parametrize(
    ("method", "status"), [("OPTIONS", 200), ("PUBLISH", 405), ("NOTIFY", 405)]
)
def test_what_is_no_call_is_answered_for_a_user_in_this_process(method, status):
    """Covers RFC 3261 §11 [takes-options]: a registrar elsewhere asks whether we are alive.

    And RFC 3261 §8.2.1 [405-for-others] [405-says-allow].
    """
    home = Home(route=lambda asked: print if asked.uri.user == "bob" else None)
    [(response, *_)] = home.hear(request(method, f"sip:bob@{HOME};line=1", OUTSIDER))
    assert response.status == status and "INVITE" in response.headers.get("Allow")
    assert ("timer" in response.headers.all("Supported")) is (method == "OPTIONS")
    asking = request(method, "sip:bob@home", OUTSIDER, ("Require", "nothing"), call="2")
    assert finals(home.hear(asking)) == [420 if method == "OPTIONS" else 405]
    assert finals(home.hear(request(method, "sip:zoe@home", OUTSIDER, call="3"))) == [480]


@pytest.mark.parametrize("method", ["BYE", "INFO", "UPDATE"])
def test_what_needs_a_dialog_and_has_none(method):
    """Covers RFC 3261 §15.1.2: with a tag or without."""
    home = Home(route=lambda asked: print)
    for number, tag in enumerate(("", ";tag=gone")):
        asked = request(method, "sip:bob@home", OUTSIDER, to=tag, call=str(number))
        assert finals(home.hear(asked)) == [481]


@pytest.mark.parametrize(
    "contact", [f"<sip:bob@{HOME}:5060;line=1>", "<sip:carol@home>", "<sip:bob@x;maddr=10.0.0.1>"]
)
def test_a_contact_that_is_ourselves_is_not_a_way_to_anybody(contact):
    """Covers RFC 3261 §16.5: the proxy never proxies to itself."""
    home = Home()
    home.hear(register(contact=contact))
    sent = home.hear(request("INVITE", "sip:bob@home", OUTSIDER))
    assert finals(sent) == [480] and forwarded(sent) == []


def test_a_binding_over_tcp_is_reached_over_its_connection():
    """Covers RFC 5626 §5.3: the call, and what belongs to it later, by the same connection."""
    home = Home()
    contact = "<sip:bob@192.168.0.7:5060;transport=tcp>"
    home.hear(register(contact=contact), source=BOB, transport="TCP")
    sent = home.hear(request("INVITE", "sip:bob@home", OUTSIDER))
    [invite] = [m for m, to, how in sent if (to, how) == (BOB, "TCP")]
    assert invite.record_routes[0].uri.param("transport") == "tcp"
    sent = home.hear(response_to(invite, 200, to_tag="t"), source=BOB, transport="TCP")
    route = ("Route", answer_to(sent).record_routes[0])
    for method in ("ACK", "BYE"):
        uri = "sip:bob@192.168.0.7:5060;transport=tcp"
        sent = home.hear(request(method, uri, OUTSIDER, route, to=";tag=t", cseq=2))
        assert forwarded(sent) == [(uri, BOB, "TCP")]


def test_a_connection_that_is_gone_leads_nowhere_until_the_phone_is_back():
    """Covers RFC 5626 §7: the Contact it had named may be anybody's."""
    home = Home()
    contact = f"<sip:bob@{CAROL}:5060;transport=tcp>"
    home.hear(register(contact=contact), source=BOB, transport="TCP")
    assert forwarded(home.hear(request("INVITE", "sip:bob@home", OUTSIDER)))[0][1:] == (BOB, "TCP")
    home.stack.flow_failed(Flow("TCP", (BOB, 5060), (HOME, 5060)), 0.1)
    assert finals(sent := home.said()) == [500] and not forwarded(sent)
    again = request("INVITE", "sip:bob@home", OUTSIDER, call="2")
    assert finals(home.hear(again)) == [480]
    home.hear(register(contact=contact, cseq=2), source=BOB, transport="TCP")
    again = request("INVITE", "sip:bob@home", OUTSIDER, call="3")
    assert forwarded(home.hear(again))[0][1:] == (BOB, "TCP")


def test_two_users_who_share_a_contact_keep_their_own_connections():
    home = Home()
    home.hear(register("bob", "<sip:x@192.168.0.7>"), source=BOB, transport="TCP")
    home.hear(register("eve", "<sip:x@192.168.0.7>", call="e"), source=CAROL, transport="TCP")
    for user, address in (("bob", BOB), ("eve", CAROL)):
        message = request("INVITE", f"sip:{user}@home", OUTSIDER, call=user)
        assert forwarded(home.hear(message))[0][1:] == (address, "TCP")


@pytest.mark.parametrize("nat", [False, True])
def test_behind_a_nat_the_source_of_the_register_counts(nat):
    home = Home(nat=nat)
    home.hear(register(contact=f"<sip:bob@{CAROL}>"), source=BOB)
    sent = home.hear(request("INVITE", "sip:bob@home", OUTSIDER))
    assert [to for _, to, _ in forwarded(sent)] == ([BOB] if nat else [])
    assert finals(sent) == ([] if nat else [480])  # the Contact has not answered yet


def test_a_telephone_number_is_nowhere():
    """Covers RFC 3261 §16.3 [416-for-schemes]."""
    home = Home(users=store("alice"))
    message = request("INVITE", "tel:+1555", ("To", "<tel:+1555>"))
    assert finals(home.hear(message)) == [416]


# Users of this very process


class Owner:
    """Hears of one registration."""

    def __init__(self):
        self.heard = []

    def on_registered(self, registration, expires, now):
        self.heard.append(expires)

    def on_failed(self, registration, status, reason, now):
        self.heard.append(-status)


def local(home, user, password=None):
    """A registration of a user who lives in the home's own process."""
    login = Login(user, password) if password else None  # for whichever registrar it is
    aor, contact = Address(Uri("sip", user, None, "home")), home.stack.contact(user)
    owner, random = Owner(), random_source(user)
    registrar = Uri("sip", None, None, "home")
    line = Registration(home.stack, aor, contact, registrar, owner, random, login=login)
    line.start(home.now)
    assert home.said() == []  # no datagram ever goes to our own listener
    return owner.heard


def test_a_user_in_this_process_registers_without_a_socket():
    """The ordinary machinery, by the short way: with the password where there are passwords."""
    assert local(Home(), "ann") == [3600]
    assert local(Home(users=store("ann")), "ann", PASSWORD) == [3600]
    assert local(Home(users=store("ann")), "ann") == [-401]
    assert local(Home(users=store("ann")), "ann", "guess") == [-401]


class Heard:
    def __init__(self):
        self.statuses = []

    def on_response(self, handle, response, now):
        self.statuses.append(response.status)

    def on_failure(self, handle, status, now):
        self.statuses.append(-status)


def test_a_stock_tool_in_this_process_needs_no_password_and_a_user_does():
    home = Home(users=store("ann", "radio"), is_trusted_user=lambda uri: uri.user == "radio")
    there = [(f"sip:x@{FAR}", FAR, "UDP")]
    for user, expected in (("call", there), ("ann", []), ("radio", there)):
        message = request("INVITE", f"sip:x@{FAR}", ("Via", None), user=user, call=user)
        heard = Heard()
        home.stack.request(message, heard, 0.0, flows=[Flow("LOCAL", (HOME, 5060))])
        sent = home.said()
        assert forwarded(sent) == expected
        assert all("Record-Route" in m.headers for m, _, _ in sent)
        assert (407 in heard.statuses) == (not expected)
    outside = request("INVITE", f"sip:x@{FAR}", user="radio", call="outside")
    assert finals(home.hear(outside)) == [407]


def test_what_came_back_to_us_by_dns_is_not_from_this_process():
    """Covers RFC 5393 §4.2.2 at its worst: a name that leads here, known to nobody but DNS.

    Covers RFC 3428 §11.1 [proxy-asks].
    """
    home = Home(users=store("alice"))
    message = request("MESSAGE", "sip:x@mirror")
    sent = home.hear(signed(message, answer_to(home.hear(message))))
    assert forwarded(sent) == [] and finals(sent + home.wait(0.1))
    home.wait(100.0)
    assert home.idle


# Two phones and everything between


@pytest.mark.parametrize("transports", [("UDP", "UDP"), ("TCP", "UDP"), ("UDP", "TCP")])
@pytest.mark.parametrize("caller_ends", [True, False])
def test_two_phones_call_each_other(transports, caller_ends):
    """Covers RFC 3261 §16, §22.1 [ack-is-believed].

    Registration, call, re-INVITE and end, all with passwords.
    """
    link = Link()
    home = Home(link, users=store("alice", "bob"))
    alice = Member(link, ALICE, "alice", transport=transports[0])
    bob = Member(link, BOB, "bob", transport=transports[1])
    lines = [phone.register(link.now) for phone in (alice, bob)]
    link.run(until=1.0)
    call = alice.call("bob", link.now)
    link.run(until=2.0)
    assert alice.events(call) == ["accepted"] and bob.events() == ["accepted"]
    bob.calls[0].reinvite(b"again", link.now)
    link.run(until=3.0)
    assert ("offer", call, b"again") in alice.log
    (call if caller_ends else bob.calls[0]).bye(link.now)
    for line in lines:
        line.close(link.now)
    link.run()
    ended = bob if caller_ends else alice
    assert ended.events()[-1] == "ended"
    assert alice.idle and bob.idle and home.idle and home.registrar.count(link.now) == 0
    by_home = [to for _, source, to, _ in link.sent if source == HOME]
    assert by_home and HOME not in by_home


def test_a_user_in_this_process_is_called_and_hangs_up():
    """Covers RFC 3261 §12.2.2 and §13.3.1.4: what belongs to a dialog here goes to its agent."""
    link = Link()
    bob = Member(link, BOB, "bob")  # owns the call that the home takes

    def route(asked):
        def accept(server, now):
            home.agent.incoming(server, home.stack.contact("ann"), bob, now).accept(b"yes", now)

        return accept

    home = Home(link, users=store("alice"), route=route)
    alice = Member(link, ALICE, "alice")
    call = alice.call("ann", link.now)
    link.run(until=1.0)
    assert alice.events(call) == ["accepted"] and bob.events() == ["accepted"]
    call.bye(link.now)
    link.run()
    assert bob.events() == ["accepted", "ended"] and home.idle and alice.idle


@pytest.mark.parametrize("transport", ["TCP", "UDP"])
def test_a_user_in_this_process_reaches_a_phone_behind_a_nat(transport):
    """Covers RFC 5626 §5.3: INVITE, ACK and BYE all take the way that the phone has opened."""
    link = Link()
    home = Home(link, nat=True)
    bob = Member(link, BOB, "bob", transport=transport)
    bob.contact = bob.contact.replace(host="192.168.0.7")
    bob.register(link.now)
    link.run(until=1.0)
    ann = Member(link, CAROL, "ann")  # owns the call that the home makes
    to, me = (Address(Uri("sip", user, None, "home")) for user in ("bob", "ann"))
    contact = home.stack.contact("ann")
    call = home.agent.invite(to, me, contact, b"offer", ann, link.now)
    link.run(until=2.0)
    assert ann.events(call) == bob.events() == ["accepted"]
    call.bye(link.now)
    link.run(until=60.0)
    assert bob.events() == ["accepted", "ended"] and home.idle and bob.idle
    assert {to for _, source, to, _ in link.sent if source == HOME} == {BOB}


# Garbage

GOOD = [
    bytes(request()),
    bytes(register()),
    bytes(request("BYE", f"sip:bob@{BOB}", ("Route", f"<sip:{HOME};lr;proof=0>"), to=";tag=t")),
    bytes(request("INVITE", "sip:x@far", ("Proxy-Authorization", 'Digest realm="home"'))),
]


@given(st.lists(mutations(st.sampled_from(GOOD) | sip.requests().map(bytes)), max_size=4))
def test_whatever_comes_in_ends(messages):
    """Covers RFC 3261 §16.3: requests of any kind, forwarded or not, leave nothing behind."""
    home = Home(users=store("alice"))
    first = register()
    home.hear(signed(first, answer_to(home.hear(first))), source=BOB)
    for number, data in enumerate(messages):
        try:
            event(f"parses: {isinstance(parse_message(data), Request)}")
        except RemoteError:
            event("parses: no")
        home.hear(data, transport="TCP" if number % 2 else "UDP", now=1.0 + number)
    home.wait(1000.0)
    assert home.idle and home.proxy.deadline is None
