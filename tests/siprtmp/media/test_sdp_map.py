"""Codec names and SDP: what an offer from anywhere comes to."""

from dataclasses import replace

import pytest
from support.gateway.audio_rig import Rig, plan

from p2psip.errors import RemoteError
from p2psip.sdp.offer_answer import LocalTransport
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import Endpoint
from siprtmp.media.translate.audio_formats import AUDIO_CODECS, G722, L16, L16_44, OPUS, PCMU, find

OURS = Endpoint("192.0.2.1", 4000, 1)


def description(address="192.0.2.9", media="m=audio 5004 RTP/AVP 0\r\n", more=""):
    kind = "IP6" if ":" in address else "IP4"
    top = f"v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN {kind} {address}\r\nt=0 0\r\n"
    return SessionDescription.parse((top + media + more).encode())


@pytest.mark.parametrize(
    "address", ["2001:db8::9", "fe80::9%eth0", "phone.invalid", "224.2.36.42/127"]
)
def test_media_that_cannot_reach_us_is_not_acceptable(address):
    """Covers RFC 3264 §6: another family, a name to look up, a group.

    Covers RFC 3261 §13.3.1.3 [488-for-the-offer].
    """
    theirs = description(address)
    assert not sdp_map.is_acceptable(theirs, host=OURS.host)
    with pytest.raises(RemoteError) as refused:
        sdp_map.answer(theirs, ["pcmu"], OURS)
    assert refused.value.status == 488
    with pytest.raises(RemoteError) as refused:
        sdp_map.conclude(sdp_map.offer(["pcmu"], OURS), theirs)
    assert refused.value.status == 488


def test_names_of_codecs_have_no_case():
    """Covers RFC 8866 §6.6."""
    names = sdp_map.known_names(["PCMU", "pcmu", "Wideband", "g729", "DTMF"])
    assert names == ("pcmu", "wideband", "dtmf")
    theirs = description(media="m=audio 5004 RTP/AVP 96\r\na=rtpmap:96 SPEEX/16000\r\n")
    assert sdp_map.answer(theirs, names, OURS)[1].audio.codec.name == "wideband"


def test_a_family_is_refused_by_the_other_one_only():
    assert sdp_map.is_acceptable(description("2001:db8::9"), host="2001:db8::1")
    assert not sdp_map.is_acceptable(description("192.0.2.9"), host="2001:db8::1")


@pytest.mark.parametrize(
    "rtcp",
    ["5999 IN IP6 2001:db8::9", "5999 IN IP4 phone.invalid", "99999", "9 IN IP4 203.0.113.1"],
)
def test_reports_that_cannot_be_sent_do_not_cost_the_call(rtcp):
    """Covers RFC 3605 §2.1: an attribute that we cannot use is no reason to refuse sound.

    Nor is one that would have reports sent to another host than sound.
    """
    _, plan = sdp_map.answer(description(more=f"a=rtcp:{rtcp}\r\n"), ["pcmu"], OURS)
    assert plan.audio.media.remote == ("192.0.2.9", 5004)
    assert plan.audio.media.remote_rtcp is None


def test_reports_go_where_the_attribute_says():
    """Covers RFC 3605 §2.1."""
    _, plan = sdp_map.answer(description(more="a=rtcp:5999\r\n"), ["pcmu"], OURS)
    assert plan.audio.media.remote_rtcp == ("192.0.2.9", 5999)


def test_codecs_have_the_rates_of_their_registrations():
    """Covers RFC 5574 §4.1.1 [clock-rates], RFC 3551 §4.1 [usual-rates] and §4.5.2 [g722-clock],
    RFC 7587 §7 [clock-and-channels].
    """
    passing = [codec for codec in AUDIO_CODECS.values() if codec.passes]
    rates = {(each.encoding, each.clock_rate) for each in passing if not each.is_aac}
    assert rates == {("speex", 16000), ("speex", 8000), ("PCMU", 8000), ("PCMA", 8000)}
    made = {each.name: (each.clock_rate, each.sample_rate) for each in (OPUS, G722, L16, L16_44)}
    assert made == {
        "opus": (48000, 48000),
        "g722": (8000, 16000),
        "l16": (16000, 16000),
        "l16-44": (44100, 44100),
    }
    assert find("opus", 48000, 2) is OPUS and find("opus", 48000) is None
    assert find("SPEEX", 16000) is AUDIO_CODECS["wideband"] and find("speex", 44100) is None
    shown = [(name, codec.name, codec.reported) for name, codec in AUDIO_CODECS.items()][:4]
    assert shown == [
        ("wideband", "wideband", "speex"),
        ("narrowband", "narrowband", "speex"),
        ("pcmu", "pcmu", "pcmu"),
        ("pcma", "pcma", "pcma"),
    ]
    assert [(codec.payload_type, codec.tag_byte) for codec in passing] == [
        *((96, 0xB2), (98, 0xB2), (0, 0x82), (8, 0x72)),
        *((number, 0xAF) for number in range(113, 117)),
    ]


def test_pictures_have_a_port_and_a_clock_of_their_own():
    """Covers RFC 3551 §5 [video-at-90-khz] [fine-clock] and §6 [one-kind-each].

    Covers RFC 3550 §5.1 [types-part-no-streams] and §5.2 [session-for-each-kind] [kinds-not-mixed].
    """
    sound, pictures = sdp_map.offer(
        ["pcmu", "flv"], Endpoint("192.0.2.1", 4000, 1, x_flv=LocalTransport(4002))
    ).media
    assert (sound.kind, sound.port, sound.formats) == ("audio", 4000, ("0",))
    assert (pictures.kind, pictures.port) == ("video", 4002)
    assert pictures.attribute("rtpmap") == "97 x-flv/90000"


def test_events_are_offered_with_their_numbers():
    """Covers RFC 4733 §2.5.1.1 [events-offered]."""
    (line,) = sdp_map.offer(["pcmu", "dtmf"], OURS).media
    assert line.attribute("fmtp") == "101 0-15"
    assert "101 telephone-event/8000" in [
        each.value for each in line.attributes if each.name == "rtpmap"
    ]


RATES = "a=rtpmap:111 opus/48000/2\r\na=rtpmap:110 telephone-event/48000\r\n"
SLOW = "a=rtpmap:126 telephone-event/8000\r\n"
SPEEX = "a=rtpmap:96 speex/16000\r\na=rtpmap:97 telephone-event/16000\r\n"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["pcmu", "opus", "wideband", "dtmf"], ["8000", "48000"]),
        (["wideband", "opus", "dtmf"], ["8000", "16000"]),
        (["l16-44", "pcmu", "dtmf"], ["8000"]),
        (["opus", "pcmu"], []),
    ],
)
def test_events_are_offered_by_two_clocks_at_most(names, expected):
    """Covers Field §"Events by one clock or the other"."""
    (line,) = sdp_map.offer(names, OURS).media
    maps = [each.value for each in line.attributes if each.name == "rtpmap"]
    clocks = [value.partition("/")[2] for value in maps if "telephone-event" in value]
    assert clocks == expected


def test_events_are_sent_by_the_clock_that_the_peer_takes():
    """Covers Field §"Events by one clock or the other"."""
    theirs = description(media=f"m=audio 5004 RTP/AVP 111 102\r\n{RATES.replace('110', '102')}")
    media = sdp_map.conclude(sdp_map.offer(["opus", "pcmu", "dtmf"], OURS), theirs).audio.media
    assert (media.telephone_event, media.event_clock) == (102, 48000)
    assert media.receive_telephone_events == (102,)


@pytest.mark.parametrize(
    ("lines", "number", "clock"),
    [
        ("m=audio 5004 RTP/AVP 111 110\r\n" + RATES, 110, 48000),  # Linphone
        ("m=audio 5004 RTP/AVP 111 126\r\n" + RATES + SLOW, 126, 8000),  # baresip
        ("m=audio 5004 RTP/AVP 111 126 110 0\r\n" + RATES + SLOW, 110, 48000),  # browsers
        ("m=audio 5004 RTP/AVP 0 111 126 110\r\n" + RATES + SLOW, 126, 8000),
        ("m=audio 5004 RTP/AVP 0 110\r\n" + RATES, None, 8000),
        ("m=audio 5004 RTP/AVP 96 97\r\n" + SPEEX, 97, 16000),  # Linphone
    ],
)
def test_events_are_answered_by_one_clock(lines, number, clock):
    """Covers Field §"Events by one clock or the other"."""
    names = ["opus", "wideband", "pcmu", "dtmf"]
    answer, plan = sdp_map.answer(description(media=lines), names, OURS)
    media = plan.audio.media
    assert (media.telephone_event, media.event_clock) == (number, clock)
    maps = [each.value for each in answer.media[0].attributes if each.name == "rtpmap"]
    assert sum("telephone-event" in value for value in maps) == (number is not None)


def test_an_address_is_compared_however_it_is_written():
    """Own design: one host has many spellings, and is no third party to itself."""
    six = Endpoint("2001:db8::9", 4000, 7)
    _, plan = sdp_map.answer(description("2001:DB8:0::0:1"), ["pcmu"], six)
    assert plan.audio.media.remote == ("2001:db8::1", 5004)


def has_mux(description):
    return any(each.name == "rtcp-mux" for each in description.media[0].attributes)


def test_rtcp_shares_a_port_where_the_phone_offers_it_and_goes_on_to():
    """Covers RFC 5761 §5.1.1 [mux-is-answered] [mux-is-offered]."""
    assert not has_mux(sdp_map.offer(["pcmu"], OURS))  # old phones get the offer they know
    theirs = description(more="a=rtcp-mux\r\n")
    ours, plan = sdp_map.answer(theirs, ["pcmu"], OURS)
    assert has_mux(ours) and plan.audio.media.rtcp_mux
    assert plan.audio.media.remote_rtcp == plan.audio.media.remote == ("192.0.2.9", 5004)
    again = sdp_map.offer_again(["pcmu"], OURS, ours, theirs)
    assert has_mux(again) and sdp_map.conclude(again, theirs).audio.media.rtcp_mux
    ours, plan = sdp_map.answer(description(), ["pcmu"], OURS)
    assert not has_mux(ours) and not plan.audio.media.rtcp_mux
    assert not has_mux(sdp_map.offer_again(["pcmu"], OURS, ours, description()))


def test_an_offer_within_a_call_is_what_a_new_call_would_offer():
    """Covers RFC 3261 §14.2 [offers-as-if-new] [offers-all-formats] [overlaps-with-the-last]."""
    names = ["wideband", "narrowband", "pcma", "pcmu"]
    theirs = description(media="m=audio 5004 RTP/AVP 8\r\n")
    ours, _ = sdp_map.answer(theirs, names, OURS)
    assert ours.media[0].formats == ("8",)
    again = sdp_map.offer_again(names, OURS, ours, theirs)
    assert set(again.media[0].formats) == set(sdp_map.offer(names, OURS).media[0].formats)
    assert len(again.media[0].formats) == 4 and "8" in again.media[0].formats
    assert (again.media[0].kind, again.media[0].port) == ("audio", ours.media[0].port)
    assert again.media[0].protocol == ours.media[0].protocol and len(again.media) == 1
    with_pictures = description(more="m=video 6000 RTP/AVP 31\r\n")
    ours, _ = sdp_map.answer(with_pictures, names, OURS)
    again = sdp_map.offer_again(names, OURS, ours, with_pictures)
    assert [(each.kind, each.port) for each in again.media] == [("audio", 4000), ("video", 0)]


def test_a_leg_has_reports_share_the_port_where_the_answer_says_so():
    """Covers RFC 5761 §5.1, and apart again by the next answer."""
    rig = Rig(PCMU)
    assert rig.rtcp_mux is False
    agreed = plan(PCMU)
    rig.start(replace(agreed, media=replace(agreed.media, rtcp_mux=True)), 1.0)
    assert rig.rtcp_mux is True
    rig.start(agreed, 2.0)
    assert rig.rtcp_mux is False
