"""A web service that decides: who connects, publishes and plays is asked of it by HTTP.

Requests and answers are nginx-rtmp's, so that what was written for it works here: a form is
posted, and 2xx allows, 3xx sends elsewhere (its Location is a new name, or an rtmp URL), anything
else denies.  Nothing and nobody waits for a request but the client that it is about; no answer in
time is none.
"""

import http.client
import io
import logging
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import gevent
from gevent import socket
from gevent import ssl as gevent_ssl

from rtmplite.access import ALLOWED, Answer, Event, Question, Verdict
from rtmplite.errors import LocalError
from rtmplite.net.clock import now
from rtmplite.net.redaction import public

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

log = logging.getLogger(__name__)

TIMEOUT: Final = 4.0  # s, less than the five that GStreamer waits
REQUESTS: Final = 100  # under way at once
MAX_FIELDS: Final = 32  # of a client's own
MAX_HEAD: Final = 65536  # bytes of an answer; its body is of no interest
MAX_REASON: Final = 200  # characters of what is wrong with one, in a log
USER_AGENT: Final = "rtmplite"

_SCHEMES: Final = {"http": 80, "https": 443}
_ELSEWHERE: Final = ("rtmp://", "rtmps://", "rtmpt://", "rtmfp://")


class HttpGuard:
    """Asks `urls`, one for each event that it is to be asked about.

    No more than `requests` are under way; beyond that clients are denied at once, as they are
    without an answer within `timeout` seconds.
    """

    def __init__(
        self,
        urls: Mapping[Event, str],
        *,
        timeout: float = TIMEOUT,
        requests: int = REQUESTS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._urls, self._timeout, self._requests = dict(urls), timeout, requests
        self._tls = tls
        self._under_way: set[gevent.Greenlet[..., None]] = set()
        for url in self._urls.values():
            _split(url)

    @property
    def under_way(self) -> int:
        """How many requests have no answer yet."""
        return len(self._under_way)

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Post the question, unless nobody asked to be asked."""
        url = self._urls.get(question.event)
        if url is None:
            answer(ALLOWED, now)
        elif len(self._under_way) >= self._requests:
            log.warning("%s is busy: %s is denied", public(url), question.host)
            answer(Verdict(False, "Too busy to ask."), now)
        else:
            self._spawn(url, question, answer)

    def tell(self, question: Question, now: float) -> None:
        """Post that something is over; whatever comes back is ignored."""
        url = self._urls.get(question.event)
        if url is not None and len(self._under_way) < self._requests:
            self._spawn(url, question, lambda verdict, now: None)
        elif url is not None:
            log.warning("%s is busy: the end of %s is not told", public(url), question.path)

    def stop(self) -> None:
        """Wait for nothing more."""
        gevent.killall(list(self._under_way))

    def _spawn(self, url: str, question: Question, answer: Answer) -> None:
        greenlet = gevent.spawn(self._run, url, question, answer)
        self._under_way.add(greenlet)
        greenlet.rawlink(self._under_way.discard)

    def _run(self, url: str, question: Question, answer: Answer) -> None:
        try:
            with gevent.Timeout(self._timeout):
                verdict = self._post(url, form(question))
        except (gevent.Timeout, OSError, http.client.HTTPException, ValueError) as error:
            why = f"{error!s:.{MAX_REASON}}".strip() or type(error).__name__
            why = why if why.isprintable() else ascii(why)
            log.warning("%s: %s: %s is denied", public(url), why, question.host)
            verdict = Verdict(False, "Nobody could be asked.")
        try:
            answer(verdict, now())
        except Exception:
            log.exception("a connection fails")

    def _post(self, url: str, body: str) -> Verdict:
        scheme, host, port, path = _split(url)
        connection = _Connection(host, port)
        if scheme == "https":
            connection.tls = self._tls or gevent_ssl.create_default_context()
        try:
            headers = {
                "Content-Type": "application/x-www-form-urlencoded",
                "User-Agent": USER_AGENT,
                "Connection": "close",
            }
            connection.request("POST", path, body.encode(), headers)
            response = connection.getresponse()
            return verdict_of(response.status, response.headers.get("Location", ""))
        finally:
            connection.close()


class _Head(io.RawIOBase):
    """The beginning of an answer, and no more.

    What is there already is read without letting others run, so that one interim response after
    the other, of which the standard library takes any number, would stop everybody.
    """

    def __init__(self, file: io.BufferedReader) -> None:
        self._file, self._left = file, MAX_HEAD

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read what there is; HTTPException for too much."""
        count = self._file.readinto1(buffer)
        self._left -= count
        if self._left < 0:
            raise http.client.HTTPException("an answer without end")
        return count

    def close(self) -> None:
        """Close the file, too."""
        self._file.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """The standard library's, if it begins within `MAX_HEAD`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = io.BufferedReader(_Head(self.fp))


class _Connection(http.client.HTTPConnection):
    """The standard library's, over sockets that let others run."""

    response_class = _Response
    tls: ssl.SSLContext | None = None

    def connect(self) -> None:
        """Connect, with TLS if there is a context for it."""
        connected = socket.create_connection((self.host, self.port))
        self.sock = connected
        if self.tls is not None:
            self.sock = self.tls.wrap_socket(connected, server_hostname=self.host)


def form(question: Question) -> str:
    """The body of a request, by nginx-rtmp's names.

    What the client added to the stream's name, or to the URL if it connects, follows; but it can
    say nothing twice.
    """
    said: dict[str, object] = {
        "call": str(question.event),
        "addr": question.host,
        "clientid": question.client,
        "app": question.app,
        "flashver": question.flash_version,
        "swfurl": question.swf_url,
        "tcurl": question.tc_url,
        "pageurl": question.page_url,
    }
    if question.event is not Event.CONNECT:
        said |= {"name": question.name, "path": question.path}
    if Event.PUBLISH in (question.event, question.was):
        said["type"] = question.kind
    elif Event.PLAY in (question.event, question.was):
        said |= {
            "start": f"{question.start:.0f}",
            "duration": f"{question.duration:.0f}",
            "reset": int(question.reset),
        }
    if question.event is Event.DONE:
        said["was"] = str(question.was)
    query = question.query if question.event is not Event.CONNECT else question.connect_query
    own = [pair for pair in _pairs(query) if pair[0] not in said]
    return urlencode([*said.items(), *own], errors="replace")


def verdict_of(status: int, location: str) -> Verdict:
    """What an answer means."""
    if 200 <= status < 300:
        return ALLOWED
    if 300 <= status < 400 and location:
        if location.startswith(_ELSEWHERE):
            return Verdict(True, url=location)
        return Verdict(True, name=unquote(location))
    return Verdict(False, f"Denied ({status}).")


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return []


def _split(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and the rest; LocalError for what is no web address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise LocalError(f"{url}: {error}") from error
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise LocalError(f"{url} is not http://HOST[:PORT]/PATH")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, parts.hostname, port or _SCHEMES[parts.scheme], path
