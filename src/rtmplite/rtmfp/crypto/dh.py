"""Diffie-Hellman key agreement: two ends exchange public keys and share a secret.

Implements RFC 7425 §4.2 and §4.6.2.  The groups are those of IKE: RFC 2409 §6.2 and RFC 3526.

    >>> ours, theirs = KeyPair.generate(GROUPS[2], bytes), KeyPair.generate(GROUPS[2], b"x".__mul__)
    >>> ours.secret(theirs.public) == theirs.secret(ours.public)
    True

Modular powers are computed by pycryptodome: it lets other threads run, and its time does not
depend on the exponent.  Python's own `pow` does neither.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from Crypto.Math.Numbers import Integer

from rtmplite.errors import RemoteError

FAR_FROM_THE_ENDS: Final = 1 << 24  # §4.6.2
FEWEST_BITS: Final = 16  # of either value: §4.6.2


@dataclass(frozen=True, slots=True)
class Group:
    """A group of numbers modulo a prime, with its generator: §4.2.

    `exponent_bits` is the length of a private exponent, by the higher of the strengths that
    RFC 3526 §8 estimates; longer ones are slower, and no safer.
    """

    group_id: int
    prime: int = field(repr=False)
    exponent_bits: int
    generator: int = 2

    def is_acceptable(self, public: int) -> bool:
        """Whether a public key leaves the secret hard to guess: RFC 7425 §4.6.2."""
        ones = public.bit_count()
        return (
            public >= FAR_FROM_THE_ENDS  # §4.6.2 [at-least-2-24]
            and public <= self.prime - FAR_FROM_THE_ENDS  # §4.6.2 [at-most-p-less-2-24]
            and ones >= FEWEST_BITS  # §4.6.2 [16-ones]
            and public.bit_length() - ones >= FEWEST_BITS  # §4.6.2 [16-zeros]
        )


def pi_bits(count: int) -> int:
    """Return the whole part of pi times 2 to the power of `count`, by Machin's series.

    Own design: RFC 3526 §2 and RFC 2409 §6.2 define their primes by digits of pi.  To compute them
    takes less text than to list them; the tests compare the digits.
    """
    guard = 64

    def arctan_of_inverse(x: int) -> int:
        power = total = (1 << count + guard) // x
        divisor = 1
        while power:
            power //= -x * x
            divisor += 2
            total += power // divisor
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239)) >> guard


def _modp(group_id: int, bits: int, offset: int, exponent_bits: int) -> Group:
    middle = pi_bits(bits - 130) + offset
    prime = (1 << bits) - (1 << bits - 64) - 1 + (middle << 64)
    return Group(group_id, prime, exponent_bits)


# §4.2 [group-2] [groups-5-14] [more-groups].  The offsets are those of RFC 2409 §6.2 and of
# RFC 3526 §2, §3, §4 and §5, the lengths of exponents those of RFC 3526 §8.
GROUPS: Final[dict[int, Group]] = {
    group.group_id: group
    for group in (
        _modp(2, 1024, 129093, 240),  # RFC 2409 §6.2 [second-group]
        _modp(5, 1536, 741804, 240),
        _modp(14, 2048, 124476, 320),
        _modp(15, 3072, 1690314, 420),
        _modp(16, 4096, 240904, 480),
    )
}


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private exponent and the public key that it makes: RFC 7425 §4.6.2."""

    group: Group
    public: int
    private: int = field(repr=False)

    @classmethod
    def generate(cls, group: Group, random: Callable[[int], bytes]) -> "KeyPair":
        """Own design: draw an exponent, its highest bit set, compute the public key.  Slow."""
        drawn = int.from_bytes(random((group.exponent_bits + 7) // 8))
        top = 1 << group.exponent_bits - 1
        return cls.of(group, top | drawn % top)

    @classmethod
    def of(cls, group: Group, private: int) -> "KeyPair":
        """Compute the public key of a given private exponent.  Slow.  RFC 7425 §4.6.2."""
        public = pow(Integer(group.generator), Integer(private), Integer(group.prime))
        return cls(group, int(public), private)

    def secret(self, far_public: int) -> bytes:
        """Compute the Shared Secret, without leading zeros; RemoteError for a bad key.  Slow."""
        if not self.group.is_acceptable(far_public):  # RFC 7425 §4.6.2 [no-session-with-bad-key]
            raise RemoteError("the far end's Diffie-Hellman public key is not acceptable")
        shared = pow(Integer(far_public), Integer(self.private), Integer(self.group.prime))
        return shared.to_bytes()  # RFC 7425 §4.6.2 [secret-without-zeros]
