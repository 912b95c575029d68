"""The gateway's own pages, which a browser gets as files: the phone and the console.

Own design: a page has no script or style but the gateway's own, talks to the gateway alone, and is
shown in no frame of another page.  So what somebody writes into a name or a message stays text,
also where the page itself forgets to see to it.
"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, NamedTuple

FOLDERS: Final = ("phone", "console")  # below `pages`, and in addresses
SHARED: Final = "shared"  # the folder whose files stand in each of the others
INDEX: Final = "index.html"
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = [
    ("Content-Security-Policy", _POLICY),
    ("Permissions-Policy", "camera=(self), microphone=(self), display-capture=(self)"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-cache"),  # kept, and asked for by its tag: a new version shows at once
]
_TEXT: Final = ("Content-Type", "text/plain; charset=utf-8")

Start = Callable[..., Any]


class StaticFile(NamedTuple):
    """A file as it is served: its media type, its content, its entity-tag."""

    type: str
    content: bytes
    tag: str


class StaticPages:
    """The WSGI application of all pages; its files are read once, and there are no others."""

    def __init__(self) -> None:
        folder = files(__package__) / "pages"
        self._files = {
            f"/{name}/{each.name}": _read(each)
            for name in FOLDERS
            for source in (SHARED, name)
            for each in (folder / source).iterdir()
            if each.name.rpartition(".")[2] in _TYPES
        }

    def serves(self, environ: Mapping[str, Any]) -> bool:
        """Whether the path is one of a page's folder."""
        return str(environ["PATH_INFO"]).removeprefix("/").partition("/")[0] in FOLDERS

    def __call__(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        """Answer with a file."""
        path = environ["PATH_INFO"]
        if path.count("/") == 1:  # a page finds its other files from its folder
            start("308 Permanent Redirect", [("Location", f"{path}/"), ("Content-Length", "0")])
            return []
        found = self._files.get(path + INDEX if path.endswith("/") else path)
        if found is None:
            start("404 Not Found", [_TEXT, *_HEADERS])
            return [b"There is no such file.\n"]
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start("405 Method Not Allowed", [_TEXT, ("Allow", "GET, HEAD")])
            return [b"A page takes GET and HEAD.\n"]
        if found.tag in str(environ.get("HTTP_IF_NONE_MATCH", "")):
            start("304 Not Modified", [*_HEADERS, ("ETag", found.tag)])
            return []
        size = ("Content-Length", str(len(found.content)))
        start("200 OK", [*_HEADERS, ("Content-Type", found.type), size, ("ETag", found.tag)])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [found.content]


def _read(file: Traversable) -> StaticFile:
    content = file.read_bytes()
    kind = _TYPES[file.name.rpartition(".")[2]]
    return StaticFile(kind, content, f'"{sha256(content).hexdigest()[:16]}"')
