"""The addresses of lines: of the media, of another host, of the other family."""

import pytest
from support.sip.session_ends import (
    ALICE,
    PCMU,
    A,
    answer_to,
    audio,
    offered,
)

from p2psip.sdp.codec import codecs_of
from p2psip.sdp.offer_answer import (
    make_answer,
    make_offer,
)
from p2psip.sdp.session import Connection, Origin


def test_media_at_another_host():
    """Covers RFC 8866 §5.7: a line may have its own address, of either family."""
    offer = make_offer([audio(PCMU, host="2001:db8::1")], ALICE, A)
    assert offer.media[0].connection == Connection("IN", "IP6", "2001:db8::1")
    _, (agreed,) = answer_to(offer, audio(PCMU, host="2001:db8::2"))
    assert agreed.remote == ("2001:db8::1", 5004)
    assert codecs_of(offer.media[0]) == (PCMU,)


@pytest.mark.parametrize("first", ["c=IN IP6 2001:db8::1", "c=IN IP4 224.2.0.1/127"])
def test_the_second_audio_line_is_used_where_the_first_is_out_of_reach(first):
    """Covers RFC 3264 §6 and RFC 6157 §4.1 [family-of-the-offer]: it is refused alone."""
    offer = offered("m=audio 9000 RTP/AVP 0", first, "m=audio 9002 RTP/AVP 0")
    answer, (refused, used) = answer_to(offer, audio(PCMU))
    assert [line.port for line in answer.media] == [0, 5004]
    assert not refused.accepted and used.remote == (A, 9002)


def test_an_address_of_the_other_family_is_no_hindrance_on_hold():
    """Covers RFC 3264 §8.4: 0.0.0.0 says that nothing is to be sent."""
    offer = offered("m=audio 9000 RTP/AVP 0", "c=IN IP4 0.0.0.0")
    _, (agreed,) = make_answer(offer, [audio(PCMU)], Origin.at("2001:db8::2", 1), "2001:db8::2")
    assert agreed.accepted and agreed.held and agreed.remote is None
