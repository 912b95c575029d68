"""G.711: telephone audio, eight bits a sample, by table in both directions.

Implements RFC 3551 §4.5.14.

    >>> encode_ulaw([0, 1000, -1000]).hex(" ")
    'ff ce 4e'
    >>> decode_ulaw(bytes.fromhex("ff ce 4e")).tolist()
    [0, 988, -988]

The laws themselves are in ITU-T G.711, which is not in the catalogue: a test compares all samples
and octets with an independent implementation.
"""

from array import array
from collections.abc import Callable, Iterable
from typing import Final

CLOCK_RATE: Final = 8000  # Source: RFC 3551 §6 Table 4, samples and ticks in a second
PCMU: Final = 0  # Source: RFC 3551 §6 Table 4, the static payload types
PCMA: Final = 8
ULAW_SILENCE: Final = 0xFF  # what sample 0 encodes to
ALAW_SILENCE: Final = 0xD5

_BIAS: Final = 132  # moves every mu-law step to a power of two
_CLIP: Final = 32635  # the loudest sample that still fits below 2**15 with the bias


def _ulaw_sample(octet: int) -> int:
    inverted = ~octet & 0xFF
    size = ((inverted & 0x0F) << 3) + _BIAS << (inverted >> 4 & 7)
    return _BIAS - size if inverted & 0x80 else size - _BIAS


def _alaw_sample(octet: int) -> int:
    toggled = octet ^ 0x55  # every other bit is inverted on the line
    exponent, size = toggled >> 4 & 7, (toggled & 0x0F) << 4
    size = size + 0x108 << exponent - 1 if exponent else size + 8
    return size if toggled & 0x80 else -size


def _ulaw_octet(sample: int) -> int:
    size = min(sample, _CLIP) + _BIAS
    exponent = size.bit_length() - 8
    return ~(exponent << 4 | size >> exponent + 3 & 0x0F) & 0xFF


def _alaw_octet(sample: int) -> int:
    size = sample >> 4
    exponent = max(size.bit_length() - 4, 0)
    return (exponent << 4 | size >> max(exponent - 1, 0) & 0x0F | 0x80) ^ 0x55


def _from_zero(octet_of: Callable[[int], int], step: int) -> bytes:
    """Make the octets of samples 0 to 32767, where `step` in a row share one; quickly."""
    return b"".join(bytes([octet_of(sample)]) * step for sample in range(0, 32768, step))


_ULAW_SAMPLES: Final = tuple(map(_ulaw_sample, range(256)))
_ALAW_SAMPLES: Final = tuple(map(_alaw_sample, range(256)))
_NEGATIVE: Final = bytes(range(128)) * 2  # a table for bytes.translate: the sign bit off
_ULAW_UP: Final = _from_zero(_ulaw_octet, 4)
_ALAW_UP: Final = _from_zero(_alaw_octet, 16)
# Indexed by the sample as Python indexes: -1 is the last one, so no offset is needed.  In mu-law
# -n mirrors n, and -32768 is clipped as -32767 is; in A-law a negative step owns its lower end,
# so -1 mirrors 0.
_ULAW_OCTETS: Final = _ULAW_UP + (_ULAW_UP + _ULAW_UP[-1:])[:0:-1].translate(_NEGATIVE)
_ALAW_OCTETS: Final = _ALAW_UP + _ALAW_UP[::-1].translate(_NEGATIVE)
_TO_ALAW: Final = bytes(_ALAW_OCTETS[sample] for sample in _ULAW_SAMPLES)
_TO_ULAW: Final = bytes(_ULAW_OCTETS[sample] for sample in _ALAW_SAMPLES)


def decode_ulaw(data: bytes | memoryview) -> "array[int]":
    """Turn PCMU octets into signed 16-bit samples, one each: RFC 3551 §4.5.14."""
    return array("h", map(_ULAW_SAMPLES.__getitem__, data))


def decode_alaw(data: bytes | memoryview) -> "array[int]":
    """Turn PCMA octets into signed 16-bit samples, one each: RFC 3551 §4.5.14."""
    return array("h", map(_ALAW_SAMPLES.__getitem__, data))


def encode_ulaw(samples: Iterable[int]) -> bytes:
    """Turn signed 16-bit samples into PCMU octets: RFC 3551 §4.5.14.  IndexError beyond these."""
    # §4.5.14 [octet-aligned] [sign-bit-first] [sign-bit-on-host]
    # §4.5.14 [eight-bits]
    return bytes(map(_ULAW_OCTETS.__getitem__, samples))


def encode_alaw(samples: Iterable[int]) -> bytes:
    """Turn signed 16-bit samples into PCMA octets, as `encode_ulaw`: RFC 3551 §4.5.14."""
    # §4.5.14 [octet-aligned] [sign-bit-first] [sign-bit-on-host]
    # §4.5.14 [eight-bits]
    return bytes(map(_ALAW_OCTETS.__getitem__, samples))


def ulaw_to_alaw(data: bytes) -> bytes:
    """Turn PCMU octets into PCMA octets of the nearest samples: RFC 3551 §4.5.14."""
    return data.translate(_TO_ALAW)


def alaw_to_ulaw(data: bytes) -> bytes:
    """Turn PCMA octets into PCMU octets of the nearest samples: RFC 3551 §4.5.14."""
    return data.translate(_TO_ULAW)
