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

from siprtmp.calls.admission import Admission, Admitted
from siprtmp.operation.config import is_loopback

MAX_PROOF: Final = 1024  # letters of a header with user and password


class StatusDoor:
    """Judges requests.  Own design: `names` are ours besides localhost and any numeric address.

    Everybody may read if `is_open`, else who proves to `admission` to be a user.
    """

    def __init__(self, names: Iterable[str], *, is_open: bool, admission: Admission) -> None:
        self._names = {"localhost", *(name.lower().rstrip(".") for name in names)}
        self.is_open, self.admission = is_open, admission

    @classmethod
    def of(
        cls,
        http: tuple[str, int] | None,
        domains: Iterable[str],
        serves_all: bool,
        admission: Admission,
    ) -> "StatusDoor":
        """Open on loopback, or where everybody is served; else for users.  Own design."""
        host = http[0] if http is not None else ""
        names = filter(None, (*domains, host, gethostname()))
        return cls(names, is_open=serves_all or is_loopback(host), admission=admission)

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

    def judge(self, environ: Mapping[str, Any], now: float) -> Admitted:
        """Whether who asks may read: HTTP Basic, or `?user=NAME&pass=PASSWORD`.  Own design."""
        if self.is_open:
            return Admitted.YES
        host = str(environ.get("REMOTE_ADDR", ""))
        name, password = _proof(str(environ.get("HTTP_AUTHORIZATION", "")))
        if name and password:
            return self.admission.knows(host, name, password, now)
        return self.admission.prove(host, now, str(environ.get("QUERY_STRING", "")))


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
