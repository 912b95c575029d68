"""Sessions of WHIP and WHEP: an offer by POST, and DELETE at the end.

Implements RFC 9725 §4.2 on the client's side, which serves WHEP as well.

Own design: `whip` and `whep` in front of a URL stand for `http`, with an s behind them for `https`.
A bearer token stands before the host, or in the environment, where no list of processes shows it.
"""

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from rtclab.load.clients import http
from rtmplite.errors import LocalError, RemoteError

TOKEN: Final = "BEARER_TOKEN"  # in the environment
SDP: Final = "application/sdp"
REDIRECTS: Final = (301, 302, 303, 307, 308)
MOST_REDIRECTS: Final = 5
SCHEMES: Final = {"whip": "http", "whips": "https", "whep": "http", "wheps": "https"}


@dataclass(frozen=True, slots=True)
class EndpointSession:
    """A session that has begun: the answer, and where it is ended."""

    answer: bytes
    url: SplitResult | None


class Endpoint:
    """Where sessions of one client begin; LocalError or ValueError for a URL without a place."""

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        given = urlsplit(url)
        scheme = SCHEMES.get(given.scheme, given.scheme)
        self._token = unquote(given.username or "") or os.environ.get(TOKEN, "")
        self._url = given._replace(scheme=scheme, netloc=given.netloc.rpartition("@")[2])
        self._tls = tls
        if not self.host[0]:
            raise LocalError("no host in the URL")

    @property
    def host(self) -> tuple[str, int]:
        """Where the requests go."""
        default = 443 if self._url.scheme == "https" else 80
        return self._url.hostname or "", self._url.port or default

    def begin(self, offer: bytes) -> EndpointSession:
        """Post an offer, and follow redirections; RemoteError if the server refuses."""
        url = self._url
        for _ in range(MOST_REDIRECTS):
            headers = {"Content-Type": SDP, "Accept": SDP} | self._authorization(url)
            answer = http.ask("POST", url, self._tls, headers, offer)
            where = answer.headers.get("Location")
            if where is None or answer.status not in REDIRECTS:
                break
            url = urlsplit(urljoin(url.geturl(), where))
        if answer.status not in (200, 201):
            raise RemoteError(str(answer))
        place = urlsplit(urljoin(url.geturl(), where)) if where is not None else None
        return EndpointSession(answer.body, place)

    def end(self, session: EndpointSession) -> None:
        """End a session; a server that is gone has ended it."""
        if session.url is not None:
            with suppress(RemoteError, OSError):
                headers = self._authorization(session.url)
                http.ask("DELETE", session.url, self._tls, headers)

    def _authorization(self, url: SplitResult) -> dict[str, str]:
        """The token, for the host that it was given for alone."""
        ours = url.scheme == self._url.scheme and url.netloc == self._url.netloc
        return {"Authorization": f"Bearer {self._token}"} if self._token and ours else {}
