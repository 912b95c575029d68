"""Who may use the telephone side from RTMP without a SIP password of their own.

Own design: stock tools can't answer a Digest challenge, so on a gateway that has users they
either run on the same machine, or carry `?user=...&password=...` in the URL.  A gateway
without users serves loopback only, unless its operator said otherwise.
"""

from urllib.parse import unquote

from p2psip.core.domains import Aor
from p2psip.core.users import UserStore
from p2psip.transaction.flow import host_of
from rtmplite.credentials import Users, fields
from siprtmp.config import is_loopback


class Admission:
    """Judges RTMP clients.  Own design: `users` and `credentials` are of the same file."""

    def __init__(self, allow_all: bool, users: UserStore | None, credentials: Users | None) -> None:
        self._allow_all, self._users, self._credentials = allow_all, users, credentials

    def renew(self, users: UserStore | None, credentials: Users | None) -> None:
        """Judge by these from now on.  Own design: who has been let in stays."""
        self._users, self._credentials = users, credentials

    def admits(self, host: str, tc_url: str, query: str) -> bool:
        """Whether a client at `host` may place and take calls.  Own design.

        `query` is what followed a question mark in the stream's name; the tcUrl may have one.
        """
        if self._allow_all or is_loopback(host):
            return True
        return self.is_user(query, tc_url.partition("?")[2])

    def is_user(self, *queries: str) -> bool:
        """Whether any of these has a user's name and password.  Own design."""
        users = self._credentials
        return users is not None and any([users.proves(each) for each in queries])

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
        return host_of(host)

    def has_user(self, user: str, domain: str) -> bool:
        """Whether the name belongs to somebody with a password.  Own design."""
        return self._users is not None and self._users.has(user, self._users.realm_for(domain))
