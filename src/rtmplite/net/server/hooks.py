"""Asks a web service by HTTP whether a client may connect, publish or play.

Own design: requests and answers are those of nginx-rtmp, so that its services work here.  A form is
posted; status 2xx allows, 3xx redirects (the Location is a new name, or an rtmp URL), and any other
denies, as does an answer that is late.  Only the client in question waits for it.
"""

import logging
import re
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

import gevent
from gevent import socket
from gevent import ssl as gevent_ssl

from rtmplite.auth.guard import ALLOWED, Answer, Event, Question, Verdict
from rtmplite.errors import LocalError, RemoteError
from rtmplite.net.clock import now
from rtmplite.net.redaction import public
from rtmplite.rtmp.wire.url import split

log = logging.getLogger(__name__)

TIMEOUT: Final = 4.0  # s, less than the five that GStreamer waits
REQUESTS: Final = 100  # in progress at once
MAX_FIELDS: Final = 32  # taken from the client's own query
MAX_HEAD: Final = 16384  # bytes of an answer; its body is not read
PIECE: Final = 4096  # bytes of it that are read at once
MAX_REASON: Final = 200  # characters of an error in the log
USER_AGENT: Final = "rtmplite"

_SCHEMES: Final = {"http": 80, "https": 443}
# RFC 9112 §4 [reason-is-ignored]
_STATUS: Final = re.compile(rb"HTTP/1\.[0-9] +([0-9]{3})(?: |$)")
_SAFE: Final = "%/?:@!$&'()*+,;=~[]"  # what a path or a query may have: RFC 3986 §3.3, §3.4
_REDIRECT_SCHEMES: Final = ("rtmp://", "rtmps://", "rtmpt://", "rtmfp://")


class HttpGuard:
    """A `Guard` that posts questions to `urls`, one for each event that has a service.

    A client is denied after `timeout` seconds without an answer, and at once while `requests` are
    in progress.
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
            service(url)

    @property
    def under_way(self) -> int:
        """The number of requests that have no answer yet."""
        return len(self._under_way)

    def ask(self, question: Question, answer: Answer, now: float) -> None:
        """Post the question; allow it if its event has no service."""
        url = self._urls.get(question.event)
        if url is None:
            answer(ALLOWED, now)
        elif len(self._under_way) >= self._requests:
            log.warning("%s is busy: %s is denied", public(url), question.host)
            answer(Verdict(False, "Too busy to ask."), now)
        else:
            self._spawn(url, question, answer)

    def tell(self, question: Question, now: float) -> None:
        """Post that something is over, and ignore the answer."""
        url = self._urls.get(question.event)
        if url is not None and len(self._under_way) < self._requests:
            self._spawn(url, question, lambda verdict, now: None)
        elif url is not None:
            log.warning("%s is busy: the end of %s is not told", public(url), question.path)

    def stop(self) -> None:
        """Give up all requests."""
        gevent.killall(list(self._under_way))

    def _spawn(self, url: str, question: Question, answer: Answer) -> None:
        greenlet = gevent.spawn(self._run, url, question, answer)
        self._under_way.add(greenlet)
        greenlet.rawlink(self._under_way.discard)

    def _run(self, url: str, question: Question, answer: Answer) -> None:
        try:
            with gevent.Timeout(self._timeout):
                verdict = self._post(url, form(question))
        except (gevent.Timeout, OSError, RemoteError, LocalError, ValueError) as error:
            words = error.description if isinstance(error, RemoteError) else str(error)
            why = f"{words:.{MAX_REASON}}".strip() or type(error).__name__
            why = why if why.isprintable() else ascii(why)
            log.warning("%s: %s: %s is denied", public(url), why, question.host)
            verdict = Verdict(False, "Nobody could be asked.")
        try:
            answer(verdict, now())
        except Exception:
            log.exception("a connection fails")

    def _post(self, url: str, body: str) -> Verdict:
        place = service(url)
        connected = socket.create_connection((place.host, place.port))
        try:
            if place.is_secure:
                tls = self._tls or gevent_ssl.create_default_context()
                connected = tls.wrap_socket(connected, server_hostname=place.host)
            fields = {"User-Agent": USER_AGENT, "Content-Type": "application/x-www-form-urlencoded"}
            return verdict_of(*post(connected, place, body.encode(), fields))
        finally:
            # RFC 9112 §9.6 [one-request-is-all] [closed-behind-the-answer] [close-is-heeded]
            # RFC 9112 §9.6 [nothing-is-pipelined]
            connected.close()


class Service(NamedTuple):
    """The parts of a service's URL that a request needs."""

    host: str
    port: int
    authority: str
    path: str
    is_secure: bool


def service(url: str) -> Service:
    """Parse the URL of a web service.  Raises LocalError if it is not http or https."""
    parts = split(url)
    # RFC 3986 §3 [scheme-is-required]
    if parts.scheme not in _SCHEMES or not parts.host:
        raise LocalError(f"{url} is not http://HOST[:PORT]/PATH")
    # RFC 9112 §3.2.1 [path-and-query-alone] [slash-for-no-path]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    authority = parts.authority.encode("idna").decode() if parts.host else ""
    port = parts.port or _SCHEMES[parts.scheme]
    escaped = quote(path, _SAFE)  # RFC 3986 §2.1 [capital-hex], §2.2 [reserved-is-escaped]
    return Service(parts.host, port, authority, escaped, parts.scheme == "https")


def post(
    connected: socket.socket, place: Service, body: bytes, fields: Mapping[str, str]
) -> tuple[int, str]:
    """Post a content with these header fields; the status of the answer, and its Location.

    The body of an answer is not read, nor more than `MAX_HEAD` bytes.  Raises RemoteError if it is
    not HTTP, and OSError.
    """
    connected.sendall(request(place, body, fields))
    return _answer(connected)


def request(place: Service, body: bytes, fields: Mapping[str, str]) -> bytes:
    """A POST of a content with these header fields, the only request of its connection."""
    # RFC 9112 §3.2 [client-says-host] [host-of-the-url]
    # RFC 9112 §6.3 [length-is-told] [length-or-chunks] [not-chunked]
    # RFC 9112 §9.6 [close-is-announced]
    said = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    head = (
        f"POST {place.path} HTTP/1.1\r\nHost: {place.authority}\r\n{said}"
        f"Content-Length: {len(body)}\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    )
    # RFC 9112 §2.2 [nothing-around-a-request]
    return head.encode("latin-1") + body


def _answer(connected: socket.socket) -> tuple[int, str]:
    """Read status and Location, within `MAX_HEAD`; RemoteError if it is not HTTP."""
    said, begin, seen = b"", 0, 0
    while len(said) < MAX_HEAD:
        piece = connected.recv(min(PIECE, MAX_HEAD - len(said)))
        if not piece:
            raise RemoteError("no whole answer")
        said += piece
        if not said.startswith(b"HTTP/"[: len(said)]):
            raise RemoteError(said.partition(b"\n")[0].decode("latin-1"))
        while (end := said.find(b"\r\n\r\n", max(begin, seen - 3))) >= 0:
            status, location = _head(said[begin:end])
            if status >= 200:  # RFC 9112 §6.3 [nothing-behind-the-answer]
                return status, location
            begin = seen = end + 4
        seen = len(said)
        gevent.sleep(0)  # others must run while a fast service sends much
    raise RemoteError("an answer without end")


def _head(head: bytes) -> tuple[int, str]:
    """Read the status and Location of one head.

    Not done: RFC 9112 §5.2 [folded-answers]: a Location has no space at which it could be folded.
    """
    lines = head.split(b"\r\n")
    match = _STATUS.match(lines[0])
    if match is None:
        raise RemoteError(lines[0].decode("latin-1"))
    fields = (line.partition(b":") for line in lines[1:])
    found = [value for name, _, value in fields if name.lower() == b"location"]
    return int(match[1]), found[0].strip().decode("latin-1") if found else ""


def form(question: Question) -> str:
    """The form with nginx-rtmp's names, then the query, which cannot replace them."""
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
    if 200 <= status < 300:
        return ALLOWED
    if 300 <= status < 400 and location:
        if location.startswith(_REDIRECT_SCHEMES):
            return Verdict(True, url=location)
        return Verdict(True, name=unquote(location))
    return Verdict(False, f"Denied ({status}).")


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return []
