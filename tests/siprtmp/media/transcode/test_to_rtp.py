"""Sound of any codec for a phone of G.711: the tone comes out, in time, and nothing breaks it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("av")
pytest.importorskip("numpy")

from support.gateway.sound_world import HZ, KINDS, SECONDS, snr, tags

from p2psip.rtp.payload import g711
from rtmplite.flv.enhanced_audio import (
    AudioPacketType,
    AudioTrack,
    ExAudioTag,
)
from siprtmp.media.transcode import decoder
from siprtmp.media.transcode.to_rtp import TranscodedToRtp
from siprtmp.media.translate.audio_formats import PCMA, PCMU
from siprtmp.media.translate.flv_to_rtp import UnsuitableError


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
    source, _, target = made.making.partition(" > ")
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
    assert made.making == "opus > pcmu"


@pytest.mark.parametrize(
    "body",
    [
        bytes((0xF0, 1)),  # device-specific
        bytes((0xC0, 1)),  # no format at all
        bytes((0x0E, 1)),  # PCM of an unknown byte order
        bytes(ExAudioTag(AudioPacketType.CODED_FRAMES, (AudioTrack(0x41432D33, b"x"),))),  # AC-3
        b"\x2f" + bytes(decoder.MAX_OCTETS),
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
