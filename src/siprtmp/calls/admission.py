"""Who may use the telephone side from RTMP without a SIP password of their own.

Own design: stock tools can't answer a Digest challenge, so on a gateway that has users they
either run on the same machine, or carry `?user=...&password=...` in the URL.  A gateway
without users serves loopback only, unless its operator said otherwise.
"""

from collections.abc import Callable
from enum import Enum
from functools import partial
from urllib.parse import unquote

from p2psip.server.domains import Aor
from p2psip.server.guess_limit import Guesses
from p2psip.server.users import UserStore
from p2psip.transaction.flow import rate_limit_key
from rtmplite.auth.credentials import Users, fields
from siprtmp.operation.config import is_loopback


class Admitted(Enum):
    """What becomes of a client that says it is a user.  Own design."""

    YES = "yes"
    NO = "no"
    LATER = "later"  # too many wrong passwords: this one was not looked at


class Admission:
    """Judges RTMP clients.  Own design: `users` and `credentials` are of the same file."""

    def __init__(self, allow_all: bool, users: UserStore | None, credentials: Users | None) -> None:
        self._allow_all, self._users, self._credentials = allow_all, users, credentials
        self._guesses = Guesses()

    def renew(self, users: UserStore | None, credentials: Users | None) -> None:
        """Judge by these from now on.  Own design: who has been let in stays."""
        self._users, self._credentials = users, credentials

    def judge(self, host: str, tc_url: str, query: str, now: float) -> Admitted:
        """Whether a client at `host` may place and take calls.  Own design.

        `query` is what followed a question mark in the stream's name; the tcUrl may have one.
        """
        if self._allow_all or is_loopback(host):
            return Admitted.YES
        return self.prove(host, now, query, tc_url.partition("?")[2])

    def prove(self, host: str, now: float, *queries: str) -> Admitted:
        """Whether any of these has a user's name and password, unless `host` guesses too fast.

        Own design: see `guesses`.  Each query is a guess at the user that it names itself, however
        that is escaped: another one beside it pays for nothing.
        """
        users = self._credentials
        for query in queries if users is not None else ():
            user = fields(query).get("user", "")
            if user and users is not None:
                verdict = self._guarded(host, user, partial(users.proves, query), now)
                if verdict is not Admitted.NO:
                    return verdict
        return Admitted.NO

    def knows(self, host: str, user: str, password: str, now: float) -> Admitted:
        """The same of a name and a password.  Own design."""
        users = self._credentials
        if users is None or not (user and password):
            return Admitted.NO
        return self._guarded(host, user, partial(users.knows, user, password), now)

    def _guarded(self, host: str, user: str, proves: Callable[[], bool], now: float) -> Admitted:
        """Look at a proof, unless there were too many wrong ones: each counts for its own user."""
        host, user = rate_limit_key(host), unquote(user)
        if self._guesses.wait(host, user, now):
            return Admitted.LATER
        is_right = proves()
        (self._guesses.succeeded if is_right else self._guesses.failed)(host, user, now)
        return Admitted.YES if is_right else Admitted.NO

    def payer(self, host: str, aor: Aor | None, tc_url: str, query: str) -> str:
        """Whose limits a client's calls count against: a user of ours, or else its host.

        Own design: nobody without the password can be an identity that has one; so may a stock
        tool be who its URL or the stream's name proves.
        """
        if aor is not None and self.has_user(*aor):
            return f"{aor[0]}@{aor[1]}"
        for each in (query, tc_url.partition("?")[2]):
            if self._credentials is not None and self._credentials.proves(each):
                return f"{unquote(fields(each)['user'])}@"
        return rate_limit_key(host)

    @property
    def has_users(self) -> bool:
        """Whether anybody has a password.  Own design."""
        return self._credentials is not None

    def has_user(self, user: str, domain: str) -> bool:
        """Whether the name belongs to somebody with a password.  Own design."""
        return self._users is not None and self._users.has(user, self._users.realm_for(domain))
