"""Digest authentication: challenges, credentials, and the hash that joins them.

Implements RFC 7616 §3, with SIP's rules of RFC 3261 §22 and RFC 8760 §2.

    >>> asked = Challenge.digest("example.com", nonce="af31", algorithm="SHA-256")
    >>> print(asked)
    Digest realm="example.com", nonce="af31", algorithm=SHA-256, qop="auth"
    >>> told = answer(asked, "REGISTER", "sip:example.com", "bob", "zanzibar", cnonce="0a4f")
    >>> verify(told, "REGISTER", ha1("bob", "example.com", "zanzibar", "SHA-256"))
    True

The caller decides whether a nonce is fresh, a count is not replayed and a URI is its own;
nothing here keeps state.  Basic is never spoken: RFC 8760 §2.6.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.grammar import LWS, bytes_of, is_token, quote, split, text_of
from p2psip.sip.headers import Headers
from p2psip.sip.params import Params, find, parse_params
from p2psip.sip.uri import Uri

# Hash names of RFC 8760 §2.1 and RFC 7616 §6.1 as hashlib calls them, the strongest first.
_HASHES: Final = {"SHA-512-256": "sha512_256", "SHA-256": "sha256", "MD5": "md5"}


@dataclass(frozen=True, slots=True)
class _AuthHeader:
    """A scheme and its parameters; of schemes other than Digest only the text is kept."""

    scheme: str = "Digest"
    params: Params = ()
    text: str = ""

    @classmethod
    def parse(cls, data: bytes | memoryview | str) -> Self:
        """Read one header value (RFC 3261 §25.1).

        An unknown scheme is kept as text (RFC 4475 §3.3.7).  Raises RemoteError when a
        Digest lacks what it cannot do without.
        """
        scheme, _, rest = text_of(data).strip(LWS).partition(" ")
        if not is_token(scheme):
            raise RemoteError("Bad Authentication Scheme")
        if scheme.lower() != "digest":
            # RFC 4475 §3.3.7 [unknown-scheme-is-kept]
            return cls(scheme, text=rest.strip(LWS))
        params = parse_params([piece for piece in split(rest, ",") if piece])
        if any(find(params, name) is None for name in cls._needed()):
            raise RemoteError("Missing Digest Parameter")
        # RFC 7616 §3.4 [one-username]
        if find(params, "username") is not None and find(params, "username*") is not None:
            raise RemoteError("Two User Names")
        return cls(scheme, params)

    def __str__(self) -> str:
        pairs = [name if value is None else f"{name}={value}" for name, value in self.params]
        return f"{self.scheme} {', '.join(pairs) or self.text}"

    def param(self, name: str) -> str | None:
        """A parameter without its quotes, None when absent (RFC 7616 §3.3)."""
        return find(self.params, name)

    @property
    def is_digest(self) -> bool:
        """Whether the scheme is Digest (RFC 3261 §22.4)."""
        return self.scheme.lower() == "digest"

    @property
    def realm(self) -> str:
        """The domain the password belongs to (RFC 7616 §3.3)."""
        return self.param("realm") or ""

    @property
    def nonce(self) -> str:
        """The text that the server made for this challenge (RFC 7616 §3.3)."""
        return self.param("nonce") or ""

    @property
    def opaque(self) -> str | None:
        """The text that the server wants back unchanged (RFC 7616 §3.3)."""
        return self.param("opaque")

    @property
    def algorithm(self) -> str:
        """The algorithm, in the registry's capitals if known; MD5 by default (RFC 7616 §3.3)."""
        name = self.param("algorithm") or "MD5"  # Field §"Digest with and without quotes"
        base, sess = name.upper(), ""
        if base.endswith("-SESS"):
            base, sess = base[:-5], "-sess"
        return base + sess if base in _HASHES else name

    @classmethod
    def _needed(cls) -> tuple[str, ...]:
        return ("realm", "nonce")


class Challenge(_AuthHeader):
    """A value of WWW-Authenticate or Proxy-Authenticate (RFC 7616 §3.3)."""

    __slots__ = ()

    @classmethod
    def digest(
        cls,
        realm: str,
        *,
        nonce: str,
        algorithm: str = "MD5",
        qop: str | None = "auth",
        opaque: str | None = None,
        stale: bool = False,
    ) -> Self:
        """Ask for a digest; `qop` may be "auth,auth-int" and is due by RFC 8760 §2.6.

        `stale` tells the client that only its nonce was too old.
        """
        # RFC 7616 §3.3 [quoted-in-challenge]
        params = [("realm", quote(realm)), ("nonce", quote(nonce))]
        params += [("opaque", quote(opaque))] if opaque is not None else []
        params += [("stale", "true")] if stale else []
        params += [("algorithm", algorithm)]  # RFC 7616 §3.3 [bare-in-challenge]
        # RFC 8760 §2.6 [server-sends-qop], RFC 7616 §3.3 [qop-in-challenge]
        params += [("qop", quote(qop))] if qop is not None else []
        return cls("Digest", tuple(params))

    def with_nonce(self, nonce: str) -> Self:
        """The same challenge with another nonce (RFC 7616 §3.5)."""
        params = tuple(
            (name, quote(nonce) if name.lower() == "nonce" else value)
            for name, value in self.params
        )
        return type(self)(self.scheme, params)

    @property
    def stale(self) -> bool:
        """Whether the password was right and the nonce too old (RFC 7616 §3.3)."""
        return (self.param("stale") or "").lower() == "true"

    @property
    def qop(self) -> tuple[str, ...]:
        """The qualities offered, in lower case; empty from an RFC 2069 server (RFC 7616 §3.3)."""
        return tuple((self.param("qop") or "").lower().replace(",", " ").split())

    @property
    def is_supported(self) -> bool:
        """Whether `answer` can answer; others are to be ignored (RFC 8760 §2.4)."""
        # RFC 7616 §3.3 [other-qops-ignored]
        quality = not self.qop or "auth" in self.qop or "auth-int" in self.qop
        # RFC 8760 §2.6 [never-basic], RFC 7616 §5.6 [strongest-scheme]
        return self.is_digest and _hash_of(self.algorithm) is not None and quality


class Credentials(_AuthHeader):
    """A value of Authorization or Proxy-Authorization (RFC 7616 §3.4)."""

    __slots__ = ()

    @property
    def username(self) -> str:
        """The user that the sender claims to be (RFC 7616 §3.4)."""
        return self.param("username") or ""

    @property
    def uri(self) -> str:
        """The Request-URI that was hashed, as text (RFC 8760 §2.6)."""
        return self.param("uri") or ""

    @property
    def response(self) -> str:
        """The proof, in hexadecimal (RFC 7616 §3.4.1)."""
        return self.param("response") or ""

    @property
    def qop(self) -> str | None:
        """The quality applied, in lower case; None from an RFC 2069 client (RFC 7616 §3.4)."""
        value = self.param("qop")
        return value.lower() if value else None

    @property
    def cnonce(self) -> str:
        """The client's nonce (RFC 7616 §3.4)."""
        return self.param("cnonce") or ""

    @property
    def nc(self) -> int | None:
        """How often the client has used this nonce, None when absent (RFC 7616 §3.4)."""
        try:
            return int(self.param("nc") or "", 16)
        except ValueError:
            return None

    @classmethod
    def _needed(cls) -> tuple[str, ...]:
        return ("username", "realm", "nonce", "uri", "response")


def ha1(user: str, realm: str, password: str, algorithm: str = "MD5") -> str:
    """Hash user, realm and password to HA1, in hexadecimal: servers keep it (RFC 7616 §3.4.2).

    A "-sess" algorithm has the same one.  Raises LocalError for an unknown algorithm.
    """
    return _hash(algorithm, bytes_of(f"{user}:{realm}:{password}"))  # RFC 7616 §4 [any-password]


def digest_response(
    secret: str,
    *,
    nonce: str,
    method: str,
    uri: str,
    algorithm: str = "MD5",
    qop: str | None = None,
    nc: str = "",
    cnonce: str = "",
    body: bytes = b"",
) -> str:
    """Compute the `response` of RFC 7616 §3.4.1 from the secret that `ha1` makes.

    `nc` is its eight hexadecimal digits.  Without `qop` it is the older form that RFC
    2069 peers speak (RFC 3261 §22.4).  Raises LocalError for an unknown algorithm.
    """
    if algorithm.lower().endswith("-sess"):
        secret = _hash(algorithm, bytes_of(f"{secret}:{nonce}:{cnonce}"))
    a2 = f"{method}:{uri}"
    if qop == "auth-int":
        a2 += ":" + _hash(algorithm, body)
    extra = "" if qop is None else f"{nc}:{cnonce}:{qop}:"
    hashed = _hash(algorithm, bytes_of(a2))
    return _hash(algorithm, bytes_of(f"{secret}:{nonce}:{extra}{hashed}"))


def answer(
    challenge: Challenge,
    method: str,
    uri: Uri | str,
    user: str,
    password: str,
    *,
    cnonce: str,
    nc: int = 1,
    body: bytes = b"",
    hashed: bool = False,
) -> Credentials:
    """Make the credentials of a request whose Request-URI is `uri` (RFC 7616 §3.4).

    `password` is what `ha1` gave if `hashed`; `cnonce` must be unpredictable; `nc` counts
    the uses of this nonce from 1.  "auth" is preferred where it is offered.  Raises
    LocalError unless `challenge.is_supported`.
    Departs from RFC 3261 §22.4: with a session algorithm there is a cnonce without a qop, too,
    since the proof is made of it.
    """
    if not challenge.is_supported:
        raise LocalError(f"cannot answer {challenge}")
    algorithm, target = challenge.algorithm, str(uri)
    secret = password if hashed else ha1(user, challenge.realm, password, algorithm)
    # RFC 8760 §2.6 [client-reads-qop], RFC 7616 §3.4 [qop-as-offered]
    # Field §"Proofs of the body"
    qop = ("auth" if "auth" in challenge.qop else "auth-int") if challenge.qop else None
    response = digest_response(
        secret,
        nonce=challenge.nonce,
        method=method,
        uri=target,
        algorithm=algorithm,
        qop=qop,
        nc=f"{nc:08x}",
        cnonce=cnonce,
        body=body,
    )
    # RFC 7616 §3.4 [quoted-in-answer]
    params = [("username", quote(user)), ("realm", quote(challenge.realm))]
    # RFC 8760 §2.6 [uri-is-quoted]
    params += [("nonce", quote(challenge.nonce)), ("uri", quote(target))]
    # RFC 7616 §3.4 [bare-in-answer]
    params += [("response", quote(response)), ("algorithm", algorithm)]
    # RFC 3261 §22.4 [no-cnonce-alone]
    if qop is not None or algorithm.endswith("-sess"):
        params.append(("cnonce", quote(cnonce)))  # RFC 7616 §3.4 [cnonce-in-answer]
    if challenge.opaque is not None:
        params.append(("opaque", quote(challenge.opaque)))  # RFC 7616 §3.3 [opaque-comes-back]
    if qop is not None:
        # RFC 8760 §2.6 [client-sends-qop], RFC 7616 §3.4 [count-in-answer]
        params += [("qop", qop), ("nc", f"{nc:08x}")]
    return Credentials("Digest", tuple(params))


def verify(credentials: Credentials, method: str, secret: str, body: bytes = b"") -> bool:
    """Tell whether these credentials prove knowledge of the secret of `ha1` (RFC 7616 §3.4.6).

    `secret` must be of the credentials' algorithm.  Takes the same time wherever they
    differ; false, not an error, for what is not supported.
    """
    if not credentials.is_digest:  # RFC 3261 §22 [no-basic-taken]
        return False
    known = _hash_of(credentials.algorithm) is not None
    if not (known and credentials.qop in (None, "auth", "auth-int")):
        return False
    # RFC 3261 §22.4 [qop-tells]
    expected = digest_response(  # RFC 8760 §2.6 [server-reads-qop], RFC 7616 §3.6 [same-digest]
        secret,
        nonce=credentials.nonce,
        method=method,
        uri=credentials.uri,
        algorithm=credentials.algorithm,
        qop=credentials.qop,
        nc=credentials.param("nc") or "",
        cnonce=credentials.cnonce,
        body=body,
    )
    return hmac.compare_digest(expected.encode(), bytes_of(credentials.response.lower()))


def challenges(headers: Headers, name: str) -> tuple[Challenge, ...]:
    """Return those challenges of the header `name` that can be answered (RFC 8760 §2.4)."""
    found = []
    for value in headers.values(name):
        try:
            challenge = Challenge.parse(value)
        except RemoteError:
            continue
        # RFC 8760 §2.4 [unknown-is-ignored], RFC 7616 §3.3 [unknown-is-ignored]
        if challenge.is_supported:
            found.append(challenge)
    return tuple(found)


def strongest(found: Iterable[Challenge]) -> tuple[Challenge, ...]:
    """Choose one challenge to answer for each realm, in order of first appearance (RFC 8760 §2.4).

    Own design: the local policy that section allows is to take the strongest hash, not
    the topmost, so that an attacker who reorders them cannot choose the weakest.
    """
    best: dict[str, Challenge] = {}
    for challenge in found:
        rival = best.setdefault(challenge.realm, challenge)  # RFC 8760 §2.4 [any-realm]
        # RFC 8760 §2.4 [strongest-by-policy], RFC 7616 §5.8 [always-strongest]
        if _rank(challenge) < _rank(rival):
            best[challenge.realm] = challenge
    return tuple(best.values())


def _rank(challenge: Challenge) -> int:
    return list(_HASHES).index(challenge.algorithm.removesuffix("-sess"))


def _hash_of(algorithm: str) -> str | None:
    return _HASHES.get(algorithm.upper().removesuffix("-SESS"))


def _hash(algorithm: str, data: bytes) -> str:
    name = _hash_of(algorithm)
    if name is None:
        raise LocalError(f"{algorithm} is not a digest algorithm")
    return hashlib.new(name, data, usedforsecurity=False).hexdigest()
