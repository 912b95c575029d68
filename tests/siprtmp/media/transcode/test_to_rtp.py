"""Sound of any codec for a phone of G.711: the tone comes out, in time, and nothing breaks it."""

import math
from array import array
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

av = pytest.importorskip("av")
np = pytest.importorskip("numpy")

from p2psip.rtp.payload import g711  # noqa: E402
from rtmplite.flv.audio import AacPacketType, AudioTag, SoundFormat  # noqa: E402
from rtmplite.flv.enhanced_audio import (  # noqa: E402
    AudioFourCc,
    AudioPacketType,
    AudioTrack,
    ExAudioTag,
)
from siprtmp.media.transcode import decoder  # noqa: E402
from siprtmp.media.transcode.to_rtp import TranscodedToRtp  # noqa: E402
from siprtmp.media.translate.audio_formats import PCMA, PCMU  # noqa: E402
from siprtmp.media.translate.flv_to_rtp import UnsuitableError  # noqa: E402

HZ, SECONDS = 440, 2


def encoded(name, rate, channels=1):
    """The frames of a tone as (seconds, octets), and the codec's header."""
    context = av.CodecContext.create(name, "w")
    context.sample_rate, context.layout = rate, "mono" if channels == 1 else "stereo"
    context.format = context.codec.audio_formats[0]
    context.time_base = Fraction(1, rate)
    context.open()
    size = context.frame_size or rate // 50
    resampler = av.AudioResampler(context.format, context.layout, rate, frame_size=size)
    wave = array(
        "h", (int(8000 * math.sin(2 * math.pi * HZ * n / rate)) for n in range(SECONDS * rate))
    )
    frame = av.AudioFrame(format="s16", layout="mono", samples=len(wave))
    frame.planes[0].update(wave.tobytes())
    frame.sample_rate, frame.pts = rate, 0
    packets = []
    for piece in resampler.resample(frame):
        packets += context.encode(piece)
    packets += context.encode(None)
    frames = [(float((p.pts or 0) * p.time_base), bytes(p)) for p in packets]
    return frames, context.extradata or b""


def plain(sound_format, rate=3, stereo=0):
    def wrap(data):
        kind = AacPacketType.RAW if sound_format is SoundFormat.AAC else None
        return bytes(AudioTag(sound_format, rate, 1, stereo, kind, data))

    return wrap


def enhanced(four_cc):
    def wrap(data, kind=AudioPacketType.CODED_FRAMES):
        return bytes(ExAudioTag(kind, (AudioTrack(four_cc, data),)))

    return wrap


KINDS = {
    "aac": ("aac", 44100, 2, plain(SoundFormat.AAC, stereo=1)),
    "mp3": ("libmp3lame", 22050, 1, plain(SoundFormat.MP3, 2)),
    "nellymoser 8": ("nellymoser", 8000, 1, plain(SoundFormat.NELLYMOSER_8_KHZ_MONO, 0)),
    "nellymoser 16": ("nellymoser", 16000, 1, plain(SoundFormat.NELLYMOSER_16_KHZ_MONO, 0)),
    "nellymoser": ("nellymoser", 22050, 1, plain(SoundFormat.NELLYMOSER, 2)),
    "pcm": ("pcm_s16le", 44100, 2, plain(SoundFormat.LINEAR_PCM_LITTLE_ENDIAN, stereo=1)),
    "enhanced opus": ("libopus", 48000, 2, enhanced(AudioFourCc.OPUS)),
    "enhanced aac": ("aac", 48000, 1, enhanced(AudioFourCc.AAC)),
    "enhanced flac": ("flac", 44100, 2, enhanced(AudioFourCc.FLAC)),
}


def tags(kind):
    """The tags of a tone as (ms, body), the header first where there is one."""
    name, rate, channels, wrap = KINDS[kind]
    frames, header = encoded(name, rate, channels)
    bodies = []
    if header and kind == "aac":
        head = AudioTag(SoundFormat.AAC, 3, 1, 1, AacPacketType.SEQUENCE_HEADER, header)
        bodies.append((0, bytes(head)))
    elif header and kind.startswith("enhanced"):
        bodies.append((0, wrap(header, AudioPacketType.SEQUENCE_START)))
    return bodies + [(round(at * 1000) & 0xFFFFFFFF, wrap(data)) for at, data in frames]


def snr(samples):
    """Decibels of the strongest tone over everything else, and its frequency."""
    middle = np.array(samples[4000:12000], float)
    power = np.abs(np.fft.rfft(middle * np.hanning(len(middle)))) ** 2
    peak = int(power.argmax())
    signal = power[max(0, peak - 4) : peak + 5].sum()
    return 10 * math.log10(signal / (power.sum() - signal)), peak


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
    assert made.source in KINDS[kind][0] or made.source in kind or made.source == "mp3float"


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
    assert made.source == "opus"


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
