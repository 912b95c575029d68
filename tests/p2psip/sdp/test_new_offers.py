"""Offers and answers after the first: the session, its lines and its numbers hold still."""

from dataclasses import replace

import pytest
from hypothesis import given
from support.sip.session_ends import (
    ALICE,
    BOB,
    DTMF,
    FLV,
    NARROW,
    PCMA,
    PCMU,
    WIDE,
    A,
    B,
    answer_to,
    audio,
    offered,
    video,
)

from p2psip.errors import LocalError
from p2psip.sdp.attributes import rtpmaps
from p2psip.sdp.codec import Codec, numbered
from p2psip.sdp.offer_answer import (
    make_offer,
)
from p2psip.strategies import sdp


def test_new_offers_keep_the_session():
    """Covers RFC 6337 §5.2.5 [refused-lines-stay] [version-by-one] [same-version-same-text].

    Covers RFC 3261 §14.1 [new-version].
    Covers RFC 3264 §8 [same-origin] [version-plus-one] [same-version-same-text] [each-old-line]
    [never-removed].

    Covers RFC 3264 §8.1 [new-lines-below].
    """
    first = make_offer([audio(PCMU), video((FLV,), 5006)], ALICE, A)
    assert make_offer([audio(PCMU), video((FLV,), 5006)], BOB, A,
                      previous=first) == first  # fmt: skip
    second = make_offer([audio(PCMU, direction="sendonly")], BOB, A, previous=first)
    assert second.origin == replace(first.origin, version=first.origin.version + 1)
    assert [media.port for media in second.media] == [5004, 0]
    third = make_offer([None, None, audio(PCMA)], BOB, A, previous=second)
    assert [media.port for media in third.media] == [0, 0, 5004]
    assert third.media[1].kind == "video"
    assert make_offer([None], ALICE, A).media[0].port == 0


def test_answers_keep_the_session():
    """Covers RFC 3264 §8: an unchanged answer keeps its version, a changed one does not.

    Covers RFC 3264 §8 [no-news-is-taken] [no-news-is-answered].
    """
    offer = make_offer([audio(PCMU, PCMA)], ALICE, A)
    first, _ = answer_to(offer, audio(PCMU))
    assert answer_to(offer, audio(PCMU), previous=first)[0] == first
    other, _ = answer_to(offer, audio(PCMA), previous=first)
    assert other.origin.version == first.origin.version + 1


def test_numbers_never_change_their_meaning():
    """Covers RFC 3264 §8.3.2: after an answer in the peer's numbers, our offer keeps them.

    Covers RFC 3264 §8.3.2 [numbers-keep-their-meaning] and §6.1 [maps-dynamic].
    Covers RFC 6337 §5.2.5 [numbers-keep-their-codec].
    """
    theirs = offered("m=audio 9000 RTP/AVP 96 97 98", "a=rtpmap:96 opus/48000/2",
                     "a=rtpmap:97 speex/16000", "a=rtpmap:98 iLBC/8000")  # fmt: skip
    mine = audio(WIDE, NARROW, DTMF, PCMU)
    answer, _ = answer_to(theirs, mine)
    assert answer.media[0].formats == ("97",)
    again = make_offer([mine], BOB, B, previous=answer, remote=theirs)
    assert [str(each) for each in rtpmaps(again.media[0])] == [
        "97 speex/16000", "99 speex/8000", "101 telephone-event/8000", "0 PCMU/8000",
    ]  # fmt: skip


@given(sdp.codecs(), sdp.codecs())
def test_numbers_are_distinct_and_stable(before, now):
    """Covers RFC 3264 §8.3.2 and RFC 3551 §6."""
    used = numbered(before)
    result = numbered(now, used)
    meanings = {}
    for codec in (*used, *result):
        assert codec.same(meanings.setdefault(codec.payload_type, codec))
    assert len({codec.payload_type for codec in result}) == len(now)
    assert [codec.name for codec in result] == [codec.name for codec in now]


def test_numbers_run_out():
    """Covers RFC 3551 §6: 32 dynamic numbers.

    Covers RFC 3551 §3 [dynamic-range-first] [no-numbers-of-our-own].
    """
    many = tuple(Codec(f"x{index}", 8000) for index in range(32))
    assert [codec.payload_type for codec in numbered(many)] == list(range(96, 128))
    with pytest.raises(LocalError):
        numbered((*many, Codec("y", 8000)))
    assert numbered((Codec("pcmu", 8000), Codec("L16", 44100, 2)))[1].payload_type == 10
    twice = numbered((WIDE, WIDE), (WIDE,))
    assert [codec.payload_type for codec in twice] == [96, 97]
