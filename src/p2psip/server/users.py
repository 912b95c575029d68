"""The users who may log in: a file of hashes, without their passwords.

Implements RFC 7616 §3.4.2 for the stored value: the hash of A1, which suffices to verify a proof.

One `user:realm:HA1` a line, as htdigest writes them; the length of the hash tells MD5 from
SHA-256.  Empty lines and lines that begin with # are ignored.  A realm may hold colons,
a user's name may not: RFC 7616 §3.4.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Self

from p2psip.errors import LocalError

_ALGORITHMS: Final = {32: "MD5", 64: "SHA-256"}  # by the digits of the hash: RFC 7616 §3.2
PREFERENCE: Final = ("SHA-256", "MD5")  # RFC 8760 §2.3: the better one first


class UserStore:
    """Users by name, realm and algorithm: RFC 7616 §3.4.2.  Never changes once read."""

    def __init__(self, hashes: Iterable[tuple[str, str, str]] = ()) -> None:
        self._hashes: dict[tuple[str, str, str], str] = {}
        for user, realm, ha1 in hashes:
            self._hashes[user, realm, _algorithm(ha1)] = ha1.lower()
        self.realms = tuple(dict.fromkeys(realm for _, realm, _ in self._hashes))
        users = {(user, realm) for user, realm, _ in self._hashes}
        usual = Counter(self._known(*user) for user in users).most_common(1)
        self._usual = usual[0][0] if usual else PREFERENCE

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the file's text; LocalError names the line that is wrong.  RFC 7616 §3.4.2."""
        entries = []
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            user, _, rest = line.partition(":")  # RFC 7616 §4 [any-name]
            realm, _, ha1 = rest.rpartition(":")
            if not (user and realm):
                raise LocalError(f"line {number} is not user:realm:HA1")
            try:
                _algorithm(ha1)
            except LocalError as error:
                raise LocalError(f"line {number}: {error}") from None
            entries.append((user, realm, ha1))
        return cls(entries)

    def __len__(self) -> int:
        return len(self._hashes)

    def lookup(self, user: str, realm: str, algorithm: str) -> str | None:
        """The hash to verify with, or None: RFC 7616 §3.4.2; "-sess" shares its base's."""
        return self._hashes.get((user, realm, algorithm.removesuffix("-sess")))

    def has(self, user: str, realm: str) -> bool:
        """Whether there is such a user.  Own design: a password in any algorithm makes one."""
        return bool(self._known(user, realm))

    def algorithms(self, user: str, realm: str) -> tuple[str, ...]:
        """What to challenge a user with, known or not, the better one first: RFC 8760 §2.3."""
        return self._known(user, realm) or self._usual

    def realm_for(self, domain: str) -> str:
        """Own design: the realm of a domain's name, else the first, for a file of one realm."""
        if not self.realms:
            return domain
        named = (realm for realm in self.realms if realm.lower() == domain.lower())
        return next(named, self.realms[0])

    def _known(self, user: str, realm: str) -> tuple[str, ...]:
        # RFC 8760 §2.3 [best-first] [one-an-algorithm]
        return tuple(name for name in PREFERENCE if (user, realm, name) in self._hashes)


def _algorithm(ha1: str) -> str:
    algorithm = _ALGORITHMS.get(len(ha1))
    if algorithm is None or not all(digit in "0123456789abcdefABCDEF" for digit in ha1):
        raise LocalError("the hash is neither MD5 (32 hex digits) nor SHA-256 (64)")
    return algorithm
