"""Every exchange of RFC 4317, read from its text, seen from both ends."""

import re

import pytest

from p2psip.sdp.attributes import direction, media_address, rtpmaps
from p2psip.sdp.codec import codecs_of
from p2psip.sdp.offer_answer import (
    LocalMedia,
    LocalTransport,
    apply_answer,
    make_answer,
    make_offer,
)
from p2psip.sdp.session import SessionDescription

SECTIONS = (
    "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8",
    "3.1", "3.2", "4.1", "4.2", "4.3", "5.1", "5.2", "5.3",
)  # fmt: skip

# What the answerer hears of each line after each exchange, by the prose of each section.
AGREED = {
    "2.1": [["PCMU", "MPV"]],
    "2.2": [["PCMU PCMA", ""], ["PCMU", ""]],
    "2.3": [["iLBC", "H261"]],
    "2.4": [["iLBC", "telephone-event"]],
    "2.5": [["iLBC", "H261"], ["iLBC", "H261"]],
    "2.6": [["", "iLBC telephone-event"]],
    "2.7": [["iLBC", "H261"], ["iLBC", "H261 MPV"]],
    "2.8": [["PCMU", "MPV"]],
    "3.1": [["iLBC"], ["iLBC"]],
    "3.2": [["iLBC", "telephone-event"], ["iLBC", "telephone-event"]],
    "4.1": [["iLBC"], ["iLBC", "telephone-event"]],
    "4.2": [["PCMU"], ["PCMU", "H261"]],
    "4.3": [["iLBC", "H261"], ["iLBC", ""]],
    "5.1": [[], ["iLBC"]],
    "5.2": [["iLBC"], ["iLBC"]],
    "5.3": [["iLBC"], ["iLBC"]],
}


@pytest.fixture(scope="module")
def exchanges(specs):
    """The descriptions of each section, two for each exchange."""
    text = (specs / "rfc4317.txt").read_text()
    chapters = re.split(r"^(\d\.\d)\.  .*$", text[text.index("2.  Codec Negotiation and S") :],
                        flags=re.MULTILINE)  # fmt: skip
    found = {}
    for section, chapter in zip(chapters[1::2], chapters[2::2], strict=True):
        bodies = re.split(r"^ +\[(?:Second-)?(?:Offer|Answer)\]$", chapter, flags=re.MULTILINE)
        lines = [re.findall(r"^ {6}([a-z]=.*)$", body, re.MULTILINE) for body in bodies[1:]]
        found[section] = [SessionDescription.parse("\n".join(body).encode()) for body in lines]
    assert tuple(found) == SECTIONS
    return found


def spoken(media):
    """One word for each codec of an agreed line."""
    names = [codec.name for codec in media.codecs]
    return " ".join(names + ["telephone-event"] * (media.telephone_event is not None))


def gist(session):
    """What two descriptions must share to mean the same: spelling and refused lines aside."""
    return session.origin, session.times, [
        (media.kind, media.port, media_address(media, session), media.port and media.formats,
         media.port and rtpmaps(media), media.port and direction(media, session))
        for media in session.media
    ]  # fmt: skip


def locals_of(session):
    """The streams an end must have had to write this description."""
    return [
        LocalMedia(
            media.kind,
            codecs_of(media),
            LocalTransport(media.port, media.connection and media.connection.address),
            direction(media, session),
        )
        if media.port else None
        for media in session.media
    ]  # fmt: skip


@pytest.mark.parametrize("section", SECTIONS)
def test_what_the_two_ends_agree_on(exchanges, section):
    """Covers RFC 3264 §6.1 and §7: both ends draw the same conclusion."""
    for offer, answer, wanted in zip(
        exchanges[section][::2], exchanges[section][1::2], AGREED[section], strict=True
    ):
        at_offerer = apply_answer(offer, answer)
        assert [spoken(media) for media in at_offerer] == wanted
        streams = [each for each in locals_of(answer) if each]
        _, at_answerer = make_answer(offer, streams, answer.origin, "x.example")
        assert [spoken(media) for media in at_answerer] == wanted
        mirror = {"sendonly": "recvonly", "recvonly": "sendonly"}
        for ours, theirs in zip(at_offerer, at_answerer, strict=True):
            assert mirror.get(ours.direction, ours.direction) == theirs.direction
            if ours.accepted:
                assert ours.receive_payload_types == theirs.send_payload_types


@pytest.mark.parametrize("section", [section for section in SECTIONS if section != "3.2"])
def test_our_answer_is_theirs(exchanges, section):
    """Covers RFC 3264 §6, §6.1 and §8: given the same streams we write the same answer.

    But for 2.3, where Bob renumbers iLBC and we keep the offer's number; and for 3.2 (below).
    """
    bodies = exchanges[section]
    for index in range(1, len(bodies), 2):
        offer, answer = bodies[index - 1 : index + 1]
        host = answer.connection.address
        mine = [body for body in bodies[:index] if body.origin.username == answer.origin.username]
        streams = [each for each in locals_of(answer) if each]
        ours, _ = make_answer(
            offer, streams, answer.origin, host, previous=mine[-1] if mine else None
        )
        if section == "2.3":
            assert ours.media[0].formats == ("97",) and answer.media[0].formats == ("99",)
            ours = ours.replace_media([answer.media[0], *ours.media[1:]])
        assert gist(ours) == gist(answer)


def test_more_formats_than_offered_are_not_sent(exchanges):
    """Covers RFC 3264 §6.1: in 3.2 the answer lists PCMU, which the offer did not."""
    offer, answer = exchanges["3.2"][2:]
    assert answer.media[0].formats == ("0", "97")
    ours, agreed = make_answer(offer, locals_of(answer), answer.origin, "x.example")
    assert ours.media[0].formats == ("97",) and agreed[0].direction == "recvonly"
    assert apply_answer(offer, answer)[0].send_payload_types == (97,)


@pytest.mark.parametrize("section", SECTIONS)
def test_our_offers_are_theirs(exchanges, section):
    """Covers RFC 3264 §5.1, §8, §8.1 and §8.2: first offers and new ones."""
    bodies = exchanges[section]
    for index in range(0, len(bodies), 2):
        offer = bodies[index]
        mine = [body for body in bodies[:index] if body.origin.username == offer.origin.username]
        other = [body for body in bodies[:index] if body not in mine]
        ours = make_offer(
            locals_of(offer), offer.origin, offer.connection.address,
            previous=mine[-1] if mine else None, remote=other[-1] if other else None,
        )  # fmt: skip
        assert gist(ours) == gist(offer)


def test_holds_are_recognised(exchanges):
    """Covers RFC 3264 §8.4: by direction (3.1, 3.2) and by 0.0.0.0 (5.2, 5.3).

    Covers Field §"Hold by address", RFC 6337 §5.4 [zero-address-is-no-direction].
    """
    offer, answer = exchanges["3.1"][:2]
    held = apply_answer(offer, answer)[0]
    assert held.held and held.direction == "recvonly" and held.receives and not held.sends
    assert not apply_answer(*exchanges["3.1"][2:])[0].held
    audio, tones = apply_answer(*exchanges["3.2"][2:])
    assert not audio.held and audio.direction == "sendonly" and tones.direction == "recvonly"
    offer, answer, *_ = exchanges["5.2"]
    said, (held,) = make_answer(offer, locals_of(answer), answer.origin, "x.example")
    assert not any(said.media[0].attribute(each) == "" for each in ("recvonly", "inactive"))
    assert held.held and held.remote is held.remote_rtcp is None and not held.sends
    assert held.direction == "sendrecv"  # RFC 6337 §5.4
    assert apply_answer(*exchanges["5.3"][:2])[0].held
