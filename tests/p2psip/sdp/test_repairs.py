"""RTX in offers and answers."""

from dataclasses import replace

import pytest

from p2psip.sdp.line import Origin
from p2psip.sdp.local_media import RepairSources
from p2psip.sdp.offer_answer import Codec, LocalMedia, LocalTransport, apply_answer, make_answer
from p2psip.sdp.repairs import repairs_of
from p2psip.sdp.session import SessionDescription

TOP = "v=0\no=- 1 1 IN IP4 192.0.2.9\ns=-\nc=IN IP4 192.0.2.9\nt=0 0\n"
OFFER = (
    TOP + "m=video 6000 RTP/AVPF 96 97 98 99 100 101\na=rtcp-fb:96 nack\na=rtpmap:96 VP8/90000\n"
    "a=fmtp:97 apt=96;rtx-time=200\na=fmtp:99 apt=98\na=rtpmap:98 VP9/90000\n"
    "a=rtpmap:97 rtx/90000\na=rtpmap:99 rtx/90000\na=rtpmap:100 red/90000\n"
    "a=rtpmap:101 ulpfec/90000\n"
)
OURS = LocalMedia(
    "video",
    (Codec("VP8", 90000),),
    LocalTransport(4000),
    feedback=("nack",),
    repairs=RepairSources(7, 8, "film"),
)


def answered(offer=OFFER, ours=OURS):
    theirs = SessionDescription.parse(offer.encode())
    session, [media] = make_answer(theirs, [ours], Origin.at("192.0.2.1", 1), "192.0.2.1")
    return theirs, session, media


def test_rtx_is_answered_for_the_codecs_of_the_answer():
    """Covers RFC 4588 §8.1 [apt-maps-types], §4 [one-type-for-each] [clock-of-the-original].

    Covers RFC 3264 §6.1: error correction and redundancy are passed over, and the rest goes on.
    """
    theirs, session, media = answered()
    line = session.media[0]
    assert line.formats == ("96", "97") and b"a=rtpmap:97 rtx/90000\r\n" in bytes(session)
    assert b"a=fmtp:97 apt=96\r\n" in bytes(session)
    assert media.repairs == {96: 97} and media.arriving_repairs == {97: 96}
    assert b"a=ssrc-group:FID 7 8\r\na=ssrc:7 cname:film\r\na=ssrc:8 cname:film" in bytes(session)
    assert media.send_payload_types == (96,)
    [offerer] = apply_answer(theirs, session)
    assert offerer.repairs == {96: 97} and offerer.arriving_repairs == {97: 96}


@pytest.mark.parametrize(
    ("offer", "ours"),
    [
        (OFFER.replace("a=rtcp-fb:96 nack\n", ""), OURS),
        (OFFER, replace(OURS, repairs=None)),
        (OFFER, replace(OURS, feedback=())),
        (OFFER.replace("97 rtx/90000", "97 rtx/48000"), OURS),
        (OFFER.replace("apt=96", "apt=ninety"), OURS),
        (OFFER.replace("apt=96", "apt=95"), OURS),
    ],
    ids=["no nack", "not wanted", "not asked for", "other clock", "no number", "unknown"],
)
def test_rtx_is_not_answered_where_it_could_not_be_used(offer, ours):
    """Covers RFC 4588 §4 [clock-of-the-original], §8.1 [apt-maps-types]."""
    _, session, media = answered(offer, ours)
    assert session.media[0].formats == ("96",)
    assert media.repairs == {} and media.arriving_repairs == {}


def test_one_format_of_rtx_is_enough_for_a_codec():
    """Covers RFC 4588 §4 [one-type-for-each]."""
    offer = OFFER.replace("apt=98", "apt=96")
    _, session, _ = answered(offer)
    assert repairs_of(session.media[0]) == {97: 96}
