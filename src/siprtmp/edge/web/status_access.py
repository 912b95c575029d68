"""The check of each request for `/status`.

Own design: the Host of a request must be a name of the gateway.  A page on the internet can make a
browser send requests to any address that the page's own name resolves to, this machine's too.
Where other machines reach the listener, user and password are needed, also from loopback, where a
proxy may pass on the requests of strangers.
"""

import binascii
import ipaddress
from base64 import b64decode
from collections.abc import Iterable, Mapping
from socket import gethostname
from typing import Any, Final

from p2psip.stack.routing import is_loopback
from siprtmp.calls.access.admission import Admission, Admitted

MAX_PROOF: Final = 1024  # letters of a header with user and password


class StatusAccess:
    """Judges requests; `names` are accepted beside localhost and any numeric address.

    If `is_open` every client may read, else those that prove to `admission` to be a user.
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
    ) -> "StatusAccess":
        """Open on loopback, or with --allow-anonymous; else for users."""
        host = http[0] if http is not None else ""
        names = filter(None, (*domains, host, gethostname()))
        return cls(names, is_open=serves_all or is_loopback(host), admission=admission)

    def is_ours(self, environ: Mapping[str, Any]) -> bool:
        """Whether the Host of a request is a name of the gateway: RFC 9112 §3.2.

        A client of HTTP/1.0 without a Host is no browser, so no page can have sent it.
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
        """Whether the client may read, by HTTP Basic or `?user=NAME&pass=PASSWORD`."""
        if self.is_open:
            return Admitted.YES
        host = str(environ.get("REMOTE_ADDR", ""))
        name, password = _proof(str(environ.get("HTTP_AUTHORIZATION", "")))
        if name and password:
            return self.admission.knows(host, name, password, now)
        return self.admission.prove(host, now, str(environ.get("QUERY_STRING", "")))


def said_proof(environ: Mapping[str, Any]) -> bool:
    """Whether a request has credentials; one without any is only challenged."""
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
