"""Captures and files of other people's programs are explained without a crash, and mostly whole."""

import json

import pytest
from support.corpus_lines import CORPUS
from support.explained import hold

from rtclab.explain.capture import Segment, assembled, capture
from rtclab.explain.command import explain
from rtclab.explain.fields.context import Context, RtmfpKey

CAPTURES = sorted(path.relative_to(CORPUS) for path in CORPUS.glob("**/*.pcap*")) or [None]
FIRST = range(1, 25)  # packets of a capture; the streams that they begin are explained with them


@pytest.mark.parametrize("name", CAPTURES, ids=str)
def test_a_capture_is_explained(corpus, name):
    data = (corpus / name).read_bytes()
    hold(capture(data, Context(), FIRST), data)


def named(field, *names):
    return [each for each in field.walk() if each.name in names]


def test_sip_sdp_and_rtp_of_a_call(corpus):
    data = (corpus / "pcap/sip/sipp_call_g711a_dtmf.pcap").read_bytes()
    field = capture(data, Context())
    assert len(field.children) == 498
    methods = named(field, "INVITE", "180 Ringing", "200 OK", "ACK", "BYE")
    assert [each.name for each in methods] == [
        *("INVITE", "180 Ringing", "200 OK", "ACK", "BYE", "200 OK"),
    ]
    assert len(named(field, "telephone-event")) == 20
    assert [fault.reason for each in named(field, "RTP") for fault in each.faults()] == []


def test_a_tcp_connection_of_sip(corpus):
    data = (corpus / "pcap/sip/sipp_3_calls_tcp_port5068.pcap").read_bytes()
    field = capture(data, Context())
    assert len(named(field, "request line", "status line")) == 18


def test_commands_of_rtmp(corpus):
    data = (corpus / "pcap/rtmp/rtmpdump_vod_play_nginx_port19401.pcap").read_bytes()
    field = capture(data, Context())
    hold(field, data)
    commands = [each.children[0].value for each in named(field, "command message")]
    assert '"connect"' in commands and '"_result"' in commands
    assert named(field, "audio tag", "audio", "video")


def test_packets_of_rtmfp_need_the_keys_of_their_session(corpus):
    base = corpus / "rtmfp/connect_play_nobody"
    [session, *_] = json.loads(base.with_suffix(".keys.json").read_text())
    keys = tuple(
        RtmfpKey(
            bytes.fromhex(session[f"{way}_key"])[:16], bytes.fromhex(session[f"{way}_hmac_key"])
        )
        for way in ("client_to_server", "server_to_client")
    )
    data = base.with_suffix(".pcap").read_bytes()
    without, field = capture(data, Context()), capture(data, Context(keys=keys))
    hold(field, data)
    assert not named(without, "command message")
    commands = [each.children[0].value for each in named(field, "command message")]
    assert '"connect"' in commands and '"play"' in commands
    sealed = [each for each in named(field, "packet") if each.meaning.startswith("encrypted")]
    assert sealed == []


@pytest.mark.parametrize(
    "name",
    ["ruffle_aac_mono_44100hz.flv", "red5_vp6.flv", "mona_Video.flv", "video_screen_v1.flv"],
)
def test_a_file_is_explained_to_its_end(corpus, name):
    data = (corpus / "flv" / name).read_bytes()
    field = explain(data, Context())
    assert field.name == "FLV file" and not named(field, "rest")
    hold(field, data)


def test_streams_are_put_together_up_to_a_gap():
    """In order, without what came twice, and across the end of the sequence numbers."""
    segments = [Segment(1, b"c"), Segment(2**32 - 1, b"abc"), Segment(2**32 - 1, b"a")]
    assert assembled(segments) == (b"abc", 0)
    assert assembled([*segments, Segment(9, b"?")]) == (b"abc", 7)


def test_what_looks_like_rtp_by_chance_is_left_alone(corpus):
    """The capture of 2005 has much other traffic; all that is taken for RTP is sound."""
    data = (corpus / "pcap/sip/sip_rtp_calls_2005.pcap").read_bytes()
    field = capture(data, Context(), range(1, 200))
    assert [fault.reason for each in named(field, "RTP", "RTCP") for fault in each.faults()] == []
