"""Addresses: which are ours, where a request goes, where a response goes back."""

import pytest
from support.sip.elements import PORT, random_source
from support.sip.stacks import THEM, Asker, Server, incoming, lone_stack, request, sent

from p2psip.sip.message import parse_message
from p2psip.sip.uri import Uri
from p2psip.stack import routing
from p2psip.stack.stack import Flow, Listener, Stack
from rtmplite.net.server import access


def test_the_top_via_learns_where_a_request_really_came_from():
    """Covers RFC 3581 §4 [rport-is-filled] [received-even-if-same] [answers-to-rport].

    Covers RFC 3261 §18.2.1 [source-is-noted] [received-is-the-source], and §18.2.2 [to-the-source]
    [to-sent-by].

    Covers Field §"Responses to the port in the Via".
    """
    core = Server()
    stack = lone_stack(core)
    vias = [
        f"SIP/2.0/UDP {THEM};branch=z9hG4bK1",
        "SIP/2.0/UDP b.com;branch=z9hG4bK2",
        f"SIP/2.0/UDP {THEM};branch=z9hG4bK3;rport",
        "SIP/2.0/UDP 192.168.0.1:5070;branch=z9hG4bK4",
        f"SIP/2.0/UDP {THEM}:5080;branch=z9hG4bK5;received=192.0.2.66",
    ]
    for via in vias:
        stack.receive(incoming("OPTIONS", via=via), Flow("UDP", (THEM, 7777)), 0.0)
    assert [str(seen.via) for seen in core.requests] == [
        vias[0],
        f"{vias[1]};received={THEM}",
        f"SIP/2.0/UDP {THEM};branch=z9hG4bK3;rport=7777;received={THEM}",
        f"{vias[3]};received={THEM}",
        vias[4].replace("192.0.2.66", THEM),
    ]
    ports = [PORT, PORT, 7777, 5070, 5080]
    assert [flow.remote for _, flow in sent(stack)] == [(THEM, port) for port in ports]


def test_the_source_of_a_request_is_noted_without_brackets():
    """Covers RFC 5118 §4.5 [received-without-brackets]."""
    asked = parse_message(incoming(via="SIP/2.0/UDP [2001:db8::1];branch=z9hG4bKx"))
    noted = routing.received_over(asked, Flow("UDP", ("2001:db8::9", PORT)))
    assert noted.headers["Via"] == "SIP/2.0/UDP [2001:db8::1];branch=z9hG4bKx;received=2001:db8::9"


def test_a_loose_and_a_strict_route_go_where_they_should():
    """Covers RFC 3261 §16.6 [looks-at-the-first-route] [route-or-target-is-the-hop].

    And §16.6 [strict-router-is-served] [target-goes-last] [first-route-is-the-target]
    [strict-router-is-the-hop], §12.2.1.1 [strict-router-is-the-request-uri] [rest-of-the-routes]
    [target-comes-last], §8.1.1.1 [given-route], §8.1.2 [to-the-first-route] [strict-router-first].

    Covers Field §"Loose routes with a value".
    """
    stack, asker = lone_stack(), Asker()
    loose = ("Route", "<sip:10.0.0.3;r2=on;lr=on>, <sip:10.0.0.3;transport=tcp;r2=on;lr=on>")
    stack.request(request("OPTIONS", "sip:bob@b.com", 1, loose), asker, 0.0)
    strict = ("Route", "<sip:10.0.0.4;x=y;method=INVITE>, <sip:p2.com;lr;z>")
    stack.request(request("OPTIONS", "sip:bob@b.com", 2, strict), asker, 0.0)
    (a, way_a), (b, way_b) = sent(stack)
    assert a.headers["Route"] == loose[1]
    assert way_a.remote[0] == "10.0.0.3" and str(a.uri) == "sip:bob@b.com" and len(a.routes) == 2
    assert way_b.remote[0] == "10.0.0.4" and str(b.uri) == "sip:10.0.0.4;x=y"
    assert [str(route.uri) for route in b.routes] == ["sip:p2.com;lr;z", "sip:bob@b.com"]


@pytest.mark.parametrize("router", ["10.0.0.3;lr", "10.0.0.3"])
def test_a_sips_target_is_reached_by_tls_through_any_proxy(router):
    """Covers RFC 3261 §8.1.2 [sips-over-any-route]: the proxy of the user is named without it."""
    listeners = [Listener("UDP", "10.0.0.1", PORT), Listener("TLS", "10.0.0.1", 5061)]
    stack = Stack(random=random_source("x"), listeners=listeners)
    stack.request(request("OPTIONS", "sips:bob@b.com", 1, ("Route", f"<sip:{router}>")), Asker(), 0)
    [(message, flow)] = sent(stack)
    assert flow == Flow("TLS", ("10.0.0.3", 5061), domain="10.0.0.3")
    assert message.via.transport == "TLS"
    named = ("Route", "<sip:p.com;lr>")
    stack.request(request("OPTIONS", "sips:bob@b.com", 2, named), Asker(), 0)
    [locate] = stack.take_orders()
    assert str(locate.uri) == "sips:p.com;lr"


@pytest.mark.parametrize("router", ["10.0.0.3;lr", "10.0.0.3"])
def test_a_secure_proxy_is_reached_by_tls_for_any_target(router):
    """Covers RFC 5630 §5.1.1 [sips-route-by-tls] [strict-sips-route]."""
    listeners = [Listener("UDP", "10.0.0.1", PORT), Listener("TLS", "10.0.0.1", 5061)]
    stack = Stack(random=random_source("x"), listeners=listeners)
    route = ("Route", f"<sips:{router}>")
    stack.request(request("OPTIONS", "sip:bob@b.com", 1, route), Asker(), 0)
    [(message, flow)] = sent(stack)
    assert flow == Flow("TLS", ("10.0.0.3", 5061), domain="10.0.0.3")
    is_loose = router.endswith("lr")
    assert str(message.uri) == ("sip:bob@b.com" if is_loose else "sips:10.0.0.3")
    assert not routing.may_carry(Flow("UDP", ("10.0.0.3", PORT)), message)


def test_who_we_are():
    """Covers RFC 3261 §8.1.1.8 [contact-is-a-listener], §18.2.1 [contact-is-heard]."""
    stack = Stack(
        random=random_source("x"),
        listeners=[Listener("UDP", "0.0.0.0", 5070), Listener("TCP", "0.0.0.0", 5070)],
        advertised="203.0.113.1",
        hosts=["Example.com"],
    )
    ours = ["sip:203.0.113.1:5070", "sip:x@example.com:5070", "sip:localhost:5070"]
    assert all(stack.is_ours(Uri.parse(uri)) for uri in ours)
    others = [
        "sip:203.0.113.1",
        "sip:10.0.0.1:5070",
        "tel:123",
        "sip:example.com:5070;maddr=1.2.3.4",
    ]
    assert not any(stack.is_ours(Uri.parse(uri)) for uri in others)
    assert stack.is_own_address("127.0.0.1", 5070) and not stack.is_own_address("127.0.0.1", None)
    assert str(stack.contact("bob")) == "sip:bob@203.0.113.1:5070"
    assert str(stack.contact(transport="TCP")) == "sip:203.0.113.1:5070;transport=tcp"
    assert stack.is_ours(stack.contact("bob")) and stack.is_ours(stack.contact(transport="TCP"))


def test_a_wildcard_listener_signs_with_the_address_it_sends_from():
    stack = Stack(random=random_source("x"), listeners=[Listener("UDP", "0.0.0.0", PORT)])
    flow = Flow("UDP", (THEM, PORT), ("10.0.0.7", PORT))
    stack.request(request(), Asker(), 0.0, flows=[flow])
    assert [message.via.host for message, _ in sent(stack)] == ["10.0.0.7"]


def test_our_via_asks_for_rport_and_names_our_port():
    """Covers RFC 3581 §3 [rport-without-value] [answers-at-sent-by].

    And RFC 3261 §8.1.1.7 [via-on-top] [via-of-2-0] [has-a-branch] [begins-with-the-cookie].
    Covers RFC 3261 §18.1.1 [writes-sent-by].
    """
    stack = Stack(random=random_source("x"), listeners=[Listener("UDP", "10.0.0.1", 5070)])
    stack.request(request(), Asker(), 0.0)
    [(message, _)] = sent(stack)
    assert "rport" in str(message.via).split(";") and message.via.rport is None
    assert (message.via.branch or "").startswith("z9hG4bK") and len(message.vias) == 1
    assert message.headers.fields[0][1].startswith("SIP/2.0/UDP 10.0.0.1:5070;")
    assert (message.via.host, message.via.port) == ("10.0.0.1", 5070)


@pytest.mark.parametrize("transport", ["TLS", "TCP"])
def test_a_response_leaves_by_the_transport_of_its_request(transport):
    """Covers RFC 3263 §5 [tls-by-tls], where the connection is lost as where it is not.

    Covers RFC 3261 §18.2.2 [same-connection] [another-connection].
    """
    asked = parse_message(
        incoming("OPTIONS", via=f"SIP/2.0/{transport} b.com:5090;branch=z9hG4bK1")
    )
    flow = Flow(transport, (THEM, 40001), ("10.0.0.1", 5061))
    assert routing.response_flow(asked, flow) == flow
    domain = "b.com" if transport == "TLS" else ""  # what its certificate must be good for
    assert routing.fallback_flow(asked, flow) == Flow(transport, (THEM, 5090), domain=domain)


@pytest.mark.parametrize("is_loopback", [routing.is_loopback, access.is_loopback])
@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "192.0.2.7", "2001:db8::1", "fe80::1%lo")),
        *((host, False) for host in ("", "example.com", "localhost.example.com", "[::1]")),
        ("::ffff:127.0.0.1", True),
        ("LOCALHOST", True),
    ],
)
def test_what_only_this_machine_reaches(host, is_so, is_loopback):
    """Both families say the same."""
    assert is_loopback(host) is is_so


def test_an_outside_address_is_for_peers_of_its_family():
    """Covers RFC 3261 §18.1.1: to others the listener of their own family is named."""
    both = [Listener("UDP", "192.168.1.10", 5060), Listener("UDP", "2001:db8::1", 5070)]
    stack = Stack(random=random_source("x"), listeners=both, advertised="203.0.113.1")
    assert str(stack.contact(peer="198.51.100.9")) == "sip:203.0.113.1:5060"
    assert str(stack.contact(peer="2001:db8::9")) == "sip:[2001:db8::1]:5070"
    stack.advertise(("203.0.113.2", 7000))
    assert str(stack.contact(peer="198.51.100.9")) == "sip:203.0.113.2:7000"
    assert str(stack.contact(peer="2001:db8::9")) == "sip:[2001:db8::1]:5070"
    alone = Stack(random=random_source("x"), listeners=both[1:], advertised="203.0.113.1")
    assert str(alone.contact(peer="2001:db8::9")) == "sip:203.0.113.1:5070"


def test_a_contact_for_tls_says_so():
    """Covers Field §"Contacts without transport=tls"."""
    listeners = [Listener("UDP", "10.0.0.1", PORT), Listener("TLS", "10.0.0.1", 5061)]
    stack = Stack(random=random_source("x"), listeners=listeners)
    assert str(stack.contact("bob", "TLS")) == "sip:bob@10.0.0.1:5061;transport=tls"
    moved = stack.contact_by(stack.contact("bob"), "TLS")
    assert str(moved) == "sip:bob@10.0.0.1:5061;transport=tls"


@pytest.mark.sources
def test_who_calls_us_by_a_name_is_told_that_name(monkeypatch):
    """Covers RFC 3261 §26.2.2: by TLS, since it compares our certificate with what it is told."""
    monkeypatch.setattr(routing, "MAX_CALLED", 2)
    listeners = [Listener("UDP", "10.0.0.1", PORT), Listener("TLS", "10.0.0.1", 5061)]
    hops = routing.Hops(listeners, None)
    name, address = "sip:bob@sip.example.org:5061;transport=tls", "sip:bob@10.0.0.1:5061"
    assert not hops.is_ours(Uri.parse(name))
    for host in (THEM, "10.0.0.8"):
        hops.found(Flow("TLS", (host, 7777), ("10.0.0.1", 5061), called="sip.example.org"))
    hops.found(Flow("TLS", ("10.0.0.7", 7777), ("10.0.0.1", 5061)))
    assert hops.is_ours(Uri.parse(name))
    assert str(hops.contact("bob", "TLS", THEM)) == name
    assert str(hops.contact("bob", "TLS", "10.0.0.7")) == f"{address};transport=tls"
    assert str(hops.contact("bob", "UDP", THEM)) == "sip:bob@10.0.0.1:5060"
    here = hops.contact("bob")
    assert str(hops.contact_by(here, "TLS", secure=False, peer=THEM)) == name
    assert str(hops.contact_by(here, "TLS", secure=True, peer=THEM)).startswith("sips:bob@sip.ex")
    assert str(hops.contact_by(here, "TLS", secure=False)) == f"{address};transport=tls"
    hops.found(Flow("TLS", ("10.0.0.9", 7777), ("10.0.0.1", 5061), called="sip.example.org"))
    assert str(hops.contact("bob", "TLS", THEM)) == f"{address};transport=tls"


@pytest.mark.parametrize(
    ("named", "transport"),
    [
        ("", "TLS"),
        (";transport", "TLS"),
        (";transport=tcp", "TLS"),
        (";transport=tls", "TLS"),
        (";transport=ws", "WSS"),
    ],
)
def test_whatever_a_sips_uri_names_is_secure(named, transport):
    """Covers RFC 3261 §26.3.1 [sips-by-tls]."""
    assert routing._transport(Uri.parse(f"sips:bob@a.example{named}")) == transport
