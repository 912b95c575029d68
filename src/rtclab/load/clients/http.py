"""Connections by HTTP and HTTPS, and one request with its answer, for clients of all kinds.

Own design: the standard library reads HTTP from gevent's sockets.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection, HTTPException
from typing import Final
from urllib.parse import SplitResult

from gevent import socket
from gevent.ssl import SSLContext

from rtclab.load.clients.client import TIMEOUT
from rtmplite.errors import RemoteError

SECURE: Final = ("https", "wss")
MOST: Final = 1 << 20  # octets that are read of an answer


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer: its status line, its header, and its body."""

    status: int
    reason: str
    headers: Message
    body: bytes

    def __str__(self) -> str:
        words = self.body[:80].decode(errors="replace").strip().partition("\n")[0]
        return f"{self.status} {self.reason}" + (f": {words}" if words else "")


def connected(parts: SplitResult, tls: ssl.SSLContext | None) -> socket.socket:
    """Connect to the host of a URL, by TLS where its scheme asks for it."""
    secure = parts.scheme in SECURE
    port = parts.port or (443 if secure else 80)
    plain = socket.create_connection((parts.hostname, port), TIMEOUT)
    if not secure:
        return plain
    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    if tls is not None and tls.verify_mode is ssl.CERT_NONE:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=parts.hostname)


def ask(
    method: str,
    parts: SplitResult,
    tls: ssl.SSLContext | None,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> HttpReply:
    """Send a request, and read its answer.  Raises RemoteError if that is not HTTP."""
    connection = HTTPConnection(parts.hostname or "", parts.port or 0)
    connection.sock = connected(parts, tls)
    try:
        wanted = {"Host": parts.netloc.rpartition("@")[2], "User-Agent": "rtclab", **headers}
        connection.request(method, target(parts), body, wanted)
        answer = connection.getresponse()
        found = answer.read(MOST)
        return HttpReply(answer.status, answer.reason, answer.headers, found)
    except HTTPException as error:
        raise RemoteError(f"no answer by HTTP: {error!r}") from None
    finally:
        connection.close()


def target(parts: SplitResult) -> str:
    """What a request asks for: the path and the query."""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
