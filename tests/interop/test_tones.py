"""The tone finder finds what is there and nothing else, or no interop verdict means anything."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.peers import tones


@given(st.integers(60, 3500), st.sampled_from([8000, 16000, 48000]))
def test_a_tone_is_found_at_its_frequency_only(hz, rate):
    samples = tones.tone(hz, 1.0, rate)
    assert tones.tone_fraction(samples, rate, hz) == 1.0
    assert tones.tone_fraction(samples, rate, hz + 12) == 0.0


def test_silence_noise_and_half_a_tone_are_told_apart():
    silence = np.zeros(8000)
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 8000)
    assert tones.tone_fraction(silence, 8000, 440) == 0.0
    assert tones.tone_fraction(noise, 8000, 440) < 0.3
    half = np.concatenate([tones.tone(440, 1.0), silence])
    assert 0.4 <= tones.tone_fraction(half, 8000, 440) <= 0.6
    assert tones.tone_fraction(tones.trimmed(half, 8000), 8000, 440) == 1.0
    assert tones.tone_fraction(silence[:10], 8000, 440) == 0.0  # too short to judge


def test_wav_round_trip(tmp_path):
    sent = tones.tone(1000, 0.5, 16000)
    heard, rate = tones.read_wav(tones.write_wav(tmp_path / "tone.wav", sent, 16000))
    assert rate == 16000 and np.max(np.abs(heard - sent)) < 1e-4


def test_g711_decoders_know_the_reference_codes():
    """Positive and negative full scale, the smallest steps, and a monotonous half."""
    ulaw = tones.from_ulaw(bytes([0x80, 0x00, 0xFF, 0x7F])) * 32768
    assert ulaw.tolist() == [32124, -32124, 0, 0]
    alaw = tones.from_alaw(bytes([0xAA, 0x2A, 0xD5, 0x55])) * 32768
    assert alaw.tolist() == [32256, -32256, 8, -8]
    assert np.all(np.diff(tones.from_ulaw(bytes(range(0x80, 0x100)))) < 0)
