"""Keys in the signalling are read as they were written, and a bad one is no key."""

from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.errors import LocalError, RemoteError
from p2psip.sdp.codec import Codec
from p2psip.sdp.crypto import CryptoAttribute, SrtpKey, answer, choose, cryptos, matching
from p2psip.sdp.offer_answer import (
    LocalMedia,
    LocalTransport,
    accepted,
    apply_answer,
    make_answer,
    make_offer,
)
from p2psip.sdp.sdes_transport import ALL_OFFERED, SdesTransport, SrtpTerms, offered_transport
from p2psip.sdp.session import (
    Attribute,
    Connection,
    MediaDescription,
    Origin,
    SessionDescription,
)
from p2psip.strategies.formats import crypto_attributes

KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
SUITE = "AES_CM_128_HMAC_SHA1_80"


@given(crypto_attributes())
def test_reading_undoes_writing(crypto):
    """Covers RFC 4568 §9.1 and §9.2.

    Covers RFC 4568 §5.1.3 [answer-has-a-key], §6.1 [lifetime-of-the-suite] [mki-has-a-length].
    Covers RFC 3711 §3.2.1 [random-and-secret] and RFC 7714 §13.1 [keys-are-secret].
    """
    assert CryptoAttribute.parse(str(crypto)) == crypto
    assert not any(repr(octets) in repr(crypto) for key in crypto.keys for octets in key.secrets)


@given(st.text(max_size=80) | crypto_attributes().map(str).flatmap(
    lambda text: st.integers(0, len(text)).map(lambda at: text[:at] + "\u00e9" + text[at + 1 :])
))  # fmt: skip
def test_any_text_is_read_or_refused(text):
    """Covers RFC 4568 §9.1."""
    try:
        CryptoAttribute.parse(text)
        event("read")
    except RemoteError:
        event("refused")


@pytest.mark.parametrize(
    "value",
    [
        "", f"1 {SUITE}", f"1000000000 {SUITE} inline:{KEY}", f"x {SUITE} inline:{KEY}",
        f"1 {SUITE} outline:{KEY}", f"1 {SUITE} inline{KEY}", f"1 {SUITE} inline:{KEY[:-1]}",
        f"1 {SUITE} inline:{KEY[:-4]}", f"1 {SUITE} inline:{KEY}|2^49", f"1 {SUITE} inline:{KEY}|x",
        f"1 {SUITE} inline:{KEY}|1:4|1:4", f"1 {SUITE} inline:{KEY}|1:129",
        f"1 {SUITE} inline:{KEY}|1:4|2^20", f"1 {SUITE} inline:{KEY};",
        f"1 {SUITE} inline:{KEY}|0", f"1 {SUITE} inline:{KEY}|020", f"1 {SUITE} inline:{KEY}|2^020",
        f"1 {SUITE} inline:{KEY}|01:4", f"1 {SUITE} inline:{KEY}|1:04",
        f"1 {SUITE} inline:{KEY}|1:", f"1 {SUITE} inline:{KEY}|{(1 << 48) + 1}",
        f"1 {SUITE} inline:{KEY}|2^20|1", f"1 {SUITE} inline:{KEY}|{(1 << 62) + 1}:8",
    ],
)  # fmt: skip
def test_bad_attributes(value):
    """Covers RFC 4568 §6.2.1 [key-of-30-octets] and §9.2.

    Covers RFC 4568 §5.1.3 [answer-has-a-key] and §6.1 [length-of-the-suite] [no-leading-zeros]
    [lifetime-of-the-suite] [bad-lifetime-is-no-key] [mki-has-a-length].
    """
    assert CryptoAttribute.parse(f"1 {SUITE} inline:{KEY}").keys
    with pytest.raises(RemoteError):
        CryptoAttribute.parse(value)


def offering(profile="RTP/SAVP"):
    """The transport of an offer with a key that is known."""
    ours = CryptoAttribute(1, SUITE, (SrtpKey.parse(KEY),))
    return SdesTransport(5004, protocol=profile, cryptos=(ours,), demands=profile == "RTP/SAVP")


def answering(*lines):
    """The transports that may answer an offer of these lines, the preferred one first."""
    offer = replace(SESSION, media=lines)
    return list(SrtpTerms(bytes).to_answer(LocalTransport(5004), offer, "audio"))


def line(*values):
    attributes = tuple(Attribute("crypto", value) for value in values)
    return MediaDescription("audio", 9, "RTP/SAVP", ("0",), attributes=attributes)


def test_the_first_that_can_be_used_is_answered_with_our_key():
    """Covers RFC 4568 §5.1.2 [first-supported] [tag-and-suite-kept] and §6.3.7
    [mandatory-unless-dashed].

    Covers RFC 4568 §4 [media-level-only], §5.1.2 [one-or-none] [key-in-each-direction] and §7.1.2
    [all-is-acceptable] [no-parameter-added].
    """
    offered = cryptos(
        line(
            f"1 F8_128_HMAC_SHA1_80 inline:{KEY}",
            "2 nonsense",
            f"3 {SUITE} inline:{KEY} UNENCRYPTED_SRTP",
            f"4 {SUITE} inline:{KEY}|1:4",
            f"5 {SUITE} inline:{KEY};inline:{KEY}",
            f"6 AES_CM_128_HMAC_SHA1_32 inline:{KEY}|2^20 WSH=128 -UNKNOWN=1",
            f"7 {SUITE} inline:{KEY}",
        )
    )
    assert [each.tag for each in offered] == [1, 3, 4, 5, 6, 7]
    chosen = choose(offered)
    assert chosen is not None and chosen.tag == 6
    ours = answer(chosen, SrtpKey(bytes(16), bytes([1]) * 14))
    assert (ours.tag, ours.suite, ours.parameters) == (6, "AES_CM_128_HMAC_SHA1_32", ())
    assert matching((chosen,), line(str(ours))) == ours
    assert choose(offered[:4]) is None


SESSION = SessionDescription(Origin.at("192.0.2.1", 1), connection=Connection.to("192.0.2.1"))


@pytest.mark.parametrize(
    ("answered", "usable"),
    [
        ([], False), (["2 x"], False), ([f"2 {SUITE}"], False),
        (["1 AES_CM_128_HMAC_SHA1_32"], False), ([f"1 {SUITE}"], True),
    ],
)  # fmt: skip
def test_an_answer_must_echo_what_was_offered(answered, usable):
    """Covers RFC 4568 §5.1.3 [echo-verified] and §5.1.2 [refused-without-crypto].

    Covers RFC 4568 §5.1.2 [one-or-none], §5.1.3 [negotiation-fails], §5.3 [no-attribute-no-stream].
    """
    ours = offering()
    theirs = line(*(f"{each} inline:{KEY}" for each in answered))
    assert ours.accepts(theirs, SESSION) == usable
    assert not ours.accepts(replace(theirs, protocol="RTP/AVP"), SESSION)
    assert not ours.accepts(replace(theirs, port=0), SESSION)
    assert [each.protocol for each in answering(theirs)] == [
        *(["RTP/SAVP"] if [each for each in answered if "x" not in each] else ()),
        "RTP/AVP",
    ]
    assert [each.protocol for each in answering(replace(theirs, protocol="x"))] == ["RTP/AVP"]


@pytest.mark.parametrize(("more", "usable"), [("", True), (" -X=1", True), (" KDR=1", False)])
def test_an_answer_must_say_nothing_that_is_not_understood(more, usable):
    """Covers RFC 4568 §5.1.3 [answer-is-understood]."""
    ours = offering()
    assert ours.accepts(line(f"1 {SUITE} inline:{KEY}{more}"), SESSION) == usable


def test_keys_stand_in_media_lines_alone():
    """Covers RFC 4568 §4 [media-level-only] and §5.1.1 [offer-has-crypto] [tag-is-unique]
    [strongest-first].  Covers RFC 4568 §4.1 [tag-without-zeros].

    Covers RFC 3711 §5.1 [aes-cm-by-default], §5.2 [sha1-by-default] [tag-of-80]
    [short-tag-is-not-offered].
    """
    transport = SrtpTerms(bytes, profile="RTP/SAVP").to_offer(LocalTransport(5004))
    ours = LocalMedia("audio", (Codec("PCMU", 8000, 1, 0),), transport)
    offer = make_offer([ours], Origin.at("192.0.2.1", 1), "192.0.2.1")
    assert offer.attributes == ()
    [crypto] = [each.value for each in offer.media[0].attributes if each.name == "crypto"]
    assert crypto == f"1 {SUITE} inline:{KEY}"
    misplaced = replace(SESSION, attributes=(Attribute("crypto", crypto),))
    assert ours.transport.accepts(line(crypto), SESSION)
    assert not ours.transport.accepts(line(), misplaced)


def test_no_such_attribute():
    """Covers RFC 4568 §9.1."""
    for wrong in ((1, SUITE, ()), (10**9, SUITE, (SrtpKey.parse(KEY),)), (-1, SUITE, ())):
        with pytest.raises(LocalError):
            CryptoAttribute(*wrong)


@pytest.mark.parametrize(
    ("option", "usable"), [("|2^31", True), ("|2^48", True), ("|2^31|1:1", False)]
)
def test_keys_with_a_lifetime_are_used_and_those_with_a_name_are_not(option, usable):
    """Covers Field §"Lifetimes of keys"."""
    crypto = CryptoAttribute.parse(f"1 {SUITE} inline:{KEY}{option}")
    assert crypto.is_usable == usable


PCMU = (Codec("PCMU", 8000, 1, 0),)
ASKING = SrtpTerms(bytes, profile="RTP/AVP", suites=ALL_OFFERED)
DEMANDING = SrtpTerms(bytes, profile="RTP/SAVP", plain=False)
TAKING, REFUSING = SrtpTerms(bytes), SrtpTerms(bytes, answers=False)


def called(ours, theirs):
    """What comes of a call: (our line, their line, what we have agreed on)."""
    plain = LocalTransport(5004)
    media = LocalMedia("audio", PCMU, ours.to_offer(plain))
    offer = make_offer([media], Origin.at("192.0.2.1", 1), "192.0.2.1")
    for transport in theirs.to_answer(LocalTransport(6004), offer, "audio"):
        mine = LocalMedia("audio", PCMU, transport)
        answer, agreed = make_answer(offer, [mine], Origin.at("192.0.2.9", 1), "192.0.2.9")
        if accepted(agreed, "audio"):
            how = [LocalMedia("audio", (), offered_transport(offer.media[0], demands=False))]
            (outcome,) = apply_answer(offer, answer, how)
            assert (outcome.keys is None) == (agreed[0].keys is None)
            return offer.media[0], answer.media[0], outcome
    return offer.media[0], None, None


def test_keys_beside_plain_rtp_are_answered_where_they_can_be():
    """Covers RFC 8643 §3.1 [keys-beside-plain-rtp] and §3.2 [accepted-by-keys].

    Covers RFC 4568 §5.1.1 [tag-is-unique] [strongest-first].
    """
    offered, answered, outcome = called(ASKING, TAKING)
    assert offered.protocol == answered.protocol == "RTP/AVP"
    assert [each.suite for each in cryptos(offered)] == [each.name for each in ALL_OFFERED]
    assert [each.tag for each in cryptos(offered)] == [1, 2, 3]
    assert [each.suite for each in cryptos(answered)] == ["AEAD_AES_256_GCM"]
    assert outcome.keys.suite.name == "AEAD_AES_256_GCM" and outcome.accepted


def test_keys_beside_plain_rtp_may_be_declined():
    """Covers RFC 8643 §3.2 [declined-by-silence] and §3.3 [clear-without-keys]."""
    _, answered, outcome = called(ASKING, REFUSING)
    assert not cryptos(answered) and outcome.accepted and outcome.keys is None
    unknown = replace(line(f"1 {SUITE} inline:{KEY} KDR=1"), protocol="RTP/AVP")
    assert [each.attributes() for each in answering(unknown)] == [()]


@pytest.mark.parametrize(
    "value",
    ["2 " + SUITE, "1 AES_CM_128_HMAC_SHA1_32", "nonsense", f"1 {SUITE} inline:{KEY} KDR=1"],
)
def test_keys_that_cannot_be_used_leave_nothing_in_clear(value):
    """Covers RFC 8643 §3.2 [failure-ends-it] and §3.3 [failure-ends-it]."""
    value = value if "inline" in value else f"{value} inline:{KEY}"
    ours, plain = offering("RTP/AVP"), replace(line(), protocol="RTP/AVP")
    bad = replace(line(value), protocol="RTP/AVP")
    assert ours.accepts(plain, SESSION) and not ours.accepts(bad, SESSION)
    good = replace(line(f"1 {SUITE} inline:{KEY}"), protocol="RTP/AVP")
    assert ours.accepts(good, SESSION)
    (answer, _) = answering(good)
    assert answer.accepts(good, SESSION) and not answer.accepts(bad, SESSION)


def test_what_must_be_encrypted_is_offered_and_answered_by_a_secure_profile():
    """Covers RFC 8643 §4 [not-where-srtp-is-needed]."""
    offered, answered, outcome = called(DEMANDING, TAKING)
    assert offered.protocol == answered.protocol == "RTP/SAVP" and outcome.keys is not None
    assert called(DEMANDING, REFUSING)[1:] == (None, None)
    assert called(REFUSING, DEMANDING)[1:] == (None, None)
    assert called(REFUSING, TAKING)[2].keys is None
    plain = replace(line(), protocol="RTP/AVP")
    assert not DEMANDING.to_offer(LocalTransport(5004)).accepts(plain, SESSION)
    assert ASKING.to_offer(LocalTransport(5004)).accepts(plain, SESSION)


def test_what_had_keys_has_them_again():
    """Covers RFC 4568 §7.1.4 [keys-again]: beside RTP/AVP as well, where they are no wish then."""
    _, _, outcome = called(ASKING, TAKING)
    again = ASKING.to_offer(LocalTransport(5004), outcome.keys)
    assert again.protocol == "RTP/AVP" and again.cryptos[0].keys == outcome.keys.ours.keys
    assert not again.accepts(replace(line(), protocol="RTP/AVP"), SESSION)
    media = LocalMedia("audio", PCMU, again)
    written = make_offer([media], Origin.at("192.0.2.1", 1), "192.0.2.1").media[0]
    assert offered_transport(written, demands=True).demands
    assert (
        list(
            TAKING.to_answer(
                LocalTransport(5004),
                replace(SESSION, media=(replace(line(), protocol="RTP/AVP"),)),
                "audio",
                outcome.keys,
            )
        )
        == []
    )
