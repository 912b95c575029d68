"""What one value of a header may cost in memory, whatever a peer writes into it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from p2psip.errors import RemoteError
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.sip.via import Via

VALUES = {
    "uri": (Uri.parse, "sips:bob:pass@[2001:db8::9:1]:5061;transport=tcp;lr?Subject=a%20b&To=x"),
    "address": (Address.parse, '"Bob \\" B" <sip:bob@biloxi.example;lr>;tag=a6c85cf;q=0.5'),
    "addresses": (Address.parse_list, '<sip:a@b>;q=1, "C, D" <sip:c@d;e=f>;expires=3, sip:g@h'),
    "via": (Via.parse, "SIP / 2.0 / UDP [2001:db8::1]:5060;branch=z9hG4bK1;received=1.2.3.4;rport"),
    "vias": (
        Via.parse_list,
        "SIP/2.0/TCP a;branch=z9hG4bK1, SIP/2.0/UDP b:1;ttl=16;maddr=224.2.0.1",
    ),
}


@pytest.mark.parametrize(("read", "good"), VALUES.values(), ids=VALUES)
@given(data=st.data())
def test_memory_is_in_proportion_to_the_value(read, good, data):
    """Own design: at most 32 times its size, beside what any call takes."""
    text = data.draw(mutations(st.just(good.encode()))).decode("utf-8", "replace")

    def attempt():
        with suppress(RemoteError):
            read(text)

    attempt()  # caches are filled, and their entries do not count
    assert peak(attempt) <= 32 * len(text) + 65536


@pytest.mark.parametrize(
    "piece", [";a=b", ";a", '"\\a"', "%41", ",<a:b>", "&a=b", " ", "\r\n ", "["]
)
@pytest.mark.parametrize(("read", "good"), VALUES.values(), ids=VALUES)
def test_and_to_one_that_repeats_itself(read, good, piece):
    """Own design: parts in great number are refused, or cost what they need."""
    text = good + piece * 20_000

    def attempt():
        with suppress(RemoteError):
            read(text)

    assert peak(attempt) <= 32 * len(text) + 65536
