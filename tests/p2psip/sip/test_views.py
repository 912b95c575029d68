"""Typed views are lazy, kept, and refuse only what they show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import RemoteError
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request, Response, check_request, check_response
from p2psip.sip.uri import Uri
from p2psip.sip.views import CSeq, seconds

GOOD = Headers(
    [
        ("Via", "SIP/2.0/UDP one;branch=z9hG4bK1, SIP/2.0/TCP two"),
        ("Via", "SIP/2.0/TLS three"),
        ("Route", "<sip:p1;lr>, <sip:p2;lr>"),
        ("Record-Route", "<sip:r1;lr>"),
        ("From", "A <sip:a@x>;tag=1"),
        ("To", "sip:b@y"),
        ("Call-ID", "abc@x"),
        ("CSeq", "007  \t INVITE"),
        ("Contact", "*"),
        ("Max-Forwards", "070"),
        ("Content-Type", "Application/SDP ; charset=utf-8"),
        ("Expires", "60"),
    ]
)


def request(**changes):
    """The good request with other headers; None takes one out."""
    headers = GOOD
    for name, value in changes.items():
        name = name.replace("_", "-")
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        headers = headers.with_(name, *values)
    return Request("INVITE", Uri(host="x"), headers)


def test_every_view():
    """Covers RFC 3261 §20."""
    r = request()
    assert [via.host for via in r.vias] == ["one", "two", "three"] and r.via is r.vias[0]
    assert [route.uri.host for route in r.routes] == ["p1", "p2"]
    assert r.record_routes[0].uri.host == "r1"
    assert (r.from_.tag, r.to.tag, r.call_id) == ("1", None, "abc@x")
    assert r.cseq == (7, "INVITE") and str(r.cseq) == "7 INVITE"
    assert r.contacts[0].is_star and r.max_forwards == 70 and r.expires == 60
    assert r.content_type == "application/sdp"
    assert r.from_ is r.from_ and r.cseq is r.cseq  # parsed once


def test_what_is_absent():
    """Covers RFC 3261 §21.4.1 [400-says-what] and RFC 4475 §3.4.1."""
    r = Request("INVITE", Uri(host="x"))
    assert (r.vias, r.contacts, r.routes, r.record_routes) == ((), (), (), ())
    assert (r.max_forwards, r.expires, r.content_type) == (None, None, "")
    for view in ("via", "from_", "to", "call_id", "cseq"):
        with pytest.raises(RemoteError, match="Missing"):
            getattr(r, view)


@pytest.mark.parametrize(
    ("view", "changes"),
    [
        ("via", {"Via": "SIP/2.0/UDP a;;"}),
        ("from_", {"From": ("<sip:a@b>", "<sip:a@b>")}),
        ("to", {"To": '"open <sip:a@b>'}),
        ("call_id", {"Call_ID": "a b"}),
        ("call_id", {"Call_ID": ""}),
        ("call_id", {"Call_ID": ("a", "b")}),
        ("cseq", {"CSeq": "36893488147419103232 REGISTER"}),
        ("cseq", {"CSeq": "5"}),
        ("cseq", {"CSeq": ""}),
        ("cseq", {"CSeq": "5 A B"}),
        ("cseq", {"CSeq": "-5 A"}),
        ("contacts", {"Contact": "<sip:a@b>,,"}),
        ("routes", {"Route": "sip:a@b?c=d"}),
        ("max_forwards", {"Max_Forwards": "300"}),
        ("max_forwards", {"Max_Forwards": ("70", "5")}),
        ("max_forwards", {"Max_Forwards": "x"}),
    ],
)
def test_a_malformed_value_harms_its_own_view_alone(view, changes):
    """Covers RFC 4475 §3.1.2.4, §3.3.8 and RFC 3261 §7.3.1 [rows-of-a-list]."""
    r = request(**changes)
    with pytest.raises(RemoteError) as error:
        getattr(r, view)
    assert error.value.status == 400
    others = {"via", "from_", "to", "call_id", "cseq", "contacts", "routes", "max_forwards"}
    for other in others - {view}:
        getattr(r, other)


def test_empty_headers_and_separators_at_the_end_are_forgiven():
    """Covers RFC 3261 §7.3.1: phones write them, and they mean nothing.

    Covers Field §"Separators too many".
    """
    r = request(
        Via=("", "SIP/2.0/UDP a;branch=z9hG4bK1;,"),
        Contact=("", "<sip:a@b>;q=1;,"),
        Route="",
        From="<sip:a@b>;tag=1;",
    )
    check_request(r)
    assert r.via.host == "a" and r.routes == () and r.from_.tag == "1"
    assert [contact.params for contact in r.contacts] == [(("q", "1"),)]


def test_a_list_is_the_same_on_any_number_of_lines():
    """Covers RFC 3261 §7.3.1 [rows-combine] [any-mix-of-rows]."""
    a, b, c = (f'"{name}, phone" <sip:{name}@x;x=1,2>;q=1' for name in "abc")
    wanted = request(Contact=(a, b, c)).contacts
    assert [contact.uri.user for contact in wanted] == ["a", "b", "c"]
    for lines in ((f"{a},{b} ,\t{c}",), (f"{a}, {b}", c), (a, f"{b}, {c}")):
        assert request(Contact=lines).contacts == wanted


def test_cseq_is_read_and_written():
    """Covers RFC 3261 §20.16 [number-of-32-bits]."""
    assert CSeq.parse(b"4711 INVITE") == CSeq(4711, "INVITE")
    assert CSeq.parse(memoryview(b"4294967295 RE%47IST%45R")).method == "RE%47IST%45R"
    with pytest.raises(RemoteError):
        CSeq.parse("4294967296 INVITE")


def test_a_malformed_interval_counts_as_an_hour():
    """Covers RFC 3261 §10.2, §8.2.2 [odd-values-pass] and RFC 4475 §3.1.2.4."""
    assert seconds("1" + "0" * 100) == seconds("soon") == seconds("") == 3600
    assert request(Expires="-1").expires == 3600 and seconds("0") == 0


ODD = ["<sip:x", "sip:[::", '"a" <sip:a@b', "", ", ,", '"', "\x01", "<sip:a@b:port>"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("line", ["{odd}, {good}", "{good}, {odd}", "{good},,{odd}"])
def test_one_odd_value_of_a_response_leaves_the_others(odd, line):
    """Own design: what cannot be read in a list is skipped, as it may be about somebody else."""
    given = {"Contact": "<sip:a@good>", "Record-Route": "<sip:good;lr>", "Via": "SIP/2.0/UDP good"}
    headers = GOOD.without(*given)
    for name, good in given.items():
        before = [line.format(odd=odd, good=good)] if name != "Via" else [good, odd]
        headers = headers.with_(name, *before, good)
    response = Response(200, "OK", headers)
    check_response(response)
    assert {each.uri.host for each in (*response.contacts, *response.record_routes)} == {"good"}
    assert [via.host for via in response.vias] == ["good"] * 2 and response.via.host == "good"


def test_an_empty_line_of_via_is_passed_over():
    """Covers Field §"Separators too many"."""
    headers = Headers([("Via", ""), ("Via", "SIP/2.0/UDP a;branch=z9hG4bK1")])
    for message in (Response(200, "OK", headers), Request("OPTIONS", Uri.parse("sip:b"), headers)):
        assert message.via.host == "a"


@pytest.mark.parametrize("odd", [each for each in ODD if each.strip(" ,")])
def test_a_response_whose_first_via_is_odd_is_of_nobody(odd):
    """Covers RFC 3261 §18.1.2: whose it is stands there alone."""
    headers = GOOD.with_("Via", odd, "SIP/2.0/UDP two")
    with pytest.raises(RemoteError):
        check_response(Response(200, "OK", headers))
    for name in ("Via", "Contact", "Record-Route"):
        with pytest.raises(RemoteError):
            check_request(request(**{name: odd}))


VIEWS = ("vias", "via", "from_", "to", "call_id", "cseq", "contacts", "routes", "record_routes")
LINES = {
    "Via": ["SIP/2.0/UDP four", "SIP/2.0/UDP a;;", ""],
    "From": ["<sip:c@z>;tag=2", '"open'],
    "t": ["<sip:d@z>;tag=3"],
    "CSeq": ["8 INVITE", "x"],
    "Contact": ["<sip:e@z>, <sip:f@z>", "*", "<sip:a@b>,,"],
    "ROUTE": ["<sip:p3;lr>"],
    "Record-Route": ["<sip:r2;lr>", "sip:a@b?c=d"],
    "Max-Forwards": ["69"],
    "X-Other": ["y"],
}
EDITS = st.tuples(
    st.sampled_from(["with_", "prepend", "append", "without"]), st.sampled_from(list(LINES))
).flatmap(lambda edit: st.tuples(*map(st.just, edit), st.sampled_from(LINES[edit[1]])))


def outcome(message, view):
    """What a view shows, or the error that it raises."""
    try:
        return getattr(message, view)
    except RemoteError as error:
        return error.status, str(error)


@given(kind=st.sampled_from([Request, Response]), edits=st.lists(EDITS, max_size=4))
def test_a_copy_shows_what_its_own_lines_say(kind, edits):
    """Own design: a copy keeps what was read of lines that it shares, and nothing else."""
    message = request() if kind is Request else Response(200, "OK", GOOD)
    for edit, name, value in edits:
        for view in (*VIEWS, "max_forwards"):
            outcome(message, view)
        change = getattr(message.headers, edit)
        headers = change(name) if edit == "without" else change(name, value)
        message = message.replace(headers=headers)
        afresh = message.replace(headers=Headers(headers.fields))
        for view in (*VIEWS, "max_forwards"):
            assert outcome(message, view) == outcome(afresh, view), view


def test_a_copy_reads_only_what_has_changed():
    """Own design: a proxy makes several copies of each message."""
    first = request()
    check_request(first)
    copy = first.replace(headers=first.headers.with_("Max-Forwards", 69).append("X-Other", "y"))
    assert copy.to is first.to and copy.vias is first.vias and copy.contacts is first.contacts
    assert (first.max_forwards, copy.max_forwards) == (70, 69)
    assert copy.headers.with_("Call-ID", "abc@x") is copy.headers  # nothing has changed
