"""Audio tags whose codecs have FourCCs."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.flv.enhanced import ModEx, four_cc, four_cc_text
from rtmplite.flv.enhanced_audio import (
    AudioFourCc,
    AudioPacketType,
    AudioTrack,
    Channel,
    ChannelOrder,
    ExAudioTag,
    MultichannelConfig,
    is_silence,
    mask,
)
from rtmplite.strategies.enhanced import audio_tags, multichannel_configs

OPUS = AudioFourCc.OPUS


@given(audio_tags())
def test_written_tags_read_the_same(tag):
    """Covers E-RTMP v2 §"Enhanced Audio" [process-completely]."""
    event(f"layout {tag.multitrack}")
    assert ExAudioTag.parse(bytes(tag)) == tag
    assert ExAudioTag.parse(memoryview(bytes(tag))) == tag


@pytest.mark.parametrize(
    ("raw", "tag"),
    [
        ("90 4f707573 4f", ExAudioTag(0, (AudioTrack(OPUS, b"O"),))),
        ("91 664c6143 ff", ExAudioTag(1, (AudioTrack(AudioFourCc.FLAC, b"\xff"),))),
        ("92 6d703461", ExAudioTag(2, (AudioTrack(AudioFourCc.AAC, b""),))),
        ("94 4f707573 0002", ExAudioTag(4, (AudioTrack(OPUS, b"\0\2"),))),
        ("95 01 2e6d7033 07 ff", ExAudioTag(1, (AudioTrack(AudioFourCc.MP3, b"\xff", 7),), 0)),
        ("93 61616161", ExAudioTag(3, (AudioTrack(four_cc("aaaa"), b""),))),
        (
            "95 21 61632d33 00 000001 0b 65632d33 01 000001 77",
            ExAudioTag(
                1, (AudioTrack(AudioFourCc.AC3, b"\x0b"), AudioTrack(AudioFourCc.EAC3, b"w", 1)), 2
            ),
        ),
        (
            "97 02 000001 01 4f707573 aa",
            ExAudioTag(1, (AudioTrack(OPUS, b"\xaa"),), mod_ex=(ModEx.offset(1),)),
        ),
    ],
)
def test_bytes_and_their_meaning(raw, tag):
    """Covers E-RTMP v2 §"Enhanced Audio" [sound-format-9] [audio-packet-types] [nano-offset]."""
    assert ExAudioTag.parse(bytes.fromhex(raw)) == tag
    assert bytes(tag) == bytes.fromhex(raw)
    assert tag.nanosecond_offset == sum(each.nanoseconds for each in tag.mod_ex)


def test_the_codecs_have_these_names():
    """Covers E-RTMP v2 §"Enhanced Audio" [audio-fourccs]."""
    names = ["ac-3", "ec-3", "Opus", ".mp3", "fLaC", "mp4a"]
    assert [four_cc_text(each) for each in AudioFourCc] == names


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "af 01",
        "80 4f707573 00",
        "b1 4f707573 00",
        "90",
        "90 4f7075",
        "95",
        "95 31",
        "95 15 4f707573 00000000",
        "95 17 4f707573 00",
        "95 11 4f707573 00 000001",
        "97",
        "95 01 4f707573",
    ],
)
def test_what_cannot_be_understood_is_refused(raw):
    """Covers E-RTMP v2 §"Enhanced Audio" [fails-controlled] [multitrack-not-nested].

    And E-RTMP v2 §"Enhanced Audio" [sound-format-9]: any other has no such header.
    """
    with pytest.raises(RemoteError):
        ExAudioTag.parse(bytes.fromhex(raw))


@pytest.mark.parametrize("kind", [AudioPacketType.MULTITRACK, AudioPacketType.MOD_EX])
def test_what_no_track_can_hold(kind):
    """Our own mistakes."""
    with pytest.raises(LocalError):
        bytes(ExAudioTag(kind, (AudioTrack(OPUS, b""),)))


@given(multichannel_configs())
def test_loudspeakers_survive(config):
    """Covers E-RTMP v2 §"Enhanced Audio" [multichannel-config]."""
    assert MultichannelConfig.parse(bytes(config)) == config
    assert MultichannelConfig.parse(b"\1\1\x81\0\0\0").flags == 0x81000000


@pytest.mark.parametrize(
    ("raw", "order", "channels"),
    [
        ("00 06", ChannelOrder.UNSPECIFIED, ()),
        ("01 01 00000004", ChannelOrder.NATIVE, (Channel.FRONT_CENTER,)),
        ("01 03 0080000b", ChannelOrder.NATIVE, (0, 1, 3, Channel.BOTTOM_FRONT_RIGHT)),
        ("02 03 01 fe ff", ChannelOrder.CUSTOM, (1, Channel.UNUSED, Channel.UNKNOWN)),
    ],
)
def test_where_the_loudspeakers_stand(raw, order, channels):
    """Covers E-RTMP v2 §"Enhanced Audio" [channel-orders] [channels] [channel-mask].

    The second is what ffmpeg 8 writes for one channel of Opus.
    """
    config = MultichannelConfig.parse(bytes.fromhex(raw))
    assert (config.order, config.channels) == (order, channels)
    if order == ChannelOrder.NATIVE:
        assert mask(channels) == config.flags


def test_all_channels_in_their_places():
    """Covers E-RTMP v2 §"Enhanced Audio" [channels]: 24 without gaps, then two of no place."""
    assert [int(each) for each in Channel] == [*range(24), 0xFE, 0xFF]
    assert [Channel(at).name for at in (8, 16, 18, 23)] == [
        "BACK_CENTER", "TOP_BACK_CENTER", "LOW_FREQUENCY_2", "BOTTOM_FRONT_RIGHT"
    ]  # fmt: skip


@pytest.mark.parametrize("raw", ["", "01", "03 01", "00 01 00", "01 01 000000", "02 02 01"])
def test_loudspeakers_that_nobody_can_place(raw):
    """An order that is reserved, or a size that does not fit."""
    with pytest.raises(RemoteError):
        MultichannelConfig.parse(bytes.fromhex(raw))


@pytest.mark.parametrize(
    "config",
    [
        MultichannelConfig(ChannelOrder.CUSTOM, 2, (1,)),
        MultichannelConfig(ChannelOrder.NATIVE, 1, (1,)),
        MultichannelConfig(ChannelOrder.UNSPECIFIED, 1, flags=1),
    ],
)
def test_loudspeakers_that_we_cannot_write(config):
    """Our own mistakes."""
    with pytest.raises(LocalError):
        bytes(config)


def test_silence():
    """Covers E-RTMP v2 §"Enhanced Audio" [silence]: nothing at all, or the end of a sequence."""
    assert is_silence(b"") and is_silence(b"\x92Opus")
    assert not is_silence(b"\x91Opus...") and not is_silence(b"\xb2...") and not is_silence(b"\x22")


@given(mutations(audio_tags().map(bytes)) | st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(raw):
    """Covers E-RTMP v2 §"Enhanced Audio" [fails-controlled]: nothing but RemoteError."""
    try:
        tag = ExAudioTag.parse(raw)
    except RemoteError:
        event("refused")
        return
    ids = [track.track_id for track in tag.tracks]
    event("read" if len(set(ids)) == len(ids) else "read, with an id twice")
    if len(set(ids)) == len(ids):
        assert ExAudioTag.parse(bytes(tag)) == tag


@given(mutations(multichannel_configs().map(bytes)))
def test_any_loudspeakers_are_read_or_refused(raw):
    """Nothing but RemoteError."""
    try:
        config = MultichannelConfig.parse(raw)
    except RemoteError:
        return
    assert bytes(config) == raw


def test_memory_is_bounded():
    """However a message is made, reading it takes no more than its share."""
    raw = b"\x95\x11Opus" + b"\0\0\0\0" * 100_000

    def read():
        with pytest.raises(RemoteError):
            ExAudioTag.parse(raw)

    assert peak(read) <= 32 * len(raw) + 64 * 1024


def test_packet_types_have_their_numbers():
    """Covers E-RTMP v2 §"Enhanced Audio" [audio-packet-types]."""
    assert {each.name: each.value for each in AudioPacketType} == {
        "SEQUENCE_START": 0,
        "CODED_FRAMES": 1,
        "SEQUENCE_END": 2,
        "MULTICHANNEL_CONFIG": 4,
        "MULTITRACK": 5,
        "MOD_EX": 7,
    }
