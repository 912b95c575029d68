"""The tree by plain HTTP: the same requests and answers, and subscriptions with a URL.

Implements Resources §10 and §13.1.
"""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JSON, Entity, is_json, read_json
from siprtmp.web.resources.messages import METHODS, VIEWS, Reply, Request, answer, check
from siprtmp.web.resources.path import read_path, write_path
from siprtmp.web.resources.tree import Tree, Wishes

PREFIX: Final = "/tree"
MERGE_PATCH: Final = "application/merge-patch+json"
MAX_CONTENT: Final = 128 << 10  # octets
_TEXT: Final = ("Content-Type", "text/plain; charset=utf-8")
# A page that is shown from here runs nothing, and no reader guesses at another type.
GUARDS: Final = [
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'none'; sandbox"),
]
ALLOWED: Final = "GET, HEAD, PUT, POST, PATCH, DELETE, NOTIFY, SUBSCRIBE, UNSUBSCRIBE"

Environ = Mapping[str, Any]
Start = Callable[..., Any]


def serves(environ: Environ) -> bool:
    """Whether a request is for the tree."""
    path = environ["PATH_INFO"]
    return bool(path == PREFIX or path.startswith(f"{PREFIX}/"))


def respond(
    tree: Tree, asker: Asker, environ: Environ, start: Start, more: list[tuple[str, str]]
) -> Iterable[bytes]:
    """Answer a request by WSGI; `more` are headers that each answer gets."""
    try:
        reply = answer(tree, read_request(environ), asker)
    except RemoteError as error:
        return refuse(error, start, more)
    headers = [*more, *GUARDS]
    if reply.tag:  # Resources §10
        headers.append(("ETag", reply.tag))
    if reply.status == HTTPStatus.CREATED:  # Resources §10 [location-of-the-new]
        headers.append(("Location", PREFIX + quote(write_path(reply.path))))
    return _send(reply, environ, start, headers)


def _send(
    reply: Reply, environ: Environ, start: Start, headers: list[tuple[str, str]]
) -> Iterable[bytes]:
    if reply.entity is None:
        is_empty = reply.status == HTTPStatus.NO_CONTENT
        start(_line(reply.status), headers if is_empty else [*headers, ("Content-Length", "0")])
        return []
    body, media_type = reply.entity.octets, reply.entity.type
    start(
        _line(reply.status),
        [*headers, ("Content-Type", media_type), ("Content-Length", str(len(body)))],
    )
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def refuse(error: RemoteError, start: Start, more: list[tuple[str, str]]) -> Iterable[bytes]:
    """Answer with an error."""
    headers = [*more, *GUARDS, _TEXT]
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers += [
            ("WWW-Authenticate", 'Basic realm="siprtmp", charset="UTF-8"'),
            ("WWW-Authenticate", "Bearer"),
        ]
    if error.status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append(("Allow", f"{ALLOWED}, OPTIONS"))
    start(_line(error.status), headers)
    return [f"{error.reason}.\n".encode()]


def read_request(environ: Environ) -> Request:
    """Read a request of HTTP.  Raises RemoteError."""
    method = "GET" if environ["REQUEST_METHOD"] == "HEAD" else environ["REQUEST_METHOD"]
    if method not in METHODS:
        raise RemoteError("The tree has no such method", 405)
    asked = dict(parse_qsl(str(environ.get("QUERY_STRING", "")), max_num_fields=32))
    view = asked.get("view", "entity")
    if view not in VIEWS:
        raise RemoteError("There is no such view")
    entity = change = None
    url, secret = None, ""
    if method in ("PUT", "POST", "NOTIFY"):
        entity = Entity.read(str(environ.get("CONTENT_TYPE") or JSON), _content(environ))
    elif method == "PATCH":
        media_type = str(environ.get("CONTENT_TYPE") or MERGE_PATCH).partition(";")[0].strip()
        if not is_json(media_type):  # Resources §10 [patch-is-a-merge-patch]
            raise RemoteError(f"A change is {MERGE_PATCH}", 415)
        change = read_json(_content(environ))
    elif method in ("SUBSCRIBE", "UNSUBSCRIBE"):
        url, secret = _target(environ)
    wishes = Wishes(
        str(environ.get("HTTP_IF_MATCH", "")),
        str(environ.get("HTTP_IF_NONE_MATCH", "")) if method != "GET" else "",
        {"true": True, "false": False}.get(asked.get("persistent", "")),
        asked.get("mode"),
        asked.get("group"),
    )
    path = _path(environ)
    return Request(method, path, entity, change, view, wishes, url=url, secret=secret)


def _target(environ: Environ) -> tuple[str, str]:
    """The URL and the secret of a content such as `{"url": "https://crm.example/calls"}`."""
    content = _content(environ)
    if not content:  # Resources §10
        raise RemoteError("Subscriptions need a WebSocket, or a URL to post to", 405)
    said = read_json(content)
    # Resources §13.1 [url-in-the-content]
    if not isinstance(said, dict) or not {"url"} <= said.keys() <= {"url", "secret"}:
        raise RemoteError("The content has a url, perhaps a secret, and nothing else")
    for name, value in said.items():
        check(name, value)
    return said["url"], said.get("secret", "")


def _path(environ: Environ) -> tuple[str, ...]:
    """Read the path of a request, which the server has unescaped once."""
    text = str(environ["PATH_INFO"]).encode("latin-1", "replace").decode("utf-8", "surrogateescape")
    return read_path(text.removeprefix(PREFIX) or "/")


def _content(environ: Environ) -> bytes:
    try:
        data: bytes = environ["wsgi.input"].read(MAX_CONTENT + 1)
    except OSError:  # the client has gone, or the content is malformed
        raise RemoteError("The content has not come whole") from None
    if len(data) > MAX_CONTENT:
        raise RemoteError("That is too much for one resource", 413)
    return data


def _line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Refused"
