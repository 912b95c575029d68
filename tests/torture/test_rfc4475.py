"""The SIP torture test messages, taken from the RFC's own archive, meet their reactions.

Covers RFC 4475 §3, section by section; the messages come from its appendix A.
"""

from dataclasses import replace

import pytest
from torture.rfc_messages import archive

from p2psip.errors import RemoteError
from p2psip.sip.auth import Credentials
from p2psip.sip.build import response_to
from p2psip.sip.framing import Malformed, StreamFramer
from p2psip.sip.grammar import number
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, check_request, check_response, parse_message, salvage
from p2psip.sip.uri import Uri, equivalent

# What the codecs do with each message.  A number is the status that a request deserves; for
# a response it only means that it is dropped.  None is a message that goes up to the core,
# whose own verdict (401, 415, 420, 483 ...) is not a matter of syntax.
# Source: RFC 4475 §3.1 to §3.4
REACTIONS = {
    "wsinv": None,
    "intmeth": None,
    "esc01": None,
    "escnull": None,
    "esc02": None,
    "lwsdisp": None,
    "longreq": None,
    "dblreq": None,
    "semiuri": None,
    "transports": None,
    "mpart01": None,
    "unreason": None,
    "noreason": None,
    "badinv01": 400,
    "clerr": 400,
    "ncl": 400,
    "scalar02": 400,
    "scalarlg": 400,
    "quotbal": 400,
    "ltgtruri": 400,
    "lwsruri": 400,
    "lwsstart": 400,
    "trws": 400,
    "escruri": 400,
    "baddate": None,  # RFC 4475 §3.1.2.12 advises against a refusal where Date plays no part
    "regbadct": 400,
    "badaspec": 400,
    "baddn": 400,
    "badvers": 505,
    "mismatch01": 400,
    "mismatch02": 501,
    "bigcode": 400,
    "badbranch": None,  # falls back to matching by RFC 2543
    "insuf": 400,
    "unkscm": 416,
    "novelsc": 416,
    "unksm2": None,
    "bext01": None,
    "invut": None,
    "regaut01": None,
    "multi01": 400,
    "mcl01": 400,
    "bcast": None,
    "zeromf": None,
    "cparam01": None,
    "cparam02": None,
    "regescrt": None,
    "sdp01": None,
    "inv2543": None,
    "test": 400,  # in the archive, not in the text: a request line without a version
}


@pytest.fixture
def message(specs):
    """A reader of one message of the archive, checked if it is a valid one."""

    def read(name):
        found = parse_message(archive(specs)[name])
        if REACTIONS[name] is None:
            (check_request if isinstance(found, Request) else check_response)(found)
        return found

    return read


def test_the_table_and_the_archive_agree(specs):
    """Covers RFC 4475 §A.1."""
    assert set(archive(specs)) == set(REACTIONS)


@pytest.mark.parametrize("name", REACTIONS)
def test_reaction(specs, name):
    """Covers RFC 4475 §3: accepted and written back, or refused with the status it deserves.

    Covers RFC 4475 §3.1.2.1 [empty-values-refused], §3.1.2.8 [space-in-the-uri], §3.1.2.18
    [501-for-an-unknown-method] and §3.3.9 [two-lengths-refused].

    And §3.1.2.2 [longer-than-its-datagram], §3.1.2.3 [negative-length-refused] [never-negative]
    [no-negative-index], §3.1.2.4 [huge-number-refused], §3.1.2.6 [open-quote-refused], §3.1.2.13
    [question-needs-brackets], §3.1.2.14 [spaces-in-a-uri-refused], §3.1.2.16
    [505-for-another-version], §3.1.2.19 [huge-status-dropped], §3.3.1 [missing-is-refused],
    §3.3.2 [unknown-scheme-is-read], §3.3.3 [odd-scheme-is-read] and §3.3.8 [repeated-is-refused].
    """
    data, status = archive(specs)[name], None
    try:
        found = parse_message(data)
        assert parse_message(bytes(found)) == found
        (check_request if isinstance(found, Request) else check_response)(found)
    except RemoteError as error:
        status = error.status
    assert status == REACTIONS[name]


@pytest.mark.parametrize("name", [name for name, status in REACTIONS.items() if status])
def test_a_refused_request_can_be_answered(specs, name):
    """Covers RFC 4475 §3.1.2, §3.3.1: 400 by Via, whatever is broken; responses are dropped."""
    request = salvage(archive(specs)[name])
    if name in ("scalarlg", "bigcode", "test"):
        assert request is None  # two responses, and a request that has no Via
        return
    response = response_to(request, REACTIONS[name], to_tag="t")
    vias = parse_message(bytes(response)).headers.values("Via")
    assert vias == request.headers.values("Via")  # as it came, where it is the broken part


def test_wsinv(message):
    """Covers RFC 4475 §3.1.1.1 [tortuous-is-read] [unknown-header-is-text]."""
    assert number("0009", 9) == 9
    with pytest.raises(RemoteError):
        number("0x9", 99)
    found = message("wsinv")
    assert found.uri.param("unknownparam") == "" and found.max_forwards == 68
    assert found.to.tag == "1918181833n" and found.from_.tag == "98asjd8"
    assert found.from_.display == 'J Rosenberg \\"' and found.cseq == (9, "INVITE")
    assert [via.host for via in found.vias] == [
        "192.0.2.2", "spindle.example.com", "192.168.255.111",
    ]  # fmt: skip
    assert [via.branch for via in found.vias] == [
        "390skdjuw", "z9hG4bK9ikj8", "z9hG4bK30239",
    ]  # fmt: skip
    assert found.headers["Subject"] == "" and len(found.body) == 150
    assert found.headers["NewFangledHeader"] == "newfangled value continued newfangled value"
    assert found.headers["UnknownHeaderWithUnusualValue"] == ";;,,;;,;"
    (contact,), (route,) = found.contacts, found.routes
    assert contact.display == 'Quoted string ""' and contact.param("q") == "0.33"
    assert contact.param("newparam") == "newvalue" and contact.param("secondparam") == ""
    assert route.uri.param("lr") == "" and route.uri.param("unknownwith") == "value"


def test_intmeth(message):
    """Covers RFC 4475 §3.1.1.2."""
    found = message("intmeth")
    assert found.method == found.cseq.method == "!interesting-Method0123456789_*+`.%indeed'~"
    assert found.uri.user == "1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*"
    assert found.uri.password == "&it+has=1,weird!*pas$wo~d_too.(doesn't-it)"
    assert found.to.display == "BEL:\x07 NUL:\x00 DEL:\x7f"
    assert found.from_.display == "token1~` token2'+_ token3*%!.-"
    assert found.from_.param("fromParam''~+*_!.-%") == "работающий"
    assert found.call_id == "intmeth.word%ZK-!.*_+'@word`~)(><:\\/\"][?}{"
    assert found.headers["extensionHeader-!.%*+_`'~"] == "\ufeff大停電"


def test_escapes(message):
    """Covers RFC 4475 §3.1.1.3 [escapes-are-read] [escape-is-its-letter] [no-escape-elsewhere].

    And §3.1.1.4 [escaped-zeros-are-read] [zero-ends-nothing], §3.1.1.5 [percent-is-a-letter].
    """
    found = message("esc01")
    assert found.uri.user == "sips:user@example.com" and found.uri.host == "example.net"
    assert found.to.uri.user == "user" and found.from_.uri.user == "I have spaces"
    contact = found.contacts[0].uri
    assert contact.user == "caller" and contact.params == (("lr", None), ("name", "value%41"))
    assert not equivalent(contact, Uri.parse("sip:caller@host5.example.net;lr;name=valueA"))

    found = message("escnull")
    assert found.to.uri.user == "null-\0-null"
    assert [contact.uri.user for contact in found.contacts] == ["\0", "\0\0"]

    found = message("esc02")
    assert found.method == "RE%47IST%45R" and found.to.display == "%Z%45"
    assert [contact.uri.user for contact in found.contacts] == ["alias1", "alias3"]


def test_valid_oddities(message):
    """Covers RFC 4475 §3.1.1.6 [name-beside-the-bracket], §3.1.1.7, §3.1.1.8 [rest-is-noise].

    And §3.1.1.9, §3.1.1.10 [any-transport-is-read], §3.1.1.11 [framed-by-its-length]
    [multipart-is-octets].
    """
    assert message("lwsdisp").from_.display == "caller"
    long = message("longreq")
    assert len(long.vias) == 34 and long.vias[-1].received == "192.0.2.5"
    assert len(long.from_.tag) == 2 + 50 * 3 + 3
    first = message("dblreq")
    assert first.method == "REGISTER" and first.body == b""
    assert message("semiuri").uri.user == "user;par=u@example.net"
    assert [via.transport for via in message("transports").vias] == [
        "UDP", "SCTP", "TLS", "UNKNOWN", "TCP",
    ]  # fmt: skip
    binary = message("mpart01")
    assert len(binary.body) == 553 and b"\x00" in binary.body
    assert binary.content_type == "multipart/mixed" and binary.via.has_rport


def test_reasons(message):
    """Covers RFC 4475 §3.1.1.12 [any-reason-is-read], §3.1.1.13 [no-reason-is-read]
    [space-before-no-reason].
    """
    assert message("unreason").reason.startswith("= 2**3 * 5**2 но сто")
    assert (message("noreason").status, message("noreason").reason) == (100, "")
    assert bytes(message("noreason")).startswith(b"SIP/2.0 100 \r\n")


def test_extra_octets_are_the_next_message_on_a_stream(specs):
    """Covers RFC 4475 §3.1.1.8: noise in a datagram, a second request on a stream."""
    items = StreamFramer().feed(archive(specs)["dblreq"])
    assert [item.method for item in items if isinstance(item, Request)] == ["REGISTER", "INVITE"]


@pytest.mark.parametrize("name", ["ncl", "mcl01"])
def test_a_bad_length_loses_the_stream(specs, name):
    """Covers RFC 4475 §3.1.2.3 [stream-is-lost] and §3.3.9 [stream-is-lost]."""
    framer = StreamFramer()
    *_, last = framer.feed(archive(specs)[name])
    assert isinstance(last, Malformed) and last.fatal and last.error.status == 400
    assert framer.broken and framer.feed(archive(specs)["wsinv"]) == []


def test_a_long_length_waits_for_more(specs):
    """Covers RFC 4475 §3.1.2.2."""
    assert StreamFramer().feed(archive(specs)["clerr"]) == []


def test_what_only_the_core_can_judge(message):
    """Covers RFC 4475 §3.2.1 [bare-cookie-is-read], §3.3.4, §3.3.5, §3.3.6 [unknown-type-is-read].

    And §3.3.7 [unknown-scheme-is-kept], §3.3.10 [broadcast-via-is-read], §3.3.11, §3.3.12
    [contact-parameter], §3.3.13 [uri-parameter], §3.3.14.
    """
    assert message("badbranch").via.branch == "z9hG4bK"
    aliens = message("unksm2")
    assert (aliens.to.uri.scheme, aliens.from_.uri.scheme) == ("isbn", "http")
    assert aliens.contacts[0].uri == Uri("name", opaque="John_Smith")
    assert message("bext01").headers.all("Require") == (
        "nothingSupportsThis",
        "nothingSupportsThisEither",
    )
    unknown = message("invut")
    assert unknown.content_type == "application/unknownformat"
    more = replace(unknown, headers=Headers([("Content-Type", "A/B ; x=y")]))
    assert more.content_type == "a/b" and replace(more, headers=Headers()).content_type == ""
    assert not Credentials.parse(message("regaut01").headers["Authorization"]).is_digest
    assert len(message("bcast").vias) == 2 and message("zeromf").max_forwards == 0
    assert message("cparam01").contacts[0].params == (("unknownparam", None),)
    assert message("cparam02").contacts[0].uri.params == (("unknownparam", None),)
    assert message("regescrt").contacts[0].uri.headers == (("Route", "<sip:sip.example.com>"),)


def test_inv2543(message):
    """Covers RFC 4475 §3.4.1."""
    found = message("inv2543")
    assert found.via.branch is None and found.from_.tag is None and found.max_forwards is None
    assert found.body.startswith(b"v=0") and found.body.endswith(b"RTP/AVP 0\r\n")
