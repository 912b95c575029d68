"""Tones as proof of media: written to WAV, sent through the system, found again by FFT.

Samples are one-dimensional float64 arrays of one channel in the range -1 to 1. The decoders are
written from the G.711 formulas with numpy, independent of the product's own tables.
"""

import wave
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]

WINDOW_SECONDS = 0.2  # one FFT; 5 Hz wide bins
LOUD_ENOUGH = 0.01  # a window below -40 dBFS is silence, whatever its peak bin is


def tone(hz: float, seconds: float, rate: int = 8000, level: float = 0.5) -> Samples:
    """A sine wave of `seconds` at `rate` samples per second."""
    return level * np.sin(2 * np.pi * hz * np.arange(int(seconds * rate)) / rate)


def write_wav(
    path: Path, samples: Samples, rate: int = 8000, channels: int = 1, times: int = 1
) -> Path:
    """Write a 16-bit WAV of the same sound in each channel, so many times; returns `path`."""
    samples = np.repeat(samples, channels)
    with wave.open(str(path), "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        octets = np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        out.writeframes(octets * times)
    return path


def read_wav(path: Path) -> tuple[Samples, int]:
    """The first channel and the rate of a 16-bit WAV, also of one whose writer was killed."""
    with wave.open(str(path), "rb") as file:
        rate, channels = file.getframerate(), file.getnchannels()
        assert file.getsampwidth() == 2, f"{path.name}: 16-bit samples expected"
        data = file.readframes(file.getnframes())
    return from_s16(data)[::channels], rate


def from_s16(data: bytes) -> Samples:
    """Little-endian 16-bit samples."""
    return np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.float64) / 32768


def from_ulaw(data: bytes) -> Samples:
    """G.711 µ-law: 8 bits a sample, all of them inverted on the wire."""
    code = ~np.frombuffer(data, np.uint8)
    exponent, mantissa = (code >> 4 & 7).astype(int), (code & 15).astype(int)
    magnitude = (((mantissa << 3) + 0x84) << exponent) - 0x84
    return np.where(code & 0x80, -magnitude, magnitude) / 32768


def from_alaw(data: bytes) -> Samples:
    """G.711 A-law: 8 bits a sample, the even ones inverted on the wire."""
    code = np.frombuffer(data, np.uint8) ^ 0x55
    exponent, mantissa = (code >> 4 & 7).astype(int), (code & 15).astype(int)
    step = (mantissa << 4) + 8
    magnitude = np.where(exponent == 0, step, (step + 0x100) << np.maximum(exponent - 1, 0))
    return np.where(code & 0x80, magnitude, -magnitude) / 32768


def peaks(samples: Samples, rate: int) -> Samples:
    """The loudest frequency (Hz) of each whole window; 0 for a silent one."""
    size = int(rate * WINDOW_SECONDS)
    windows = samples[: len(samples) // size * size].reshape(-1, size)
    spectrum = np.abs(np.fft.rfft(windows * np.hanning(size), 4 * size))  # padded: 1.25 Hz bins
    spectrum[:, 0] = 0  # an offset is no tone
    found = np.fft.rfftfreq(4 * size, 1 / rate)[np.argmax(spectrum, axis=1)]
    return np.where(np.sqrt(np.mean(windows**2, axis=1)) >= LOUD_ENOUGH, found, 0.0)


def tone_fraction(samples: Samples, rate: int, hz: float, tolerance: float = 5) -> float:
    """The fraction of windows whose loudest frequency is within `tolerance` Hz of `hz`."""
    found = peaks(samples, rate)
    return float(np.mean(np.abs(found - hz) <= tolerance)) if len(found) else 0.0


def levels(samples: Samples, rate: int, tones: Iterable[int]) -> dict[int, float]:
    """The level of each tone (Hz) in dB over the median of the spectrum, in most windows."""
    size = int(WINDOW_SECONDS * rate)
    windows = samples[: len(samples) // size * size].reshape(-1, size) * np.hanning(size)
    spectrum = np.median(np.abs(np.fft.rfft(windows, axis=1)), axis=0)
    floor = np.median(spectrum)
    at = {hz: round(hz * WINDOW_SECONDS) for hz in tones}
    return {hz: 20 * np.log10(spectrum[n - 1 : n + 2].max() / floor) for hz, n in at.items()}


def clearest(
    samples: Samples, rate: int, tones: Iterable[int], wanted: Iterable[int], seconds: int = 3
) -> dict[int, float]:
    """The levels of tones in those seconds in which the faintest of the wanted ones is loudest.

    Where calls begin and end one after another, all talk in a part of each recording only.
    """
    tones, wanted, size = list(tones), list(wanted), seconds * rate
    starts = range(0, max(len(samples) - size, 0) + 1, rate // 2)
    found = (levels(samples[start : start + size], rate, tones) for start in starts)
    return max(found, key=lambda at: min(at[hz] for hz in wanted))


def trimmed(samples: Samples, rate: int) -> Samples:
    """Without the silence before the first and after the last sound: the call itself."""
    heard = np.flatnonzero(np.abs(samples) >= LOUD_ENOUGH)
    return samples[heard[0] : heard[-1] + 1] if len(heard) else samples[:0]
