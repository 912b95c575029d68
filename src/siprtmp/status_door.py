"""Who may read `/status`.

Own design: by the name it is asked for, since a page of anybody's can have a browser ask whatever
its own name resolves to, this machine too; and where other machines reach the listener, by user and
password.  A proxy on this machine is a stranger's as well, so there loopback proves nothing.
"""

import binascii
import ipaddress
from base64 import b64decode
from collections.abc import Iterable, Mapping
from socket import gethostname
from typing import Any, Final
from urllib.parse import unquote

from p2psip.core.guesses import Guesses
from p2psip.transaction.flow import host_of
from rtmplite.credentials import Users, fields
from siprtmp.config import is_loopback

MAX_PROOF: Final = 1024  # letters of a header with user and password


class StatusDoor:
    """Judges requests.  Own design: `names` are ours besides localhost and any numeric address.

    Everybody may read if `is_open`, else who proves to be one of `credentials`.
    """

    def __init__(self, names: Iterable[str], *, is_open: bool, credentials: Users | None) -> None:
        self._names = {"localhost", *(name.lower().rstrip(".") for name in names)}
        self.is_open, self.credentials = is_open, credentials
        self._guesses = Guesses()

    @classmethod
    def of(
        cls,
        http: tuple[str, int] | None,
        domains: Iterable[str],
        serves_all: bool,
        credentials: Users | None,
    ) -> "StatusDoor":
        """Open on loopback, or where everybody is served; else for users.  Own design."""
        host = http[0] if http is not None else ""
        names = filter(None, (*domains, host, gethostname()))
        return cls(names, is_open=serves_all or is_loopback(host), credentials=credentials)

    def is_ours(self, environ: Mapping[str, Any]) -> bool:
        """Whether it was asked for by a name of ours: RFC 9112 §3.2.

        Own design: a client that says no name at all is no browser, and serves no stranger's page.
        """
        text = str(environ.get("HTTP_HOST", ""))
        if not text:
            return True
        host, colon, port = text.rpartition(":")
        name = host if colon and port.isdecimal() else text.rstrip(":")
        if name.startswith("[") and name.endswith("]"):
            name = name[1:-1]
        return name.lower().rstrip(".") in self._names or _is_address(name)

    def admits(self, environ: Mapping[str, Any], now: float) -> bool:
        """Whether who asks may read: HTTP Basic, or `?user=NAME&pass=PASSWORD`.

        Own design: whoever guesses too fast is not listened to, see `guesses`.
        """
        users = self.credentials
        if self.is_open or users is None:
            return self.is_open
        name, password = _proof(str(environ.get("HTTP_AUTHORIZATION", "")))
        query = str(environ.get("QUERY_STRING", ""))
        is_basic = bool(name and password)
        if not is_basic:
            name = unquote(fields(query).get("user", ""))
        host = host_of(str(environ.get("REMOTE_ADDR", "")))
        if not name or self._guesses.wait(host, name, now):
            return False
        is_right = users.knows(name, password) if is_basic else users.proves(query)
        (self._guesses.succeeded if is_right else self._guesses.failed)(host, name, now)
        return is_right


def said_proof(environ: Mapping[str, Any]) -> bool:
    """Whether somebody tried to prove to be a user.  Own design: who did not is only asked."""
    return "HTTP_AUTHORIZATION" in environ or "user=" in str(environ.get("QUERY_STRING", ""))


def _proof(header: str) -> tuple[str, str]:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic" or len(text) > MAX_PROOF:
        return "", ""
    try:
        said = b64decode(text.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return "", ""
    name, _, password = said.partition(":")
    return name, password


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
