"""Messages survive writing and reading, in any spelling; broken ones are told why."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.build import response_to
from p2psip.sip.headers import Headers
from p2psip.sip.message import (
    Request,
    Response,
    check_request,
    check_response,
    parse_message,
    salvage,
)
from p2psip.sip.uri import Uri
from p2psip.strategies.sip import broken_requests, messages, spellings

MANDATORY = Headers(
    [
        ("Via", "SIP/2.0/UDP a;branch=z9hG4bK1"),
        ("From", "<sip:a@b>;tag=1"),
        ("To", "<sip:c@d>"),
        ("Call-ID", "x"),
        ("CSeq", "1 OPTIONS"),
    ]
)


def check(message):
    """The check of the message's kind."""
    (check_request if isinstance(message, Request) else check_response)(message)


@given(messages())
def test_parsing_undoes_writing(message):
    """Covers RFC 3261 §7.1, §7.2 and §18.3.

    And §7.4 [requests-with-bodies] [responses-with-bodies].
    """
    data = bytes(message)
    assert parse_message(data) == parse_message(memoryview(data)) == message
    check(message)


@given(st.data())
def test_every_spelling_is_the_same_message(data):
    """Covers RFC 3261 §7.3.1 [lines-are-folded], §7.3.3, §7.5 and RFC 4475 §3.1.1.1, §3.1.1.8."""
    message = data.draw(messages())
    spelling = data.draw(spellings(message))
    read = parse_message(spelling)
    if b"ontent" not in spelling.lower() and b"\nl" not in spelling.lower():
        read = read.replace(body=read.body[: len(message.body)])
    assert read == message


@given(broken_requests())
def test_a_broken_request_gets_the_status_it_deserves(broken):
    """Covers RFC 4475 §3.1.2 and §3.3."""
    data, status = broken
    with pytest.raises(RemoteError) as error:
        check(parse_message(data))
    assert error.value.status == status


@given(broken_requests())
def test_what_is_salvaged_can_be_answered(broken):
    """Covers RFC 3261 §8.2.6.2."""
    data, status = broken
    request = salvage(data)
    event("salvaged" if request else "lost")
    if request is not None:
        response = response_to(request, status, to_tag="t")
        again = parse_message(bytes(response))
        assert again.status == status
        assert again.headers.values("Via") == request.headers.values("Via")
        assert {name for name, _ in request.headers} <= {
            "Via", "From", "To", "Call-ID", "CSeq", "Timestamp",
        }  # fmt: skip


def test_nothing_is_salvaged_that_must_not_be_answered():
    """Covers RFC 3261 §8.2.6 and §17.1.1.3."""
    via = b"\r\nVia: SIP/2.0/UDP a\r\nbroken\r\n\r\n"
    assert salvage(b"OPTIONS sip:a SIP/2.0" + via) is not None
    assert salvage(b"OPTIONS <sip:a> SIP/2.0" + via).uri.host == "invalid"
    assert salvage(b"ACK sip:a SIP/2.0" + via) is None
    assert salvage(b"SIP/2.0 200 OK" + via) is None
    assert salvage(b"OPTIONS sip:a SIP/2.0\r\nTo: x\r\n\r\n") is None
    assert salvage(b"\x00\x01\x02") is None and salvage(b"") is None
    assert salvage(b"OPTIONS\r\n" + via) is None


def test_the_body_is_cut_and_bytes_stay_bytes():
    """Covers RFC 3261 §18.3 [rest-is-dropped] [body-to-the-end].

    And RFC 4475 §3.1.1.11, §3.4.1.
    """
    head = b"MESSAGE sip:a SIP/2.0\r\nSubject: x\r\n"
    assert parse_message(head + b"Content-Length: 2\r\n\r\n\x00\xffjunk").body == b"\x00\xff"
    assert parse_message(head + b"\r\n\x00\xff\r\n\r\n").body == b"\x00\xff\r\n\r\n"
    same = parse_message(head + b"l: 1\r\nContent-Length: 01\r\n\r\nx")
    assert same.body == b"x" and "Content-Length" not in same.headers
    for sizes in (b"l: 3\r\n", b"l: -1\r\n", b"l: 1\r\nl: 2\r\n", b"l: five\r\n", b"l:\r\n"):
        with pytest.raises(RemoteError):
            parse_message(head + sizes + b"\r\nxx")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"", 400),
        (b"INVITE", 400),
        (b"INVITE sip:a", 400),
        (b"INVITE sip:a HTTP/1.1", 400),
        (b"GET / HTTP/1.1", 400),
        (b"INVITE sip:a SIP/2.00", 505),
        (b"INVITE sip:a SIP/3.0", 505),
        (b"INVITE  sip:a SIP/2.0", 400),
        (b"INVITE sip:a SIP/2.0 ", 400),
        (b"INVITE sip:a; lr SIP/2.0", 400),
        (b"INVITE\tsip:a\tSIP/2.0", 400),
        (b"IN(ITE sip:a SIP/2.0", 400),
        (b"SIP/2.0", 400),
        (b"SIP/3.0 200 OK", 505),
        (b"SIP/2.0 20 OK", 400),
        (b"SIP/2.0 099 OK", 400),
        (b"SIP/2.0 700 OK", 400),
        (b"SIP/2.0 2000 OK", 400),
        (b"SIP/2.0 4294967301 better not break the receiver", 400),
    ],
)
def test_bad_start_lines_are_refused(line, status):
    """Covers RFC 3261 §7.1, §7.2 and RFC 4475 §3.1.2.16, §3.1.2.19."""
    with pytest.raises(RemoteError) as error:
        parse_message(line + b"\r\nVia: SIP/2.0/UDP a\r\n\r\n")
    assert error.value.status == status


def test_good_start_lines():
    """Covers RFC 4475 §3.1.1.13."""
    assert parse_message(b"invite sip:a sip/2.0\r\n\r\n").method == "invite"
    assert parse_message(b"SIP/2.0 401\r\n\r\n").reason == ""
    assert parse_message(b"SIP/2.0 100 \r\n\r\n").reason == ""
    assert parse_message(b"SIP/2.0 200 = 2**3 * 5**2 \xd0\xbd\r\n\r\n").reason == "= 2**3 * 5**2 н"


@pytest.mark.parametrize(
    "make",
    [
        lambda evil: Request("INVITE", Uri(host="a"), Headers([("Subject", evil)])),
        lambda evil: Request("INVITE" + evil, Uri(host="a")),
        lambda evil: Request("INVITE", Uri("urn", opaque=evil)),
        lambda evil: Request("INVITE", Uri(host="a" + evil)),
        lambda evil: Response(200, "OK" + evil),
        lambda evil: Response(200, "OK", Headers([("To", f'"{evil}" <sip:a@b>')])),
    ],
)
@pytest.mark.parametrize("evil", ["\r\nContact: <sip:evil@e>", "\n", "\r", "x\r\n\r\ny", "\ud800"])
def test_no_value_smuggles_a_line(make, evil):
    """Covers RFC 3261 §7.3.1: a line break ends a header, whoever wrote it."""
    with pytest.raises(LocalError):
        bytes(make(evil))


def test_every_message_tells_its_length():
    """Covers RFC 3261 §20.14 [length-is-told] [stream-tells-the-length] [zero-for-no-body] and
    §20 [stream-tells-the-length].
    """
    for body, told in ((b"", b"0"), (b"four", b"4")):
        for message in (Request("BYE", Uri(host="a"), MANDATORY, body), Response(200, "OK")):
            data = bytes(message.replace(body=body))
            assert data.endswith(b"\r\nContent-Length: " + told + b"\r\n\r\n" + body)
            assert data.count(b"Content-Length") == 1


def test_what_cannot_be_written_is_our_own_bug():
    """Covers RFC 3261 §7.1 and §7.2."""
    for message in (Request("", Uri(host="a")), Request("A B", Uri(host="a")), Response(99, "x")):
        with pytest.raises(LocalError):
            bytes(message)
    assert bytes(Response(200, "OK", Headers([("l", "7")]), b"x")) == (
        b"SIP/2.0 200 OK\r\nContent-Length: 1\r\n\r\nx"
    )


def test_how_a_message_looks_on_the_wire():
    """Covers RFC 3261 §7 [lines-end-in-crlf] [empty-line], §7.1 [says-2-0] [version-in-capitals].

    And RFC 3261 §7.1 [no-spaces-in-the-uri].
    """
    request = bytes(Request("OPTIONS", Uri(host="a"), Headers([("To", "sip:a")])))
    assert request == b"OPTIONS sip:a SIP/2.0\r\nTo: sip:a\r\nContent-Length: 0\r\n\r\n"
    assert bytes(Response(200, "OK")) == b"SIP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"
    wrong = Headers([("Content-Length", "7")])
    assert bytes(Response(200, "OK", wrong)) == bytes(Response(200, "OK"))
    assert parse_message(request.replace(b"SIP/2.0", b"sIp/2.0")) == parse_message(request)
    bare = request.replace(b"\r\nTo", b"\nTo"), request[:-4] + b"\n\n"
    for broken in (request[:-4], request[:-2], *bare):
        with pytest.raises(RemoteError):
            parse_message(broken)
    for ending in (b"\n", b"\r"):  # within a value, where the rest could be a header to others
        with pytest.raises(RemoteError, match="Bare Line Break"):
            parse_message(request.replace(b"sip:a\r\n", b"sip:a" + ending + b"Via: x\r\n"))
    with pytest.raises(LocalError):
        bytes(Request("OPTIONS", Uri("urn", opaque="a b")))


def test_schemes_are_a_choice():
    """Covers RFC 3261 §7.1 [tel-is-read], §8.2.2.1 [416-for-the-scheme] and RFC 4475 §3.3.3."""
    request = Request("OPTIONS", Uri(host="a"), MANDATORY)
    with pytest.raises(RemoteError, match="416"):
        check_request(request, schemes=frozenset({"tel"}))
    with pytest.raises(RemoteError, match="416"):
        check_request(request.replace(uri=Uri("urn", opaque="a:b")))
    for uri in ("tel:+15550123", "sip:a", "sips:a"):
        check_request(request.replace(uri=Uri.parse(uri)))
    check_request(request.replace(uri=Uri("urn", opaque="a:b")), schemes=frozenset({"urn"}))


@pytest.mark.parametrize("name", [name for name, _ in MANDATORY])
def test_a_request_without_its_headers_is_refused(name):
    """Covers RFC 3261 §20 [mandatory-are-read]."""
    request = Request("OPTIONS", Uri(host="a"), MANDATORY)
    check_request(request)
    with pytest.raises(RemoteError, match=f"400 Missing {name}"):
        check_request(request.replace(headers=MANDATORY.without(name)))


@pytest.mark.parametrize("name", [name for name, _ in MANDATORY])
def test_a_response_without_its_headers_is_dropped(name):
    """Covers RFC 3261 §8.1.3, §20 [mandatory-of-a-response] and RFC 4475 §3.1.2.5."""
    response = Response(200, "OK", MANDATORY)
    check_response(response)
    with pytest.raises(RemoteError):
        check_response(response.replace(headers=MANDATORY.without(name)))


@pytest.mark.parametrize(("name", "value"), [("Max-Forwards", "many"), ("Route", "<sip:a")])
def test_what_only_requests_have_is_not_looked_at_in_a_response(name, value):
    """Covers RFC 3261 §7.3.2 [other-category-ignored]."""
    headers = MANDATORY.append(name, value)
    check_response(Response(200, "OK", headers))
    with pytest.raises(RemoteError):
        check_request(Request("OPTIONS", Uri(host="a"), headers.without(name).append(name, value)))


@given(st.one_of(mutations(messages().map(bytes)), mutations(messages().flatmap(spellings))))
def test_no_input_crashes_or_swells(data):
    """Covers RFC 4475 §3.1.2: accept, or RemoteError, nothing else; and bounded memory.

    Covers RFC 5118 §5 [hostile-input-is-met], RFC 4475 §4 [hostile-input-is-met].
    """
    accepted = []

    def read():
        salvage(data)
        try:
            message = parse_message(data)
            accepted.append(message)
            check(message)
        except RemoteError as error:
            return error
        return None

    limit = 32 * len(data) + 65536
    assert peak(read) <= limit
    event("start line accepted" if accepted else "refused")
    for message in accepted:
        assert parse_message(bytes(message)) == message


@pytest.mark.parametrize(
    "evil",
    [
        b"a:\r\n" * 16000,
        b"v: " + b"SIP/2.0/UDP a," * 4000 + b"\r\n",
        b"m: " + b"<a:b>," * 10000 + b"\r\n",
        b"m: <a:b>" + b";a" * 30000 + b"\r\n",
        b"m: " + b"<a:b;ab;cd>;ef;gh," * 72 + b"\r\n",
        b"m: <sip:a" + b";aa" * 20000 + b">\r\n",
        b"m: <sip:a?" + b"aa=b&" * 10000 + b">\r\n",
        b"s: x" + b"\r\n " * 20000 + b"\r\n",
        b"s: \xff" * 8000 + b"\r\n",
        (b"m: " + b"<sip:a" + b";ab" * 40 + b">\r\n") * 250,
        b'm: "' + b"\\" * 60001 + b'" <a:b>\r\n',
        b"\r\n" * 30000,
    ],
)
def test_a_datagram_built_to_swell_does_not(evil):
    """Own design: counts are limited, so that memory stays in proportion to the input."""
    data = b"INVITE sip:a SIP/2.0\r\nv:SIP/2.0/UDP a\r\nf:<sip:a>\r\nt:<sip:a>\r\ni:a\r\n"
    data += b"CSeq: 1 INVITE\r\n" + evil + b"\r\n"

    def read():
        salvage(data)
        try:
            check(parse_message(data))
        except RemoteError as error:
            return error

    assert peak(read) <= 32 * len(data) + 65536
