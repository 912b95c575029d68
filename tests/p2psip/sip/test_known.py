"""What short texts mean is remembered, and nothing that could be wrong or too much."""

import pytest

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.known import MOST, SHORT, Known, forget
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via

TEXTS = {
    Address: '"Bob" <sip:bob@biloxi.example.com>;tag=a6c85cf',
    Uri: "sip:bob@biloxi.example.com;lr",
    Via: "SIP/2.0/UDP pc33.atlanta.example.com;branch=z9hG4bK776asdhds",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_value_that_came_before_is_the_same_value(kind):
    first = kind.parse(TEXTS[kind])
    assert kind.parse(TEXTS[kind].encode()) is first
    forget()
    again = kind.parse(TEXTS[kind])
    assert again == first and again is not first


def test_each_kind_reads_for_itself():
    text = "sip:bob@biloxi.example.com"
    assert Uri.parse(text) == Uri("sip", "bob", host="biloxi.example.com")
    assert Address.parse(text) == Address(Uri.parse(text))


def test_what_cannot_be_read_is_refused_each_time():
    for _ in range(2):
        with pytest.raises(RemoteError):
            Uri.parse("sip:bob@bilo xi")


def test_a_stranger_fills_little_memory():
    """Neither long texts nor many are kept, and those that came lately stay."""
    read = []

    def reader(text):
        read.append(text)
        return text

    known = Known(reader)
    for text in ("x" * (SHORT + 1),) * 2:
        assert known.of(text) == text
    assert len(read) == 2 and len(known) == 0
    for number in range(3 * MOST):
        known.of("always")
        known.of(str(number))
        assert len(known) <= 2 * MOST
    assert read.count("always") == 1 and len(known) > MOST
    known.of("0")
    assert read.count("0") == 2


def test_what_was_written_here_is_not_read():
    via = Via("UDP", "192.0.2.1", 5060, (("branch", "z9hG4bK1"), ("rport", None)))
    assert Via.parse(via.written()) is via
    long = Via("UDP", "192.0.2.1", 5060, (("branch", "z" * SHORT),))
    assert Via.parse(long.written()) == long
