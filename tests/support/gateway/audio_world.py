"""Tones in the codecs of publishers, as their tags; and how pure a tone has stayed."""

import math
from array import array
from fractions import Fraction
from functools import cache

import av
import numpy as np

from rtmplite.flv.audio import AacPacketType, AudioTag, SoundFormat
from rtmplite.flv.enhanced_audio import AudioFourCc, AudioPacketType, AudioTrack, ExAudioTag

HZ, SECONDS = 440, 2


def tone(rate):
    """`SECONDS` of the tone as samples."""
    return array(
        "h", (int(8000 * math.sin(2 * math.pi * HZ * n / rate)) for n in range(SECONDS * rate))
    )


def encoded(name, rate, channels=1, wave=tone):
    """The frames of a tone as (seconds, octets), and the codec's header."""
    context = av.CodecContext.create(name, "w")
    context.sample_rate, context.layout = rate, "mono" if channels == 1 else "stereo"
    context.format = context.codec.audio_formats[0]
    context.time_base = Fraction(1, rate)
    context.open()
    size = context.frame_size or rate // 50
    resampler = av.AudioResampler(context.format, context.layout, rate, frame_size=size)
    wave = wave(rate)
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
    "ulaw": ("pcm_mulaw", 8000, 1, plain(SoundFormat.G711_MU_LAW, 0)),
    "enhanced opus": ("libopus", 48000, 2, enhanced(AudioFourCc.OPUS)),
    "enhanced aac": ("aac", 48000, 1, enhanced(AudioFourCc.AAC)),
    "enhanced flac": ("flac", 44100, 2, enhanced(AudioFourCc.FLAC)),
}


@cache
def tags(kind, wave=tone):
    """The tags of a tone, or of what `wave` gives for a rate, as (ms, body), the header first."""
    name, rate, channels, wrap = KINDS[kind]
    frames, header = encoded(name, rate, channels, wave)
    bodies = []
    if header and kind == "aac":
        head = AudioTag(SoundFormat.AAC, 3, 1, 1, AacPacketType.SEQUENCE_HEADER, header)
        bodies.append((0, bytes(head)))
    elif header and kind.startswith("enhanced"):
        bodies.append((0, wrap(header, AudioPacketType.SEQUENCE_START)))
    return bodies + [(round(at * 1000) & 0xFFFFFFFF, wrap(data)) for at, data in frames]


def snr(samples, rate=8000):
    """Decibels of the strongest tone over everything else, and its frequency; of one second."""
    middle = np.array(samples[rate // 2 : rate // 2 + rate], float)
    power = np.abs(np.fft.rfft(middle * np.hanning(len(middle)))) ** 2
    peak = int(power.argmax())
    signal = power[max(0, peak - 4) : peak + 5].sum()
    return 10 * math.log10(signal / (power.sum() - signal)), peak
