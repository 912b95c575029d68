"""SIPS URIs: what comes by TLS goes on by TLS, or not at all."""

import pytest
from support.sip.homes import BOB, CAROL, HOME, Home, finals, forwarded, methods, register, request

from p2psip.sip.build import response_to
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Listener

TLS, WS = Listener("TLS", HOME, 5061), Listener("WS", HOME, 8080)


def home(*listeners, **options):
    return Home(listeners=listeners or (TLS,), **options)


def secure(params=""):
    """The REGISTER of a phone at BOB that is reached by TLS alone."""
    contact = f"<sips:bob@{BOB}:5061{';' + params if params else ''}>"
    return register(contact=contact).replace(uri=Uri.parse("sips:home"))


@pytest.mark.parametrize("transport", ["UDP", "TCP", "WS"])
@pytest.mark.parametrize("field", [("Route", f"<sips:{HOME};lr>"), ("Contact", "<sips:a@b>"), ()])
def test_what_came_in_the_clear_is_refused(transport, field):
    """Covers RFC 3261 §26.2.2, RFC 5630 §5.3 [400-for-a-mix] [480-without-sips], §5.1.2
    [400-for-a-mix].

    Covers RFC 7118 §9.2 [sips-by-wss].
    """
    uri = "sip:bob@home" if field else "sips:bob@home"
    message = request("INVITE", uri, *([field] if field else []))
    server = home(TLS, WS)
    assert finals(server.hear(message, transport=transport)) in ([416], [400])
    assert finals(server.hear(message, transport="TLS")) == [480]  # nobody is there


def test_a_secure_call_rings_the_phones_that_are_secure():
    """Covers RFC 3261 §16.6 [secure-mark-is-sips] [mark-leads-here], §26.2.2.

    Nobody rings in the clear.
    And RFC 5630 §5.3 [no-last-hop-exception] [sips-stays-sips] [no-sip-contact]
    [by-their-connection] [connections-of-phones].
    Covers RFC 7118 §9.2 [sips-by-wss]: no transport in the clear is taken.
    """
    server = home()
    assert finals(server.hear(secure(), source=BOB, transport="TLS")) == [200]
    clear = register(contact=f"<sip:bob@{CAROL}>", call="other")
    server.hear(clear, source=CAROL, transport="UDP")
    sent = server.hear(request("INVITE", "sips:bob@home"), transport="TLS")
    assert forwarded(sent) == [(f"sips:bob@{BOB}:5061", BOB, "TLS")]
    [went] = [message for message, to, _ in sent if to == BOB]
    assert went.headers.all("Record-Route") == (f"<sips:{HOME}:5061;lr>",)
    assert went.via.transport == "TLS" and went.via.port == 5061
    answer = response_to(went, 200, to_tag="b", headers=[("Contact", f"<sips:bob@{BOB}:5061>")])
    routes = [("Record-Route", value) for value in went.headers.all("Record-Route")]
    answer = answer.replace(headers=answer.headers.with_("Record-Route", routes[0][1]))
    [(back, _, how)] = server.hear(answer, source=BOB, transport="TLS")
    assert how == "TLS" and back.headers.all("Record-Route") == (f"<sips:{HOME}:5061;lr>",)


def test_a_secure_phone_is_called_by_tls_with_the_scheme_of_the_call():
    """Covers RFC 5630 §5.3 [sip-stays-sip] [sips-becomes-sip] [by-tls-all-the-same]."""
    server = home()
    server.hear(secure("x=y"), source=BOB, transport="TLS")
    sent = server.hear(request("INVITE", "sip:bob@home"))
    assert forwarded(sent) == [(f"sip:bob@{BOB}:5061;x=y", BOB, "TLS")]


@pytest.mark.parametrize(
    ("uri", "contact", "path", "status"),
    [
        ("sips:home", "<sips:b@x>", None, 200),
        ("sips:home", "<sips:b@x>, <sip:b@y>;expires=0", None, 200),
        ("sip:home", "<sip:b@x>", None, 200),
        ("sip:home", "<sips:b@x>", None, 400),
        ("sips:home", "<sips:b@x>, <sip:b@y>", None, 400),
        ("sips:home", "<sips:b@x>", "<sip:edge;lr>", 400),
    ],
)
def test_a_secure_contact_is_bound_by_secure_names_alone(uri, contact, path, status):
    """Covers RFC 5630 §5.2 [one-user] [sips-by-sips] [400-for-a-mix]."""
    server = home()
    message = register("bob", contact, *([] if path is None else [("Path", path)]))
    message = message.replace(uri=Uri.parse(uri))
    assert finals(server.hear(message, source=BOB, transport="TLS")) == [status]
    for scheme in ("sip", "sips"):
        found = server.registrar.registered(Uri.parse(f"{scheme}:bob@home"), 0.0)
        assert len(found) == (status == 200)


@pytest.mark.parametrize(("status", "contact"), [(302, "sip:bob@elsewhere"), (416, None)])
def test_what_a_phone_refuses_is_told_to_the_caller(status, contact):
    """Covers RFC 5630 §5.3 [never-recurses] [best-goes-back]."""
    server = home()
    server.hear(secure(), source=BOB, transport="TLS")
    sent = server.hear(request("INVITE", "sips:bob@home"), transport="TLS")
    [went] = [message for message, to, _ in sent if to == BOB]
    headers = [("Contact", f"<{contact}>")] if contact else []
    refusal = response_to(went, status, to_tag="b", headers=headers)
    sent = server.hear(refusal, source=BOB, transport="TLS")
    assert finals(sent) == [status] and methods(sent) == [("ACK", BOB)]


def test_a_call_between_two_transports_has_a_route_for_each():
    """Covers RFC 3261 §16.6 [clear-mark-is-no-sips], §16.7 [rules-of-requests].

    The side by TLS finds us by TLS, the other one by UDP.
    """
    server = home()
    server.hear(register(), source=BOB)
    sent = server.hear(request("INVITE", "sip:bob@home"), transport="TLS")
    [went] = [message for message, to, _ in sent if to == BOB]
    assert went.headers.all("Record-Route") == (f"<sip:{HOME}:5060;lr>",)
    routes = went.headers.all("Record-Route")
    answer = response_to(went, 200, to_tag="b", headers=[("Contact", f"<sip:bob@{BOB}>")])
    answer = answer.replace(headers=answer.headers.with_("Record-Route", *routes))
    [(back, _, how)] = server.hear(answer, source=BOB)
    assert how == "TLS"
    assert back.headers.all("Record-Route") == (f"<sip:{HOME}:5061;transport=tls;lr>",)


@pytest.mark.parametrize("transport", ["TCP", "WS"])
def test_a_browser_on_this_machine_may_show_anybodys_page(transport):
    """Own design: other domains are for programs of this machine, which a page is not."""
    server = home(TLS, WS)
    message = request("OPTIONS", "sip:x@elsewhere.org")
    sent = server.hear(message, source="127.0.0.1", transport=transport)
    assert finals(sent) == ([403] if transport == "WS" else [500])  # not in DNS


def test_a_browser_is_called_by_the_connection_it_has_opened():
    """Covers RFC 7118 §5: its Contact leads nowhere."""
    server = home(TLS, WS)
    contact = "<sip:bob@x7.invalid;transport=ws>"
    assert finals(server.hear(register(contact=contact), source=BOB, transport="WS")) == [200]
    sent = server.hear(request("INVITE", "sip:bob@home"))
    assert forwarded(sent) == [("sip:bob@x7.invalid;transport=ws", BOB, "WS")]
    [went] = [message for message, to, _ in sent if to == BOB]
    assert went.headers.all("Record-Route") == (f"<sip:{HOME}:8080;transport=ws;lr>",)
    assert went.via.transport == "WS"


CONTACTS = [
    ("UDP", False, f"sip:x@{HOME}:5060;line=1"),
    ("TCP", False, f"sip:x@{HOME}:5060;line=1;transport=tcp"),
    ("TLS", False, f"sip:x@{HOME}:5061;transport=tls;line=1"),
    ("TLS", True, f"sips:x@{HOME}:5061;line=1"),
    (None, True, f"sips:x@{HOME}:5061;line=1"),
    ("WS", False, f"sip:x@{HOME}:8080;transport=ws;line=1"),
    (None, False, f"sip:x@{HOME}:5060;line=1"),
    ("SCTP", False, f"sip:x@{HOME}:5060;line=1"),
]


@pytest.mark.parametrize(("transport", "secure", "expected"), CONTACTS)
def test_the_contact_is_one_that_the_peer_can_use(transport, secure, expected):
    """Covers RFC 3261 §8.1.1.8: by its own transport, and SIPS where the call is.

    Covers RFC 3261 §12.1.1 [contact-is-sip] [sips-for-sips] and §12.1.2 [sips-for-sips].
    Covers RFC 3261 §19.1.1 [sips-is-reliable].
    """
    stack = home(TLS, WS).stack
    contact = Uri.parse(f"sip:x@{HOME}:5060;line=1")
    assert str(stack.contact_by(contact, transport, secure=secure)) == expected
    back = stack.contact_by(Uri.parse(f"sip:x@{HOME}:5061;transport=tls;line=1"), "UDP")
    assert str(back) == f"sip:x@{HOME}:5060;line=1"
    foreign = Uri.parse("sip:x@elsewhere.org")
    assert stack.contact_by(foreign, "TLS") == foreign


def test_the_contact_stays_one_of_its_family():
    """Covers RFC 3261 §8.1.1.8: TLS of IPv6 may be all that the peer speaks."""
    plain = Listener("UDP", "2001:db8::1", 5060)
    stack = home(TLS, plain, Listener("TLS", "2001:db8::1", 5063)).stack
    for host, place in (("[2001:db8::1]", "[2001:db8::1]:5063"), (HOME, f"{HOME}:5061")):
        contact = stack.contact_by(Uri.parse(f"sip:x@{host}:5060"), "TLS")
        assert str(contact) == f"sip:x@{place};transport=tls"
