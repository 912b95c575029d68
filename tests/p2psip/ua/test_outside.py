"""Requests outside of dialogs, made from whatever URI they are for."""

from support.sip.elements import random_source

from p2psip.sip.address import Address
from p2psip.sip.message import check_request, parse_message
from p2psip.sip.uri import Uri
from p2psip.ua.outside import outside_request

ALICE = Address(Uri.parse("sip:alice@a.com"), "Alice", (("tag", "of-another"),))
BOB = Address(Uri.parse("sip:bob@b.com;method=BYE;x=y?Subject=lunch"), "", (("tag", "old"),))
PROXY = Uri.parse("sip:proxy.a.com;lr")


def test_what_every_request_has():
    """Covers RFC 3261 §8.1.1 [six-fields], §8.1.1.1 [target-is-the-to], §8.1.1.3 [new-tag].

    And RFC 3261 §8.1.1.2 [no-tag-in-the-first-to], §8.1.1.4 [unique-name] [random-name],
    §8.1.1.5 [method-in-cseq] [small-numbers], §8.1.1.6 [says-how-far] [seventy-hops].
    And RFC 3323 §4.1 [random-call-id].
    """
    random = random_source("x")
    first, second = (outside_request(random, "OPTIONS", BOB, ALICE) for _ in range(2))
    assert [name for name, _ in first.headers] == [
        *("Max-Forwards", "From", "To", "Call-ID", "CSeq")
    ]
    check_request(first.replace(headers=first.headers.prepend("Via", "SIP/2.0/UDP a")))
    assert str(first.uri) == "sip:bob@b.com;x=y" and first.method == first.cseq.method
    assert first.to.tag is None and first.to.uri == first.uri
    assert first.from_.uri == ALICE.uri and len({first.from_.tag, second.from_.tag, "of-another"})
    assert first.from_.tag != second.from_.tag != ALICE.tag != first.from_.tag
    assert len(first.call_id) == 24 and first.call_id != second.call_id  # 12 random octets
    assert outside_request(bytes, "OPTIONS", BOB, ALICE).call_id == bytes(12).hex()
    assert first.cseq.number == 1 and first.max_forwards == 70


def test_a_proxy_is_a_route_of_one():
    """Covers RFC 3261 §8.1.1.1 [proxy-as-a-route] [given-route], §8.1.2 [route-for-a-proxy].

    And RFC 3261 §7.3.1 [proxy-fields-on-top].
    """
    request = outside_request(bytes, "MESSAGE", BOB, ALICE, route=[PROXY], body=b"hi")
    assert [str(route.uri) for route in request.routes] == [str(PROXY)]
    assert [name for name, _ in request.headers][:2] == ["Route", "Max-Forwards"]
    assert request.uri.host == "b.com"
    assert parse_message(bytes(request)).routes == request.routes


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
