"""One port for RTP and RTCP: when both ends agree on it, and when they must not."""

from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.sdp.codec import Codec
from p2psip.sdp.line import Attribute, Origin
from p2psip.sdp.local_media import LocalMedia, LocalTransport
from p2psip.sdp.offer_answer import apply_answer, make_answer, make_offer

A, B = "192.0.2.1", "192.0.2.2"
ALICE, BOB = Origin.at(A, 100), Origin.at(B, 200)
MUX = Attribute("rtcp-mux")
PCMU = Codec("PCMU", 8000, 1, 0)


def audio(port, *formats, rtcp_mux=True, rtcp_port=None):
    """A stream whose RTCP may share the port of RTP."""
    transport = LocalTransport(port, rtcp_port=rtcp_port, rtcp_mux=rtcp_mux)
    return LocalMedia("audio", formats or (PCMU,), transport)


def agree(alice, bob):
    """The two descriptions, and what each end makes of them."""
    offer = make_offer([alice], ALICE, A)
    answer, (at_bob,) = make_answer(offer, [bob], BOB, B)
    (at_alice,) = apply_answer(offer, answer)
    return offer, answer, at_alice, at_bob


def test_rtcp_shares_the_port_where_both_ends_want_it():
    """Covers RFC 5761 §5.1.1 [mux-is-offered] [mux-is-answered]."""
    offer, answer, at_alice, at_bob = agree(audio(5004), audio(6004))
    assert MUX in offer.media[0].attributes and MUX in answer.media[0].attributes
    assert at_alice.rtcp_mux and at_alice.remote_rtcp == at_alice.remote == (B, 6004)
    assert at_bob.rtcp_mux and at_bob.remote_rtcp == at_bob.remote == (A, 5004)


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (False, False)])
def test_rtcp_keeps_its_port_unless_both_ends_want_one(first, second):
    """Covers RFC 5761 §5.1.1 [no-mux-unanswered] [mux-is-answered]."""
    ours, theirs = audio(5004, rtcp_mux=first, rtcp_port=5010), audio(6004, rtcp_mux=second)
    offer, answer, at_alice, at_bob = agree(ours, theirs)
    assert (MUX in offer.media[0].attributes) is first
    assert MUX not in answer.media[0].attributes
    assert not at_alice.rtcp_mux and at_alice.remote_rtcp == (B, 6005)
    assert not at_bob.rtcp_mux and at_bob.remote_rtcp == (A, 5010)


@given(st.integers(0, 127), st.booleans())
def test_no_packet_may_look_like_rtcp_at_one_port(number, at_offerer):
    """Covers RFC 5761 §4 [no-lookalikes] and §5.1.1 [answer-without-lookalikes]."""
    odd = audio(5004, Codec("x", 8000, 1, number), Codec("y", 8000))
    offer = make_offer([odd], ALICE, A)
    is_lookalike = 64 <= number < 96
    event(f"lookalike {is_lookalike}")
    assert (MUX in offer.media[0].attributes) is not is_lookalike
    if at_offerer:  # a peer that offers what it must not
        line = offer.media[0]
        attributes = (*(each for each in line.attributes if each != MUX), MUX)
        offer = replace(offer, media=(replace(line, attributes=attributes),))
    answer, (at_bob,) = make_answer(offer, [audio(6004, Codec("x", 8000))], BOB, B)
    assert (MUX in answer.media[0].attributes) is at_bob.rtcp_mux is not is_lookalike


def test_a_new_number_is_no_lookalike():
    """Covers RFC 5761 §4 [dynamic-from-96]."""
    formats = [Codec(f"x{each}", 8000) for each in range(32)]
    offer = make_offer([audio(5004, *formats)], ALICE, A)
    assert set(offer.media[0].formats) == {str(each) for each in range(96, 128)}
    assert MUX in offer.media[0].attributes
