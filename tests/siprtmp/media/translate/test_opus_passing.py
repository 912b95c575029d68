"""Opus of Enhanced RTMP and of phones is the same, packet for packet."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gateway.audio_rig import Rig, plan

from p2psip.rtp.payload.opus import OpusPacket
from rtmplite.flv.enhanced_audio import AudioFourCc, AudioPacketType, AudioTrack, ExAudioTag
from siprtmp.media.translate.audio_formats import OPUS, PCMU
from siprtmp.media.translate.conversion import AudioHeader, UnsuitableError
from siprtmp.media.translate.opus_passing import HEAD, OpusToFlv, OpusToRtp

PACKET = bytes(OpusPacket(15, False, (b"sound",)))  # 20 ms
LONG = bytes(OpusPacket(15, False, (b"sound", b"again")))


def tag(data, kind=AudioPacketType.CODED_FRAMES, four_cc=AudioFourCc.OPUS):
    return bytes(ExAudioTag(kind, (AudioTrack(four_cc, data),)))


HEADER = tag(HEAD, AudioPacketType.SEQUENCE_START)


def test_packets_pass_with_their_time():
    """Covers RFC 7587 §4.2 [one-packet-in-a-payload], and RFC 3551 §4.1 [else-no-marker]."""
    rig = Rig(OPUS)
    for number, body in enumerate((HEADER, tag(PACKET), tag(LONG), tag(PACKET))):
        rig.now = 0.02 * number
        rig.publish(body, (0, 0, 20, 60)[number])
    rig.wait(1.0)
    assert [payload for *_, payload in rig.sent] == [PACKET, LONG, PACKET]
    assert [(stamp - rig.stamps[0]) & 0xFFFFFFFF for stamp in rig.stamps] == [0, 960, 2880]
    assert [marker for _, _, marker, *_ in rig.sent] == [True, False, False]
    assert (
        rig.stream.codec_selection.header.body == HEADER
        and not rig.stream.codec_selection.transcodes
    )


def test_a_gap_opens_a_talk_spurt():
    """Covers RFC 3551 §4.1 [marker-opens-talkspurt]."""
    made = OpusToRtp(AudioHeader())
    first, late = made.convert(tag(PACKET), 0) + made.convert(tag(PACKET), 1020)
    assert (first.ticks, first.marker, late.ticks, late.marker) == (0, True, 48960, True)
    assert not made.flush()


@pytest.mark.parametrize("fmtp", ["maxplaybackrate=16000", "maxaveragebitrate=20000", "cbr=1"])
def test_a_phone_with_limits_does_not_get_any_opus(fmtp):
    """Covers RFC 7587 §7.1 [no-more-bandwidth-than-played] [no-more-bandwidth-from-a-gateway]
    [no-more-bits-than-said].
    """
    rig = Rig()
    rig.start(plan(OPUS, fmtp=fmtp), 0.0)
    rig.publish(tag(PACKET), 0)
    assert not rig.sent and rig.unsuitable == [9]  # it could be made, with the extra
    rig.start(plan(OPUS, fmtp="useinbandfec=1"), 0.0)
    rig.publish(tag(PACKET), 20)
    assert len(rig.sent) == 1


def test_the_phones_packets_pass_with_their_time():
    """Covers E-RTMP v2 §"Enhanced Audio": the header comes first, and once."""
    rig = Rig(OPUS, PCMU)
    rig.stream.codec_selection.takes_opus = True
    for number in range(3):
        rig.hear(number, PACKET, payload_type=111, ticks=960)
    assert rig.tags == [(0, HEADER), (0, tag(PACKET)), (20, tag(PACKET)), (40, tag(PACKET))]
    assert rig.stream.audio_format == (AudioFourCc.OPUS, 48000)
    rig.hear(3, b"p" * 160)
    assert rig.tags[-1][1] == b"\x82" + b"p" * 160
    rig.hear(4, PACKET, payload_type=111)
    assert rig.tags[-1][1] == tag(PACKET)


def test_ffmpeg_reads_what_passes():
    """Covers E-RTMP v2 §"Enhanced Audio": the header is one that a decoder takes."""
    pytest.importorskip("av")
    from array import array

    from siprtmp.media.transcode.audio_decoder import AudioDecoder
    from siprtmp.media.transcode.to_rtp import encoder

    made, machine, decoder = encoder(OPUS, 20, ""), OpusToFlv(OPUS), AudioDecoder(48000)
    samples = 0
    for number in range(10):
        [payload] = made.encode(array("h", range(0, 9600, 10)))
        for _, body in machine.convert(payload, 960 * number, 1, 0):
            samples += len(decoder.decode(body))
    assert samples > 9 * 960 and decoder.codec == "opus"


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: b"\x91Opus" + rest))
def test_any_octets_are_opus_or_refused(octets):
    """Covers E-RTMP v2 §"Enhanced Audio": never a crash."""
    with suppress(UnsuitableError):
        assert len(OpusToRtp(AudioHeader()).convert(octets, 0)) <= 1
    assert len(OpusToFlv(OPUS).convert(octets, 0, 1, 0)) in (0, 2)
