"""Audio bodies: the one byte that tells the codec, and the second that AAC has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import mutations

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.audio import (
    SPEEX_HEADER,
    AacPacketType,
    AudioTag,
    SoundFormat,
    SoundRate,
    SoundSize,
    SoundType,
    is_empty_header,
    is_sequence_header,
)
from rtmplite.strategies import flv


@given(flv.audio_tags())
def test_what_is_written_reads_back(tag):
    """Covers FLV 10.1 §E.4.2.1."""
    assert AudioTag.parse(bytes(tag)) == AudioTag.parse(memoryview(bytes(tag))) == tag


@pytest.mark.parametrize(
    ("raw", "tag"),
    [
        ("b2 36", AudioTag(SoundFormat.SPEEX, 0, SoundSize.BITS_16, SoundType.MONO, None, b"6")),
        (
            "af 00 1210",
            AudioTag(SoundFormat.AAC, SoundRate.KHZ_44, 1, SoundType.STEREO, 0, b"\x12\x10"),
        ),
        ("72 d5", AudioTag(SoundFormat.G711_A_LAW, SoundRate.KHZ_5_5, 1, 0, None, b"\xd5")),
        ("8a ff", AudioTag(SoundFormat.G711_MU_LAW, SoundRate.KHZ_22, 1, 0, None, b"\xff")),
        ("5c", AudioTag(SoundFormat.NELLYMOSER_8_KHZ_MONO, 3, SoundSize.BITS_8, 0, None, b"")),
    ],
)
def test_every_field_has_its_place(raw, tag):
    """Covers FLV 10.1 §E.4.2.1 [header-bits] [sound-rates] [sound-sizes] [sound-types].

    And FLV 10.1 §E.4.2.1 [aac-packet-type].
    """
    assert AudioTag.parse(bytes.fromhex(raw)) == tag
    assert bytes(tag) == bytes.fromhex(raw)


def test_the_codecs_have_their_numbers():
    """Covers FLV 10.1 §E.4.2.1 [sound-formats]."""
    names = "PCM ADPCM MP3 PCM NELLY NELLY NELLY A_LAW MU_LAW EXTENDED AAC SPEEX"
    assert list(SoundFormat) == [*range(12), 14, 15]
    for number, name in enumerate(names.split()):
        assert name in SoundFormat(number).name
    assert SoundFormat.NELLYMOSER_16_KHZ_MONO == 4 and SoundFormat.NELLYMOSER_8_KHZ_MONO == 5
    assert SoundFormat.LINEAR_PCM_LITTLE_ENDIAN == 3 and SoundFormat.DEVICE_SPECIFIC == 15


def test_speex_has_one_header():
    """Covers FLV 10.1 §E.4.2.1 [speex-fixed]."""
    assert SPEEX_HEADER == b"\xb2"
    assert AudioTag.parse(SPEEX_HEADER) == AudioTag(SoundFormat.SPEEX, 0, 1, 0, None, b"")


@pytest.mark.parametrize("raw", ["", "af", "9f 4f707573"])
def test_what_has_no_header_is_refused(raw):
    """Covers FLV 10.1 §E.4.2.1."""
    with pytest.raises(RemoteError):
        AudioTag.parse(bytes.fromhex(raw))


@pytest.mark.parametrize(("sound_format", "packet_type"), [(SoundFormat.AAC, None), (11, 0)])
def test_a_packet_type_goes_with_aac(sound_format, packet_type):
    """Covers FLV 10.1 §E.4.2.1."""
    with pytest.raises(LocalError):
        bytes(AudioTag(sound_format, 0, 0, 0, packet_type, b""))


@given(flv.audio_tags())
def test_the_quick_look_agrees(tag):
    """Covers FLV 10.1 §E.4.2.1."""
    header = tag.aac_packet_type == AacPacketType.SEQUENCE_HEADER
    assert is_sequence_header(bytes(tag)) == (header and bool(tag.data))
    assert is_empty_header(bytes(tag)) == (header and not tag.data)


def test_the_quick_look_knows_fourcc():
    """Covers E-RTMP v2 §"Enhanced Audio"."""
    assert is_sequence_header(b"\x90Opus") and not is_sequence_header(b"\x91Opus")
    assert is_sequence_header(b"\x90mp4a\x11") and not is_sequence_header(b"\x90mp4a")
    assert is_empty_header(b"\x90mp4a") and not is_empty_header(b"\x91mp4a")


@given(mutations(flv.audio_tags().map(bytes)) | st.binary(max_size=8))
def test_any_bytes_are_read_or_refused(raw):
    """Covers FLV 10.1 §E.4.2.1."""
    header = is_sequence_header(raw)
    try:
        tag = AudioTag.parse(raw)
    except RemoteError:
        return
    assert bytes(tag) == raw
    assert header == (tag.aac_packet_type == 0 and bool(tag.data))


def test_rates_sizes_and_packets_have_their_numbers():
    """Covers FLV 10.1 §E.4.2.1 [sound-rates] [sound-sizes] [sound-types] [aac-packet-type]."""
    assert [each.name for each in sorted(SoundRate)] == ["KHZ_5_5", "KHZ_11", "KHZ_22", "KHZ_44"]
    assert [*map(int, SoundRate)] == [0, 1, 2, 3]
    assert [*map(int, (*SoundSize, *SoundType, *AacPacketType))] == [0, 1] * 3
