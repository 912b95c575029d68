"""Lines of ours: their names, the feedback they agree on, and transports of other kinds."""

from dataclasses import replace

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


PCMA = Codec("PCMA", 8000, 1, 8)


def named(description):
    """The values of `a=rtcp-fb` of the first line."""
    return [each.value for each in description.media[0].attributes if each.name == "rtcp-fb"]


@pytest.mark.parametrize("protocol", ["RTP/AVP", "RTP/AVPF"])
def test_feedback_is_what_both_understand(protocol):
    """Covers RFC 4585 §4.2 [line-for-each-type] [unknown-feedback-removed] [only-what-is-answered].

    Covers RFC 4585 §4.2 [feedback-is-named] [star-for-all-formats] [not-understood-not-heeded].
    Covers RFC 5104 §7.2 [no-ccm-added].
    With RTP/AVP as well: Field §"Feedback with RTP/AVP".
    """
    ours = audio(PCMU, feedback=("nack", "nack pli"), protocol=protocol)
    offer = make_offer([ours], ALICE, A)
    answer, (at_bob,) = answer_to(offer, audio(PCMU, feedback=("nack pli", "ccm fir")))
    (at_alice,) = apply_answer(offer, answer)
    assert named(offer) == ["* nack", "* nack pli"] and named(answer) == ["* nack pli"]
    assert at_bob.feedback == at_alice.feedback == {"nack pli"}
    assert answer.media[0].protocol == offer.media[0].protocol == protocol
    assert named(answer_to(offer, audio(PCMU))[0]) == []


def test_feedback_is_that_of_the_codec_in_use():
    """Covers RFC 4585 §4.2 [no-feedback-added] [only-what-is-answered].

    Covers RFC 4585 §4.2 [not-understood-not-heeded] and RFC 5104 §7.1 [ccm-with-its-command].
    """
    line = make_offer([audio(PCMU, PCMA)], ALICE, A)
    for text in ("0 nack", "8 nack pli", "8 ccm fir", "*  nack pli ", "8", "18 nack", "8 nack 1"):
        line = with_attribute(line, Attribute("rtcp-fb", text))
    ours = {"feedback": ("nack", "nack pli", "ccm fir")}
    answer, (at_bob,) = answer_to(line, audio(PCMA, **ours))
    assert named(answer) == ["8 nack pli", "8 ccm fir", "* nack pli"]
    assert at_bob.feedback == {"nack pli", "ccm fir"}
    assert apply_answer(line, answer)[0].feedback == at_bob.feedback
    _, (at_bob,) = answer_to(line, audio(PCMU, PCMA, **ours))
    assert at_bob.feedback == {"nack", "nack pli"}


def test_feedback_stands_in_media_lines_alone():
    """Covers RFC 4585 §4.2 [media-level-only]."""
    ours = audio(PCMU, feedback=("nack",))
    offer = make_offer([ours], ALICE, A)
    assert named(answer_to(offer, ours)[0]) == ["* nack"]
    assert all(each.name != "rtcp-fb" for each in offer.attributes)
    misplaced = replace(
        make_offer([audio(PCMU)], ALICE, A), attributes=(Attribute("rtcp-fb", "* nack"),)
    )
    answer, (at_bob,) = answer_to(misplaced, ours)
    assert named(answer) == [] and not at_bob.feedback


@pytest.mark.parametrize(
    ("text", "seconds"), [("trr-int 1500", 1.5), ("trr-int 123456", 0.0), ("trr-int x", 0.0)]
)
def test_the_time_between_reports_is_that_of_the_offer(text, seconds):
    """Covers RFC 4585 §4.2 [no-interval-by-default] [no-feedback-added]."""
    offer = with_attribute(make_offer([audio(PCMU)], ALICE, A), Attribute("rtcp-fb", f"* {text}"))
    answer, (at_bob,) = answer_to(offer, audio(PCMU, feedback=("nack",)))
    assert named(answer) == ([f"* {text}"] if seconds else [])
    assert at_bob.report_interval == seconds
    _, (at_bob,) = answer_to(
        with_attribute(offer, Attribute("rtcp-fb", "0 trr-int 100")),
        audio(PCMU, feedback=("nack",)),
    )
    assert at_bob.report_interval == (seconds or 0.1)
    assert named(answer_to(offer, audio(PCMU))[0]) == []


def with_attribute(description, attribute):
    """The description with one attribute more in its line."""
    (line,) = description.media
    attributes = (*line.attributes, attribute)
    return replace(description, media=(replace(line, attributes=attributes),))


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
