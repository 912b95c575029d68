"""WHIP and WHEP: a page or an encoder begins and ends a session by HTTP.

Implements RFC 9725 §4 and WHEP §4, which is the same with the media the other way.

`POST /APP/NAME/whip` has an offer and gets the answer; the address of the session, which nobody can
guess, is in its `Location`.  DELETE ends it.  As a lite agent of ICE, the gateway needs none of a
browser's candidates, so PATCH with more of them is taken and not looked at; one with another user
name restarts ICE.

Not done: RFC 9725 §5 [patches-are-limited]: only who knows the secret address of a session can send
them, and each costs as little as any other request.

Own design: a bearer token stands for what others write behind the name of a stream, the key of
--publish-key or the fields of a signed link.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import parse_qs, quote

from p2psip.errors import RemoteError
from p2psip.sdp.jsep import FRAGMENT, IceFragment
from siprtmp.web import layer_words
from siprtmp.web.asking_host import source_of
from siprtmp.web.browser_peers import BrowserViewer
from siprtmp.web.browser_sessions import ABSENT, Asked, BrowserSession, BrowserSessions
from siprtmp.web.ice_servers import NO_SERVERS, IceServers

SDP: Final = "application/sdp"  # Source: RFC 9725 §4.2
MAX_OFFER: Final = 64 * 1024  # octets; a browser's has some 8,000
_PATH: Final = re.compile(r"/([^/]+)/(.+)/(whip|whep)(?:/([\w-]{1,64})(/layer)?)?")
_CORS: Final = [
    ("Access-Control-Allow-Origin", "*"),
    (
        "Access-Control-Expose-Headers",
        "Location, ETag, Accept-Post, Accept-Patch, Link, Retry-After",
    ),
]
_TAKEN: Final = [("Accept-Post", SDP), ("Accept-Patch", FRAGMENT)]
_PREFLIGHT: Final = [
    ("Access-Control-Allow-Methods", "OPTIONS, GET, HEAD, POST, PATCH, DELETE"),
    ("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match"),
    ("Access-Control-Max-Age", "86400"),
    *_TAKEN,
]
NONE: Final = "No such session"
_ENDPOINT: Final = "OPTIONS, GET, HEAD, POST"
_SESSION: Final = "OPTIONS, GET, HEAD, PATCH, DELETE"
_LAYER: Final = "OPTIONS, GET, HEAD, POST, DELETE"
_READING: Final = ("GET", "HEAD")
_ANY: Final = "*"  # of If-Match: whatever the tag is
_TEXT: Final = ("Content-Type", "text/plain; charset=utf-8")
_REASONS: Final = {
    400: "400 Bad Request",
    403: "403 Forbidden",
    401: "401 Unauthorized",
    404: "404 Not Found",
    405: "405 Method Not Allowed",
    409: "409 Conflict",
    412: "412 Precondition Failed",
    413: "413 Content Too Large",
    415: "415 Unsupported Media Type",
    422: "422 Unprocessable Content",
    428: "428 Precondition Required",
    503: "503 Service Unavailable",
}
_NOT_ACCEPTABLE: Final = 488  # of SIP, for an offer that nothing can answer: RFC 3261 §21.4.26

SILENT: Final = (_REASONS[503], [*_CORS, _TEXT, ("Retry-After", "2")])  # of who does not answer

Environ = dict[str, Any]
Start = Callable[..., Any]
# Whether a client may do this ("whip" or "whep", application, name, query, host): a function to
# call when it has ended, or None.
Admits = Callable[[str, str, str, str, str], Callable[[], None] | None]


class WhipApplication:
    """The WSGI application of both; `serves` says which requests are its own."""

    def __init__(
        self,
        sessions: BrowserSessions,
        apps: Iterable[str],
        admits: Admits,
        servers: IceServers = NO_SERVERS,
    ) -> None:
        self._sessions, self._apps, self._admits = sessions, frozenset(apps), admits
        self._servers = servers

    def serves(self, environ: Environ) -> bool:
        """Whether the path is one of an endpoint or a session."""
        match = _match(environ)
        return match is not None and match[1] in self._apps

    def has(self, identifier: str) -> bool:
        """Whether a session with this secret name is here."""
        return self._sessions.find(identifier) is not None

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer a request: RFC 9725 §4.1."""
        match = _match(environ)
        method = environ["REQUEST_METHOD"]
        try:
            if match is None:
                raise RemoteError("Nothing is here", 404)
            # WHEP §4.3 [options-for-cors] [accept-post]
            if method == "OPTIONS":  # RFC 9725 §4.2 [options-for-cors] [accept-post]
                # RFC 9725 §4.6 [options-may-have-links] [no-links-before-a-page]
                is_of_page = "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ
                links = () if is_of_page or match[4] else self._servers.open
                start("200 OK", [*_CORS, *_PREFLIGHT, *links, ("Content-Length", "0")])
                return []
            if match[4] is None:
                return self._begin(match, environ, start)
            session = self._find(match[4])
            if match[5]:
                return self._layer(session, environ, start)
            return self._change(session, environ, start)
        except RemoteError as error:
            of_session = _LAYER if match and match[5] else _SESSION
            return _refuse(error, start, of_session if match and match[4] else _ENDPOINT)

    def _begin(self, match: re.Match[str], environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer an offer: RFC 9725 §4.2."""
        if environ["REQUEST_METHOD"] in _READING:
            return _empty(start)
        if environ["REQUEST_METHOD"] != "POST":
            raise RemoteError("An endpoint takes POST", 405)
        # WHEP §4.2.4 [offer-is-sdp]
        if _type_of(environ) != SDP:  # RFC 9725 §4.2 [offer-is-sdp]
            raise RemoteError(f"The offer has to be {SDP}", 415)
        _, app, name, kind = match[0], match[1], match[2], match[3]
        sdp = _body(environ)
        host, query = source_of(environ), _query(environ)
        left = self._admits(kind, app, name, query, host)
        if left is None:
            raise RemoteError("A token, please, that allows this", 401)
        source = host, int(environ.get("REMOTE_PORT") or 0)
        # WHEP §4.9 [extensions-are-optional]
        layer = parse_qs(environ.get("QUERY_STRING", "")).get("layer", [""])[0]
        asked = Asked(app, name, sdp, source, left, query, layer)
        try:
            begin = self._sessions.publish if kind == "whip" else self._sessions.play
            session, answer = begin(asked)
        except RemoteError as error:
            left()
            if error.status == 403 and not query:
                raise RemoteError(error.reason, 401) from None
            raise
        # WHEP §4.2.1 [created], §4.4.1 [etag-of-the-session]
        # RFC 9725 §4.2 [created], §4.3.1 [etag-of-the-session]
        where = quote(f"{environ['PATH_INFO']}/{session.id}".encode("latin-1"))
        headers = [("Content-Type", SDP), ("Location", where), ("ETag", _tag(session))]
        if _layered(session) is not None:
            headers += layer_words.links(f"{where}/layer")
        # RFC 9725 §4.6 [created-may-have-links]
        # WHEP §4.7 [created-may-have-links] [links-name-servers]
        links = self._servers.of(kind, app, query, host)
        start("201 Created", [*_CORS, *headers, *links])
        return [answer]

    def _find(self, identifier: str) -> BrowserSession:
        """The session of a secret name.  Raises RemoteError(404)."""
        session = self._sessions.find(identifier)
        if session is None:
            reason = self._sessions.reason(identifier)
            raise RemoteError(f"The session has ended: {reason}" if reason else NONE, 404)
        return session

    def _layer(self, session: BrowserSession, environ: Environ, start: Start) -> Iterable[bytes]:
        """Tell a viewer the layers of its stream, or show it another one."""
        viewer, method = _layered(session), environ["REQUEST_METHOD"]
        if viewer is None:
            raise RemoteError("This session has no layers", 404)
        if method == "POST":
            if _type_of(environ) != layer_words.JSON:
                raise RemoteError(f"A layer is named in {layer_words.JSON}", 415)
            viewer.choose_layer(layer_words.wanted(_body(environ)), viewer.clock())
        elif method == "DELETE":
            viewer.choose_layer("", viewer.clock())
        elif method not in _READING:
            raise RemoteError("A layer takes GET, POST and DELETE", 405)
        kinds = [each.kind for each in session.offer.lines]
        line = str(kinds.index("video"))
        shown = layer_words.Shown(line, viewer.layers(viewer.clock()), viewer.layer)
        is_event = method in _READING and layer_words.EVENTS in environ.get("HTTP_ACCEPT", "")
        kind = layer_words.EVENTS if is_event else layer_words.JSON
        start("200 OK", [*_CORS, ("Content-Type", kind), ("Cache-Control", "no-store")])
        content = (layer_words.event if is_event else layer_words.told)(shown)
        return [b"" if method == "HEAD" else content]

    def _change(self, session: BrowserSession, environ: Environ, start: Start) -> Iterable[bytes]:
        """End a session, or take candidates for it: RFC 9725 §4.2, §4.3.1."""
        method = environ["REQUEST_METHOD"]
        if method in _READING:
            return _empty(start)
        # WHEP §4.4.1 [delete-needs-no-etag]
        if method == "DELETE":  # RFC 9725 §4.3.1 [delete-needs-no-etag]
            self._sessions.end(session)
            start("200 OK", [*_CORS, ("Content-Length", "0")])
            return []
        if method != "PATCH":
            raise RemoteError("A session takes PATCH and DELETE", 405)
        # WHEP §4.4.1 [patch-is-a-fragment]
        if _type_of(environ) != FRAGMENT:  # RFC 9725 §4.3.1 [patch-is-a-fragment]
            raise RemoteError(f"The fragment has to be {FRAGMENT}", 415)
        return self._patch(session, environ, start)

    def _patch(self, session: BrowserSession, environ: Environ, start: Start) -> Iterable[bytes]:
        """Take candidates, or restart ICE if the browser's side of it is new: RFC 9725 §4.3.3."""
        ice = IceFragment.read(_body(environ))
        wanted = [each.strip() for each in environ.get("HTTP_IF_MATCH", "").split(",")]
        # WHEP §4.4.2 [patch-names-its-etag]
        if not any(wanted):  # RFC 9725 §4.3.2 [patch-names-its-etag]
            raise RemoteError("If-Match has to name the session's ETag, or * to restart ICE", 428)
        if _tag(session) not in wanted and wanted != [_ANY]:
            raise RemoteError("That is not the ETag of the session's ICE", 412)
        if ice.ufrag == session.ufrag:
            # WHEP §4.4.2 [204-for-candidates] [candidates-may-be-discarded]
            # RFC 9725 §4.3.2 [204-for-candidates] [candidates-may-be-discarded]
            return _empty(start)
        # WHEP §4.4.3 [failed-restart-keeps-the-session]
        if not ice.password:  # RFC 9725 §4.3.3 [failed-restart-keeps-the-session]
            raise RemoteError("A restart of ICE needs an ice-pwd")
        fragment = self._sessions.restart(session, ice)
        # WHEP §4.4.3 [restart-is-200] [restart-has-a-new-etag], §4.4.1 [tag-of-each-ice]
        # RFC 9725 §4.3.3 [restart-is-200] [restart-has-a-new-etag], §4.3.1 [tag-of-each-ice]
        # RFC 9725 §4.3 [trickle-and-restarts]
        start("200 OK", [*_CORS, ("Content-Type", FRAGMENT), ("ETag", _tag(session))])
        return [fragment]


def where(environ: Environ) -> tuple[str, str, str]:
    """The application, the stream and the session of a path, empty for an endpoint."""
    match = _match(environ)
    return ("", "", "") if match is None else (match[1], match[2], match[4] or "")


def _match(environ: Environ) -> re.Match[str] | None:
    path = str(environ["PATH_INFO"]).encode("latin-1", "replace").decode("utf-8", "replace")
    return _PATH.fullmatch(path)


def _type_of(environ: Environ) -> str:
    return str(environ.get("CONTENT_TYPE", "")).partition(";")[0].strip().lower()


def _body(environ: Environ) -> bytes:
    """Read the content of a request.  Raises RemoteError: 413 if it is too long, or 400."""
    try:
        data: bytes = environ["wsgi.input"].read(MAX_OFFER + 1)
    except OSError:  # the client has gone, or the content is malformed
        raise RemoteError("The description has not come whole") from None
    if len(data) > MAX_OFFER:
        raise RemoteError("That is too long for a description", 413)
    return data


def _query(environ: Environ) -> str:
    """What a client proves itself by: its bearer token, then the query: RFC 9725 §4.7.1."""
    # RFC 9725 §4.7.1 [token-may-be-asked-for], §4.7 [bearer-is-known] [http-has-proofs]
    scheme, _, token = str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else ""
    if token and "=" not in token.rstrip("="):  # which pads base64
        token = f"key={token}"
    return "&".join(filter(None, (token, environ.get("QUERY_STRING", ""))))


def _layered(session: BrowserSession) -> BrowserViewer | None:
    """The viewer of a session that may choose a layer."""
    peer = session.peer
    return peer if isinstance(peer, BrowserViewer) and peer.has_layers else None


def _empty(start: Start) -> Iterable[bytes]:
    # WHEP §4.1 [get-is-empty]
    start("204 No Content", _CORS)  # RFC 9725 §4.1 [get-is-empty]
    return []


def _tag(session: BrowserSession) -> str:
    return f'"{session.tag}"'


def _refuse(error: RemoteError, start: Start, methods: str) -> Iterable[bytes]:
    status = 422 if error.status == _NOT_ACCEPTABLE else error.status
    headers = [*_CORS, _TEXT]
    if status == 401:
        headers.append(("WWW-Authenticate", "Bearer"))
    if status == 405:
        headers.append(("Allow", methods))
    if status == 415:
        headers += _TAKEN
    if status == 503 or error.reason == ABSENT:  # RFC 9725 §4.5 [overload-is-503]
        headers.append(("Retry-After", "10" if status == 503 else "2"))
    start(_REASONS.get(status, _REASONS[400]), headers)
    return [f"{error.reason}.\n".encode()]
