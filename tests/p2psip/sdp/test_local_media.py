"""Lines of ours: their names, the feedback they agree on, and transports of other kinds."""

import pytest

from p2psip.errors import LocalError
from p2psip.sdp.codec import Codec
from p2psip.sdp.line import Attribute, Origin
from p2psip.sdp.local_media import LocalMedia, LocalTransport
from p2psip.sdp.offer_answer import apply_answer, make_answer, make_offer

A, B = "192.0.2.1", "192.0.2.2"
ALICE, BOB = Origin.at(A, 100), Origin.at(B, 200)
PCMU = Codec("PCMU", 8000, 1, 0)


def audio(*formats, protocol="RTP/AVP", **more):
    """An audio stream we can have."""
    return LocalMedia("audio", formats, LocalTransport(5004, protocol=protocol), **more)


def answer_to(offer, *media):
    return make_answer(offer, media, BOB, B)


def test_a_line_keeps_the_name_that_the_offer_gave_it():
    """Covers RFC 5888 §4 [one-name-each]."""
    offer = make_offer([audio(PCMU, mid="sound")], ALICE, A)
    assert [str(each) for each in offer.media[0].attributes if each.name == "mid"] == ["mid:sound"]
    answer, (at_bob,) = answer_to(offer, audio(PCMU, mid="ours"))
    (at_alice,) = apply_answer(offer, answer)
    assert at_bob.mid == at_alice.mid == "sound"
    assert answer_to(make_offer([audio(PCMU)], ALICE, A), audio(PCMU, mid="x"))[1][0].mid is None
    with pytest.raises(LocalError):
        make_offer([audio(PCMU, mid="sound"), audio(PCMU, mid="sound")], ALICE, A)


@pytest.mark.parametrize(
    ("protocol", "agreed"), [("RTP/AVP", frozenset()), ("RTP/AVPF", frozenset({"nack pli"}))]
)
def test_feedback_is_what_both_understand(protocol, agreed):
    """RFC 4585 §4.2: with RTP/AVPF alone."""
    ours = audio(PCMU, feedback=("nack", "nack pli"), protocol=protocol)
    offer = make_offer([ours], ALICE, A)
    answer, (at_bob,) = answer_to(offer, audio(PCMU, feedback=("nack pli", "ccm fir")))
    (at_alice,) = apply_answer(offer, answer)
    assert at_bob.feedback == at_alice.feedback == agreed


class Secure(LocalTransport):
    """A transport that takes lines with keys alone."""

    __slots__ = ()

    def accepts(self, line, session, host=None):
        return line.protocol == "RTP/SAVP"

    def attributes(self):
        return (Attribute("crypto", "1 x"),)


def test_another_transport_takes_other_lines_and_says_more():
    """Own design: the one of a browser will be such a one."""
    ours = LocalMedia("audio", (PCMU,), Secure(5004, protocol="RTP/SAVP"))
    offer = make_offer([ours], ALICE, A)
    line = offer.media[0]
    assert line.protocol == "RTP/SAVP" and Attribute("crypto", "1 x") in line.attributes
    assert not answer_to(offer, audio(PCMU))[1][0].accepted
    theirs = LocalMedia("audio", (PCMU,), Secure(6004, protocol="RTP/SAVP"))
    answer, (agreed,) = answer_to(offer, audio(PCMU), theirs)
    assert agreed.accepted and agreed.port == 6004
    assert apply_answer(offer, answer, [ours])[0].accepted
    assert not apply_answer(offer, answer)[0].accepted
