"""Phones with several flows, and phones behind proxies that name themselves in a Path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sip.elements import PORT
from support.sip.homes import (
    ALICE,
    BOB,
    CAROL,
    FAR,
    HOME,
    Home,
    finals,
    forwarded,
    register,
    request,
    signed,
    store,
)

from p2psip.server.location import Binding, MemoryLocation
from p2psip.server.outbound import MAX_REG_ID, by_phone
from p2psip.server.registrar import MAX_BINDINGS
from p2psip.sip.address import Address
from p2psip.sip.build import response_to
from p2psip.sip.message import Request, Response, parse_message
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow

AOR = Uri.parse("sip:bob@home")
DEVICE = '+sip.instance="<urn:uuid:00000000-0000-1000-8000-000A95A0E128>"'
OTHER = '+sip.instance="<urn:uuid:00000000-0000-1000-8000-000A95A0E129>"'
SUPPORTED = ("Supported", "path, outbound")
EDGE = "10.0.0.8"


def flow_of(port=PORT, transport="TCP", source=BOB):
    return Flow(transport, (source, port), (HOME, PORT))


def connect(home, contact, port=40001, cseq=1, *more, call="reg", user="bob", **options):
    """Register by a flow of its own; the response."""
    flow = flow_of(port, options.pop("transport", "TCP"), options.pop("source", BOB))
    message = register(user, contact, *(more or (SUPPORTED,)), cseq=cseq, call=call, **options)
    return tell(home, message, flow)


def tell(home, message, flow, now=0.0):
    """Give a REGISTER to the registrar by a flow; the response."""
    vias = message.headers.values("Via")[1:]
    via = f"SIP/2.0/{flow.transport} {flow.remote[0]}:{flow.remote[1]};rport"
    number = f"{message.call_id}{message.cseq.number}"
    headers = message.headers.with_("Via", f"{via};branch=z9hG4bK{number}", *vias)
    home.stack.receive(bytes(message.replace(headers=headers)), flow, now)
    return next(m for m, _, _ in home.said() if isinstance(m, Response))


def by_edge(home, contact, path, *more, cseq=1, source=EDGE, transport="TCP", **options):
    """Register through a proxy, with a password if the registrar wants one; the response."""
    fields = [("Path", path)] if path else []
    message = register("bob", contact, *fields, *(more or (SUPPORTED,)), cseq=cseq, **options)
    below = f"SIP/2.0/UDP {BOB};branch=z9hG4bKbelow"

    def forwarded(message):
        return message.replace(headers=message.headers.with_("Via", "x", below))

    flow = flow_of(40001, transport, source)
    response = tell(home, forwarded(message), flow)
    if response.status == 401:
        response = tell(home, forwarded(signed(message, response)), flow)
    return response


def contact(user="bob", host="192.168.0.7", device=DEVICE, reg_id=1):
    return f"<sip:{user}@{host}>;{device};reg-id={reg_id}"


def flows(home):
    return [(each.reg_id, each.flow.remote[1]) for each in home.registrar.bindings(AOR, 0.0)]


def branches(sent):
    return [(m, to) for m, to, _ in sent if isinstance(m, Request) and m.method == "INVITE"]


def fail(home, asked, status, now=0.0, source=BOB):
    return home.hear(
        response_to(asked, status, to_tag="x"), source=source, transport="TCP", now=now
    )


# Flows


def test_a_binding_is_named_by_instance_and_reg_id():
    """Covers RFC 5626 §6 [named-by-flow] [require-in-200].

    Covers RFC 5626 §6 [stores-flow] [keeps-the-flow] [updates-flow].

    The Contact does not matter: it is the same for both flows, and another one later.
    """
    home = Home()
    assert connect(home, contact(reg_id=1), 40001).headers.get("Require") == "outbound"
    connect(home, contact(reg_id=2), 40002, call="second")
    assert flows(home) == [(1, 40001), (2, 40002)]
    response = connect(home, contact(host="192.168.0.9", reg_id=1), 40003, call="again")
    assert flows(home) == [(2, 40002), (1, 40003)] and len(response.contacts) == 2
    connect(home, contact(reg_id=2), 40002, 2, call="second", expires=0)
    assert flows(home) == [(1, 40003)]


def test_flows_stand_beside_bindings_of_phones_without_outbound():
    """Covers RFC 5626 §6 [with-and-without]."""
    home = Home()
    connect(home, contact(), 40001)
    connect(home, f"<sip:bob@{BOB}:7>", 40002, call="plain")
    connect(home, f"<sip:bob@{BOB}:8>;{OTHER}", 40003, call="other")
    assert flows(home) == [(1, 40001), (0, 40002), (0, 40003)]
    connect(home, f"<sip:bob@{BOB}:9>;{DEVICE}", 40004, call="downgraded")
    assert flows(home) == [(0, 40002), (0, 40003), (0, 40004)]


def test_an_instance_of_another_user_changes_nothing():
    home = Home()
    connect(home, contact(), 40001)
    connect(home, contact("carol"), 40002, call="c", user="carol")
    connect(home, contact("carol"), 40002, 2, call="c", user="carol", expires=0)
    assert flows(home) == [(1, 40001)]


def test_flows_count_as_bindings():
    home = Home()
    for number in range(1, 2 * MAX_BINDINGS):
        assert connect(home, contact(reg_id=number), 40000 + number, number).status == 200
    assert len(flows(home)) == MAX_BINDINGS and flows(home)[-1][0] == 2 * MAX_BINDINGS - 1


@pytest.mark.parametrize("reg_id", ["", "0", "x", "-1", str(MAX_REG_ID + 1), "9" * 500])
def test_a_reg_id_that_is_no_number_is_ignored(reg_id):
    """Covers RFC 5626 §6 [no-require-without], §10 [reg-id-of-31-bits]."""
    home = Home()
    response = connect(home, contact(reg_id=reg_id))
    assert response.status == 200 and "Require" not in response.headers
    assert [number for number, _ in flows(home)] == [0]


def test_a_reg_id_needs_an_instance_and_its_answer_the_option():
    """Covers RFC 5626 §6 [no-require-without] [require-in-200]."""
    home = Home()
    assert "Require" not in connect(home, "<sip:bob@x>;reg-id=1").headers
    assert "Require" not in connect(home, contact(), 40001, 2, ("Supported", "path")).headers
    assert flows(home) == [(0, 40001), (1, 40001)]
    both = f"<sip:bob@x>;expires=0, {contact(reg_id=3)}"
    assert "Require" in connect(home, both, 40001, 3).headers


def test_one_contact_with_a_reg_id_at_a_time():
    """Covers RFC 5626 §6 [one-with-reg-id]."""
    home = Home()
    two = f"{contact(reg_id=1)}, {contact(reg_id=2)}"
    assert connect(home, two).status == 400 and flows(home) == []
    connect(home, contact(reg_id=1), 40001, 2)
    assert connect(home, f"{contact(reg_id=1)};expires=0, {contact(reg_id=2)}", 40002, 3).status
    assert flows(home) == [(2, 40002)]


def test_a_proxy_that_has_no_outbound_is_told():
    """Covers RFC 5626 §6 [sees-first-hop] [path-has-ob] [439-without-ob] [reg-id-ignored].

    Covers RFC 5626 §11.6 [439-only-if-asked].
    """
    home = Home(users=store("bob"))
    assert by_edge(home, contact(), None).status == 439
    assert by_edge(home, contact(), f"<sip:{EDGE};lr>", cseq=3).status == 439
    assert not flows(home)
    plain = ("Supported", "path")
    assert by_edge(home, contact(), f"<sip:{EDGE};lr>", plain, cseq=5).status == 200
    assert [number for number, _ in flows(home)] == [0]
    response = by_edge(home, contact(), f"<sip:{EDGE};lr;ob>", cseq=7)
    assert response.status == 200 and response.headers.get("Require") == "outbound"
    assert [number for number, _ in flows(home)] == [1]


def test_a_call_goes_to_one_flow_and_to_the_next_when_it_has_failed():
    """Covers RFC 5626 §7 [one-flow-at-a-time] [430-tries-the-next] [same-flow].

    Another phone of the user rings meanwhile.
    """
    home = Home()
    for number in (1, 2, 3):
        connect(home, contact(reg_id=number), 40000 + number, call=f"c{number}")
    connect(home, contact(device=OTHER), 40009, source=CAROL, call="other")
    home.stack.receive(bytes(request()), Flow("UDP", (ALICE, PORT), (HOME, PORT)), 0.0)
    first = [(o.flow.remote, o.data) for o in home.stack.take_orders() if b"INVITE" in o.data[:6]]
    assert [to for to, _ in first] == [(BOB, 40003), (CAROL, 40009)]
    lost = response_to(parse_message(first[0][1]), 430, to_tag="x")
    home.stack.receive(bytes(lost), flow_of(40003), 1.0)
    orders = home.stack.take_orders()
    assert [o.flow.remote for o in orders if b"INVITE" in o.data[:6]] == [(BOB, 40002)]
    home.stack.flow_failed(flow_of(40002), 2.0)
    orders = home.stack.take_orders()
    assert [o.flow.remote for o in orders if b"INVITE" in o.data[:6]] == [(BOB, 40001)]
    home.wait(300.0)
    assert home.idle


@pytest.mark.parametrize("status", [486, 503, 404, 603])
def test_an_answer_is_the_phones_answer(status):
    """Covers RFC 5626 §7 [answered-is-answered]."""
    home = Home()
    for number in (1, 2):
        connect(home, contact(reg_id=number), 40000 + number, call=f"c{number}")
    [(asked, _)] = branches(home.hear(request()))
    sent = fail(home, asked, status)
    assert not branches(sent) and finals(sent) == [500 if status == 503 else status]


def test_when_all_flows_have_failed_the_caller_hears_it():
    """Covers RFC 5626 §7 [430-tries-the-next]."""
    home = Home()
    for number in (1, 2):
        connect(home, contact(reg_id=number), 40000 + number, call=f"c{number}")
    sent = home.hear(request())
    [(asked, _)] = branches(sent)
    [(again, _)] = branches(fail(home, asked, 430))
    assert finals(fail(home, again, 408)) == [408]


def test_a_call_that_is_cancelled_tries_no_other_flow():
    home = Home()
    for number in (1, 2):
        connect(home, contact(reg_id=number), 40000 + number, call=f"c{number}")
    [(asked, _)] = branches(home.hear(request()))
    fail(home, asked, 180)
    via = request().headers["Via"]
    assert finals(home.hear(request("CANCEL", "sip:bob@home", ("Via", via)))) == [200]
    assert not branches(fail(home, asked, 408))


def test_a_lost_connection_ends_its_flow_whatever_the_contact_says():
    """Covers RFC 5626 §7 [gone-with-the-flow], for all users at once."""
    home = Home()
    connect(home, contact(host=f"{BOB}:5060"), 40001)
    connect(home, contact("carol"), 40001, user="carol", call="c")
    connect(home, contact(reg_id=2), 40002, call="second")
    home.stack.flow_failed(flow_of(40001), 0.0)
    assert not home.said() and flows(home) == [(2, 40002)] and home.registrar.count(0.0) == 1


def test_a_flow_of_datagrams_is_the_way_back():
    """Covers RFC 5626 §7 [same-flow]: no question goes to the private address."""
    home = Home()
    connect(home, contact(), 61234, transport="UDP")
    assert home.wait(0.0) == []
    sent = home.hear(request())
    assert [(to, how) for _, to, how in forwarded(sent)] == [(BOB, "UDP")]


def test_flows_of_connections_do_not_survive_the_process_and_datagrams_do():
    kept = MemoryLocation()
    home = Home(store=kept)
    connect(home, contact(host=f"{BOB}:5060", reg_id=1), 40001)
    connect(home, contact(reg_id=2), 40002, transport="UDP", call="second")
    again = Home(store=kept)
    again.registrar.restore(0.0)
    assert flows(again) == [(2, 40002)]


# Path


@pytest.mark.parametrize(
    "path", [f"<sip:flow@{EDGE};lr;transport=tcp>, <sip:far;lr>", f"<sip:{EDGE};lr>"]
)
def test_a_call_takes_the_path(path):
    """Covers RFC 3327 §5.3 [path-is-stored] [path-in-200], §5.4 [path-is-the-route]."""
    home = Home(users=store("bob"))
    response = by_edge(home, "<sip:bob@192.168.0.7>", path)
    assert response.headers.all("Path") == tuple(path.split(", "))
    sent = home.hear(request("INVITE", "sip:bob@home", ("From", "<sip:eve@away>;tag=a"), call="d"))
    [(asked, to)] = branches(sent)
    assert to == EDGE and asked.headers.all("Route") == tuple(path.split(", "))
    assert str(asked.uri) == "sip:bob@192.168.0.7"


def test_a_path_is_told_only_to_a_phone_that_knows_it():
    home = Home(users=store("bob"))
    plain = ("Supported", "replaces")
    response = by_edge(home, "<sip:bob@192.168.0.7>", f"<sip:{EDGE};lr>", plain)
    assert response.status == 200 and "Path" not in response.headers
    assert home.registrar.bindings(AOR, 0.0)[0].path


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"<sip:{FAR};lr>", 403),
        ("<sip:edge.example.com;lr>", 403),
        (f"<sip:{EDGE};maddr={FAR};lr>", 403),
        (f"<sip:{HOME};lr>", 403),
        (f"<sip:{EDGE};lr>, <tel:+1>", 400),
        (f"<sip:{EDGE};lr>, <sip:{'x' * 1100};lr>", 400),
        (f"<sip:{EDGE}", 400),
    ],
)
def test_a_path_begins_at_the_host_that_registers(path, status):
    """Not even a user may have calls sent to a host that has not asked for them."""
    home = Home(users=store("bob"))
    assert by_edge(home, "<sip:bob@192.168.0.7>", path).status == status and not flows(home)


def test_nobody_has_a_path_without_a_password():
    """The Path of a stranger is ignored, and refused where it is required."""
    home = Home()
    response = by_edge(home, f"<sip:bob@{EDGE}>", f"<sip:{EDGE};lr>")
    assert response.status == 200 and "Path" not in response.headers
    assert home.registrar.bindings(AOR, 0.0)[0].path == ()
    more = SUPPORTED, ("Require", "path")
    response = by_edge(home, f"<sip:bob@{EDGE}>", f"<sip:{EDGE};lr>", *more, cseq=2)
    assert (response.status, response.headers.get("Unsupported")) == (420, "path")


def test_the_connection_of_an_edge_may_go():
    home = Home(users=store("bob"))
    by_edge(home, contact(), f"<sip:{EDGE};lr;ob>")
    home.stack.flow_failed(flow_of(40001, source=EDGE), 0.0)
    assert len(flows(home)) == 1


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.sampled_from([0.2, 1.0])), max_size=8
    )
)
def test_of_one_instance_one_is_called_at_a_time(drawn):
    """Covers RFC 5626 §7 [one-flow-at-a-time]: groups have all bindings, each instance once."""
    bindings = [
        Binding(
            Address.parse(f'<sip:b@{n}>;q={q};+sip.instance="<{device}>"'),
            flow_of(),
            "c",
            n,
            9.0,
            reg_id=reg_id,
        )
        for n, (device, reg_id, q) in enumerate(drawn)
    ]
    groups = by_phone(bindings)
    assert sorted(each.cseq for group in groups for each in group) == list(range(len(drawn)))
    named = [group[0].instance for group in groups if group[0].reg_id]
    assert len(named) == len(set(named))
    for group in groups:
        assert len(group) == 1 or all(each.reg_id for each in group)
        assert max(group, key=lambda each: (each.q, each.cseq)) is group[0]


@pytest.mark.parametrize(
    ("transport", "more", "timer"),
    [
        ("TCP", SUPPORTED, "120"),
        ("TLS", SUPPORTED, "120"),
        ("UDP", SUPPORTED, None),
        ("WS", SUPPORTED, None),  # a page cannot keep to it
        ("TCP", ("Supported", "path"), None),
    ],
)
def test_a_connection_of_outbound_has_a_flow_timer(transport, more, timer):
    """Covers RFC 5626 §6 [flow-timer]."""
    home = Home()
    response = connect(home, contact(), 40001, 1, more, transport=transport)
    assert (response.status, response.headers.get("Flow-Timer")) == (200, timer)
    flow = flow_of(40001, transport)
    assert home.registrar.is_dead(flow, 151.0, 0.0) is (timer is not None)
    assert not home.registrar.is_dead(flow, 149.0, 0.0)


def test_a_flow_is_given_up_only_while_a_binding_needs_it():
    """Covers RFC 5626 §5.4 [grace-period]: without one it may carry a call, which ends in time."""
    home = Home()
    connect(home, contact(), 40001)
    flow = flow_of(40001)
    home.stack.receive(bytes(register("bob", None, cseq=9, call="asks")), flow, 0.0)
    assert home.registrar.is_dead(flow, 151.0, 0.0)  # a question changes nothing
    assert not home.registrar.is_dead(flow, 149.0, 0.0)
    connect(home, contact(), 40001, 2, expires=0)
    assert not home.registrar.is_dead(flow, 151.0, 0.0)
    connect(home, contact(), 40001, 3)
    home.stack.flow_failed(flow, 0.0)
    assert not home.registrar.is_dead(flow, 151.0, 0.0) and not flows(home)
