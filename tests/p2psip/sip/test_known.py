"""What short texts mean is remembered, and nothing that could be wrong or too much."""

import pytest

from p2psip.errors import RemoteError
from p2psip.sip import known as module
from p2psip.sip.address import Address
from p2psip.sip.known import MOST, SHORT, forget, known
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
    """Neither long texts nor many are kept."""
    read = []

    def reader(text):
        read.append(text)
        return text

    for text in ("x" * (SHORT + 1),) * 2:
        assert known(reader, text) == text
    assert len(read) == 2
    for number in range(MOST + 9):
        known(reader, str(number))
    assert module._kept.cache_info().currsize == MOST
