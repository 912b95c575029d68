"""Guards that check a user's password, a stream's key, or a signed link.

Own design: the proof comes in the places that RTMP Errata §8.1.6 lists, where every common tool
can put it, or answers the challenge of Adobe's encoders:
Field §"authmod=adobe".  Secrets are compared in constant time, and passwords are not stored: a
file of users has the lines of HTTP's and SIP's Digest, `user:realm:HA1` (RFC 7616 §3.4.2), with
MD5, SHA-256, or a line of each.

    >>> users = Users.parse("\\n".join(user_lines("ann", "example.org", "secret")))
    >>> users.knows("ann", "secret"), users.knows("ann", "guess"), users.knows("bob", "secret")
    (True, False, False)
"""

import hmac
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from hashlib import md5, sha256
from typing import Final
from urllib.parse import unquote

from rtmplite.auth.adobe import digest
from rtmplite.auth.guard import ALLOWED, Answer, Event, Question, Verdict
from rtmplite.errors import LocalError
from rtmplite.limits.rate_limit_key import rate_limit_key

FRESH: Final = 60.0  # s, to answer a challenge; a program does it, not a person
MAX_FIELDS: Final = 32
ENCODER: Final = "FMLE/"  # the flashVer of ffmpeg, librtmp and OBS begins so if they publish

_DIGITS: Final = {"SHA-256": 64, "MD5": 32}  # of a hash, by algorithm: RFC 7616 §3.2
_PROOF: Final = frozenset(("user", "pass", "password"))

# The tools compare these texts letter by letter: Field §"authmod=adobe".
_NEED: Final = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : a user is needed"
_ASK: Final = "[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason=needauth"
NO_USER: Final = "Wrong user or password."
NEEDS_USER: Final = "The client named no user."
TOO_FAST: Final = "Too many wrong passwords: wait."
_WRONG: Final = "[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason=authfailed&opaque=-"

BURST: Final = 10  # guesses at once, and then
EVERY: Final = 10.0  # s for another
USER_SECONDS: Final = 86400.0  # for so long a host counts as that of a user with a right password
MAX_HOSTS: Final = 10_000  # to remember


class Guesses:
    """The recent wrong passwords of each host, which limit how fast it may guess.

    Own design: a host has some guesses at once and then one every few seconds; before that no
    proof from it is checked.  From a host where a user has given the right password lately, only
    wrong passwords for that user count: a client cannot lock out others behind its address.

        >>> guesses = Guesses()
        >>> for _ in range(BURST): guesses.failed("192.0.2.7", "bob", now=0.0)
        >>> guesses.wait("192.0.2.7", "ann", now=0.0), guesses.wait("192.0.2.8", "bob", now=0.0)
        (10.0, 0.0)
    """

    def __init__(self) -> None:
        self._until: OrderedDict[tuple[str, ...], float] = OrderedDict()
        self._users: OrderedDict[tuple[str, ...], float] = OrderedDict()

    def wait(self, address: str, user: str, now: float) -> float:
        """Return the seconds until the next guess may be checked, 0 for at once."""
        until = self._until.get(self._key(address, user, now), now)
        return max(0.0, until - now - (BURST - 1) * EVERY)

    def failed(self, address: str, user: str, now: float) -> None:
        """Count a wrong password."""
        key = self._key(address, user, now)
        _put(self._until, key, max(self._until.get(key, now), now) + EVERY)

    def succeeded(self, address: str, user: str, now: float) -> None:
        """Note a right password."""
        _put(self._users, (rate_limit_key(address), user), now)

    def _key(self, address: str, user: str, now: float) -> tuple[str, ...]:
        host = rate_limit_key(address)
        proved = self._users.get((host, user))
        return (host, user) if proved is not None and now - proved < USER_SECONDS else (host,)


def _put(table: OrderedDict[tuple[str, ...], float], key: tuple[str, ...], value: float) -> None:
    table[key] = value
    table.move_to_end(key)
    if len(table) > MAX_HOSTS:
        table.popitem(last=False)


def fields(query: str) -> dict[str, str]:
    """Split a query into its fields, still encoded; the first of each name counts."""
    found: dict[str, str] = {}
    for part in query.split("&", MAX_FIELDS)[:MAX_FIELDS]:
        name, _, value = part.partition("=")
        found.setdefault(name, value)
    return found


def user_lines(name: str, realm: str, password: str) -> list[str]:
    """Give a user's lines, the stronger hash first: RFC 7616 §3.4.2.  LocalError for wrong text."""
    odd = set(" \r\n")
    if not name or set(name) & (odd | set(":&=?#/")) or not realm or set(realm) & (odd | {"&"}):
        raise LocalError(f"{name!r} in {realm!r} cannot be a user")
    if not password:
        raise LocalError("an empty password is no password")
    return [f"{name}:{realm}:{_ha1(each, name, realm, password)}" for each in _DIGITS]


class Users:
    """The users that have a password; `hashes` are name, realm and HA1 (RFC 7616 §3.4.2)."""

    def __init__(self, hashes: Iterable[tuple[str, str, str]]) -> None:
        self._hashes: dict[tuple[str, str, str], str] = {}
        for name, realm, ha1 in hashes:
            self._hashes[name, realm, _algorithm(ha1)] = ha1.lower()
        self._realms = tuple(dict.fromkeys(realm for _, realm, _ in self._hashes))

    @classmethod
    def parse(cls, content: str) -> "Users":
        """Read a file's lines but comments; a realm may have colons: RFC 7616 §3.4."""
        hashes = []
        for number, line in enumerate(content.splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, _, rest = line.partition(":")
            realm, _, ha1 = rest.rpartition(":")
            if not (name and realm and _algorithm(ha1)):
                raise LocalError(f"line {number} is not USER:REALM:HA1")
            hashes.append((name, realm, ha1))
        return cls(hashes)

    def salted(self, name: str) -> tuple[str, str]:
        """Give salt and digest for Field §"authmod=adobe"; an impossible digest for no user.

        Adobe hashes name, salt and password, RFC 7616 §3.4.2 name, realm and password with colons
        between, so the realm in colons is the salt.
        """
        for realm in self._realms:
            if ha1 := self._hashes.get((name, realm, "MD5")):
                return f":{realm}:", b64encode(bytes.fromhex(ha1)).decode()
        return f":{self._realms[0] if self._realms else name}:", "-" * 24

    def knows(self, name: str, password: str) -> bool:
        """Whether that is the password; the check takes as long for an unknown name."""
        return bool(self._matching(name, password))

    def proves(self, query: str) -> bool:
        """Whether `query` has the right `user`, and `pass` or `password`."""
        return bool(self.proven(query))

    def proven(self, query: str) -> frozenset[tuple[str, str]]:
        """The user that `query` proves, with each realm of that password; empty for none.

        Both `user` and `pass` or `password` are tried as they stand, and unescaped, since a browser
        escapes them.
        """
        said = fields(query)
        user, password = said.get("user", ""), said.get("pass", said.get("password", ""))
        both = [(user, password), (unquote(user), unquote(password))]
        right = [(name, realm) for name, word in both for realm in self._matching(name, word)]
        return frozenset(right if user and password else ())

    def _matching(self, name: str, password: str) -> list[str]:
        """The realms in which that is the password of `name`."""
        found = []
        for realm in self._realms:
            is_right = False
            for algorithm, digits in _DIGITS.items():
                known = self._hashes.get((name, realm, algorithm), "0" * digits)
                is_right |= _same(known, _ha1(algorithm, name, realm, password))
            found += [realm] * is_right
        return found


class UsersGuard:
    """Lets users alone publish, and with `for_all` connect.

    Own design: a user proves its password in the query of the URL or of the stream's name (see
    `Users.proves`), or by answering a challenge in two steps, as ffmpeg, librtmp and OBS do for a
    URL with user and password: Field §"authmod=adobe".  A client that calls itself an encoder is
    challenged when it connects, since it answers no challenge later.
    """

    def __init__(
        self, users: Users, random: Callable[[int], bytes], *, for_all: bool = False
    ) -> None:
        self._users, self._for_all, self._guesses = users, for_all, Guesses()
        self._secret, self._random = random(32), random

    def renew(self, users: Users) -> None:
        """Judge by these users from now on; clients that are connected stay."""
        self._users = users

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Judge at once."""
        answer(self._judge(question, now), now)

    def tell(self, question: Question, now: float) -> None:
        """Do nothing: no question is remembered."""

    def _judge(self, question: Question, now: float) -> Verdict:
        said = fields(question.connect_query)
        if question.event is Event.CONNECT:
            if "authmod" in said:
                return self._challenge(question.host, said, now)
            if _PROOF & said.keys():
                return self._prove(question.host, question.connect_query, now)
            is_encoder = question.flash_version.startswith(ENCODER)
            return Verdict(False, _NEED) if self._for_all or is_encoder else ALLOWED
        if self._for_all or question.event is Event.PLAY:
            return ALLOWED
        # A client that gave either at connect has been accepted, so the proof was right.
        if "authmod" in said or _PROOF & said.keys():
            return ALLOWED
        if _PROOF & fields(question.query).keys():
            return self._prove(question.host, question.query, now)
        return Verdict(False, "To publish, give user and password.")

    def _prove(self, host: str, query: str, now: float) -> Verdict:
        user = fields(query).get("user", "")
        return self._guarded(host, user, now, lambda: self._users.proves(query), NO_USER)

    def _guarded(
        self, host: str, user: str, now: float, proof: Callable[[], bool], wrong: str
    ) -> Verdict:
        """Check a proof, unless that host has guessed too often: see `Guesses`."""
        if self._guesses.wait(host, user, now):
            return Verdict(False, TOO_FAST)
        is_right = proof()
        (self._guesses.succeeded if is_right else self._guesses.failed)(host, user, now)
        return ALLOWED if is_right else Verdict(False, wrong)

    def _challenge(self, host: str, said: Mapping[str, str], now: float) -> Verdict:
        """Judge the second and third request of a client: Field §"authmod=adobe"."""
        user = said.get("user", "")
        salt, salted = self._users.salted(user)
        if said["authmod"] != "adobe" or "response" not in said:
            opaque = self._opaque(user, f"{now:.0f}-{self._random(8).hex()}")
            what = f"&user={user}&salt={salt}&challenge={opaque}&opaque={opaque}"
            return Verdict(False, _ASK + what)
        opaque = said.get("opaque", "")
        nonce, _, _ = opaque.rpartition("-")
        wanted = digest(salted + opaque + said.get("challenge", ""))

        def proof() -> bool:
            is_right = _same(wanted, said["response"])
            is_ours = _same(opaque, self._opaque(user, nonce))
            return is_right and is_ours and now - float(nonce.partition("-")[0]) <= FRESH

        return self._guarded(host, user, now, proof, _WRONG)

    def _opaque(self, user: str, nonce: str) -> str:
        sealed = hmac.new(self._secret, f"{user} {nonce}".encode(errors="replace"), sha256)
        return f"{nonce}-{sealed.hexdigest()[:32]}"


def is_challenge(verdict: Verdict) -> bool:
    """Whether a verdict asks a client that has named a user: Field §"authmod=adobe".

    Own design: the request before it, without a user, is a refusal if no other one follows it, as
    an encoder that has no user to name goes away: see `needs_user`.
    """
    return verdict.description.startswith(_ASK)


def needs_user(verdict: Verdict) -> bool:
    """Whether a verdict asks a client to name a user: Field §"authmod=adobe"."""
    return verdict.description == _NEED


def in_words(verdict: Verdict) -> str:
    """Describe to people why a client was refused; encoders expect texts of another form."""
    return {_NEED: NEEDS_USER, _WRONG: NO_USER}.get(verdict.description, verdict.description)


class KeysGuard:
    """Own design: asks for a stream's key as `name?key=KEY`, `*` being that of all other names."""

    def __init__(
        self, publish: Mapping[str, str] | None = None, play: Mapping[str, str] | None = None
    ) -> None:
        self._keys = {Event.PUBLISH: publish or {}, Event.PLAY: play or {}}

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Judge at once."""
        keys = self._keys.get(question.event)
        if not keys:
            answer(ALLOWED, now)
            return
        wanted = keys.get(question.path) or keys.get("*") or ""
        given = _said(question).get("key", "")
        is_right = _same(wanted, given) and bool(wanted)
        answer(Verdict(is_right, "No such stream, or not by this key."), now)

    def tell(self, question: Question, now: float) -> None:
        """Do nothing: no question is remembered."""


class SignedGuard:
    """Asks for a signed link, which allows one stream for some time.

    Own design: `name?expires=SECONDS&token=HEX`, in Unix time as `wallclock` gives it; only an
    owner of the secret can make one.  `events` are those that need a link.
    """

    def __init__(
        self, secret: bytes, wallclock: Callable[[], float], events: frozenset[Event]
    ) -> None:
        self._secret, self._wallclock, self._events = secret, wallclock, events

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Judge at once."""
        if question.event not in self._events:
            answer(ALLOWED, now)
            return
        said = _said(question)
        expires = said.get("expires", "")
        wanted = sign(self._secret, question.event, question.path, expires)
        is_right = _same(wanted, said.get("token", ""))
        is_fresh = expires.isdecimal() and len(expires) < 16 and int(expires) > self._wallclock()
        answer(Verdict(is_right and is_fresh, "This link is wrong or too old."), now)

    def tell(self, question: Question, now: float) -> None:
        """Do nothing: no question is remembered."""


def sign(secret: bytes, event: Event, path: str, expires: str) -> str:
    """Give the token of a signed link: an HMAC of event, path and end."""
    what = f"{event}:{path}:{expires}".encode(errors="surrogatepass")
    return hmac.new(secret, what, sha256).hexdigest()


def _said(question: Question) -> Mapping[str, str]:
    """The fields of the stream's name and of the URL: not every tool has both places."""
    return fields(question.connect_query) | fields(question.query)


def _algorithm(ha1: str) -> str:
    """Tell the algorithm of a hash by its length, "" if its length is unknown."""
    if not all(digit in "0123456789abcdefABCDEF" for digit in ha1):
        return ""
    return next((name for name, digits in _DIGITS.items() if len(ha1) == digits), "")


def _ha1(algorithm: str, name: str, realm: str, password: str) -> str:
    """RFC 7616 §3.4.2."""
    text = f"{name}:{realm}:{password}".encode(errors="replace")
    if algorithm == "MD5":
        return md5(text, usedforsecurity=False).hexdigest()
    return sha256(text).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))
