"""Who may use the telephone side from RTMP without a SIP password of their own.

Own design: stock tools can't answer a Digest challenge, so on a gateway that has users they
either run on the same machine, or carry `?user=...&password=...` in the URL.  A gateway
without users serves loopback only, unless its operator said otherwise.
"""

import hmac
from typing import Final
from urllib.parse import parse_qs

from p2psip.core.users import PREFERENCE, UserStore
from p2psip.sip.auth import ha1
from siprtmp.config import Settings, is_loopback

NOBODY: Final = {"SHA-256": "0" * 64, "MD5": "0" * 32}  # a hash of nothing known
MAX_FIELDS: Final = 16


class Admission:
    """Judges RTMP clients.  Own design: see the module."""

    def __init__(self, settings: Settings, users: UserStore | None) -> None:
        self._allow_all, self._users = settings.allow_anonymous, users

    def admits(self, host: str, tc_url: str, query: str) -> bool:
        """Whether a client at `host` may place and take calls.  Own design.

        `query` is what followed a question mark in the stream's name; the tcUrl may have one.
        """
        if self._allow_all or is_loopback(host):
            return True
        return self._proves(query) or self._proves(tc_url.partition("?")[2])

    def has_user(self, user: str, domain: str) -> bool:
        """Whether the name belongs to somebody with a password.  Own design."""
        return self._users is not None and self._users.has(user, self._users.realm_for(domain))

    def _proves(self, query: str) -> bool:
        """Compare with every hash there could be, whether there is one or not.

        How long it takes tells neither whether there is such a user nor how much was right.
        """
        try:
            values = parse_qs(query, max_num_fields=MAX_FIELDS)
        except ValueError:
            return False
        user, password = values.get("user", [""])[0], values.get("password", [""])[0]
        if not (user and password and self._users):
            return False
        proven = False
        for realm in self._users.realms:
            for algorithm in PREFERENCE:
                known = self._users.lookup(user, realm, algorithm)
                given = ha1(user, realm, password, algorithm)
                proven |= hmac.compare_digest(known or NOBODY[algorithm], given)
        return proven
