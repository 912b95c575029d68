"""G.711 as every other implementation has it, and nearest neighbours where it is free."""

import random
import warnings
from itertools import pairwise

import pytest

from p2psip.rtp.payload.g711 import (
    ALAW_SILENCE,
    ULAW_SILENCE,
    alaw_to_ulaw,
    decode_alaw,
    decode_ulaw,
    encode_alaw,
    encode_ulaw,
    ulaw_to_alaw,
)

OCTETS = bytes(range(256))
LAWS = [(encode_ulaw, decode_ulaw, "ulaw"), (encode_alaw, decode_alaw, "alaw")]
ALL = range(-32768, 32768)


@pytest.mark.parametrize(("encode", "decode", "law"), LAWS)
def test_each_octet_means_itself(encode, decode, law):
    """Covers RFC 3551 §4.5.14.  Mu-law has two zeros, of which only one is written."""
    changed = [octet for octet in OCTETS if encode(decode(bytes([octet]))) != bytes([octet])]
    assert changed == ([0x7F] if law == "ulaw" else [])


@pytest.mark.parametrize(("encode", "decode", "law"), LAWS)
def test_another_implementation_agrees(encode, decode, law):
    """Covers RFC 3551 §4.5.14, against the audioop module while Python still has it.

    It halves the step of negative mu-law samples otherwise than we do; on the samples of
    14 bits that the law is defined for, both must be the same.

    Covers RFC 3551 §4.5.14 [octet-aligned].
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        audioop = pytest.importorskip("audioop", reason="gone from Python 3.13")
    assert decode(OCTETS).tobytes() == getattr(audioop, f"{law}2lin")(OCTETS, 2)
    samples = decode(OCTETS)[:0]
    samples.extend(ALL[:: 4 if law == "ulaw" else 1])
    assert encode(samples) == getattr(audioop, f"lin2{law}")(samples.tobytes(), 2)


@pytest.mark.parametrize(("encode", "decode", "law"), LAWS)
def test_loudness_is_kept(encode, decode, law):
    """Covers RFC 3551 §4.5.14: the error is half a step, steps being 1/16 of the size."""
    decoded = decode(encode(ALL))
    assert all(
        abs(got - sample) <= abs(sample) / 32 + 8 for got, sample in zip(decoded, ALL, strict=True)
    )
    assert list(decoded) == sorted(decoded)


def test_silence():
    """Covers RFC 3551 §4.5.14."""
    assert encode_ulaw([0]) == bytes([ULAW_SILENCE]) and encode_alaw([0]) == bytes([ALAW_SILENCE])


@pytest.mark.parametrize(
    ("turn", "decode", "other"),
    [(ulaw_to_alaw, decode_ulaw, decode_alaw), (alaw_to_ulaw, decode_alaw, decode_ulaw)],
)
def test_turning_one_law_into_the_other_keeps_the_sound(turn, decode, other):
    """Covers RFC 3551 §4.5.14."""
    for before, after in zip(decode(OCTETS), other(turn(OCTETS)), strict=True):
        assert abs(before - after) <= max(abs(before) / 16, 8)
    noise = random.Random(1).randbytes(1000)
    assert len(turn(noise)) == 1000


@pytest.mark.parametrize(("encode", "decode", "law"), LAWS)
def test_a_sample_is_an_octet_and_its_first_bit_the_sign(encode, decode, law):
    """Covers RFC 3551 §4.5.14 [sign-bit-first] [sign-bit-on-host] [eight-bits]."""
    sound = encode(ALL)
    assert len(sound) == len(ALL)
    assert all((octet >= 0x80) == (sample >= 0) for octet, sample in zip(sound, ALL, strict=True))


def test_samples_of_a_capture_are_speech(capture):
    """Covers RFC 3551 §4.5.14: read with the right law it is smooth, with the wrong it is not."""
    data = b"".join(datagram.data[12:] for datagram in capture("rtp/alaw_40ms.pcap"))

    def roughness(samples):
        steps = sum(abs(b - a) for a, b in pairwise(samples))
        return steps / max(sum(map(abs, samples)), 1)

    assert roughness(decode_alaw(data)) < roughness(decode_ulaw(data))
