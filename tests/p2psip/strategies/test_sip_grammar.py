"""The SIP that the strategies draw is what RFC 3261 derives; what they break is not.

Own design: the grammar is read from the RFC and matched by `support.abnf`, which knows nothing
of our parsers.
"""

import re
from functools import cache

import pytest
from hypothesis import given, settings
from support.abnf import Grammar
from support.faults import batches, drawn_until_all
from support.oracle import MANY, section

from p2psip.errors import RemoteError
from p2psip.sip.message import check_request, parse_message
from p2psip.strategies import large, sip

# What RFC 2806 allows is part of `user` too.
NUMBER = "telephone-subscriber = <RFC 2806>"
PLAIN = parse_message(
    b"OPTIONS sip:ann@b.example SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bK1\r\n"
    b"Max-Forwards: 9\r\nFrom: <sip:ann@b>;tag=1\r\nTo: <sip:c@d>\r\nCall-ID: x\r\n"
    b"CSeq: 1 OPTIONS\r\n\r\n"
)


@pytest.fixture(scope="module")
def sip_grammar(specs):
    """RFC 3261 §25.1."""
    text = (specs / "rfc3261.txt").read_text()
    return Grammar(NUMBER, section(text, "25.1 Basic Rules", "26 Security"))


@cache
def short_names(grammar):
    """The long name of each header that has a short one, as its rule says."""
    return {
        letter: name.lower()
        for text in grammar.rules.values()
        for name, letter in re.findall(r'\( ?"([\w-]+)" / "(\w)" ?\)', text)
    }


def refusals(grammar, data):
    """Each line of a message that no rule of its name derives."""
    head, end, _ = data.partition(b"\r\n\r\n")
    start, *lines = re.split(rb"\r\n(?![ \t])", head)
    rule = "Status-Line" if start.startswith(b"SIP/") else "Request-Line"
    yield grammar.refusal(rule, start + b"\r\n") if end else "no empty line"
    for line in lines:
        name = line.partition(b":")[0].strip().decode("latin-1").lower()
        name = short_names(grammar).get(name, name)
        known = name and name in grammar.rules
        yield grammar.refusal(name if known else "extension-header", line)


def faults(grammar, data):
    """The refusals of a message, without the lines that are right."""
    return [each for each in refusals(grammar, data) if each]


@pytest.mark.parametrize(
    ("rule", "drawn"),
    [
        ("token", sip.tokens()),
        ("host", sip.hosts().map(lambda host: f"[{host}]" if ":" in host else host)),
        ("Reason-Phrase", sip.reasons()),
        ("addr-spec", sip.uris()),
        ("SIP-URI", sip.sip_uris(headers=True).map(lambda uri: uri.replace(scheme="sip"))),
        ("contact-param", sip.addresses()),
        ("via-parm", sip.vias()),
    ],
)
@pytest.mark.timeout(2400)
def test_every_part_is_in_the_grammar(sip_grammar, rule, drawn):
    """Covers RFC 3261 §25.1."""

    @MANY
    @given(drawn)
    def check(value):
        assert sip_grammar.refusal(rule, str(value).encode("utf-8")) is None

    check()


@pytest.mark.timeout(2400)
def test_every_message_is_in_the_grammar(sip_grammar):
    """Covers RFC 3261 §7.1, §7.2 and §25.1."""

    @MANY
    @given(sip.messages())
    def check(message):
        assert faults(sip_grammar, bytes(message)) == []

    check()


def test_names_have_hyphens_and_roots():
    """Covers RFC 3261 §25.1: `domainlabel` and the dot behind `toplabel`."""
    drawn = {host for batch in batches(sip.hosts()) for host in batch}
    assert any("-" in host for host in drawn) and any(host.endswith(".") for host in drawn)


@pytest.mark.parametrize("fault", sip.FAULTS, ids=lambda fault: fault.name)
def test_each_fault_is_refused_as_it_deserves(sip_grammar, fault):
    """Covers RFC 4475 §3.1.2 and §3.3: our parser says so, and the grammar."""

    data = fault.spoil(PLAIN)
    with pytest.raises(RemoteError) as error:
        check_request(parse_message(data))
    assert error.value.status == fault.status
    if fault.clause == "RFC 3261 §25.1":
        assert faults(sip_grammar, data)


@pytest.mark.parametrize(
    "kind",
    [sip.HEADER_FAULTS, sip.ADDRESS_FAULTS, sip.VALUE_FAULTS, sip.LINE_FAULTS],
    ids=["headers", "addresses", "values", "lines"],
)
def test_each_fault_is_drawn(kind):
    """Covers RFC 4475 §3: each fault of a kind is drawn, and refused as it deserves."""
    for fault, data in drawn_until_all(sip.faults(kind), {fault.name for fault in kind}):
        with pytest.raises(RemoteError) as error:
            check_request(parse_message(data))
        assert error.value.status == fault.status, fault


def test_each_fault_of_a_response_is_drawn_and_refused(sip_grammar):
    """Covers RFC 3261 §7.2 and RFC 4475 §3.1.2.19: by us, and by the grammar where it says so."""
    names = {fault.name for fault in sip.RESPONSE_FAULTS}
    for fault, data in drawn_until_all(sip.broken_responses(), names):
        with pytest.raises(RemoteError):
            parse_message(data)
        if fault.clause == "RFC 3261 §25.1":
            assert faults(sip_grammar, data), fault


@pytest.mark.parametrize("excess", large.SIP_EXCESSES, ids=lambda excess: excess.name)
def test_what_is_too_large_is_refused(sip_grammar, excess):
    """Covers RFC 3261 §21.5.7: the grammar has no limits, our reader does."""
    data = excess.spoil(PLAIN)
    assert faults(sip_grammar, data) == []
    with pytest.raises(RemoteError) as error:
        check_request(parse_message(data))
    assert error.value.status == excess.status


def test_requests_at_the_limits_are_read(sip_grammar):
    """Covers RFC 3261 §7.3.1: as many lines, hops, values and parameters as we take."""

    @settings(max_examples=30, database=None, deadline=None)
    @given(large.messages())
    def check(request):
        assert faults(sip_grammar, bytes(request)) == []
        check_request(parse_message(bytes(request)))

    check()


def test_a_separator_too_many_is_forgiven():
    """Covers Field §"Separators too many": behind the last value, or in an empty header."""

    @settings(max_examples=60, database=None, deadline=None)
    @given(sip.separators())
    def check(message):
        read = parse_message(bytes(message))
        assert read == message and read.vias and read.to and read.via

    check()
