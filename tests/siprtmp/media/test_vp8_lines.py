"""VP8 in descriptions: behind H.264, and only where pictures may be made."""

from dataclasses import replace

import pytest

from p2psip.sdp.h264_parameters import H264Parameters
from p2psip.sdp.offer_answer import LocalTransport
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import Endpoint
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.video_lines import VP8

PLAIN = Endpoint("192.0.2.1", 4000, 1, video=LocalTransport(4002))
OURS = replace(PLAIN, vp8=True)
NAMES = ("pcmu", "h264")
TOP = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n"
AUDIO = "m=audio 5004 RTP/AVP 0\r\n"


def phone(*lines, formats="98", kind="video"):
    video = f"m={kind} 6000 RTP/AVP {formats}"
    text = TOP + AUDIO + "".join(f"{each}\r\n" for each in (video, *lines))
    return SessionDescription.parse(text.encode())


def line(session, name):
    return [each.value for each in session.media[1].attributes if each.name == name]


def test_it_is_offered_behind_h264():
    """Covers RFC 7741 §6.2.1 [media-is-video] [name-is-vp8] [clock-is-90000]
    [limits-are-declared] and §6.1 [both-limits] [limits-for-nothing-else].
    """
    session = sdp_map.offer(NAMES, OURS)
    assert VP8.is_offered(session)
    assert session.media[1].kind == "video" and session.media[1].formats == ("99", "100", "106")
    assert line(session, "rtpmap")[2] == "106 VP8/90000"
    assert line(session, "fmtp")[2] == "106 max-fr=30;max-fs=8160"
    assert "VP8" not in str(sdp_map.offer(NAMES, PLAIN).media[1])


@pytest.mark.parametrize("names", [sdp_map.STOCK_TOOLS, (*sdp_map.EVERYTHING, *NAMES)])
def test_no_number_has_two_meanings_in_an_offer(names):
    """A browser has all lines in one bundle, and so one space of numbers."""
    formats = [each for line in sdp_map.offer(names, OURS).media for each in line.formats]
    assert len(formats) == len(set(formats)) > 9


def test_an_offer_with_it_still_leaves_by_udp():
    """Own design: RFC 3261 §18.1.1 would send an INVITE of more than 1,300 octets by TCP."""
    names = (*sdp_map.STOCK_TOOLS,)
    with_it, without = (len(bytes(sdp_map.offer(names, each))) for each in (OURS, PLAIN))
    assert with_it - without < 70


def test_a_phone_without_h264_is_answered():
    """Covers RFC 7741 §6.2 [unknown-parameters-ignored] and §6.2.2 [limits-are-kept]."""
    theirs = phone("a=rtpmap:98 VP8/90000", "a=fmtp:98 max-fr=15; max-fs=1200; x=y")
    session, plan = sdp_map.answer(theirs, NAMES, OURS)
    assert session.media[1].formats == ("98",) and session.media[1].port == 4002
    vp8 = plan.video.other("vp8")
    assert (vp8.send_type, vp8.receive_type) == (98, 98) and plan.video.name == "vp8"
    assert plan.video.arriving == {98: "vp8"}
    assert plan.video.limits("vp8") == CodecLimits(rate=15, blocks=1200)
    refused, without = sdp_map.answer(theirs, NAMES, PLAIN)
    assert without.video is None and refused.media[1].port == 0


def test_a_phone_may_answer_with_it():
    """Covers RFC 7741 §6.2.1 [name-is-vp8] [clock-is-90000]: in any case of letters."""
    theirs = phone("a=rtpmap:98 vp8/90000")
    plan = sdp_map.conclude(sdp_map.offer(NAMES, OURS), theirs)
    assert (plan.video.other("vp8").send_type, plan.video.other("vp8").receive_type) == (98, 106)
    assert plan.video.name == "vp8" and not plan.video.sending


def test_a_phone_of_both_gets_h264():
    lines = "a=rtpmap:98 VP8/90000", "a=rtpmap:97 H264/90000", "a=fmtp:97 packetization-mode=1"
    session, plan = sdp_map.answer(phone(*lines, formats="98 97"), NAMES, OURS)
    assert session.media[1].formats == ("97", "98") and plan.video.name == "h264"
    assert plan.video.arriving == {97: "h264", 98: "vp8"} and plan.video.limits("h264").level == 1.0


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (("a=rtpmap:98 VP9/90000",), "video"),
        (("a=rtpmap:98 VP8/48000",), "video"),
        (("a=rtpmap:98 VP8/90000",), "image"),
    ],
)
def test_other_formats_are_not_taken_for_it(lines, kind):
    """Covers RFC 7741 §6.2.1 [media-is-video] [name-is-vp8] [clock-is-90000]."""
    theirs = phone(*lines, kind=kind)
    assert not VP8.is_offered(theirs)
    _, plan = sdp_map.answer(theirs, NAMES, OURS)
    assert plan.video is None


def test_limits_that_make_no_sense_are_none():
    theirs = phone("a=rtpmap:98 VP8/90000", "a=fmtp:98 max-fr=fast;max-fs=-1")
    _, plan = sdp_map.answer(theirs, NAMES, OURS)
    assert plan.video.limits("vp8") == CodecLimits()


def test_it_stays_in_a_later_offer():
    """Covers RFC 3264 §8.3.2: under its number."""
    before = sdp_map.offer(NAMES, OURS)
    again = sdp_map.offer_again(NAMES, OURS, before, None)
    assert again.media[1].formats == before.media[1].formats


def test_the_level_of_an_answer_is_kept():
    """Departs from RFC 6184 §8.2.2: whatever profile it names."""
    offer = sdp_map.offer(NAMES, PLAIN)
    fmtp = "a=fmtp:99 profile-level-id=42800c;packetization-mode=1"
    theirs = phone("a=rtpmap:99 H264/90000", fmtp, formats="99")
    [(parameters, _)] = sdp_map.conclude(offer, theirs).video.sending
    assert parameters.profile_level == H264Parameters.parse("profile-level-id=42e00c").profile_level


@pytest.mark.parametrize(
    ("session", "media", "bits"),
    [
        ("", "", 0),
        ("", "b=AS:300", 300_000),
        ("", "b=AS:300|b=TIAS:250000", 250_000),
        ("b=AS:500", "", 500_000),
        ("b=AS:500", "b=CT:9", 500_000),
        ("b=AS:500", "b=AS:64", 64_000),
        ("", "b=AS:0", 0),
    ],
)
def test_the_bits_of_a_line(session, media, bits):
    """Covers RFC 8866 §5.8 [other-bandwidths] [unknown-bandwidth-ignored]."""
    top = TOP.replace("t=0 0", f"{session}\r\nt=0 0") if session else TOP
    more = "".join(f"{each}\r\n" for each in media.split("|") if each)
    text = f"{top}{AUDIO}m=video 6000 RTP/AVP 98\r\n{more}a=rtpmap:98 VP8/90000\r\n"
    _, plan = sdp_map.answer(SessionDescription.parse(text.encode()), NAMES, OURS)
    assert plan.video.media.bits == bits
