"""A user's name and password as STUN's long-term mechanism proves them.

Implements RFC 8489 §9.2.5, §9.2.3.1 and §9.2.3.2, from the client's side.

    >>> user = LongTermCredentials("user", "pass")
    >>> user.attributes  # the first request is bare, and the server's refusal names realm and nonce
    ()
"""

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.stun import StunAttribute, StunMessage, StunType, long_term_key

NONCE_COOKIE: Final = b"obMatJos2"  # Source: §9.2, before four characters of features
WITH_ALGORITHMS: Final = 0x80  # bit 0 of the first octet of features: §18.1
WITH_USERHASH: Final = 0x40  # bit 1
MD5, SHA256 = 1, 2  # password algorithms: §18.5.1
UNAUTHENTICATED: Final = 401
STALE_NONCE: Final = 438


@dataclass(slots=True)
class LongTermCredentials:
    """A user's name and password, and what the server asked to have them wrapped in: §9.2.

    `attributes` and `key` are for the next request; before a challenge both are empty.
    """

    username: str
    password: str = field(repr=False)
    realm: str = ""
    nonce: bytes = b""
    algorithms: bytes | None = None  # PASSWORD-ALGORITHMS as the server sent it
    algorithm: int = MD5

    @property
    def attributes(self) -> tuple[StunAttribute, ...]:
        """List what every request carries after the first one: §9.2.3.2."""
        if not self.realm:
            return ()  # §9.2.3.1 [first-request-bare]
        # §9.2.5 [copies-realm] [copies-nonce], §9.2.3.2 [cached-values]
        listed = [
            self._name,
            StunAttribute(StunType.REALM, self.realm.encode()),
            StunAttribute(StunType.NONCE, self.nonce),
        ]
        if self.algorithms is not None:  # §9.2.5 [returns-algorithms] [first-algorithm]
            chosen = struct.pack("!HH", self.algorithm, 0)
            listed.append(StunAttribute(StunType.PASSWORD_ALGORITHMS, self.algorithms))
            listed.append(StunAttribute(StunType.PASSWORD_ALGORITHM, chosen))
        return tuple(listed)

    @property
    def digest(self) -> str:
        """The hash of the signature: §9.2.5."""
        # §9.2.5 [sha256-only-after-algorithms]
        return "sha1" if self.algorithms is None else "sha256"

    @property
    def key(self) -> bytes | None:
        """Hash the key that signs the request, if there was a challenge: §9.2.2, §18.5.1."""
        if not self.realm:
            return None
        if self.algorithm == SHA256:
            text = f"{self.username}:{self.realm}:{self.password}"
            return hashlib.sha256(text.encode()).digest()
        return long_term_key(self.username, self.realm, self.password)

    def challenged(self, response: StunMessage) -> bool:
        """Learn from an error response; whether to ask again: §9.2.5.  May raise RemoteError."""
        code, _ = response.error() or (0, "")
        if code not in (UNAUTHENTICATED, STALE_NONCE):
            return False
        realm, nonce = response.text(StunType.REALM) or self.realm, response.get(StunType.NONCE)
        if not realm or not nonce:
            raise RemoteError("a STUN challenge without REALM or NONCE")
        algorithms = response.get(StunType.PASSWORD_ALGORITHMS)
        if features_of(nonce) & WITH_ALGORITHMS and algorithms is None:
            raise RemoteError("PASSWORD-ALGORITHMS was taken out on the way")  # §9.2.5 [bid-down]
        refused = code == UNAUTHENTICATED and self.realm == realm  # §9.2.5 [same-credentials-once]
        self.realm, self.nonce = realm, nonce  # §9.2.5 [stale-nonce-is-replaced]
        if algorithms is not None:
            self.algorithms, self.algorithm = algorithms, _first_known(algorithms)
        return not refused  # §9.2.5 [retry-after-401]

    def proves(self, response: StunMessage) -> bool:
        """Tell whether a response is signed by this password, as our request was: §9.2.5."""
        # §9.2.5 [unsigned-is-discarded]
        wanted = (
            StunType.MESSAGE_INTEGRITY
            if self.digest == "sha1"
            else StunType.MESSAGE_INTEGRITY_SHA256
        )
        key = self.key
        return (
            key is not None and response.get(wanted) is not None and response.integrity_holds(key)
        )

    @property
    def _name(self) -> StunAttribute:
        """The user's name, or its hash where the server can take that.

        Not done: RFC 8656 §21.1.6 [name-is-hidden]: where it can't, the name goes in clear, since
        the way to the server has no TLS.
        Not done: RFC 8489 §14.3 [name-is-prepared]: a name is sent as the operator wrote it.
        Not done: RFC 8489 §14.4 [hashes-what-is-prepared]: and so it is hashed.
        """
        if features_of(self.nonce) & WITH_USERHASH:  # §9.2.5 [name-or-its-hash]
            text = f"{self.username}:{self.realm}"
            return StunAttribute(StunType.USERHASH, hashlib.sha256(text.encode()).digest())
        return StunAttribute(StunType.USERNAME, self.username.encode())


def login_until(end: int, user: str, secret: str) -> tuple[str, str]:
    """Make a name and a password that a TURN server takes until `end`, in s since 1970."""
    # Field §"Logins of a TURN server that end" [names-have-their-end] [signed-by-the-secret]
    name = f"{end}:{user}"
    signature = hmac.digest(secret.encode(), name.encode(), "sha1")
    return name, base64.b64encode(signature).decode()


def features_of(nonce: bytes) -> int:
    """Read the first octet of the security features of a nonce, 0 if it has none: §9.2, §18.1."""
    if not nonce.startswith(NONCE_COOKIE):  # §9.2 [nonce-cookie]
        return 0
    try:
        features = base64.b64decode(nonce[9:13], validate=True)
    except binascii.Error:
        return 0
    return features[0] if len(features) == 3 else 0


def _first_known(algorithms: bytes) -> int:
    """Choose the first algorithm that we know: §9.2.5.  Raises RemoteError if there is none.

    Departs from RFC 8656 §6 [sha256-of-both]: the server's order decides, as RFC 8489 §9.2.5 has
    it, also where MD5 stands before SHA-256.
    """
    for number in _numbers(algorithms):
        if number in (MD5, SHA256):
            return number
    raise RemoteError("no PASSWORD-ALGORITHM that we know")  # §9.2.5 [no-known-algorithm]


def _numbers(value: bytes) -> Iterator[int]:
    """Yield the algorithms of PASSWORD-ALGORITHMS, their parameters left out: §14.11."""
    at = 0
    while at + 4 <= len(value):
        number, length = struct.unpack_from("!HH", value, at)
        yield number
        at += 4 + length + -length % 4
