"""AAC of streams and of other gateways is the same, frame for frame."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gateway.audio_rig import Rig, plan

from p2psip.rtp import fast
from p2psip.rtp.payload.aac import pack_aac, read_aac
from p2psip.sdp.session import SessionDescription
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import Endpoint
from siprtmp.media.translate.aac_passing import (
    AacToFlv,
    AacToRtp,
    config_for,
    is_plain,
    sends,
    suits,
)
from siprtmp.media.translate.audio_formats import AAC_CODECS, PCMU
from siprtmp.media.translate.conversion import AudioHeader, UnsuitableError

STEREO, OTHER = AAC_CODECS[:2]  # 44.1 and 48 kHz
HEADER, OTHER_HEADER = b"\xaf\x00\x12\x10\x56\xe5\x00", b"\xaf\x00\x11\x90"  # as ffmpeg has it
OURS = Endpoint("192.0.2.1", 4000, 1)
TOP = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n"
LAYOUT = "streamtype=5;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3"


def frame(data):
    return b"\xaf\x01" + data


def test_frames_pass_with_their_time():
    """Covers RFC 3640 §3.3.6: 1024 ticks each, whatever RTMP time is rounded to."""
    rig = Rig(STEREO)
    for number, body in enumerate((HEADER, frame(b"one"), frame(b"two"), frame(b"three"))):
        rig.now = 0.023 * number
        rig.publish(body, 23 * max(0, number - 1))
    rig.wait(1.0)
    assert [read_aac(payload) for *_, payload in rig.sent] == [
        ((3, b"one"),), ((3, b"two"),), ((5, b"three"),),
    ]  # fmt: skip
    assert [(stamp - rig.stamps[0]) & 0xFFFFFFFF for stamp in rig.stamps] == [0, 1024, 2048]
    assert (
        not rig.stream.codec_selection.transcodes
        and rig.stream.codec_selection.header.body == HEADER
    )


def test_the_codec_of_the_publisher_is_sent():
    """Covers RFC 3264 §5.1: of those that were agreed on; another header, another codec."""
    rig = Rig(STEREO, OTHER)
    for at, body in enumerate((OTHER_HEADER, frame(b"a"), HEADER, frame(b"b"), frame(b"c"))):
        rig.now = at * 0.03
        rig.publish(body, at * 30)
        rig.wait(rig.now + 0.02)
    assert [number for _, number, *_ in rig.sent] == [OTHER.payload_type] + [
        STEREO.payload_type
    ] * 2
    assert rig.stream.unsuitable == 1  # the header, which no packet has


@pytest.mark.parametrize("header", [OTHER_HEADER, b"\xaf\x00\x2b\x8a\x08\x00", b"\xaf\x00"])
def test_a_publisher_of_other_aac_is_told(header):
    """Own design: without the extra, for nothing else is agreed on."""
    rig = Rig(STEREO)
    rig.publish(header, 0)
    rig.publish(frame(b"a"), 0)
    assert not rig.sent and rig.unsuitable == [10]


@given(st.lists(st.binary(min_size=1, max_size=8191), min_size=1, max_size=4))
def test_a_player_gets_what_was_published(frames):
    """Covers RFC 3640 §3.2.3.1: in one packet or in several."""
    to_rtp, to_flv = AacToRtp(STEREO, AudioHeader()), AacToFlv(STEREO)
    tags = []
    for number, data in enumerate(frames):
        for packet in to_rtp.convert(frame(data), number * 23):
            assert len(packet.payload) <= 1200
            tags += to_flv.convert(packet.payload, packet.ticks, 7, 500)
    assert [body for _, body in tags] == [b"\xaf\x00\x12\x10", *map(frame, frames)]
    assert [at for at, _ in tags[1:]] == [500 + 1024000 * n // 44100 for n in range(len(frames))]


def test_half_a_frame_never_comes_out():
    """Covers RFC 3640 §3.2.3.1: whichever part is lost."""
    for lost in range(3):
        to_flv = AacToFlv(STEREO)
        parts = pack_aac([bytes(3000)], 1200)
        for at, (payload, _) in enumerate(parts):
            assert at == lost or to_flv.convert(payload, 0, 7, 0) == []
        [_, (_, body)] = to_flv.convert(pack_aac([b"next"], 1200)[0][0], 1024, 7, 0)
        assert body == frame(b"next")


def test_several_frames_of_a_packet_are_tags_each():
    [(payload, _)] = pack_aac([b"a", b"b"], 1200)
    assert [at for at, _ in AacToFlv(OTHER).convert(payload, 0, 7, 0)] == [0, 0, 21]
    assert AacToFlv(OTHER).convert(b"\0", 0, 7, 0) == []
    with pytest.raises(UnsuitableError):
        AacToRtp(OTHER, AudioHeader()).convert(frame(b""), 0)


def test_a_phone_may_turn_to_its_other_codec():
    """Covers RFC 3264 §5.1: and back, each time behind a header."""
    rig = Rig(STEREO, PCMU)
    packets = [(STEREO, pack_aac([b"a"], 99)[0][0]), (PCMU, b"u" * 160)]
    for sequence, (codec, payload) in enumerate(packets + packets[:1]):
        header = fast.pack_fixed(0x80, codec.payload_type, sequence, 1024 * sequence, 5)
        rig.stream.on_rtp(header + payload, 0.02 * sequence)
    header = b"\xaf\x00\x12\x10"
    assert [body[:4] for _, body in rig.tags] == [
        header, frame(b"a"), b"\x82uuu", header, frame(b"a"),
    ]  # fmt: skip


@given(st.binary(max_size=8))
def test_any_header_is_one_of_ours_or_not(config):
    for codec in AAC_CODECS:
        expected = is_plain(config, codec.clock_rate, codec.channels)
        assert sends(codec, b"\xaf\x00" + config) == expected
        assert not sends(codec, b"\xaf\x01" + config) and not sends(codec, config[:1])
    assert is_plain(config_for(44100, 2) + b"\x56\xe5\x00", 44100, 2)
    assert not is_plain(config_for(22050, 2) + b"\x56\xe5\xa0", 22050, 2)


def test_the_name_stands_for_the_usual_rates():
    """Covers RFC 3640 §4.1: each with its configuration."""
    session = sdp_map.offer(("aac",), OURS)
    lines = [each.value for each in session.media[0].attributes]
    assert lines[:2] == [
        "113 mpeg4-generic/44100/2",
        f"113 {LAYOUT};profile-level-id=41;config=1210",
    ]
    assert session.media[0].formats == ("113", "114", "115", "116")


@pytest.mark.parametrize(
    ("more", "taken"),
    [("", True), (";config=1210", True), (";config=2b8a0800", False), (";config=x", False)],
)
def test_only_plain_aac_is_agreed_on(more, taken):
    """Covers RFC 3640 §4.1: and in another way of packing none."""
    media = f"m=audio 6000 RTP/AVP 97 0\r\na=rtpmap:97 MPEG4-GENERIC/44100/2\r\na=fmtp:97 {LAYOUT}"
    theirs = SessionDescription.parse(f"{TOP}{media}{more}\r\n".encode())
    _, agreed = sdp_map.answer(theirs, ("aac", "pcmu"), OURS)
    assert (agreed.audio.codec is STEREO) == taken
    assert suits(STEREO, LAYOUT + more) == taken
    low = SessionDescription.parse(f"{TOP}{media}\r\n".replace("hbr", "lbr").encode())
    assert sdp_map.answer(low, ("aac", "pcmu"), OURS)[1].audio.codec is PCMU


def test_a_plan_without_aac_is_as_ever():
    assert plan(STEREO).for_sound_format(10) is None
