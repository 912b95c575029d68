"""What two ends agree on is computed from both parameters, whatever they are."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.errors import RemoteError
from p2psip.sdp import formats
from p2psip.sdp.attributes import events
from p2psip.sdp.codec import Codec, numbered
from p2psip.sdp.h264_parameters import LEVEL_1B, H264Parameters, ProfileLevel
from p2psip.sdp.offer_answer import (
    LocalMedia,
    LocalTransport,
    Origin,
    apply_answer,
    make_answer,
    make_offer,
)
from p2psip.sdp.opus_parameters import OpusParameters
from p2psip.sdp.session import SessionDescription
from p2psip.strategies.formats import h264_fmtps, opus_fmtps

A, B = "192.0.2.1", "192.0.2.2"


def h264(fmtp, payload_type=99):
    return Codec("H264", 90000, 1, payload_type, fmtp)


def agree(ours, theirs):
    """The two parameter texts that `Codec.negotiate` computes, or None."""
    found = h264(ours).negotiate(h264(theirs))
    return found and (found.receive.fmtp, found.send.fmtp)


@given(h264_fmtps())
def test_reading_undoes_writing(fmtp):
    """Covers RFC 6184 §8.2.1 [parameters-in-fmtp]."""
    read = H264Parameters.parse(fmtp)
    assert H264Parameters.parse(str(read)) == read


@given(h264_fmtps() | st.text(max_size=60), st.text(max_size=60) | h264_fmtps())
def test_any_text_is_negotiated_or_declined(ours, theirs):
    """Covers RFC 8866 §6.15: nothing a peer writes is an error of the call."""
    for name in ("H264", "opus", "telephone-event", "mpeg4-generic", "VP8", "PCMU"):
        found = formats.negotiate(name, ours, theirs)
        event(f"{name}: {found is not None}")
        if found is not None:
            assert all(len(text) <= 64 + 2 * max(len(ours), len(theirs), 1000) for text in found)
    formats.configuration("H264", theirs)


@given(h264_fmtps(), h264_fmtps())
def test_both_ends_compute_the_same_levels(alice, bob):
    """Covers RFC 6184 §8.2.2 [configuration-symmetric] [common-level-is-lower]
    [asymmetric-levels] [max-recv-level].
    """
    offer, ours = H264Parameters.parse(alice), H264Parameters.parse(bob)
    at_bob = ours.negotiate(offer)
    if at_bob is None:
        assert (offer.packetization_mode, offer.profile_level.sub_profile) != (
            ours.packetization_mode,
            ours.profile_level.sub_profile,
        )
        return
    answer, bob_sends = at_bob
    at_alice = offer.negotiate(answer)
    assert at_alice is not None
    alice_sends = at_alice[1].profile_level.level
    levels = offer.profile_level.level, ours.profile_level.level
    asymmetric = offer.level_asymmetry and ours.level_asymmetry
    event(f"asymmetric: {asymmetric}")
    if asymmetric:
        assert bob_sends.profile_level.level == offer.receives_level
        assert alice_sends == ours.receives_level
    else:
        assert bob_sends.profile_level.level == alice_sends == min(levels)
        assert answer.profile_level.level <= offer.profile_level.level
    assert answer.profile_level.sub_profile == offer.profile_level.sub_profile


@pytest.mark.parametrize(
    ("same", "name"),
    [
        (["42e01f", "42c01f", "4d801f", "58c01f", "42f01f"], "CB"),
        (["42001f", "42801f", "58801f"], "B"),
        (["4d001f", "4d401f"], "M"),
        (["58001f"], "E"),
        (["64001f"], "H"),
        (["6e001f"], "H10"), (["6e101f"], "H10I"), (["7a001f"], "H42"), (["7a101f"], "H42I"),
        (["f4001f"], "H44"), (["f4101f"], "H44I"), (["2c101f"], "C44I"),
    ],
)  # fmt: skip
def test_table_5(same, name):
    """Covers RFC 6184 §8.1 [sub-profile-table]."""
    assert {ProfileLevel.parse(text).sub_profile for text in same} == {name}


def test_constrained_high_is_no_plain_high():
    """Covers RFC 6184 §8.2.2 [number-means-the-same]: a combination outside of the table is itself
    alone.
    """
    assert ProfileLevel.parse("640c1f").sub_profile == "640c"
    assert agree("profile-level-id=640c1f", "profile-level-id=64001f") is None
    assert agree("profile-level-id=640c1f", "profile-level-id=640c28") is not None


def test_defaults_are_baseline_at_level_1_one_nal_unit_a_packet():
    """Covers RFC 6184 §8.1 [profile-default] [mode-default]."""
    assert H264Parameters.parse("") == H264Parameters.parse(
        "profile-level-id=42000A;packetization-mode=0"
    )
    assert agree("", "packetization-mode=1") is None


@pytest.mark.parametrize(
    "fmtp",
    ["packetization-mode=3", "packetization-mode=", "profile-level-id=42e01",
     "profile-level-id=42e01g", "profile-level-id= 42e0 ", "profile-level-id=\uff142e01f"],
)  # fmt: skip
def test_nonsense_is_declined(fmtp):
    """Covers RFC 6184 §8.1 [mode-range]."""
    modes = [H264Parameters.parse(f"packetization-mode={mode}") for mode in range(3)]
    assert [each.packetization_mode for each in modes] == [0, 1, 2]
    with pytest.raises(RemoteError):
        H264Parameters.parse(fmtp)
    assert agree("profile-level-id=42e01f", fmtp) is None


@pytest.mark.parametrize(
    ("text", "level"),
    [("42e00b", 1.1), ("42f00b", LEVEL_1B), ("42f01f", 3.1), ("640009", LEVEL_1B), ("64000b", 1.1),
     ("42000a", 1.0)],
)  # fmt: skip
def test_level_1b_lies_between_1_and_1_1(text, level):
    """Covers RFC 6184 §8.1 [level-1b-by-flag]."""
    profile_level = ProfileLevel.parse(text)
    assert profile_level.level == level
    for other in (1.0, LEVEL_1B, 1.1, 3.1):
        moved = profile_level.at(other)
        assert moved.level == other and moved.sub_profile == profile_level.sub_profile
        assert moved.at(level).level == level


def test_the_lower_level_is_answered_and_leaves_nothing_of_the_higher():
    """Covers RFC 6184 §8.2.2 [common-level-is-lower] [no-upgrade], in the octets of the peer."""
    ours = "profile-level-id=42e01f;packetization-mode=1;max-fs=3600;sprop-parameter-sets=Z0I=,aM4="
    assert agree(ours, "profile-level-id=42c00d;packetization-mode=1;max-fs=99") == (
        "profile-level-id=42c00d;packetization-mode=1",
        "profile-level-id=42c00d;packetization-mode=1;max-fs=99",
    )
    assert agree(ours, "profile-level-id=42c028;packetization-mode=1") == (
        "profile-level-id=42c01f;packetization-mode=1;max-fs=3600;sprop-parameter-sets=Z0I=,aM4=",
        "profile-level-id=42c01f;packetization-mode=1",
    )


def test_each_end_sends_at_the_level_of_the_other_if_both_allow_it():
    """Covers RFC 6184 §8.2.2 [asymmetric-levels] [max-recv-level], §8.1 [asymmetry-default]."""
    more = "level-asymmetry-allowed=1"
    assert agree(
        f"profile-level-id=42e014;{more}", f"profile-level-id=42e01e;{more};max-recv-level=e01f"
    ) == (
        f"profile-level-id=42e014;{more}",
        f"profile-level-id=42e01f;{more};max-recv-level=e01f",
    )
    assert agree(
        f"profile-level-id=42e014;{more}", "profile-level-id=42e01e;max-recv-level=e0"
    ) == (
        f"profile-level-id=42e014;{more}",
        "profile-level-id=42e014;max-recv-level=e0",
    )


def test_parameter_sets_go_in_band_where_the_offerer_wants_it():
    """Covers RFC 6184 §8.2.2 [answer-in-band]."""
    ours = "profile-level-id=42e01f;sprop-parameter-sets=Z0I="
    answer, _ = agree(ours, "profile-level-id=42e01f;in-band-parameter-sets=1")
    assert answer == "profile-level-id=42e01f"


def test_an_answer_has_the_sets_of_its_own_level_alone():
    """Covers RFC 6184 §8.2.2 [one-kind-of-sets]."""
    sets = "profile-level-id=42e01f;sprop-parameter-sets=Z0I="
    answer, _ = agree(f"{sets};sprop-level-parameter-sets=42e01e,Z0I=", "profile-level-id=42e01f")
    assert answer == sets


def test_parameters_that_have_no_use_here_change_nothing():
    """Covers RFC 6184 §8.2 [unknown-parameters-ignored] and §8.2.2 [unusable-ignored]."""
    theirs = "profile-level-id=42e00d;x=1;deint-buf-cap=a;sprop-interleaving-depth=4"
    assert agree("profile-level-id=42e01f", theirs) == ("profile-level-id=42e00d", theirs)


def test_two_profiles_of_one_encoding_keep_their_numbers_and_their_partners():
    """Covers RFC 3264 §8.3.2 and RFC 6184 §8.2.2 [number-of-the-offer], as browsers offer H.264."""
    mode = ";packetization-mode=1"
    alice = [h264(f"profile-level-id={each}{mode}", -1) for each in ("64001f", "42e01f")]
    bob = [h264(f"profile-level-id={each}{mode}", -1) for each in ("42e028", "640028")]
    offer = make_offer(
        [LocalMedia("video", tuple(alice), LocalTransport(5006))], Origin.at(A, 1), A
    )
    answer, (at_bob,) = make_answer(
        offer, [LocalMedia("video", tuple(bob), LocalTransport(5008))], Origin.at(B, 1), B
    )
    assert answer.media[0].formats == offer.media[0].formats == ("96", "97")
    assert [codec.fmtp for codec in at_bob.codecs] == [
        f"profile-level-id={each}{mode}" for each in ("64001f", "42e01f")
    ]
    assert apply_answer(offer, answer)[0].codecs == at_bob.codecs
    again = numbered(bob, at_bob.codecs)
    assert [codec.payload_type for codec in again] == [97, 96]


# -- Opus -----------------------------------------------------------------------------------


@given(opus_fmtps())
def test_reading_opus_undoes_writing(fmtp):
    """Covers RFC 7587 §7 [parameters-in-fmtp] [fmtp-counts]."""
    read = OpusParameters.parse(fmtp)
    assert OpusParameters.parse(str(read)) == read


def test_opus_answers_its_own_and_heeds_what_it_knows():
    """Covers RFC 7587 §7.1 [unknown-parameters-removed], §6.1 [odd-bitrate-ignored] and §7
    [parameters-in-fmtp] [fmtp-counts].
    """
    ours = Codec("opus", 48000, 2, 111, "useinbandfec=1")
    theirs = Codec(
        "OPUS", 48000, 2, 96, "minptime=10; maxplaybackrate=16000; stereo=1; maxaveragebitrate=5"
    )
    found = ours.negotiate(theirs)
    assert found.receive == ours
    assert found.send == Codec("OPUS", 48000, 2, 96, "maxplaybackrate=16000;stereo=1")
    assert ours.negotiate(Codec("opus", 48000, 1, 96)) is None


@pytest.mark.parametrize(
    ("rate", "bandwidth"),
    [(8000, "NB"), (8001, "MB"), (16000, "WB"), (24000, "SWB"), (44100, "FB"), (96000, "FB")],
)
def test_opus_bandwidth(rate, bandwidth):
    """Covers RFC 7587 §7.1 [no-more-bandwidth-than-played]."""
    assert OpusParameters.parse(f"maxplaybackrate={rate}").bandwidth == bandwidth


# -- telephone events, AAC, packet times -----------------------------------------------------


@given(st.frozensets(st.integers(0, 255), min_size=1))
def test_event_lists(codes):
    """Covers RFC 4733 §2.4.1 [event-list]."""
    assert events(formats.event_list(codes)) == codes
    assert events("0-300") == frozenset(range(256))


def test_an_answer_lists_our_events_and_heeds_theirs():
    """Covers RFC 4733 §2.5.2.1 [events-listed] and §2.5.1.1 [only-events-listed]
    [dtmf-by-default].
    """
    ours = Codec("telephone-event", 8000, 1, 101, "0-15,66")
    offer = SessionDescription.parse(
        f"v=0\no=- 1 1 IN IP4 {A}\ns=-\nc=IN IP4 {A}\nt=0 0\nm=audio 9 RTP/AVP 0 97\n"
        "a=rtpmap:97 telephone-event/8000\na=fmtp:97 0-11,64-70\n".encode()
    )
    media = LocalMedia("audio", (Codec("PCMU", 8000), ours), LocalTransport(5004))
    answer, (agreed,) = make_answer(offer, [media], Origin.at(B, 1), B)
    assert answer.media[0].attribute("fmtp") == "97 0-15,66"
    assert agreed.events == frozenset([*range(12), *range(64, 71)])
    assert ours.negotiate(Codec("telephone-event", 8000)).send.fmtp == "0-15"


def test_aac_fields_stand_alike_or_not_at_all():
    """Covers RFC 3640 §4.1 [more-parameters-are-no-harm] [interleaved-is-declined]."""
    hbr = "streamtype=5;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3"
    aac = Codec("mpeg4-generic", 44100, 2, 96, f"{hbr};config=1210")
    same = Codec("MPEG4-GENERIC", 44100, 2, 97, hbr.replace("mode=AAC", "Mode=aac"))
    assert aac.negotiate(same) is not None
    assert aac.negotiate(Codec("mpeg4-generic", 44100, 2, 97, hbr.replace("13", "6"))) is None
    more = Codec("mpeg4-generic", 44100, 2, 97, f"{hbr};x-more=1;constantduration=1024")
    assert aac.negotiate(more) is not None
    interleaved = Codec("mpeg4-generic", 44100, 2, 97, f"{hbr};maxDisplacement=5120")
    assert aac.negotiate(interleaved) is None


def test_no_packet_is_longer_than_the_peer_says():
    """Covers RFC 7587 §7.1 [maxptime-of-the-peer]."""
    opus = Codec("opus", 48000, 2, 111)
    theirs = LocalMedia("audio", (opus,), LocalTransport(5004), ptime=60, maxptime=50)
    offer = make_offer([theirs], Origin.at(A, 1), A)
    ours = LocalMedia("audio", (opus,), LocalTransport(5006))
    assert make_answer(offer, [ours], Origin.at(B, 1), B)[1][0].ptime == 40


def test_vp8_is_agreed_on_whatever_its_parameters():
    """Covers RFC 7741 §6.2 [unknown-parameters-ignored]."""
    ours, theirs = Codec("VP8", 90000, fmtp="max-fs=3600"), Codec("vp8", 90000, fmtp="x=1;max-fs=9")
    assert ours.negotiate(theirs) == (ours, theirs)


@given(
    st.sampled_from(["opus", "speex", "GSM", "G723", "g729", "PCMU"]),
    st.integers(1, 300),
    st.integers(1, 200),
)
def test_packets_are_of_whole_frames(name, wanted, limit):
    """Covers RFC 7587 §6.1 and RFC 3551 §4.2."""
    time = formats.whole_frames(name, min(wanted, limit), limit)
    frames = {"opus": 3, "speex": 20, "GSM": 20, "G723": 30, "g729": 10, "PCMU": 1}
    assert 0 < time <= max(limit, frames[name])
    if name == "opus":
        assert time in (3, 5, 10, 20, 40, 60, 120)
    elif name != "PCMU":
        assert time % frames[name] == 0
