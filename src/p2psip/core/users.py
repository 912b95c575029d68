"""Who may log in: a file of hashes, so that no password is kept.

Implements RFC 7616 §3.4.2 for what is stored: A1, hashed, is all that verifying needs.

One `user:realm:HA1` a line, as htdigest writes them; the length of the hash tells MD5 from
SHA-256.  Empty lines and those that begin with # are passed over.
"""

from collections.abc import Iterable
from typing import Final, Self

from p2psip.errors import LocalError

_ALGORITHMS: Final = {32: "MD5", 64: "SHA-256"}  # by the digits of the hash: RFC 7616 §3.2
PREFERENCE: Final = ("SHA-256", "MD5")  # RFC 8760 §2.3: the better one first


class UserStore:
    """Users by name, realm and algorithm: RFC 7616 §3.4.2.  Immutable once read."""

    def __init__(self, hashes: Iterable[tuple[str, str, str]] = ()) -> None:
        self._hashes: dict[tuple[str, str, str], str] = {}
        for user, realm, ha1 in hashes:
            self._hashes[user, realm, _algorithm(ha1)] = ha1.lower()
        self.realms = tuple(dict.fromkeys(realm for _, realm, _ in self._hashes))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the file's text; LocalError names the line that is wrong.  Own design."""
        entries = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = line.strip().rsplit(":", 2)
            if len(parts) != 3 or not parts[0]:
                raise LocalError(f"line {number} is not user:realm:HA1")
            try:
                _algorithm(parts[2])
            except LocalError as error:
                raise LocalError(f"line {number}: {error}") from None
            entries.append((parts[0], parts[1], parts[2]))
        return cls(entries)

    def __len__(self) -> int:
        """How many hashes are known."""
        return len(self._hashes)

    def lookup(self, user: str, realm: str, algorithm: str) -> str | None:
        """The hash to verify with, or None: RFC 7616 §3.4.2; "-sess" shares its base's."""
        return self._hashes.get((user, realm, algorithm.removesuffix("-sess")))

    def has(self, user: str, realm: str) -> bool:
        """Whether there is such a user.  Own design."""
        return any((user, realm, name) in self._hashes for name in PREFERENCE)

    def algorithms(self, user: str, realm: str) -> tuple[str, ...]:
        """What to challenge this user with, the better one first: RFC 8760 §2.3.

        A user nobody knows is challenged as most are, so that asking tells nothing.
        """
        own = tuple(name for name in PREFERENCE if (user, realm, name) in self._hashes)
        if own:
            return own
        count = {name: sum(key[2] == name for key in self._hashes) for name in PREFERENCE}
        most = max(count.values())
        return tuple(name for name in PREFERENCE if count[name] == most)

    def realm_for(self, domain: str) -> str:
        """The realm of a domain: its own name, or the only one the file has.  Own design."""
        if domain in self.realms or not self.realms:
            return domain
        return self.realms[0]


def _algorithm(ha1: str) -> str:
    algorithm = _ALGORITHMS.get(len(ha1))
    if algorithm is None or not all(digit in "0123456789abcdefABCDEF" for digit in ha1):
        raise LocalError("the hash is neither MD5 (32 hex digits) nor SHA-256 (64)")
    return algorithm
