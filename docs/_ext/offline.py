"""Checks the pages that were built, without a network: links lead somewhere, nothing is fetched.

Sphinx knows the links of documents, but not those of drawings, margins and tables in raw HTML.
What is wrong is a warning, which `make docs` takes for an error.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from sphinx.application import Sphinx
from sphinx.util import logging

LINK = re.compile(r'<\w[^<>]*?\s(?:href|src)="([^"]*)"')
PLACE = re.compile(r'<\w[^<>]*?\s(?:id|name)="([^"]*)"')
OUTSIDE = re.compile(r"[a-z]+:|//")
FETCHED = re.compile(
    r'<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc="((?:https?:)?//[^"]*)'
    r'|<link\b[^>]*\shref="((?:https?:)?//[^"]*)'
)
FETCHED_BY_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s*["'])((?:https?:)?//[^"')]*)""")


def broken(top: Path) -> Iterator[str]:
    """Say what is wrong with the pages below a folder."""
    places: dict[Path, set[str]] = {}
    links: dict[tuple[Path, str], Path] = {}  # with the first page that has it
    for page in sorted(top.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        places[page] = set(PLACE.findall(text))
        for link in set(LINK.findall(text)):
            base = page if link.startswith("#") else page.parent
            links.setdefault((base, link), page)
        for found in FETCHED.finditer(text):
            yield f"{page.relative_to(top)} fetches {found[1] or found[2]}"
    for (base, link), page in links.items():
        if not OUTSIDE.match(link) and not _leads(base, link, places):
            yield f"{page.relative_to(top)} has a link that leads nowhere: {link}"
    for style in sorted(top.rglob("*.css")):
        for url in FETCHED_BY_STYLE.findall(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(top)} fetches {url}"


def _leads(base: Path, link: str, places: dict[Path, set[str]]) -> bool:
    name, _, place = link.partition("#")
    path = Path(os.path.normpath(base / unquote(name.partition("?")[0]))) if name else base
    if path not in places:
        return path.is_file() if name else not place
    return not place or unquote(place) in places[path]


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of everything that is wrong."""
    if error is None and app.builder.format == "html":
        for found in broken(Path(app.outdir)):
            logging.getLogger(__name__).warning(found)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
