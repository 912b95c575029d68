"""H.265 in descriptions: of any profile, one stream, and limits that are the phone's."""

import pytest

from p2psip.sdp.offer_answer import LocalTransport
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import Endpoint
from siprtmp.media.translate.codec_limits import CodecLimits
from siprtmp.media.video_lines import H265

OURS = Endpoint("192.0.2.1", 4000, 1, video=LocalTransport(4002))
NAMES = ("pcmu", "h265")
TOP = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n"
AUDIO = "m=audio 5004 RTP/AVP 0\r\n"


def phone(*lines, formats="98"):
    video = f"m=video 6000 RTP/AVP {formats}"
    return SessionDescription.parse(
        (TOP + AUDIO + "".join(f"{each}\r\n" for each in (video, *lines))).encode()
    )


def line(session, name):
    return [each.value for each in session.media[1].attributes if each.name == name]


def test_it_is_offered_alone_if_the_client_names_it_alone():
    """Covers RFC 7798 §7.2.1: without parameters, as no profile is known yet."""
    session = sdp_map.offer(NAMES, OURS)
    assert line(session, "rtpmap") == ["104 H265/90000"] and not line(session, "fmtp")
    assert H265.is_offered(session)


def test_a_phone_is_answered_with_its_own_profile():
    """Covers RFC 7798 §7.2.1 [named-h265] [clock-of-90000] [parameters-in-fmtp], §7.2.2
    [number-of-the-offer] [sets-of-the-description]: its sets are kept, and not repeated.
    """
    theirs = phone(
        "b=AS:300", "a=rtpmap:98 h265/90000",
        "a=fmtp:98 profile-id=2; level-id=120;sprop-vps=QAE=,!;sprop-sps=QgE=;sprop-pps=RAE=",
    )  # fmt: skip
    session, plan = sdp_map.answer(theirs, NAMES, OURS)
    assert line(session, "rtpmap") == ["98 H265/90000"]
    assert line(session, "fmtp") == ["98 profile-id=2;level-id=120"]
    agreed = plan.video.other("h265")
    assert (agreed.send_type, agreed.receive_type) == (98, 98)
    assert agreed.parameter_sets == (b"\x40\x01", b"\x42\x01", b"\x44\x01")
    assert plan.video.limits("h265") == CodecLimits(bits=300_000)
    assert plan.video.names == ["h265"] and plan.video.encodable == ""


@pytest.mark.parametrize("fmtp", ["tx-mode=MRST", "tx-mode=MRMT", "sprop-max-don-diff=2"])
def test_streams_that_are_not_in_the_order_of_decoding_are_refused(fmtp):
    """Covers RFC 7798 §4.3 [one-stream-for-unicast] [single-stream-if-it-says-so]."""
    single = phone("a=rtpmap:98 H265/90000", "a=fmtp:98 tx-mode=srst;sprop-max-don-diff=0")
    assert sdp_map.answer(single, NAMES, OURS)[1].video.names == ["h265"]
    session, plan = sdp_map.answer(
        phone("a=rtpmap:98 H265/90000", f"a=fmtp:98 {fmtp}"), NAMES, OURS
    )
    assert plan.video is None and session.media[1].port == 0


def test_a_phone_may_answer_with_any_profile():
    """Covers RFC 7798 §7, for ours has none."""
    theirs = phone("a=rtpmap:98 H265/90000", "a=fmtp:98 sprop-pps=RAE=;profile-id=1")
    plan = sdp_map.conclude(sdp_map.offer(NAMES, OURS), theirs)
    agreed = plan.video.other("h265")
    assert (agreed.send_type, agreed.receive_type) == (98, 104)
    assert agreed.parameter_sets == (b"\x44\x01",)
