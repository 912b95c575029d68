"""Whether an RTMP client may use telephones without a SIP login of its own.

Own design: stock tools can't answer a digest challenge, so on a gateway with users they
either run on the same machine, or have `?user=...&password=...` in the URL.  A gateway
without users serves loopback only, unless its operator said otherwise.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Final
from urllib.parse import unquote

from p2psip.server.domains import Aor
from p2psip.server.guess_limit import GuessLimit
from p2psip.server.users import UserStore
from p2psip.stack.routing import is_loopback
from p2psip.transaction.flow import rate_limit_key
from rtmplite.auth.credentials import Users, fields

Holder = frozenset[str]
"""The users, as user@realm, that a client has proved to be, or else its host."""

LOOPBACK: Final = "loopback"  # all programs of this machine are one holder


class Admitted(Enum):
    """The verdict about a client that claims to be a user."""

    YES = "yes"
    NO = "no"
    LATER = "later"  # too many wrong passwords: this one was not checked


class Admission:
    """Judges RTMP clients; `users` and `credentials` come from the same file."""

    def __init__(self, allow_all: bool, users: UserStore | None, credentials: Users | None) -> None:
        self._allow_all, self._users, self._credentials = allow_all, users, credentials
        self._guesses = GuessLimit()

    def renew(self, users: UserStore | None, credentials: Users | None) -> None:
        """Judge by these from now on; clients that have been admitted stay."""
        self._users, self._credentials = users, credentials

    def judge(self, host: str, tc_url: str, query: str, now: float) -> Admitted:
        """Whether a client at `host` may place and take calls.

        `query` is what followed a question mark in the stream's name; the tcUrl may have one.
        """
        if self._allow_all or is_loopback(host):
            return Admitted.YES
        return self.prove(host, now, query, tc_url.partition("?")[2])

    def prove(self, host: str, now: float, *queries: str) -> Admitted:
        """Whether any query has a user's name and password, unless `host` guesses too fast.

        See `guess_limit`.  Each query counts as a guess at the user that it names itself, also if
        the name is escaped; a second query cannot be charged to another user.
        """
        users = self._credentials
        for query in queries if users is not None else ():
            user = fields(query).get("user", "")
            if user and users is not None:
                verdict = self.guarded(host, user, partial(users.proves, query), now)
                if verdict is not Admitted.NO:
                    return verdict
        return Admitted.NO

    def holder(self, host: str, tc_url: str, query: str, now: float) -> Holder:
        """A client at `host` as a holder of names, by the passwords in its URLs.

        Each wrong one counts as a guess, and none is looked at while `host` guesses too fast.
        """
        found: set[str] = set()
        for each in (query, tc_url.partition("?")[2]):
            if self.prove(host, now, each) is Admitted.YES and self._credentials is not None:
                found |= {f"{user}@{realm}" for user, realm in self._credentials.proven(each)}
        return frozenset(found or {LOOPBACK if is_loopback(host) else rate_limit_key(host)})

    def knows(self, host: str, user: str, password: str, now: float) -> Admitted:
        """Whether a name and a password are a user's, unless `host` guesses too fast."""
        users = self._credentials
        if users is None or not (user and password):
            return Admitted.NO
        return self.guarded(host, user, partial(users.knows, user, password), now)

    def stranger(self, query: str) -> tuple[str, str] | None:
        """The name and the password of a query, if none of our users has that name."""
        said = fields(query)
        user, password = said.get("user", ""), said.get("pass", said.get("password", ""))
        if not (user and password) or any(map(self._is_named, (user, unquote(user)))):
            return None
        return unquote(user), unquote(password)

    def _is_named(self, user: str) -> bool:
        users = self._users
        return users is not None and any(users.has(user, realm) for realm in users.realms)

    def guarded(self, host: str, user: str, proves: Callable[[], bool], now: float) -> Admitted:
        """Check a proof, unless this host or user has had too many wrong ones."""
        host, user = rate_limit_key(host), unquote(user)
        if self._guesses.wait(host, user, now):
            return Admitted.LATER
        is_right = proves()
        (self._guesses.succeeded if is_right else self._guesses.failed)(host, user, now)
        return Admitted.YES if is_right else Admitted.NO

    def payer(self, host: str, aor: Aor | None, tc_url: str, query: str) -> str:
        """The key that a client's calls are counted under: a user of ours, or else its host.

        A rich client is such a user only with the password; a stock tool is the user that its URL
        or the stream's name proves.
        """
        if aor is not None and self.has_user(*aor):
            return f"{aor[0]}@{aor[1]}"
        for each in (query, tc_url.partition("?")[2]):
            if self._credentials is not None and self._credentials.proves(each):
                return f"{unquote(fields(each)['user'])}@"
        return rate_limit_key(host)

    @property
    def has_users(self) -> bool:
        return self._credentials is not None

    @property
    def realms(self) -> Sequence[str]:
        return self._users.realms if self._users is not None else ()

    def has_user(self, user: str, domain: str) -> bool:
        return self.realm_of(user, domain) is not None

    def realm_of(self, user: str, domain: str) -> str | None:
        """The realm of a user with a password, None if nobody has this name."""
        realm = self._users.realm_for(domain) if self._users is not None else ""
        return realm if self._users is not None and self._users.has(user, realm) else None
