"""Comfort noise: how loud the background is, and how it sounds, for the pauses of a talker.

Implements RFC 3389 §3.

    >>> noise = ComfortNoise.parse(bytes([60, 127, 254]))
    >>> noise.level, [round(each, 3) for each in noise.coefficients]
    (60, [0.0, 1.0])
"""

from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError

PAYLOAD_TYPE: Final = 13  # Source: §4, at a clock of 8000 Hz
MAX_ORDER: Final = 64  # coefficients, Own design: §3.2 has no bound, and models use some ten
RESERVED: Final = 255  # Source: §3.2, an index without a meaning
_ZERO: Final = 127  # Source: §3.2, the index of the coefficient 0


@dataclass(frozen=True, slots=True)
class ComfortNoise:
    """The background: §3; `level` in -dBov (§3.1), `indices` as they are quantized (§3.2)."""

    level: int
    indices: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.level >> 7 or any(not 0 <= each < RESERVED for each in self.indices):
            raise LocalError("a level has 7 bits, and an index is 0 to 254")
        if len(self.indices) > MAX_ORDER:
            raise LocalError(f"more than {MAX_ORDER} coefficients")

    @property
    def coefficients(self) -> tuple[float, ...]:
        """The reflection coefficients, between -1 and 1: §3.2."""
        return tuple(258 * (index - _ZERO) / 32768 for index in self.indices)

    @classmethod
    def parse(cls, payload: bytes | memoryview) -> Self:
        """Read a payload up to a reserved index, or raise RemoteError: §3, §3.3."""
        data = bytes(payload)
        if not 0 < len(data) <= MAX_ORDER + 1:
            raise RemoteError(f"comfort noise of {len(data)} octets")
        model, _, _ = data[1:].partition(bytes((RESERVED,)))
        return cls(data[0] & 0x7F, tuple(model))  # §3.3 [level-first], §3 [model-of-any-order]

    def __bytes__(self) -> bytes:
        """Write the payload, the unused bit clear: §3.3."""
        return bytes((self.level, *self.indices))  # §3.3 [level-first]
