"""Sound of any codec for a phone of G.711: the tone comes out, in time, and nothing breaks it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("av")
pytest.importorskip("numpy")

from support.gateway.audio_world import HZ, KINDS, SECONDS, snr, tags

from p2psip.rtp.payload import g711
from rtmplite.flv.enhanced_audio import (
    AudioPacketType,
    AudioTrack,
    ExAudioTag,
)
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.transcode.to_rtp import TranscodedToRtp
from siprtmp.media.translate.audio_formats import PCMA, PCMU
from siprtmp.media.translate.conversion import AudioHeader, UnsuitableError


@pytest.mark.parametrize("codec", [PCMU, PCMA], ids=["pcmu", "pcma"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tone_survives(kind, codec):
    """Covers RFC 3551 §4.5.14 in that a phone hears the publisher's tone, and no other."""
    made, packets = TranscodedToRtp(codec, 20), []
    for at, body in tags(kind):
        packets += made.convert(body, at)
    packets += made.flush()
    assert {len(packet.payload) for packet in packets} == {160}
    assert [packet.ticks for packet in packets] == list(range(0, 160 * len(packets), 160))
    assert SECONDS - 0.1 <= len(packets) / 50 <= SECONDS + 0.1
    decode = g711.decode_ulaw if codec is PCMU else g711.decode_alaw
    decibels, hz = snr(decode(b"".join(packet.payload for packet in packets)))
    assert decibels > 20 and abs(hz - HZ) <= 1
    source, _, target = made.transcodes.partition(" > ")
    assert source in (KINDS[kind][0], kind.split()[-1], "mp3float") and target == codec.name


def test_sound_before_its_header_is_no_sound_yet():
    """Covers FLV 10.1 §E.4.2.1: AAC begins with its configuration."""
    made = TranscodedToRtp(PCMU, 20)
    header, *frames = tags("aac")
    assert made.convert(frames[0][1], 0) == []
    assert made.convert(header[1], 23) == []
    assert any(made.convert(body, at) for at, body in frames[1:6])


def test_a_new_header_begins_a_new_decoder():
    made = TranscodedToRtp(PCMU, 20)
    for at, body in [*tags("aac")[:20], *tags("enhanced opus")[:40]]:
        made.convert(body, at)
    assert made.transcodes == "opus > pcmu"


@pytest.mark.parametrize(
    "body",
    [
        bytes((0xF0, 1)),  # device-specific
        bytes((0xC0, 1)),  # no format at all
        bytes((0x0E, 1)),  # PCM of an unknown byte order
        bytes(ExAudioTag(AudioPacketType.CODED_FRAMES, (AudioTrack(0x41432D33, b"x"),))),  # AC-3
        b"\x2f" + bytes(audio_decoder.MAX_OCTETS),
        b"",
        b"\xa0",
    ],
)
def test_what_cannot_be_decoded_is_refused(body):
    with pytest.raises(UnsuitableError):
        TranscodedToRtp(PCMU, 20).convert(body, 0)


@given(st.lists(st.binary(max_size=200) | st.sampled_from(tags("aac")[:6]).map(lambda t: t[1])))
def test_any_octets_are_sound_or_refused(bodies):
    """Never a crash, and no more sound than a second for a tag."""
    made = TranscodedToRtp(PCMU, 20)
    for at, body in enumerate(bodies):
        try:
            assert len(made.convert(body, at * 20)) <= 60
        except UnsuitableError:
            continue


def mp3(layout, rate):
    """Some frames of silence, in tags."""
    import av

    context = av.CodecContext.create("libmp3lame", "w")
    context.sample_rate, context.layout, context.format = rate, layout, "fltp"
    context.open()
    found = []
    for number in range(8):
        frame = av.AudioFrame("fltp", layout, context.frame_size)
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        frame.sample_rate, frame.pts = rate, number * context.frame_size
        found += [b"\x2f" + bytes(packet) for packet in context.encode(frame)]
    return found


def test_another_rate_under_way_is_heard_after_a_frame():
    """Own design: the decoder finds it in the frames, and begins anew."""
    made, refused, packets = TranscodedToRtp(PCMU, 20), 0, 0
    for at, tag in enumerate(mp3("mono", 44100) + mp3("stereo", 44100) + mp3("mono", 22050)):
        try:
            packets += len(made.convert(tag, 26 * at))
        except UnsuitableError:
            refused += 1
    assert refused <= 4 and packets >= 10


def test_a_header_that_costs_much_is_refused():
    """Covers E-RTMP v2 §"Enhanced Audio": a decoder for each of 255 channels would be made."""
    made = TranscodedToRtp(PCMU, 20)
    head = b"OpusHead\x01\xff" + bytes(6) + b"\xff" * 260
    with pytest.raises(UnsuitableError, match="two channels"):
        made.convert(b"\x90Opus" + head, 0)
    assert made.convert(b"\x91Opus\xf8\xff\xfe", 20) == []


@pytest.mark.parametrize("body", [b"\xaf\x00" + bytes(70_000), b"\x90Opu", b"\x90none"])
def test_a_header_from_before_the_call_breaks_nothing(body):
    header = AudioHeader()
    header.put(body)
    made = TranscodedToRtp(PCMU, 20, "", header)
    assert len(header.body) <= 4096 and made.convert(b"\x82" + bytes(160), 0)
