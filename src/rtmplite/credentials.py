"""Proof that stock tools can give: user and password, a key for a stream, a signed link.

Own design, on the places that RTMP Errata §8.1.6 lists, and on the challenge of Adobe's encoders:
Field §"authmod=adobe".  Secrets are compared in constant time, and passwords are not stored:

    >>> users = Users.parse(user_line("ann", "secret", salt="3f9c"))
    >>> users.knows("ann", "secret"), users.knows("ann", "guess"), users.knows("bob", "secret")
    (True, False, False)
"""

import hmac
from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import md5, sha256
from typing import Final

from rtmplite.access import ALLOWED, Answer, Event, Question, Verdict
from rtmplite.errors import LocalError

FRESH: Final = 60.0  # s, to answer a challenge; people do not type it in
MAX_FIELDS: Final = 32
ENCODER: Final = "FMLE/"  # how the flashVer of those begins that publish: ffmpeg, librtmp, OBS

# What the tools look for, letter by letter: Field §"authmod=adobe".
_NEED: Final = "[ AccessManager.Reject ] : [ code=403 need auth; authmod=adobe ] : "
_ASK: Final = "[ AccessManager.Reject ] : [ authmod=adobe ] : ?reason=needauth"
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


def user_line(name: str, password: str, salt: str) -> str:
    """One line of a file of users.  Own design: `name:salt:digest`.

    LocalError for a name that would not stay one, or no password.
    """
    if not name or not password or set(name) & set(":&=?#/ \r\n"):
        raise LocalError(f"{name!r} cannot be a user, or has no password")
    return f"{name}:{salt}:{_digest(name + salt + password)}"


class Users:
    """Who has a password.  Own design; `digests` are salt and digest by name."""

    def __init__(self, digests: Mapping[str, tuple[str, str]]) -> None:
        self._digests = dict(digests)

    @classmethod
    def parse(cls, content: str) -> "Users":
        """Read the lines of a file; those with a number sign are comments.  Own design."""
        digests = {}
        for number, line in enumerate(content.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = line.strip().split(":")
            if len(parts) != 3 or not all(parts):
                raise LocalError(f"line {number} is not NAME:SALT:DIGEST")
            digests[parts[0]] = parts[1], parts[2]
        return cls(digests)

    def salted(self, name: str) -> tuple[str, str]:
        """Salt and digest; something that fits nothing for whom we do not know.  Own design."""
        return self._digests.get(name) or (_digest(name)[:8], "-" * 24)

    def knows(self, name: str, password: str) -> bool:
        """Whether that is the password.  Own design: who is unknown takes as long."""
        salt, digest = self.salted(name)
        return _same(digest, _digest(name + salt + password))


class UsersGuard:
    """Only users may publish; with `for_all` only they may even connect.

    Own design: proof is `user` and `pass` in the query of the URL, or of the stream's name, or
    the answer to a challenge in two steps, which ffmpeg, librtmp and OBS go through by themselves
    for a URL with both: Field §"authmod=adobe".  Who calls itself an encoder is challenged when it
    connects, since later is too late for it.
    """

    def __init__(
        self, users: Users, random: Callable[[int], bytes], *, for_all: bool = False
    ) -> None:
        self._users, self._for_all = users, for_all
        self._secret, self._random = random(32), random

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Judge at once.  Own design."""
        answer(self._judge(question, now), now)

    def tell(self, question: Question, now: float) -> None:
        """Nothing was kept.  Own design."""

    def _judge(self, question: Question, now: float) -> Verdict:
        said = fields(question.connect_query)
        if question.event is Event.CONNECT:
            if "authmod" in said:
                return self._challenge(said, now)
            if "user" in said or "pass" in said:
                return Verdict(self._knows(said), "Wrong user or password.")
            is_encoder = question.flash_version.startswith(ENCODER)
            return Verdict(False, _NEED) if self._for_all or is_encoder else ALLOWED
        if self._for_all or question.event is Event.PLAY:
            return ALLOWED
        # What was said at connect was true, or we would not have come so far.
        proven = "response" in said or "pass" in said or self._knows(fields(question.query))
        return ALLOWED if proven else Verdict(False, "Who publishes needs user and pass.")

    def _knows(self, said: Mapping[str, str]) -> bool:
        return self._users.knows(said.get("user", ""), said.get("pass", ""))

    def _challenge(self, said: Mapping[str, str], now: float) -> Verdict:
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
        is_right = _same(wanted, said["response"])
        is_ours = _same(opaque, self._opaque(user, nonce))
        if is_right and is_ours and now - float(nonce.partition("-")[0]) <= FRESH:
            return ALLOWED
        return Verdict(False, _WRONG)

    def _opaque(self, user: str, nonce: str) -> str:
        sealed = hmac.new(self._secret, f"{user} {nonce}".encode(errors="replace"), sha256)
        return f"{nonce}-{sealed.hexdigest()[:32]}"


class KeysGuard:
    """Some streams have keys: `name?key=KEY`.  Own design.

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
        given = fields(question.query).get("key", "")
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
        said = fields(question.query)
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


def _digest(words: str) -> str:
    """MD5 in base64: Field §"authmod=adobe"."""
    return b64encode(md5(words.encode(errors="replace"), usedforsecurity=False).digest()).decode()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))
