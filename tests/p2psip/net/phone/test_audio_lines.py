"""An offer with several audio lines: a phone takes the first that it can use, encrypted if any."""

import pytest

from p2psip.errors import RemoteError
from p2psip.net.media.port_pool import PortPool
from p2psip.net.phone.audio import AudioStream
from p2psip.net.phone.audio_codecs import audio_codec
from p2psip.sdp.session import SessionDescription

LOOPBACK = "127.0.0.1"
KEY = "inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
SHA80 = f"a=crypto:1 AES_CM_128_HMAC_SHA1_80 {KEY}"
SHA32 = f"a=crypto:7 AES_CM_128_HMAC_SHA1_32 {KEY}"
OTHER_CODEC = ("m=audio 9000 RTP/SAVP 18", SHA80)
OTHER_FAMILY = ("m=audio 9000 RTP/SAVP 0", "c=IN IP6 2001:db8::1", SHA80)
PLAIN = ("m=audio 9002 RTP/AVP 0",)


@pytest.fixture
def stream():
    pcmu = [audio_codec("PCMU")]
    nothing = [lambda *args: None] * 3
    stream = AudioStream(LOOPBACK, pcmu, PortPool(), *nothing, ptime=40)
    yield stream
    stream.close()


def offer(*lines):
    head = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "c=IN IP4 127.0.0.1", "t=0 0"]
    return "".join(f"{line}\r\n" for line in [*head, *(each for line in lines for each in line)])


def answer(stream, *lines):
    return SessionDescription.parse(stream.answer(offer(*lines).encode())).media


@pytest.mark.parametrize("first", [OTHER_CODEC, OTHER_FAMILY])
@pytest.mark.parametrize(
    ("second", "crypto"),
    [
        (PLAIN, None),
        (("m=audio 9002 RTP/SAVP 0", SHA80), "1 AES_CM_128_HMAC_SHA1_80"),
        (("m=audio 9002 RTP/SAVP 0", SHA32), "7 AES_CM_128_HMAC_SHA1_32"),
    ],
)
def test_the_second_line_is_used_where_the_first_cannot_be(stream, first, second, crypto):
    """Covers RFC 3264 §6 and RFC 4568 §5.1.2 [tag-and-suite-kept]: each line has its own keys."""
    refused, used = answer(stream, first, second)
    assert refused.port == 0 and used.port != 0
    told = [each.value for each in used.attributes if each.name == "crypto"]
    assert [" ".join(each.split()[:2]) for each in told] == ([] if crypto is None else [crypto])
    assert stream.encrypted == (crypto is not None)
    assert stream._media.remote == (LOOPBACK, 9002)


def test_another_clock_is_another_source():
    """Covers RFC 3711 §4.1.1 [block-is-distinct] [index-is-distinct], §9.2 [distinct-packets] and
    RFC 4568 §6.4 [keystream-is-used-once]: its numbers begin anew, and the key stays.

    Covers RFC 3711 §3.4 [first-size-with-srtcp] [sizes-with-srtcp], §8 [distinct-ssrcs] and §9.1
    [ssrcs-are-unique], RFC 4568 §6.4.2 [ssrcs-differ].
    """
    codecs = [audio_codec("PCMU"), audio_codec("opus/48000/2")]
    stream = AudioStream(LOOPBACK, codecs, PortPool(), *([lambda *args: None] * 3))
    try:
        [first] = answer(stream, ("m=audio 9000 RTP/SAVP 0", SHA80))
        before = stream._session.ssrc
        assert stream._session.reporter._timer.avg_rtcp_size == 128 + 14
        [again] = answer(stream, ("m=audio 9000 RTP/SAVP 0", SHA80))
        assert stream._session.ssrc == before
        opus = ("m=audio 9000 RTP/SAVP 96", "a=rtpmap:96 opus/48000/2", SHA80)
        [second] = answer(stream, opus)
        assert first.attribute("crypto") == again.attribute("crypto") == second.attribute("crypto")
        assert stream._session.ssrc != before
    finally:
        stream.close()


def test_an_encrypted_line_is_preferred_to_a_plain_one_before_it(stream):
    """Covers RFC 4568 §5.1.2: nothing goes in clear that need not."""
    plain, secure = answer(stream, PLAIN, ("m=audio 9004 RTP/SAVP 0", SHA80))
    assert plain.port == 0 and secure.port != 0
    assert stream.encrypted


def test_what_is_encrypted_stays_so_whatever_lines_a_new_offer_has(stream):
    """Covers RFC 4568 §5.1.2: a line in clear beside an unusable one does not change it."""
    answer(stream, ("m=audio 9000 RTP/SAVP 0", SHA80))
    with pytest.raises(RemoteError) as refused:
        answer(stream, OTHER_CODEC, PLAIN)
    assert refused.value.status == 488
    assert stream.encrypted and stream._media.remote == (LOOPBACK, 9000)


@pytest.mark.parametrize(("said", "ptime"), [("a=ptime:30", 30), ("a=maxptime:10", 10), (None, 20)])
def test_each_side_says_how_long_packets_should_be(stream, said, ptime):
    """Covers RFC 3264 §6.1 [ptime-of-the-offer]: the caller of `send` asks for it."""
    assert stream.ptime == 20
    [ours] = answer(stream, (*PLAIN, said) if said else PLAIN)
    assert stream.ptime == ptime
    assert ours.attribute("ptime") == "40"
    [ours] = SessionDescription.parse(stream.offer()).media
    assert ours.attribute("ptime") == "40"


@pytest.mark.parametrize(
    ("session", "line", "told"),
    [
        (None, None, True),
        (None, "voip-metrics", True),
        (None, "stat-summary=loss,jitt voip-metrics", True),
        (None, "", False),
        (None, "pkt-loss-rle=100", False),
        ("", None, False),
        ("", "voip-metrics", True),
        ("voip-metrics", "rcvr-rtt=all", False),
    ],
)
def test_a_peer_that_names_reports_is_sent_no_others(session, line, told):
    """Covers RFC 3611 §5.1 [only-what-is-named] [line-before-session]."""
    nothing = [lambda *args: None] * 3
    stream = AudioStream(LOOPBACK, [audio_codec("PCMU")], PortPool(), *nothing, voip_metrics=True)
    above, below = ([] if each is None else [f"a=rtcp-xr:{each}"] for each in (session, line))
    try:
        stream.answer(offer(above, (*PLAIN, *below)).encode())
        assert (stream._session.reporter.local_metrics is not None) == told
        stream.answer(offer((*PLAIN, "a=rtcp-xr:")).encode())  # the peer changes its mind
        assert stream._session.reporter.local_metrics is None
    finally:
        stream.close()
