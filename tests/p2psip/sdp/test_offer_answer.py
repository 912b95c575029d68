"""Offers and answers: both ends agree, and the unusable is refused."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.sip.session_ends import (
    ALICE,
    BOB,
    DTMF,
    FLV,
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

from p2psip.errors import RemoteError
from p2psip.sdp.attributes import DTMF_EVENTS, direction, media_address
from p2psip.sdp.codec import Codec
from p2psip.sdp.offer_answer import (
    AgreedMedia,
    accepted,
    apply_answer,
    make_offer,
    packet_time,
)
from p2psip.sdp.session import Attribute, Connection, MediaDescription, SessionDescription
from p2psip.strategies import sdp


@given(sdp.local_media(), sdp.local_media(), st.sampled_from(["local", "remote"]))
def test_both_ends_agree(alice, bob, prefer):
    """Covers RFC 3264 §5.1 [numbers-of-the-answer], §7 [sends-what-is-answered]: whatever they do.

    Covers RFC 3264 §6.1 [sends-by-the-offers-numbers] [sends-what-both-list] [one-in-common]
    [numbers-of-the-offer].
    """
    offer = make_offer([alice], ALICE, A)
    answer, (at_bob,) = answer_to(offer, bob, prefer=prefer)
    (at_alice,) = apply_answer(offer, answer)
    event("accepted" if at_bob.accepted else "refused")
    assert at_alice.accepted == at_bob.accepted == (answer.media[0].port != 0)
    if at_bob.accepted:
        assert (at_alice.codecs and len(at_alice.codecs) == len(at_bob.codecs)) or bob.formats
        assert at_alice.send_payload_types == at_bob.receive_payload_types
        assert at_bob.send_payload_types == at_alice.receive_payload_types
        assert set(answer.media[0].formats) <= set(offer.media[0].formats)
        assert at_alice.sends == at_bob.receives and at_bob.sends == at_alice.receives
        assert at_bob.held == (alice.direction in ("sendonly", "inactive"))
        assert at_alice.remote == (B, bob.transport.port)
        assert at_bob.remote_rtcp == (A, alice.transport.port + 1)
        assert (at_alice.telephone_event,) == (at_bob.receive_telephone_events or (None,))[:1]
        for codec, number in zip(at_bob.codecs, at_bob.receive_payload_types, strict=True):
            assert at_bob.received_codec(number) is codec
        assert at_bob.received_codec(127) is None
        assert at_bob.telephone_event is not None or at_bob.event_clock == 8000


@given(sdp.offers() | sdp.sessions(), sdp.local_media("audio"), sdp.local_media("video"))
def test_any_offer_has_an_answer(offer, sound, picture):
    """Covers RFC 3264 §6: as many lines, of the same kinds, the time as offered.
    Covers RFC 3264 §6 [a-line-for-each] [same-time] and §6.1 [same-kind];
    RFC 6337 §5.2.3 [as-many-lines] [each-of-its-kind].
    """
    answer, agreed = answer_to(offer, sound, picture)
    assert len(answer.media) == len(agreed) == len(offer.media)
    assert answer.times == offer.times
    for theirs, ours, result in zip(offer.media, answer.media, agreed, strict=True):
        assert (ours.kind, ours.protocol) == (theirs.kind, theirs.protocol) and ours.formats
        ports = 0, sound.transport.port, picture.transport.port
        assert result.accepted == (ours.port != 0) and ours.port in ports
        event(f"accepted: {result.accepted}")
    assert sum(media.accepted for media in agreed) <= 2
    assert [media.accepted for media in apply_answer(offer, answer)] == [
        media.accepted for media in agreed
    ]


@given(sdp.offers(), sdp.offers() | sdp.sessions())
def test_any_answer_is_understood_or_refused(offer, answer):
    """Covers RFC 3264 §7: nothing but RemoteError(488) comes of a foreign answer."""
    try:
        assert len(apply_answer(offer, answer)) == len(offer.media)
    except RemoteError as error:
        assert error.status == 488


@pytest.mark.parametrize(
    ("theirs", "ours", "wanted"),
    [
        ("sendrecv", "sendrecv", "sendrecv"), ("sendrecv", "sendonly", "sendonly"),
        ("sendrecv", "recvonly", "recvonly"), ("sendrecv", "inactive", "inactive"),
        ("sendonly", "sendrecv", "recvonly"), ("sendonly", "sendonly", "inactive"),
        ("sendonly", "recvonly", "recvonly"), ("sendonly", "inactive", "inactive"),
        ("recvonly", "sendrecv", "sendonly"), ("recvonly", "sendonly", "sendonly"),
        ("recvonly", "recvonly", "inactive"), ("recvonly", "inactive", "inactive"),
    ] + [("inactive", ours, "inactive") for ours in ("sendrecv", "sendonly", "recvonly")],
)  # fmt: skip
def test_directions(theirs, ours, wanted):
    """Covers RFC 3264 §6.1 and RFC 6337 §5.3.

    Covers RFC 3264 §6.1 [answers-sendonly] [answers-recvonly] [answers-inactive] and §8.4
    [no-hold-in-return].
    """
    offer = offered("m=audio 9000 RTP/AVP 0", f"a={theirs}")
    answer, (agreed,) = answer_to(offer, audio(PCMU, direction=ours))
    assert agreed.direction == wanted
    assert answer.media[0].attribute(wanted) == (None if wanted == "sendrecv" else "")
    assert agreed.held == (theirs in ("sendonly", "inactive"))


def test_preference():
    """Covers RFC 3264 §6.1: the offer's order, unless there is a reason to change it.

    Covers RFC 8866 §5.14 [first-acceptable].
    Covers RFC 3264 §6.1 [order-of-the-offer] [best-first] [maps-static].
    """
    offer = offered("m=audio 9000 RTP/AVP 8 110 0 101", "a=rtpmap:110 SPEEX/16000",
                    "a=rtpmap:101 telephone-event/8000")  # fmt: skip
    mine = audio(PCMU, WIDE, DTMF, PCMA)
    assert answer_to(offer, mine)[0].media[0].formats == ("8", "110", "0", "101")
    answer, (agreed,) = answer_to(offer, mine, prefer="local")
    assert answer.media[0].formats == ("0", "110", "101", "8")
    assert [codec.name for codec in agreed.codecs] == ["PCMU", "SPEEX", "PCMA"]
    assert answer.media[0].attribute("rtpmap") == "0 PCMU/8000"


def test_speex_rates_are_two_codecs():
    """Covers RFC 5574 §5 (5.7, its typing errors set right)."""
    offer = offered("m=audio 8088 RTP/AVP 97 98", "a=rtpmap:97 speex/16000",
                    "a=rtpmap:98 speex/8000")  # fmt: skip
    answer = offered("m=audio 8088 RTP/AVP 99", "a=rtpmap:99 speex/8000", host=B)
    (agreed,) = apply_answer(offer, answer)
    assert agreed.send_payload_types == (99,) and agreed.receive_payload_types == (98,)
    assert agreed.codecs[0].clock_rate == 8000
    ours, _ = answer_to(offer, audio(Codec("Speex", 8000)))
    assert ours.media[0].formats == ("98",)


def test_the_gateways_own_offer():
    """Own design: the numbers and lines that old peers of the gateway know.

    Covers RFC 3551 §3 [mapping-is-told] and RFC 8866 §5.14 [dynamic-is-mapped].
    Covers RFC 8866 §8.2.3 [dynamic-has-rtpmap] [format-is-payload-type].
    Covers RFC 8866 §5.7 [each-has-an-address].
    Covers RFC 3264 §5.1 [formats-are-usable] [best-first] [has-rtpmaps] and §5
    [active-at-any-time].
    """
    offer = make_offer([audio(WIDE, DTMF), video((FLV,), 5006)], ALICE, A)
    assert b"\r\nt=0 0\r\n" in bytes(offer)
    assert bytes(offer).decode().split("\r\n")[5:] == [
        "m=audio 5004 RTP/AVP 96 101", "a=rtpmap:96 speex/16000",
        "a=rtpmap:101 telephone-event/8000", "a=fmtp:101 0-15",
        "m=video 5006 RTP/AVP 97", "a=rtpmap:97 x-flv/90000", "",
    ]  # fmt: skip


def test_telephone_events_stand_apart():
    """Covers RFC 4733 §2.4.1 and §2.2.1: of several, the one with the clock of the speech."""
    offer = offered("m=audio 9000 RTP/AVP 111 0 100 101", "a=rtpmap:111 opus/48000/2",
                    "a=rtpmap:100 telephone-event/48000", "a=rtpmap:101 telephone-event/8000",
                    "a=fmtp:101 0-11,16")  # fmt: skip
    fast = replace(DTMF, clock_rate=48000)
    _, (agreed,) = answer_to(offer, audio(PCMU, fast, DTMF))
    assert (agreed.receive_telephone_events, agreed.event_clock) == ((101, 100), 8000)
    assert agreed.events == frozenset(range(12)) | {16}
    _, (agreed,) = answer_to(offer, audio(Codec("opus", 48000, 2), DTMF, fast))
    assert (agreed.telephone_event, agreed.event_clock, agreed.events) == (100, 48000, DTMF_EVENTS)
    _, (agreed,) = answer_to(offer, audio(PCMU))
    assert not (agreed.telephone_event or agreed.receive_telephone_events or agreed.events)


def test_digits_alone_are_no_call():
    """Covers RFC 3264 §6.1: a line with nothing to hear is refused, unless it is for digits."""
    offer = offered("m=audio 9000 RTP/AVP 3 101", "a=rtpmap:101 telephone-event/8000")
    assert not answer_to(offer, audio(PCMU, DTMF))[1][0].accepted
    assert answer_to(offer, audio(DTMF))[1][0].accepted
    theirs = offered("m=audio 9000 RTP/AVP 101", "a=rtpmap:101 telephone-event/8000", host=B)
    assert not apply_answer(make_offer([audio(PCMU, DTMF)], ALICE, A), theirs)[0].accepted


@pytest.mark.parametrize(
    "line",
    [
        "m=audio 9000 RTP/SAVP 0\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x",
        "m=audio 9000 UDP/TLS/RTP/SAVPF 0",
        "m=audio 9000 TCP/RTP/AVP 0",
        "m=audio 0 RTP/AVP 0",
        "m=audio 492170 RTP/AVP 0",
        "m=audio 9000/2 RTP/AVP 0",
        "m=audio 9000 RTP/AVP 0\nc=IN IP4 233.252.0.1/127",
        "m=audio 9000 RTP/AVP 0\nc=IN IP6 ff00::1",
        "m=audio 9000 RTP/AVP 0\nc=ATM NSAP 47.0091",
        "m=audio 9000 RTP/AVP 126",
        "m=audio 9000 RTP/AVP 0\na=rtpmap:0 PCMU/16000",
        "m=audio 9000 RTP/AVP 0\na=rtpmap:0 PCMU/8000/2",
        "m=text 9000 RTP/AVP 98\na=rtpmap:98 t140/1000",
        "m=image 9000 udptl t38",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
        "m=message 9 TCP/MSRP *",
    ],
)
def test_refused_lines(line):
    """Covers RFC 3264 §6 and §8.2: port 0, the same kind and transport, one format.
    Covers RFC 3264 §6 [refused-has-port-zero] [refused-has-a-format], §6.1
    [nothing-in-common-is-refused] and §8.2 [zero-for-zero].
    Covers RFC 6337 §5.2.3 [accepts-what-it-would-offer] [one-format-in-common]
    [zero-refuses-a-line].
    """
    offer = offered(line, "m=audio 9002 RTP/AVP 0")
    answer, agreed = answer_to(offer, audio(PCMU))
    assert answer.media[0] == MediaDescription(
        offer.media[0].kind, 0, offer.media[0].protocol, offer.media[0].formats[:1]
    )
    assert agreed[0] == AgreedMedia(offer.media[0].kind) and agreed[1].accepted
    assert accepted(agreed, "audio") is agreed[1] and accepted(agreed, "video") is None


def test_one_stream_serves_one_line():
    """Covers RFC 3264 §6: the first usable audio line is accepted, the others refused."""
    line = "m=audio 9000 RTP/AVP 0"
    answer, _ = answer_to(offered("m=audio 9000 RTP/AVP 3", line, line), audio(PCMU))
    assert [media.port for media in answer.media] == [0, 5004, 0]
    answer, _ = answer_to(offered(line, line), audio(PCMU), audio(PCMU, port=6004))
    assert [media.port for media in answer.media] == [5004, 6004]


def test_an_offer_without_address_or_media():
    """Covers RFC 8866 §5.7 and RFC 3264 §6: no c= is no stream; no lines, no lines."""
    nowhere = replace(offered("m=audio 9000 RTP/AVP 0"), connection=None)
    assert not answer_to(nowhere, audio(PCMU))[1][0].accepted
    answer, agreed = answer_to(offered(), audio(PCMU))
    assert answer.media == agreed == ()


def test_a_browsers_offer_is_refused_politely(corpus):
    """Covers RFC 3264 §6: ICE, DTLS, bundling and the rest harm nothing."""
    for path in sorted((corpus / "sdp/janus_webrtc").glob("*-1.sdp")):
        offer = SessionDescription.parse(path.read_bytes())
        answer, agreed = answer_to(offer, audio(PCMU, Codec("opus", 48000, 2)))
        assert not any(media.accepted for media in agreed)
        assert all(media.port == 0 and not media.attributes for media in answer.media)


def test_plain_rtp_with_frills_is_accepted():
    """Own design: best-effort encryption, ICE, bundling and feedback are passed over."""
    offer = offered(
        "a=group:BUNDLE 0", "a=ice-lite", "m=audio 9000 RTP/AVPF 0", "a=mid:0", "a=rtcp-mux",
        "a=candidate:1 1 UDP 1 192.0.2.9 9000 typ host", "a=crypto:1 x inline:y",
        "a=rtcp-fb:* nack",
    )  # fmt: skip
    answer, (agreed,) = answer_to(offer, audio(PCMU))
    assert answer.media[0].protocol == "RTP/AVPF" and agreed.remote_rtcp == (A, 9001)
    assert answer.media[0].attributes == (Attribute("rtpmap", "0 PCMU/8000"),)


@pytest.mark.parametrize(
    ("wanted", "longest", "codec", "time"),
    [
        (None, None, PCMU, 20), (30, None, PCMU, 30), (30, 20, PCMU, 20), (None, 10, PCMU, 10),
        (99999, None, PCMU, 200), (99999, 99999, PCMU, 200), (30, None, WIDE, 40),
        (30, 30, WIDE, 20), (60, 50, WIDE, 40), (20, 10, WIDE, 20), (20, None, None, 20),
    ],
)  # fmt: skip
def test_packet_time(wanted, longest, codec, time):
    """Covers RFC 3264 §6.1, RFC 8866 §6.4 §6.5, RFC 5574 §5.6, RFC 3551 §4.2 [default-20-ms].

    Covers RFC 8866 §6.5 [time-of-media] and Field §"Packet times that are not kept".
    """
    assert packet_time(wanted, longest, codec) == time


def test_packet_times_are_each_receivers_own():
    """Covers RFC 3264 §6.1 and §7: what the offer wants, and what the answer wants.

    Covers RFC 3264 §6.1 [ptime-of-the-offer], §7 [ptime-of-the-answer] and §5.1 [ptime-above-zero].
    """
    offer = make_offer([audio(PCMU, ptime=30, maxptime=60)], ALICE, A)
    answer, (at_bob,) = answer_to(offer, audio(PCMU, ptime=10))
    assert at_bob.ptime == 30 and apply_answer(offer, answer)[0].ptime == 10
    assert offer.media[0].attribute("maxptime") == "60"


def test_rtcp_port_of_our_own():
    """Covers RFC 3605 §2.1 [of-one-line]: said only when it is not the next higher one."""
    offer = make_offer([audio(PCMU, rtcp_port=5555)], ALICE, A)
    assert offer.media[0].attribute("rtcp") == "5555" and offer.attribute("rtcp") is None
    assert answer_to(offer, audio(PCMU))[1][0].remote_rtcp == (A, 5555)
    usual = make_offer([audio(PCMU, rtcp_port=5005)], ALICE, A)
    assert usual.media[0].attribute("rtcp") is None


def test_fmtp_is_the_receivers_own():
    """Covers RFC 3264 §6.1: each end says what it wants to receive."""
    ours, theirs = replace(WIDE, fmtp='mode="10,any"'), replace(WIDE, fmtp="vbr=on")
    offer = make_offer([audio(theirs)], ALICE, A)
    answer, (agreed,) = answer_to(offer, audio(ours))
    assert agreed.codecs[0].fmtp == "vbr=on"
    assert apply_answer(offer, answer)[0].codecs[0].fmtp == 'mode="10,any"'


def test_h264_packetization_modes_do_not_mix():
    """Covers RFC 6184 §8.2.2."""
    modes = [Codec("H264", 90000, 1, 99, "packetization-mode=1"), Codec("H264", 90000, 1, 100)]
    for mine, theirs in product(modes, modes):
        offer = make_offer([video((theirs,), 5006)], ALICE, A)
        assert answer_to(offer, video((mine,), 5008))[1][0].accepted == (mine is theirs)


def test_an_answer_without_mappings():
    """Own design: a dynamic number left unexplained means what it meant in the offer."""
    offer = make_offer([audio(WIDE, DTMF)], ALICE, A)
    (agreed,) = apply_answer(offer, offered("m=audio 9000 RTP/AVP 96 101", host=B))
    assert agreed.codecs == (WIDE,) and agreed.telephone_event == 101


def test_answers_that_do_not_fit():
    """Covers RFC 3264 §6 and §7."""
    offer = make_offer([audio(PCMU), video((FLV,), 5006)], ALICE, A)
    sound = "m=audio 9000 RTP/AVP 0"
    for lines in [("m=video 9000 RTP/AVP 97",), (sound, sound), (sound, sound, "m=video 0 x 1")]:
        with pytest.raises(RemoteError, match="488"):
            apply_answer(offer, offered(*lines))
    agreed = apply_answer(offer, offered(sound))
    assert [media.accepted for media in agreed] == [True, False]
    nothing = apply_answer(offer, offered("m=audio 9000 RTP/AVP 3", "m=video 9 RTP/AVP 31"))
    assert not any(media.accepted for media in nothing)


@pytest.mark.parametrize("extra", [["m=video 0 RTP/AVP 97"], ["m=audio 9 RTP/AVP 0", "m=x 0 y"]])
def test_lines_that_nobody_has_offered_are_nothing(extra):
    """Covers RFC 3264 §7: the lines of the offer are all that there is to agree on.

    Covers Field §"Answers with fewer lines".
    """
    offer = make_offer([audio(PCMU)], ALICE, A)
    (agreed,) = apply_answer(offer, offered("m=audio 9000 RTP/AVP 0", *extra))
    assert agreed.accepted and agreed.codecs == (PCMU,)


def test_a_line_that_is_off_is_a_refusal_whatever_its_kind():
    """Covers RFC 3264 §6: a refused stream, by a peer that does not know the kind."""
    offer = make_offer([audio(PCMU), video((FLV,), 5006)], ALICE, A)
    agreed = apply_answer(offer, offered("m=audio 9000 RTP/AVP 0", "m=image 0 udptl"))
    assert [media.accepted for media in agreed] == [True, False]


@pytest.mark.parametrize("line", ["m=video 0 RTP/AVP", "m=image 0 udptl", "m=video x RTP/AVP 99"])
def test_a_line_that_cannot_be_read_is_refused_and_the_others_are_not(line):
    """Covers RFC 3264 §6 [a-line-for-each] [refused-has-a-format].

    Covers Field §"Descriptions with something amiss".
    """
    answer, agreed = answer_to(offered("m=audio 9000 RTP/AVP 0", line), audio(PCMU))
    assert [media.accepted for media in agreed] == [True, False]
    read = SessionDescription.parse(bytes(answer), strict=True)
    assert (read.media[1].port, len(read.media[1].formats)) == (0, 1)
    assert read.media[1].protocol == line.split()[2]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("G722/16000", Codec("G722", 8000, payload_type=96)),
        ("opus/48000", Codec("opus", 48000, 2, payload_type=96)),
        ("OPUS/48000/1", Codec("OPUS", 48000, 2, payload_type=96)),
    ],
)
def test_an_encoding_by_another_rate_is_what_it_is(said, meant):
    """Covers RFC 3551 §4.5.2 and RFC 7587 §7: the one clock and the channels that they have.

    Covers Field §"Encodings by another rate".
    """
    ours = audio(Codec("G722", 8000, payload_type=9), Codec("opus", 48000, 2, payload_type=98))
    answer, (agreed,) = answer_to(offered("m=audio 9000 RTP/AVP 96", f"a=rtpmap:96 {said}"), ours)
    assert agreed.codecs == (meant,)
    assert (
        answer.media[0]
        .attribute("rtpmap")
        .lower()
        .startswith(f"96 {meant.name}/{meant.clock_rate}".lower())
    )
    offer = make_offer([ours], ALICE, A)
    number = {"g722": 9, "opus": 98}[meant.name.lower()]
    theirs = offered(f"m=audio 9000 RTP/AVP {number}", f"a=rtpmap:{number} {said}")
    (agreed,) = apply_answer(offer, theirs)
    assert [codec.same(meant) for codec in agreed.codecs] == [True]


@pytest.mark.parametrize("word", ["sendonly", "recvonly", "inactive"])
def test_a_direction_is_said_and_the_port_stays(word):
    """Covers RFC 3264 §5.1 [says-sendonly] [says-recvonly] [says-inactive].

    Covers RFC 3264 §6.1 [address-for-senders] and §8.4 [hold-keeps-its-port].
    """
    offer = make_offer([audio(PCMU, direction=word)], ALICE, A)
    assert offer.media[0].attribute(word) == "" and offer.media[0].port == 5004
    answer, _ = answer_to(offered("m=audio 9000 RTP/AVP 0"), audio(PCMU, direction=word))
    assert answer.media[0].attribute(word) == "" and answer.media[0].port == 5004
    assert answer.connection == Connection.to(B)


def test_a_stream_that_is_off_or_refused_gets_nothing():
    """Covers RFC 3264 §5.1 [port-zero-unused] and §6 [refused-is-silent]."""
    offer = make_offer([audio(PCMU), audio(PCMU, port=6004)], ALICE, A)
    line = "m=audio 9000 RTP/AVP 0"
    first, second = apply_answer(offer, offered(line, "m=audio 0 RTP/AVP 0", host=B))
    assert first.sends and not (second.sends or second.receives or second.remote_rtcp)
    off = offer.replace_media([offer.media[0], replace(offer.media[1], port=0)])
    first, second = apply_answer(off, offered(line, line, host=B))
    assert first.accepted and not (second.accepted or second.sends or second.receives)
    first, second = apply_answer(offer, offered(line, "a=sendonly", line, "a=recvonly", host=B))
    assert (first.sends, first.receives, second.sends, second.receives) == (0, 1, 1, 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_of_zeros_is_a_hold(host):
    """Covers RFC 3264 §8.4 [zeros-are-a-hold]: neither RTP nor RTCP goes there."""
    kind = "IP6" if ":" in host else "IP4"
    offer = offered("m=audio 9000 RTP/AVP 0", f"c=IN {kind} {host}")
    _, (agreed,) = answer_to(offer, audio(PCMU))
    assert agreed.accepted and agreed.held and not agreed.sends
    assert agreed.remote is agreed.remote_rtcp is None
    some = host.replace("0.0.0.0", "192.0.2.1").replace("::", "2001:db8::1")
    offer = offered("m=audio 9000 RTP/AVP 0", f"c=IN {kind} {some}")
    assert media_address(offer.media[0], offer) == (some, 9000)
    _, (agreed,) = answer_to(offered("m=audio 9000 RTP/AVP 0"), audio(PCMU))
    assert agreed.sends and not agreed.held


@pytest.mark.parametrize("ours", ["sendrecv", "sendonly", "recvonly", "inactive"])
def test_an_address_of_zeros_changes_no_direction_of_the_answer(ours):
    """Covers RFC 6337 §5.4 [zero-address-is-no-direction]."""
    offer = offered("m=audio 9000 RTP/AVP 0", "c=IN IP4 0.0.0.0")
    answer, (agreed,) = answer_to(offer, audio(PCMU, direction=ours))
    assert agreed.direction == ours and direction(answer.media[0], answer) == ours


def test_an_answer_has_our_origin_and_our_address():
    """Covers RFC 3264 §6 [origin-of-our-own] and §6.1 [unicast-for-unicast]."""
    answer, _ = answer_to(offered("m=audio 9000 RTP/AVP 0"), audio(PCMU))
    assert answer.origin == BOB and answer.connection == Connection("IN", "IP4", B)


def test_rtcp_beside_an_odd_port_is_told():
    """Covers RFC 8866 §5.14 [told-when-apart]: the rule of even and odd does not help there."""

    def told(**options):
        return make_offer([audio(PCMU, **options)], ALICE, A).media[0].attribute("rtcp")

    assert told(port=5004) is told(port=5004, rtcp_port=5005) is told(port=5006) is None
    assert told(port=5004, rtcp_port=5007) == "5007"
    assert told(port=5005) == told(port=5005, rtcp_port=5006) == "5006"


def test_a_packet_time_is_of_whole_frames():
    """Covers RFC 5574 §4.1.1 [ptime-multiple] and RFC 8866 §6.5 [whole-frames]."""
    for wanted, longest, time in ((30, None, 40), (60, 50, 40), (None, None, 20)):
        offer = make_offer([audio(WIDE, ptime=wanted, maxptime=longest)], ALICE, A)
        assert answer_to(offer, audio(WIDE))[1][0].ptime == time
