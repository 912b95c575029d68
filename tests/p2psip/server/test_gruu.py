"""GRUUs: what a registrar gives, and what a request to one of them reaches."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sip.elements import PORT, random_source
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    HOME,
    Home,
    answer_to,
    finals,
    forwarded,
    register,
    request,
    signed,
    store,
)

from p2psip.server.gruu import number_of, temporary_gruu
from p2psip.server.location import MemoryLocation
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri, equivalent
from p2psip.strategies.sip import uris
from p2psip.transaction.flow import Flow

NAME = "urn:uuid:00000000-0000-1000-8000-000a95a0e128"
OTHER_NAME = "urn:uuid:00000000-0000-1000-8000-000a95a0e129"
DEVICE = f'+sip.instance="<{NAME}>"'
OTHER = f'+sip.instance="<{OTHER_NAME}>"'
GRUU, OUTBOUND = ("Supported", "gruu"), ("Supported", "gruu, path, outbound")
PUBLIC = f"sip:bob@home;gr={NAME}"


def contact(host=BOB, device=DEVICE, more="", user="bob"):
    return f"<sip:{user}@{host}>;{device}{more}"


def tell(home, message, port=PORT, source=BOB, now=0.0):
    """Give a REGISTER to the registrar by a connection of its own; the response."""
    number = f"{message.call_id}{message.cseq.number}"
    via = f"SIP/2.0/TCP {source}:{port};rport;branch=z9hG4bK{number}"
    message = message.replace(headers=message.headers.with_("Via", via))
    home.stack.receive(bytes(message), Flow("TCP", (source, port), (HOME, PORT)), now)
    return next(m for m, _, _ in home.said() if isinstance(m, Response))


def bind(home, text=None, cseq=1, *more, port=PORT, source=BOB, now=0.0, **options):
    options.setdefault("user", "bob")
    user = options.pop("user")
    message = register(user, text or contact(), *(more or (GRUU,)), cseq=cseq, **options)
    return tell(home, message, port, source, now)


def gruus(response, name=NAME):
    """(public, temporary) of the device in a response, None where there is none."""
    mine = [each for each in response.contacts if each.instance == name]
    return tuple(mine[0].param(kind) for kind in ("pub-gruu", "temp-gruu"))


def temporary(response, name=NAME):
    return gruus(response, name)[1]


def rung(home, uri, call="c", method="INVITE", now=0.0, **options):
    """The contacts that a request for `uri` goes to, or the status that its sender gets."""
    sent = home.hear(request(method, uri, call=call, **options), now=now)
    return [to for to, _, _ in forwarded(sent)] or finals(sent)


def branches(sent):
    return [(m, to) for m, to, _ in sent if isinstance(m, Request) and m.method == "INVITE"]


def flow_of(port=PORT):
    return [("Via", f"SIP/2.0/TCP {BOB}:{port};branch=z9hG4bKx")]


def test_a_device_that_asks_gets_both():
    """Covers RFC 5627 §5.1 [public-is-made] [public-is-the-aor] [temporary-is-made].

    Covers RFC 5627 §5.2 [public-in-200] [temporary-in-200] [no-gruu-in-200].

    Covers RFC 5627 §5.1 [suggested-public-is-ignored] [suggested-temporary-is-ignored].
    """
    home = Home()
    wish = ';pub-gruu="sip:x@y;gr=z";temp-gruu="sip:w@y;gr"'
    public, temp = gruus(bind(home, contact(more=wish)))
    assert public == PUBLIC and "w" not in Uri.parse(temp).user[:1]
    uri = Uri.parse(temp)
    assert (uri.host, uri.param("gr"), uri.user.startswith("tgruu.")) == ("home", "", True)
    assert "bob" not in temp and NAME not in temp
    answer = bind(home, None, 2, ("Supported", "path"))
    assert gruus(answer) == (None, None)  # not asked for
    home = Home()
    [plain] = bind(home, "<sip:bob@10.0.0.3>").contacts
    assert plain.param("pub-gruu") is None  # no device
    refused = bind(home, None, 3, ("Supported", "gruu"), ("Require", "gruu"))
    assert refused.status == 200 and "gruu" not in refused.headers.all("Require")


@pytest.mark.parametrize("scheme", ["sip", "sips"])
def test_a_gruu_has_the_scheme_of_its_contact_and_leads_to_the_device_by_either(scheme):
    """Covers RFC 5630 §5.2.1 [gruu-as-its-contact] [gruu-of-either-scheme]."""
    home = Home()
    bind(home)
    aor = Uri.parse("sip:bob@home")
    [bound] = home.registrar.registered(aor, 0.0)
    uri = bound.contact.uri.replace(scheme=scheme)
    [told] = home.registrar.gruus.told(
        [replace(bound, contact=bound.contact.replace(uri=uri))], aor
    )
    for name in ("pub-gruu", "temp-gruu"):
        gruu = Uri.parse(told.param(name))
        assert gruu.scheme == scheme
        for other in ("sip", "sips"):
            assert home.registrar.gruus.owner(gruu.replace(scheme=other)) == ("bob", "home")
            assert home.registrar.gruus.is_of(bound, gruu.replace(scheme=other))


def test_a_temporary_one_is_new_each_time_and_all_lead_to_the_device():
    """Covers RFC 5627 §5.1 [never-equal-twice], §5.4 [instance-is-found] [valid-until-invalidated].

    Covers RFC 5627 §5.2 [temporary-is-the-latest].
    """
    home = Home()
    bind(home, contact(CAROL, OTHER), source=CAROL, call="other")
    given = [temporary(bind(home, cseq=number)) for number in range(1, 6)]
    assert len(set(given)) == 5
    for number, each in enumerate([PUBLIC, *given]):
        assert rung(home, each, f"c{number}") == [f"sip:bob@{BOB}"]
    assert len(rung(home, "sip:bob@home", "all")) == 2
    two = bind(home, contact(more=";reg-id=1"), 1, OUTBOUND, call="flow")
    two = bind(home, contact(more=";reg-id=2"), 2, OUTBOUND, call="flow", port=40002)
    assert len({each.param("temp-gruu") for each in two.contacts if each.instance == NAME}) == 1


@given(numbers=st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=5), seed=st.integers())
def test_nobody_but_the_registrar_can_tell_whose_it_is(numbers, seed):
    """Covers RFC 5627 §5.1 [unlinkable]: no octet of the number or of another GRUU shows."""
    random, aor = random_source(seed), Uri.parse("sip:bob@home")
    made = [temporary_gruu(b"key", aor, f"{each:016x}", random) for each in numbers]
    assert [number_of(b"key", each) for each in made] == [f"{each:016x}" for each in numbers]
    assert all(number_of(b"other key", each) is None for each in made)
    assert not any(equivalent(a, b) for a in made for b in made if a is not b)
    again = temporary_gruu(b"key", aor, f"{numbers[0]:016x}", random)
    shared = sum(a == b for a, b in zip(again.user[6:], made[0].user[6:], strict=True))
    assert shared < 20  # of 40 letters: two draws agree in a letter or so


@given(uris(), st.integers(0, 47), st.integers(1, 255))
def test_what_was_not_made_here_has_no_number(uri, at, flipped):
    """Covers RFC 5627 §5.4: neither any URI nor one that was changed."""
    assert number_of(b"key", uri) is None
    made = temporary_gruu(b"key", Uri.parse("sip:bob@home"), "00" * 8, random_source("x"))
    octets = bytearray(made.user.encode())
    octets[at % len(octets)] ^= flipped
    changed = made.replace(user=octets.decode("latin-1"))
    assert number_of(b"key", changed) in (None, "00" * 8)
    if changed.user != made.user:
        assert number_of(b"key", changed) is None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f"<sip:bob@home>;{DEVICE}", 403),
        (f"<{PUBLIC}>;{DEVICE}", 403),
        (f"<sip:bob@home;gr={OTHER_NAME}>;{DEVICE}", 403),
        (f"<tel:+1>;{DEVICE}", 403),
        ("<tel:+1>", 416),
        (f"<sip:carol@home;gr={OTHER_NAME}>;{DEVICE}", 403),  # at our own address
        (f"<sip:bob@{BOB};gr=x>;{DEVICE}", 200),
    ],
)
def test_a_contact_that_leads_back_is_refused(text, status):
    """Covers RFC 5627 §5.1 [403-for-the-aor] [403-for-other-schemes]."""
    assert bind(Home(), text).status == status


def test_a_temporary_one_as_contact_is_refused():
    """Covers RFC 5627 §5.1 [403-for-own-gruu]."""
    home = Home()
    temp = temporary(bind(home))
    refused = bind(home, f"<{temp}>;{DEVICE}", 2)
    assert (refused.status, refused.reason) == (403, "Contact Is A GRUU Of This User")


def test_a_new_call_id_makes_the_temporary_ones_invalid():
    """Covers RFC 5627 §5.1 [new-call-id-invalidates] and §6.1 [404-for-no-gruu]."""
    home = Home()
    old = temporary(bind(home))
    kept = temporary(bind(home, cseq=2))
    new = temporary(bind(home, call="booted"))
    assert rung(home, old, "1") == rung(home, kept, "2") == [404]
    assert rung(home, new, "3") == rung(home, PUBLIC, "4") == [f"sip:bob@{BOB}"]


def test_a_flow_that_begins_anew_makes_those_of_all_flows_invalid():
    """Covers RFC 5627 §5.1 [new-call-id-invalidates]: each flow may have a Call-ID of its own."""
    home = Home()
    first = temporary(bind(home, contact(more=";reg-id=1"), 1, OUTBOUND, call="a"))
    second = temporary(bind(home, contact(more=";reg-id=2"), 1, OUTBOUND, call="b", port=40002))
    for number, each in enumerate((first, second)):
        assert rung(home, each, f"c{number}") == [f"sip:bob@{BOB}"]
    more = contact(more=";reg-id=2")
    third = temporary(bind(home, more, 1, OUTBOUND, call="booted", port=40003))
    assert rung(home, first, "d") == rung(home, second, "e") == [404]
    assert rung(home, third, "f") == [f"sip:bob@{BOB}"]
    bind(home, contact(more=";reg-id=2"), 2, OUTBOUND, call="booted", port=40003, expires=0)
    assert rung(home, third, "g") == [f"sip:bob@{BOB}"]  # by the flow that is left


@pytest.mark.parametrize("expires", [0, None])
def test_without_contacts_the_public_one_is_480_and_a_temporary_one_404(expires):
    """Covers RFC 5627 §5.3 [gone-with-the-last] [public-stays] [480-meanwhile].

    Covers RFC 5627 §5.4 [valid-with-the-aor], §6.1 [404-for-no-gruu] [480-without-contact].
    """
    home, now = Home(), 0.0
    temp = temporary(bind(home))
    if expires is None:
        now = 4000.0
        assert rung(home, temp, "0", now=now) == [404]  # before anybody has cleared up
        home.wait(now)
    else:
        bind(home, cseq=2, expires=0)
    assert rung(home, PUBLIC, "1", now=now) == [480]
    assert rung(home, temp, "2", now=now) == [404]
    assert home.registrar.gruus.owner(Uri.parse(temp)) is None
    bind(home, cseq=3, now=now)
    assert rung(home, PUBLIC, "3", now=now) == [f"sip:bob@{BOB}"]


@pytest.mark.parametrize(
    "uri",
    ["sip:bob@home;gr", "sip:tgruu.bob@home;gr", f"sip:tgruu.{'A' * 40}@home;gr", "sip:home;gr=x"],
)
def test_what_is_no_gruu_is_404(uri):
    """Covers RFC 5627 §6.1 [404-for-no-gruu], §5.4 [valid-with-the-aor]."""
    home = Home()
    bind(home)
    assert rung(home, uri) == [404]


def test_of_two_flows_the_latest_is_tried_and_then_the_other():
    """Covers RFC 5627 §6.1 [latest-contact] [next-after-408] [no-other-contact]."""
    home = Home()
    bind(home, contact("10.9.9.1", more=";reg-id=1"), 1, OUTBOUND, call="a", port=40001)
    bind(home, contact("10.9.9.2", more=";reg-id=2"), 1, OUTBOUND, call="b", port=40002)
    [(first, _)] = branches(home.hear(request(uri=PUBLIC)))
    assert str(first.uri) == "sip:bob@10.9.9.2"
    sent = home.hear(response_to(first, 430, to_tag="x"), source=BOB, transport="TCP")
    [(second, _)] = branches(sent)
    assert str(second.uri) == "sip:bob@10.9.9.1"
    sent = home.hear(response_to(second, 486, to_tag="y"), source=BOB, transport="TCP")
    assert 486 in finals(sent) and not branches(sent)


def test_of_two_contacts_of_one_device_the_latest_is_tried():
    """Covers RFC 5627 §6.1 [latest-contact] [no-other-contact]: another process bound the first."""
    home = Home(nat=True, store=MemoryLocation())
    bind(home)
    [binding] = home.registrar.registered(Uri.parse("sip:bob@home"), 0.0)
    bind(home, contact(CAROL), 2)
    [later] = home.registrar.registered(Uri.parse("sip:bob@home"), 0.0)
    home.registrar._put(("bob", "home"), [binding, later])
    [(asked, _)] = branches(home.hear(request(uri=PUBLIC)))
    assert str(asked.uri) == f"sip:bob@{CAROL}"
    sent = home.hear(response_to(asked, 503, to_tag="x"), source=BOB, transport="TCP")
    assert not branches(sent)


def answered(home, uri, call="c", target=PUBLIC, phone=BOB):
    """A call to `uri` that is up; the INVITE as it reached the phone, and its 200."""
    [(asked, _)] = branches(home.hear(request(uri=uri, call=call)))
    answer = response_to(asked, 200, to_tag="b", headers=[("Contact", f"<{target}>")])
    home.hear(answer, source=phone, transport="TCP")
    return asked, answer


def within(asked, answer, method, target, cseq=2):
    """A request of alice's within that call."""
    route = ("Route", answer.headers["Record-Route"])
    message = request(method, target, route, cseq=cseq, call=asked.call_id)
    headers = message.headers.with_("To", asked.headers["To"] + ";tag=b")
    return message.replace(headers=headers)


def test_requests_within_a_call_find_the_device_where_it_is_now():
    """Covers RFC 5627 §6.1 [480-without-contact]: with its GRUU as the Contact of the dialog.

    Covers RFC 5627 §6.2 [record-routes].
    """
    home = Home()
    bind(home, port=40001)
    asked, answer = answered(home, "sip:bob@home")
    sent = home.hear(within(asked, answer, "ACK", PUBLIC, cseq=1))
    assert forwarded(sent) == [(f"sip:bob@{BOB}", BOB, "TCP")]
    bind(home, contact("10.9.9.2"), 2, port=40002)
    [(uri, to, how)] = forwarded(home.hear(within(asked, answer, "INFO", PUBLIC)))
    assert (uri, to, how) == ("sip:bob@10.9.9.2", BOB, "TCP")
    bind(home, contact("10.9.9.2"), 3, port=40002, expires=0)
    sent = home.hear(within(asked, answer, "BYE", PUBLIC, cseq=3))
    assert finals(sent) == [480]


def test_within_a_call_the_path_of_the_call_wins_over_that_of_the_registration():
    """Covers RFC 5627 §6.1 [path-is-discarded]."""
    home = Home(users=store("alice", "bob"))
    path = ("Path", f"<sip:{BOB};lr;ob>")
    message = register("bob", contact("10.9.9.9"), OUTBOUND, path)
    answer = tell(home, message)
    bound = tell(home, signed(message, answer))
    assert bound.status == 200
    asked_by_alice = request(uri=PUBLIC)
    challenged = answer_to(home.hear(asked_by_alice))
    [(asked, _)] = branches(home.hear(signed(asked_by_alice, challenged)))
    assert asked.headers.all("Route") == (f"<sip:{BOB};lr;ob>",)
    routes = ["<sip:10.0.0.9;lr>", asked.headers.all("Record-Route")[0]]
    reply = response_to(asked, 200, to_tag="b", headers=[("Contact", f"<{PUBLIC}>")])
    reply = reply.replace(headers=reply.headers.with_("Record-Route", *routes))
    home.hear(reply, source=BOB, transport="TCP")
    ack = within(asked, reply, "ACK", PUBLIC, cseq=2)
    ack = ack.replace(headers=ack.headers.with_("Route", asked.headers.all("Record-Route")[0]))
    [(gone, to, _)] = home.hear(ack)
    assert gone.headers.all("Route") == ("<sip:10.0.0.9;lr>",) and to == "10.0.0.9"
    assert str(gone.uri) == "sip:bob@10.9.9.9"


def test_a_request_within_a_call_that_did_not_begin_here_finds_the_device():
    """Covers RFC 5627 §6.1 [404-for-no-gruu]: it has a To tag and no Route."""
    home = Home()
    bind(home)
    inside = request("BYE", PUBLIC, ("To", "<sip:bob@home>;tag=b"), cseq=4)
    assert forwarded(home.hear(inside))[0][0] == f"sip:bob@{BOB}"
    ack = request("ACK", PUBLIC, ("To", "<sip:bob@home>;tag=b"), cseq=3)
    assert forwarded(home.hear(ack)) == [(f"sip:bob@{BOB}", BOB, "TCP")]
    lost = request("BYE", "sip:bob@home;gr", ("To", "<sip:bob@home>;tag=b"), cseq=5)
    assert finals(home.hear(lost)) == [404]
    home.hear(request("ACK", "sip:bob@home;gr", ("To", "<sip:bob@home>;tag=b"), cseq=5))
    assert not home.said()


def test_a_caller_shows_no_gruu_of_another_user():
    """Covers RFC 5627 §6.2 [403-for-anothers]."""
    home = Home(users=store("alice", "bob"))
    message = register("bob", contact(), GRUU)
    temp = temporary(tell(home, signed(message, tell(home, message))))
    for number, (uri, status) in enumerate(
        [(PUBLIC, 403), (temp, 403), ("sip:alice@home;gr=x", 100), ("sip:x@far;gr=x", 100)]
    ):
        asked = request("INVITE", "sip:bob@home", ("Contact", f"<{uri}>"), call=f"c{number}")
        challenged = answer_to(home.hear(asked))
        sent = home.hear(signed(asked, challenged))
        found = [m.status for m, to, _ in sent if isinstance(m, Response) and to == ALICE]
        assert (found or [100])[0] == status


def test_calls_to_a_gruu_are_judged_as_calls_to_the_user():
    """Covers RFC 5627 §6.1 [screened-as-the-user]."""
    home = Home()
    temp = temporary(bind(home))
    judged = []
    lenient = home.endpoint.judge
    lenient.judge = lambda server, request, now: judged.append(str(request.uri))
    rung(home, temp)
    assert judged == ["sip:bob@home"]


def test_they_outlive_a_restart():
    """Covers RFC 5627 §5.4: number and key are with the bindings."""
    kept = MemoryLocation()
    home = Home(nat=True, store=kept)
    message = register("bob", contact(), GRUU)
    sent = home.hear(message, source=BOB)
    temp = temporary(answer_to(sent))
    again = Home(nat=True, store=kept)
    again.registrar.restore(0.0)
    assert rung(again, temp) == [f"sip:bob@{BOB}"]
    other = MemoryLocation()
    other.secret = b"of another registrar"
    lost = Home(nat=True, store=other)
    lost.hear(message, source=BOB)
    assert rung(lost, temp) == [404]


def test_a_process_that_shares_the_bindings_takes_a_new_number():
    """Covers RFC 5627 §5.1 [new-call-id-invalidates]: another flow began anew elsewhere."""
    home = Home(nat=True)
    home.hear(register("bob", contact(), GRUU), source=BOB)
    aor = ("bob", "home")
    [binding] = home.registrar.registered(Uri.parse("sip:bob@home"), 0.0)
    [taken] = home.registrar.adopt(aor, [replace(binding, gruu="ff" * 8)], 0.0)
    assert taken.gruu == "ff" * 8
