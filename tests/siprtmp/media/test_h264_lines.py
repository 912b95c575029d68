"""The lines of H.264 in descriptions: what is offered, answered and agreed on."""

import pytest

from p2psip.sdp.h264_parameters import H264Parameters
from p2psip.sdp.offer_answer import LocalTransport, accepted, apply_answer
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import Endpoint
from siprtmp.media.video_lines import offered_parameters

OURS = Endpoint("192.0.2.1", 4000, 1, video=LocalTransport(4002))
TOP = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n"
AUDIO = "m=audio 5004 RTP/AVP 0\r\n"
NAMES = ("pcmu", "h264")


def described(*lines):
    return SessionDescription.parse((TOP + AUDIO + "".join(f"{x}\r\n" for x in lines)).encode())


def phone(fmtp, number=97, port=6000, protocol="RTP/AVP", *more):
    return described(
        f"m=video {port} {protocol} {number}",
        f"a=rtpmap:{number} H264/90000",
        *([f"a=fmtp:{number} {fmtp}"] if fmtp else []),
        *more,
    )


@pytest.mark.parametrize(
    ("fmtp", "mode"),
    [
        ("profile-level-id=42001f", 0),  # baresip 1.0
        ("profile-level-id=42801F", 0),  # linphone
        ("profile-level-id=42e01f;packetization-mode=1", 1),
        ("profile-level-id=640028;packetization-mode=1;level-asymmetry-allowed=1", 1),
        ("", 0),
    ],
)
def test_any_profile_of_an_offer_is_answered_with_itself(fmtp, mode):
    """Covers RFC 6184 §8.2.2: profile and mode stay as they were offered; and §8.2.1
    [media-is-video] [name-is-h264] [clock-is-90000] [parameters-in-fmtp].
    """
    session, plan = sdp_map.answer(phone(fmtp), NAMES, OURS)
    [(parameters, number)] = plan.video.sending
    assert number == 97 and parameters.packetization_mode == mode
    line = session.media[1]
    assert line.port == 4002 and line.formats == ("97",) and line.kind == "video"
    assert line.attribute("rtpmap") == "97 H264/90000"
    answered = H264Parameters.parse(line.attribute("fmtp").removeprefix("97 "))
    assert answered.profile_level == H264Parameters.parse(fmtp).profile_level
    assert plan.video.media.remote == ("192.0.2.9", 6000)


@pytest.mark.parametrize(
    "lines",
    [
        ("m=video 6000 RTP/AVP 34",),
        ("m=video 6000 RTP/AVP 97", "a=rtpmap:97 VP8/90000"),
        ("m=video 6000 RTP/AVP 97", "a=rtpmap:97 H264/48000"),
        ("m=video 0 RTP/AVP 97", "a=rtpmap:97 H264/90000"),
        ("m=video 6000 RTP/SAVPF 97", "a=rtpmap:97 H264/90000"),
        (
            "m=video 6000 RTP/AVP 97",
            "a=rtpmap:97 H264/90000",
            "a=fmtp:97 packetization-mode=2",
        ),
    ],
)
def test_other_pictures_are_refused_and_the_sound_is_taken(lines):
    """Covers RFC 3264 §6, port 0 for the line alone, and RFC 6184 §8.2.1 [name-is-h264]
    [clock-is-90000].
    """
    session, plan = sdp_map.answer(described(*lines), NAMES, OURS)
    assert plan.video is None and plan.audio.codec.name == "pcmu"
    assert [line.port for line in session.media] == [4000, 0]


def test_formats_of_another_name_or_clock_are_not_ours():
    """Covers RFC 6184 §8.2.1 [name-is-h264] [clock-is-90000]."""
    rates = "H264/90000", "h264/90000", "H264/48000", "VP8/90000"
    lines = [f"a=rtpmap:{97 + at} {rate}" for at, rate in enumerate(rates)]
    session = described("m=video 6000 RTP/AVP 97 98 99 100", *lines)
    assert len(offered_parameters(session)) == 2


def test_pictures_are_answered_only_with_a_port_and_a_name():
    for names, ours in ((("pcmu",), OURS), (NAMES, Endpoint("192.0.2.1", 4000, 1))):
        session, plan = sdp_map.answer(phone(""), names, ours)
        assert plan.video is None and session.media[1].port == 0


def test_what_is_offered():
    """Covers RFC 6184 §8.2.1 [media-is-video] [name-is-h264] [clock-is-90000], §6.2 and §6.3
    [mode-1-is-read].

    Covers Field §"Packing that is not named".
    """
    line = sdp_map.offer(NAMES, OURS).media[1]
    assert line.kind == "video" and line.formats == ("99", "100")
    assert [each.value for each in line.attributes if each.name in ("rtpmap", "fmtp")] == [
        *("99 H264/90000", "99 profile-level-id=42e01f;packetization-mode=1"),
        *("100 H264/90000", "100 profile-level-id=42e01f"),
    ]


@pytest.mark.parametrize("profile", ["42e01f", "42e00d", "42001f", "42801F", "64001e"])
@pytest.mark.parametrize("mode", [0, 1])
def test_phones_agree_to_our_offer_by_what_they_write(profile, mode):
    """Departs from RFC 6184 §8.2.2: baresip and Linphone answer with a profile of their own.

    Covers Field §"A profile of its own".
    """
    offer = sdp_map.offer(NAMES, OURS)
    assert [line.kind for line in offer.media] == ["audio", "video"]
    fmtp = f"profile-level-id={profile};packetization-mode={mode}"
    plan = sdp_map.conclude(offer, phone(fmtp, number=100 - mode))
    [(parameters, number)] = plan.video.sending
    assert (parameters.packetization_mode, number) == (mode, 100 - mode)
    crossed = sdp_map.conclude(offer, phone(fmtp, number=99 + mode))
    assert crossed.video is None or profile.startswith("42e0")  # each number has its own packing


def test_parameter_sets_of_the_phone_are_read():
    """Covers RFC 6184 §8.2.2 [sets-of-the-offer] [sets-of-the-answer] [level-sets-ignored]: broken
    ones are passed over.

    Covers Field §"Parameter sets in one place".
    """
    text = "profile-level-id=42e01f;sprop-parameter-sets=Z0LAH9sC,aMqMsg==,%%%,"
    text += ";sprop-level-parameter-sets=42e01e,Z0LAHtsC"
    _, plan = sdp_map.answer(phone(text), NAMES, OURS)
    assert plan.video.parameter_sets == (bytes.fromhex("6742c01fdb02"), bytes.fromhex("68ca8cb2"))
    concluded = sdp_map.conclude(sdp_map.offer(NAMES, OURS), phone(text, 100))
    assert concluded.video.parameter_sets == plan.video.parameter_sets


def test_a_later_offer_of_ours_keeps_each_line_in_its_place():
    """Covers RFC 3264 §8."""
    first = sdp_map.offer(NAMES, OURS)
    theirs = phone("profile-level-id=42e01f", number=100)
    again = sdp_map.offer_again(NAMES, OURS, first, theirs)
    assert [(line.kind, line.port) for line in again.media] == [("audio", 4000), ("video", 4002)]
    without = sdp_map.offer_again(NAMES, Endpoint("192.0.2.1", 4000, 1), first, theirs)
    assert [line.port for line in without.media] == [4000, 0]


def test_a_publishers_profile_chooses_the_payload_type():
    """Covers RFC 6184 §8.2.2: and a phone without that profile gets its own favourite."""
    offer = sdp_map.offer(NAMES, OURS)
    video = next(line for line in offer.media if line.kind == "video")
    echo = described(
        f"m=video 6000 RTP/AVP {' '.join(video.formats)}",
        *(f"a={each}" for each in video.attributes if each.name in ("rtpmap", "fmtp")),
    )
    plan = sdp_map.conclude(offer, echo).video
    base, number = plan.for_profile("CB")
    assert base.packetization_mode == 1 and number == 99
    assert plan.for_profile("H") == plan.sending[0]
    both = phone("profile-level-id=42e01f;packetization-mode=1", 97)
    line = "a=rtpmap:98 H264/90000", "a=fmtp:98 profile-level-id=640028;packetization-mode=1"
    more = described(
        "m=video 6000 RTP/AVP 97 98", *(f"a={each}" for each in both.media[1].attributes), *line
    )
    _, plan = sdp_map.answer(more, NAMES, OURS)
    assert [plan.video.for_profile(name)[1] for name in ("H", "CB", "M")] == [98, 97, 97]
    assert accepted(apply_answer(offer, echo), "video") is not None
