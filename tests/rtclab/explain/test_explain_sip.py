"""Errors of SIP and SDP stand at the octets that have them, with the clause that they break."""

import pytest
from support.explained import hold

from p2psip.sip.message import parse_message
from p2psip.strategies.sip import FAULTS
from rtclab.explain import sdp, sip
from rtclab.explain.fields.context import Context
from rtclab.explain.fields.field import Span

INVITE = (
    b"INVITE sip:carol@desk.example SIP/2.0\r\n"
    b"Via: SIP/2.0/UDP laptop.example;branch=z9hG4bKx1\r\n"
    b"Max-Forwards: 70\r\n"
    b'f: "Dave" <sip:dave@home.example>;tag=1\r\n'
    b"To: Carol <sip:carol@desk.example>\r\n"
    b"Call-ID: 1@laptop\r\n"
    b"CSeq: 3141 INVITE\r\n"
    b"Contact: <sip:dave@laptop.example>\r\n"
    b"Content-Type: application/sdp\r\n\r\n"
    b"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\n"  # RFC 8866 §5
    b"c=IN IP4 192.0.2.1\r\nt=0 0\r\n"  # RFC 8866 §5
    b"m=audio 4917 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/8000\r\n"  # RFC 4733 §2.4
    b"a=fmtp:101 0-15\r\n"
)


def explained(data):
    field = sip.message(Span.all(data), Context())
    hold(field, data)
    return field


def faults(field, data):
    """What is wrong: the octets, the reason, and the section."""
    return [
        (data[each.start : each.end], each.fault.reason, each.fault.citation)
        for each in field.walk()
        if each.fault
    ]


def found(field, name):
    return next(each for each in field.walk() if each.name == name)


def test_a_message_has_its_parts_with_their_sections():
    field = explained(INVITE)
    assert faults(field, INVITE) == []
    assert field.source.name == "p2psip.sip.message.Request"
    assert found(field, "Via").source.citation == "RFC 3261 §20.42"
    assert found(field, "branch").value == "z9hG4bKx1"
    assert found(field, "From").meaning.startswith("written f;")
    assert found(field, "display name").value == '"Dave"'
    assert found(field, "host").value == "desk.example"
    assert found(field, "media audio").source.citation == "RFC 8866 §5.14"
    assert found(field, "encoding").value == "telephone-event/8000"


def test_a_description_names_the_formats_of_what_follows():
    context = Context()
    sip.message(Span.all(INVITE), context)
    assert context.rtpmaps[101].encoding == "telephone-event"


@pytest.mark.parametrize(
    ("old", "new", "wrong", "reason", "section"),
    [
        (b"70", b"700", b"700", "Number Out Of Range", "RFC 4475 §3.1.1.1"),
        (b"3141", b"3x", b"3x", "Bad Number", "RFC 4475 §3.1.2.4"),
        (b"SIP/2.0\r\nVia", b"SIP/7.0\r\nVia", b"SIP/7.0", "Version Not Supported", "RFC 4475"),
        (b";branch=", b";;branch=", b"", "Bad Parameter", "RFC 4475 §3.1.2.1"),
        (b"Max-Forwards:", b"Max Forwards:", b"Max Forwards: 70", "Bad Header Line", "RFC 3261"),
        (b"To:", b"X:", b"", "Missing To", "RFC 4475 §3.3.1 [missing-is-refused]"),
        (b"IN IP4 192.0.2.1\r\ns", b"IN IP4\r\ns", b"o=- 1 1 IN IP4", "Bad o= line", "RFC 8866"),
        (b"4917", b"high", b"high", "Bad number in SDP", "RFC 8866 §9"),
        (b"101 0-15", b"high 0-15", b"high", "Bad number in SDP", "RFC 8866 §9"),
    ],
)
def test_an_error_stands_where_it_is(old, new, wrong, reason, section):
    data = INVITE.replace(old, new, 1)
    assert data != INVITE
    [(octets, said, citation)] = faults(explained(data), data)
    assert said == reason and citation.startswith(section), citation
    assert wrong in octets and (len(octets) < 70 or not wrong)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_known_fault_is_noticed_with_a_clause(fault):
    """The faults of the strategies, in one request: each is found, and says which clause."""
    data = fault.spoil(parse_message(INVITE))
    said = list(explained(data).faults())
    assert said and all(each.citation and each.name for each in said)


def test_folded_lines_and_compact_names_keep_their_places():
    data = b"OPTIONS sip:a@b SIP/2.0\r\nv: SIP/2.0/TCP\r\n  host;branch=1\r\n\r\n"
    via = found(explained(data), "Via")
    host = next(each for each in via.children if each.name == "host")
    assert data[host.start : host.end] == b"host"
    assert via.meaning.startswith("written v;")


def test_parts_of_a_body_are_found():
    body = b"--x\r\nContent-Type: application/sdp\r\n\r\nv=1\r\n--x--"
    data = INVITE.partition(b"Content-Type")[0] + (
        b"Content-Type: multipart/mixed;boundary=x\r\n\r\n" + body
    )
    field = explained(data)
    inner, at = found(field, "SDP"), data.index(b"v=1")
    assert (inner.start, inner.end) == (at, at + 3)
    assert "Unknown SDP version" in [fault.reason for fault in field.faults()]


def test_a_stream_is_cut_into_its_messages():
    one = INVITE.replace(b"Content-Type", b"Content-Length: 0\r\nContent-Type").partition(b"v=0")[0]
    data = b"\r\n\r\n" + one + one
    field = sip.stream(Span.all(data), Context())
    hold(field, data)
    assert [each.name for each in field.children] == ["PONG", "PING", "INVITE", "INVITE"]
    assert field.children[-1].start == 4 + len(one)


def test_too_many_lines_are_not_all_described():
    data = b"v=0\r\n" + b"a=x\r\n" * 5000
    field = sdp.session(Span.all(data), Context())
    assert len(field.children) == 1000
    assert "Too many lines in SDP" in [fault.reason for fault in field.faults()]
