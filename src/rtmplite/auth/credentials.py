"""Proof that stock tools can give: user and password, a key for a stream, a signed link.

Own design, on the places that RTMP Errata §8.1.6 lists, and on the challenge of Adobe's encoders:
Field §"authmod=adobe".  Secrets are compared in constant time, and passwords are not stored: a
file of users has the lines of HTTP's and SIP's Digest, `user:realm:HA1` (RFC 7616 §3.4.2), with
MD5, SHA-256, or a line of each.

    >>> users = Users.parse("\\n".join(user_lines("ann", "example.org", "secret")))
    >>> users.knows("ann", "secret"), users.knows("ann", "guess"), users.knows("bob", "secret")
    (True, False, False)
"""

import hmac
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from hashlib import md5, sha256
from typing import Final
from urllib.parse import unquote

from rtmplite.auth.guard import ALLOWED, Answer, Event, Question, Verdict
from rtmplite.auth.guess_limit import Guesses
from rtmplite.errors import LocalError

FRESH: Final = 60.0  # s, to answer a challenge; people do not type it in
MAX_FIELDS: Final = 32
ENCODER: Final = "FMLE/"  # how the flashVer of those begins that publish: ffmpeg, librtmp, OBS

_DIGITS: Final = {"SHA-256": 64, "MD5": 32}  # of a hash, by algorithm: RFC 7616 §3.2
_PROOF: Final = frozenset(("user", "pass", "password"))

# What the tools look for, letter by letter: Field §"authmod=adobe".
_NEED: Final = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : a user is needed"
_ASK: Final = "[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason=needauth"
NO_USER: Final = "Wrong user or password."
TOO_FAST: Final = "Too many wrong passwords: wait."
_WRONG: Final = "[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason=authfailed&opaque=-"


def fields(query: str) -> dict[str, str]:
    """Take a query apart, the first of each name; nothing is unescaped.

    Own design: the tools escape nothing either, and base64 has a plus sign.
    """
    found: dict[str, str] = {}
    for part in query.split("&", MAX_FIELDS)[:MAX_FIELDS]:
        name, _, value = part.partition("=")
        found.setdefault(name, value)
    return found


def user_lines(name: str, realm: str, password: str) -> list[str]:
    """The lines of a user for the file, the better hash first: RFC 7616 §3.4.2.

    LocalError for a name or a realm that would not stay one, or no password.
    """
    odd = set(" \r\n")
    if not name or set(name) & (odd | set(":&=?#/")) or not realm or set(realm) & (odd | {"&"}):
        raise LocalError(f"{name!r} in {realm!r} cannot be a user")
    if not password:
        raise LocalError("an empty password is no password")
    return [f"{name}:{realm}:{_ha1(each, name, realm, password)}" for each in _DIGITS]


class Users:
    """Who has a password.  Own design; `hashes` are name, realm and HA1 (RFC 7616 §3.4.2)."""

    def __init__(self, hashes: Iterable[tuple[str, str, str]]) -> None:
        self._hashes: dict[tuple[str, str, str], str] = {}
        for name, realm, ha1 in hashes:
            self._hashes[name, realm, _algorithm(ha1)] = ha1.lower()
        self._realms = tuple(dict.fromkeys(realm for _, realm, _ in self._hashes))

    @classmethod
    def parse(cls, content: str) -> "Users":
        """Read the lines of a file; those with a number sign are comments.

        RFC 7616 §3.4: a realm may have colons, a name may not.
        """
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
        """Salt and digest for Field §"authmod=adobe"; what fits nothing for who is unknown.

        Own design: the text that is hashed there is name, salt and password, and here name,
        realm and password with colons between, so the realm in colons is the salt.
        """
        for realm in self._realms:
            if ha1 := self._hashes.get((name, realm, "MD5")):
                return f":{realm}:", b64encode(bytes.fromhex(ha1)).decode()
        return f":{self._realms[0] if self._realms else name}:", "-" * 24

    def knows(self, name: str, password: str) -> bool:
        """Whether that is the password.  Own design: who is unknown takes as long."""
        is_right = False
        for realm in self._realms:
            for algorithm, digits in _DIGITS.items():
                known = self._hashes.get((name, realm, algorithm), "0" * digits)
                is_right |= _same(known, _ha1(algorithm, name, realm, password))
        return is_right

    def proves(self, query: str) -> bool:
        """Whether `query` has `user`, and `pass` or `password`, that are right.

        Own design: both are tried as they stand, and as a browser would have escaped them.
        """
        said = fields(query)
        user, password = said.get("user", ""), said.get("pass", said.get("password", ""))
        both = [(user, password), (unquote(user), unquote(password))]
        is_right = [self.knows(*each) for each in both]
        return bool(user and password) and any(is_right)


class UsersGuard:
    """Only users may publish; with `for_all` only they may even connect.

    Own design: proof is what `Users.proves` in the query of the URL, or of the stream's name, or
    the answer to a challenge in two steps, which ffmpeg, librtmp and OBS go through by themselves
    for a URL with both: Field §"authmod=adobe".  Who calls itself an encoder is challenged when it
    connects, since later is too late for it.
    """

    def __init__(
        self, users: Users, random: Callable[[int], bytes], *, for_all: bool = False
    ) -> None:
        self._users, self._for_all, self._guesses = users, for_all, Guesses()
        self._secret, self._random = random(32), random

    def renew(self, users: Users) -> None:
        """Judge by these from now on.  Own design: who has been let in stays."""
        self._users = users

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Judge at once.  Own design."""
        answer(self._judge(question, now), now)

    def tell(self, question: Question, now: float) -> None:
        """Nothing was kept.  Own design."""

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
        # Who said either of these at connect would not have come so far had it not been true.
        if "authmod" in said or _PROOF & said.keys():
            return ALLOWED
        if _PROOF & fields(question.query).keys():
            return self._prove(question.host, question.query, now)
        return Verdict(False, "Who publishes needs user and password.")

    def _prove(self, host: str, query: str, now: float) -> Verdict:
        user = fields(query).get("user", "")
        return self._guarded(host, user, now, lambda: self._users.proves(query), NO_USER)

    def _guarded(
        self, host: str, user: str, now: float, proof: Callable[[], bool], wrong: str
    ) -> Verdict:
        """Look at a proof, unless that host has guessed too much: see `guesses`."""
        if self._guesses.wait(host, user, now):
            return Verdict(False, TOO_FAST)
        is_right = proof()
        (self._guesses.succeeded if is_right else self._guesses.failed)(host, user, now)
        return ALLOWED if is_right else Verdict(False, wrong)

    def _challenge(self, host: str, said: Mapping[str, str], now: float) -> Verdict:
        """The second and third request of a client: Field §"authmod=adobe"."""
        user = said.get("user", "")
        salt, digest = self._users.salted(user)
        if said["authmod"] != "adobe" or "response" not in said:
            opaque = self._opaque(user, f"{now:.0f}-{self._random(8).hex()}")
            what = f"&user={user}&salt={salt}&challenge={opaque}&opaque={opaque}"
            return Verdict(False, _ASK + what)
        opaque = said.get("opaque", "")
        nonce, _, _ = opaque.rpartition("-")
        wanted = _digest(digest + opaque + said.get("challenge", ""))

        def proof() -> bool:
            is_right = _same(wanted, said["response"])
            is_ours = _same(opaque, self._opaque(user, nonce))
            return is_right and is_ours and now - float(nonce.partition("-")[0]) <= FRESH

        return self._guarded(host, user, now, proof, _WRONG)

    def _opaque(self, user: str, nonce: str) -> str:
        sealed = hmac.new(self._secret, f"{user} {nonce}".encode(errors="replace"), sha256)
        return f"{nonce}-{sealed.hexdigest()[:32]}"


def is_challenge(verdict: Verdict) -> bool:
    """Whether somebody is asked for a proof, and not yet refused one: Field §"authmod=adobe"."""
    return verdict.description.startswith((_NEED, _ASK))


def in_words(verdict: Verdict) -> str:
    """Why somebody is refused, for people.  Own design: encoders have words of their own."""
    return NO_USER if verdict.description == _WRONG else verdict.description


class KeysGuard:
    """Own design: some streams have keys, `name?key=KEY`.

    `publish` and `play` are keys by name; where there is one at all, a name without is refused,
    unless `*` has one for all others.
    """

    def __init__(
        self, publish: Mapping[str, str] | None = None, play: Mapping[str, str] | None = None
    ) -> None:
        self._keys = {Event.PUBLISH: publish or {}, Event.PLAY: play or {}}

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Judge at once.  Own design."""
        keys = self._keys.get(question.event)
        if not keys:
            answer(ALLOWED, now)
            return
        wanted = keys.get(question.path) or keys.get("*") or ""
        given = _said(question).get("key", "")
        is_right = _same(wanted, given) and bool(wanted)
        answer(Verdict(is_right, "No such stream, or not by this key."), now)

    def tell(self, question: Question, now: float) -> None:
        """Nothing was kept.  Own design."""


class SignedGuard:
    """Links that whoever has the secret can make, for one stream and some time.

    Own design: `name?expires=SECONDS&token=HEX`, the time being that of Unix, as `wallclock` gives
    it.  `events` are those that need one.
    """

    def __init__(
        self, secret: bytes, wallclock: Callable[[], float], events: frozenset[Event]
    ) -> None:
        self._secret, self._wallclock, self._events = secret, wallclock, events

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Judge at once.  Own design."""
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
        """Nothing was kept.  Own design."""


def sign(secret: bytes, event: Event, path: str, expires: str) -> str:
    """The token of a signed link.  Own design: HMAC of what it allows, and until when."""
    what = f"{event}:{path}:{expires}".encode(errors="surrogatepass")
    return hmac.new(secret, what, sha256).hexdigest()


def _said(question: Question) -> Mapping[str, str]:
    """What is said in the stream's name, else in the URL: not all tools can choose."""
    return fields(question.connect_query) | fields(question.query)


def _algorithm(ha1: str) -> str:
    """Which algorithm made it, by its length; empty for what is no hash."""
    if not all(digit in "0123456789abcdefABCDEF" for digit in ha1):
        return ""
    return next((name for name, digits in _DIGITS.items() if len(ha1) == digits), "")


def _ha1(algorithm: str, name: str, realm: str, password: str) -> str:
    """RFC 7616 §3.4.2."""
    text = f"{name}:{realm}:{password}".encode(errors="replace")
    if algorithm == "MD5":
        return md5(text, usedforsecurity=False).hexdigest()
    return sha256(text).hexdigest()


def _digest(words: str) -> str:
    """MD5 in base64: Field §"authmod=adobe"."""
    return b64encode(md5(words.encode(errors="replace"), usedforsecurity=False).digest()).decode()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))
