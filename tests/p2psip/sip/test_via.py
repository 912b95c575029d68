"""Via hops, their branch, and what servers write into them."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import RemoteError
from p2psip.sip.via import Via
from p2psip.strategies.sip import vias


@given(st.lists(vias(), min_size=1, max_size=3))
def test_parsing_undoes_writing(hops):
    """Covers RFC 3261 §20.42."""
    assert Via.parse_list(", ".join(map(str, hops))) == tuple(hops)
    assert Via.parse(str(hops[0]).encode()) == hops[0]


def test_white_space_anywhere():
    """Covers RFC 3261 §20.42 and RFC 4475 §3.1.1.1."""
    # Source: RFC 4475 §3.1.1.1
    first, second = Via.parse_list(
        "SIP  / 2.0  / tcp     Spindle.example.com : 99  ; branch  =   z9hG4bK9ikj8  ,"
        " SIP  /    2.0   / UDP\t192.168.255.111   ; branch= z9hG4bK30239;hidden"
    )
    assert (first.transport, first.host, first.port) == ("TCP", "spindle.example.com", 99)
    assert first.branch == "z9hG4bK9ikj8" and second.branch == "z9hG4bK30239"
    assert second.param("HIDDEN") == "" and second.param("ttl") is None and second.port is None


def test_rport_asked_and_answered():
    """Covers RFC 3581 §3 and §4."""
    # Source: RFC 3581 §5
    via = Via.parse("SIP/2.0/UDP 10.1.1.1:4540;rport;branch=z9hG4bKkjshdyff")
    assert via.has_rport and via.rport is None and via.received is None
    via = via.with_param("received", "192.0.2.1").with_param("rport", "9988")
    assert via.rport == 9988 and via.received == "192.0.2.1"
    assert str(via) == (
        "SIP/2.0/UDP 10.1.1.1:4540;rport=9988;branch=z9hG4bKkjshdyff;received=192.0.2.1"
    )
    assert not Via.parse("SIP/2.0/UDP a").has_rport
    with pytest.raises(RemoteError):
        _ = via.with_param("rport", "70000").rport


def test_received_with_brackets_is_tolerated():
    """Covers RFC 5118 §4.5 [received-either-way]."""
    for spelling in ("[2001:DB8::9:255]", "2001:db8::9:255"):
        via = Via.parse(f"SIP/2.0/UDP [2001:db8::9:1];received={spelling};branch=z9hG4bKas3-111")
        assert via.received == "2001:db8::9:255" and via.host == "2001:db8::9:1"


BAD = [
    "", "SIP/2.0", "SIP/2.0/UDP", "SIP/2.0/UDP ", "SIP/2.0/ a", "HTTP/2.0/UDP a", "SIP 2.0 UDP a",
    "SIP/2.0/UDP a b", "SIP/2.0/UDP a;;", "SIP/2.0/UDP a;;b", "SIP/2.0/64.1.1.1:9;b=c",
    "SIP//UDP a", "SIP/2.0/UDP/a b c", "SIP/2.0/UDP 2001:db8::1", "SIP/2.0/U,P a",
    "SIP/2.0/UDP a:99999",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_vias_are_refused(text):
    """Covers RFC 4475 §3.1.2.1."""
    with pytest.raises(RemoteError):
        Via.parse(text)


@given(mutations(vias().map(lambda via: str(via).encode("utf-8", "surrogateescape"))))
def test_no_input_crashes(data):
    """Covers RFC 4475 §3.1.2: accept, or RemoteError, nothing else."""

    try:
        hops = Via.parse_list(data)
    except RemoteError as error:
        event(str(error))
        return
    event("accepted")
    assert Via.parse_list(", ".join(map(str, hops))) == hops
    for hop in hops:
        _ = hop.branch, hop.received, hop.has_rport
