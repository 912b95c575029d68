"""Requests outside of dialogs, made from whatever URI they are for."""

from support.sip.elements import random_source

from p2psip.sip.address import Address
from p2psip.ua.outside import outside_request

ME = Address.parse("<sip:me@home>")


def test_of_a_uri_the_address_is_taken_and_nothing_else():
    """Covers RFC 3261 §19.1.5 [params-are-kept] [unknown-are-kept] [method-is-dropped].

    Covers RFC 3261 §19.1.5 [no-dangerous-headers] [no-route] [no-false-claims]: none of its headers
    gets into the request, and none stays in the To.
    """
    plain = "sip:bob@b.com;transport=udp;maddr=192.0.2.1;ttl=2;user=ip;x=y"
    names = "From", "Call-ID", "CSeq", "Via", "Record-Route", "Route", "Contact", "Supported"
    headers = "&".join(f"{name}=eve" for name in names)
    to = Address.parse(f'"Bob" <{plain};method=BYE?{headers}>;tag=x')
    request = outside_request(random_source("x"), "MESSAGE", to, ME)
    assert (request.method, str(request.uri)) == ("MESSAGE", plain)
    assert str(request.to) == f'"Bob" <{plain}>'
    assert [name for name, _ in request.headers] == [
        "Max-Forwards",
        "From",
        "To",
        "Call-ID",
        "CSeq",
    ]
    assert "eve" not in str(request)


def test_tags_are_long_and_new_each_time():
    """Covers RFC 3261 §19.3 [tags-are-random]."""
    random = random_source("x")
    requests = [outside_request(random, "OPTIONS", ME, ME) for _ in range(2)]
    tags = {request.from_.tag for request in requests}
    assert len(tags) == 2 and all(int(tag, 16) > 2**32 for tag in tags)
