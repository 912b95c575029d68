"""Ways that an attacker writes: paths, flows and GRUUs that lead to nobody else's phone."""

import pytest
from support.sip.elements import PORT, random_source
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    HOME,
    OUTSIDER,
    PASSWORD,
    Home,
    answer_to,
    finals,
    forwarded,
    register,
    request,
    signed,
    store,
)

from p2psip.server.gruu import temporary_gruu
from p2psip.server.registrar import MAX_BINDINGS
from p2psip.sip.message import Response
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow

AOR = Uri.parse("sip:bob@home")
OUTBOUND = ("Supported", "gruu, path, outbound")
CHURN = 60


def device(number):
    return f'+sip.instance="<urn:uuid:00000000-0000-1000-8000-{number:012x}>"'


def contact(number=0, reg_id=1, user="bob", host="192.168.0.7"):
    return f"<sip:{user}@{host}>;{device(number)};reg-id={reg_id}"


def flow_of(port=40001, source=BOB):
    return Flow("TCP", (source, port), (HOME, PORT))


def tell(home, message, flow):
    """Give a REGISTER to the registrar, with the password if it wants one; the response."""
    for attempt in range(2):
        host, port = flow.remote
        number = f"{message.call_id}{message.cseq.number}{attempt}"
        via = f"SIP/2.0/TCP {host}:{port};rport;branch=z9hG4bK{number}"
        sent = message.replace(headers=message.headers.with_("Via", via))
        home.stack.receive(bytes(sent), flow, 0.0)
        response = next(m for m, _, _ in home.said() if isinstance(m, Response))
        if response.status != 401:
            break
        message = signed(message, response, password=PASSWORD)
    return response


def of_flows(home):
    """All that the registrar keeps of flows with their hosts, and of devices, in places."""
    return len(home.registrar._binding_index), len(home.registrar.gruus._owners)


@pytest.fixture
def home():
    """A home of alice and bob, with bob registered by a connection of his own."""
    home = Home(users=store("alice", "bob"))
    message = register("bob", contact(), OUTBOUND, call="bobs")
    assert tell(home, message, flow_of()).status == 200
    return home


@pytest.mark.parametrize(
    "paths",
    [
        [f"<sip:{BOB};lr>"] * 100,
        [f"<sip:{number}@{BOB};lr;ob>" for number in range(100)],
        [f"<sip:{FAR};lr>"] * 100,
        [f"<sip:{FAR};lr>", f"<sip:{BOB};lr;ob>"],
        [f"<sip:{HOME};lr>", f"<sip:{BOB};lr;ob>"],
    ],
)
def test_a_path_of_a_hundred_proxies_or_of_a_stranger_is_refused(home, paths):
    """Covers RFC 3327 §5.3: nothing is kept of it, and calls go the way they went before."""
    before = home.registrar.registered(AOR, 0.0)
    fields = [("Path", each) for each in paths]
    message = register("bob", contact(2), OUTBOUND, *fields, call="evil")
    assert tell(home, message, flow_of(40002)).status in (400, 403)
    assert home.registrar.registered(AOR, 0.0) == before
    sent = home.hear(request("INVITE", "sip:bob@home", OUTSIDER))
    assert [(to, how) for _, to, how in forwarded(sent)] == [(BOB, "TCP")]


@pytest.mark.parametrize("churned", ["reg-id", "instance", "both", "contact", "Call-ID", "flow"])
def test_churn_keeps_no_more_than_a_users_share(churned):
    """Covers RFC 5626 §6: whatever is new each time, by one flow or by many."""
    home = Home()
    assert tell(home, register("carol", contact(9, user="carol")), flow_of(4, CAROL)).status == 200
    carols = home.registrar.registered(Uri.parse("sip:carol@home"), 0.0)
    for n in range(1, CHURN):
        text = {
            "reg-id": contact(0, n),
            "instance": contact(n),
            "both": contact(n, n),
            "contact": f"<sip:bob{n}@192.168.0.7>",
            "Call-ID": contact(),
            "flow": contact(),
        }[churned]
        call = f"c{n}" if churned in ("Call-ID", "flow") else "c"
        flow = flow_of(40000 + n if churned == "flow" else 40000)
        assert tell(home, register("bob", text, OUTBOUND, cseq=n, call=call), flow).status == 200
        assert len(home.registrar.registered(AOR, 0.0)) <= MAX_BINDINGS
    flows, devices = of_flows(home)
    assert flows == 4 and devices <= MAX_BINDINGS + 1
    assert home.registrar.registered(Uri.parse("sip:carol@home"), 0.0) == carols
    home.stack.flow_failed(flow, 0.0)
    assert not home.registrar.registered(AOR, 0.0) and of_flows(home) == (2, 1)


@pytest.mark.parametrize(
    ("uri", "routes"),
    [
        (f"sip:bob@{BOB}:40001;transport=tcp", ()),
        (f"sip:x@far;maddr={BOB};transport=tcp", (f"<sip:{HOME};lr>",) * 9),
        ("sip:bob@192.168.0.7", ()),
        ("sip:bob@192.168.0.7", (f"<sip:flow@{HOME};lr;ob>",)),
        ("sip:bob@192.168.0.7", (f"<sip:{BOB}:40001;transport=tcp;lr>",)),
        ("sip:x@far", (f"<sip:{HOME};lr>", f"<sip:{BOB}:40001;transport=tcp;lr;ob>")),
        ("sip:x@far", (f"<sip:{BOB}.40001@{HOME};lr;ob>",) * 2),
        ("sip:alice@home", (f"<sip:{HOME};lr>", f"<sip:{BOB}:40001;transport=tcp;lr>")),
    ],
)
@pytest.mark.parametrize("method", ["INVITE", "OPTIONS", "BYE", "MESSAGE"])
def test_a_stranger_names_no_flow(home, method, uri, routes):
    """Covers RFC 5626 §5.3: there is no URI that stands for a connection, whoever it is of."""
    fields = [OUTSIDER, *(("Route", each) for each in routes)]
    sent = home.hear(request(method, uri, *fields), source=FAR)
    assert forwarded(sent) == [] and finals(sent)[0] in (403, 480)
    assert home.idle


def changed(temp):
    """Temporary GRUUs that are not the one given."""
    user = temp.user
    flipped = user[:-1] + ("A" if user[-1] != "A" else "B")
    other = temporary_gruu(b"of another process", AOR, "00" * 8, random_source("x"))
    names = [user[:-1], user[:-4], user[:6], user + "AAAA", user + user[6:], user * 2]
    users = [*names, flipped, user.swapcase(), other.user, "tgruu." + "A" * 4000]
    return [temp.replace(user=each) for each in users]


def test_a_gruu_that_was_not_made_here_is_of_nobody(home):
    """Covers RFC 5627 §6.1: cut, repeated, changed, of another process; also to end a call."""
    message = register("bob", contact(), OUTBOUND, call="bobs", cseq=10)
    temp = Uri.parse(tell(home, message, flow_of()).contacts[0].param("temp-gruu"))
    for number, uri in enumerate(changed(temp)):
        for to, method in (("", "INVITE"), (";tag=b", "BYE")):
            asked = request(method, str(uri), OUTSIDER, to=to, call=f"c{number}")
            sent = home.hear(asked, source=FAR)
            assert forwarded(sent) == [] and finals(sent) == [404]
    sent = home.hear(request("INVITE", str(temp), OUTSIDER, call="right"), source=FAR)
    assert [(to, how) for _, to, how in forwarded(sent)] == [(BOB, "TCP")]


def test_a_gruu_tells_a_stranger_no_more_than_an_address_of_record(home):
    """Covers RFC 5627 §6.1: neither who is a user, nor who is there, nor which device.

    A user with the password is told the cause.
    """
    name = device(0).split("<")[1].rstrip('>"')
    asked = {
        "nobody, as is": "sip:nobody@home",
        "a user who is away, as is": "sip:alice@home",
        "nobody": f"sip:nobody@home;gr={name}",
        "a user who is away": f"sip:alice@home;gr={name}",
        "another device of one who is there": "sip:bob@home;gr=urn:uuid:0",
    }
    for method in ("INVITE", "OPTIONS", "SUBSCRIBE"):
        told = set()
        for number, uri in enumerate(asked.values()):
            sent = home.hear(request(method, uri, OUTSIDER, call=f"c{number}"), source=FAR)
            assert forwarded(sent) == []
            answer = answer_to(sent)
            told.add((answer.status, answer.reason, *(name for name, _ in answer.headers)))
        assert len(told) == 1 and next(iter(told))[0] == 480
    again = request("INVITE", asked["nobody"], call="alices")
    sent = home.hear(signed(again, answer_to(home.hear(again))), source=ALICE)
    assert answer_to(sent).reason != "Temporarily Unavailable"
