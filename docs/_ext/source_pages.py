"""Highlighted sources as pages of the site, and links that open them at the line.

A page links `[uac.py](../../src/p2psip/ua/uac.py#Uac.invite)`, which a browser of the repository
opens as a file; here it opens `_modules/src/p2psip/ua/uac.html` where `Uac.invite` is defined.
What the Python domain describes gets a link to its source, found through the front doors.
"""

import importlib
import posixpath
import re
from collections.abc import Iterator
from html import escape
from types import ModuleType
from typing import Any

from definitions import REPO, definitions
from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx import addnodes
from sphinx.application import Sphinx

SHOWN = ("src", "docs/_ext")
SCHEME = "source:"
LINK = re.compile(r"\]\(((?:\.\./)+[\w/]+\.py)((?:#[\w.]+)?)\)")
LINE = re.compile(r"L[0-9]+")


def mark_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Turn links to files that are shown into ones that `open_links` knows."""
    folder = posixpath.join("docs", posixpath.dirname(name))

    def mark(link: re.Match[str]) -> str:
        file = posixpath.normpath(posixpath.join(folder, link[1]))
        return f"]({SCHEME}{file}{link[2]})" if file.startswith(SHOWN) else link[0]

    source[0] = LINK.sub(mark, source[0])


def link_descriptions(app: Sphinx, tree: nodes.document) -> None:
    """Put a link to its source beside the signature of each public name."""
    for signature in tree.findall(addnodes.desc_signature):
        name, door = signature.get("fullname"), signature.get("module")
        home = home_of(door, name) if name and door else ""
        if home:
            text = nodes.inline("", "[source]", classes=["viewcode-link"])
            signature += nodes.reference("", "", text, refuri=f"{SCHEME}{home}", internal=True)


def home_of(door: str, name: str) -> str:
    """The file that defines a name of a package, and the name behind a #."""
    package, first = importlib.import_module(door), name.partition(".")[0]
    shown = getattr(package, first, None)
    if isinstance(shown, ModuleType):
        return posixpath.relpath(shown.__file__ or "", REPO) if name == first else ""
    homes = getattr(package, "_HOME_OF", {})
    module = homes.get(first) or getattr(shown, "__module__", door)
    path = "src/" + module.replace(".", "/")
    file = f"{path}/__init__.py" if (REPO / path).is_dir() else f"{path}.py"
    if not (REPO / file).is_file():
        return ""
    place = next((each for each in (name, first) if each in definitions(file)), "")
    return f"{file}#{place}" if place else file  # a module that is offered whole has no line


def open_links(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Point links at the pages of sources, and at the line."""
    for link in tree.findall(nodes.reference):
        if not link.get("refuri", "").startswith(SCHEME):
            continue
        file, _, place = link["refuri"].removeprefix(SCHEME).partition("#")
        link["internal"] = True
        link["refuri"] = app.builder.get_relative_uri(name, page_of(file))
        if place and not LINE.fullmatch(place):
            if place not in definitions(file):
                raise LookupError(f"{name}: {file} does not define {place}")
            place = f"L{definitions(file)[place]}"
        link["refuri"] += f"#{place}" if place else ""


def page_of(file: str) -> str:
    """The page that shows a file."""
    return f"_modules/{file.removesuffix('.py')}"


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every file that is shown, and a list of them."""
    formatter = HtmlFormatter(linespans="L", wrapcode=True)
    files = [str(path.relative_to(REPO)) for top in SHOWN for path in (REPO / top).rglob("*.py")]
    uri, items = app.builder.get_relative_uri, []
    for file in sorted(files):
        page = page_of(file)
        shown = highlight((REPO / file).read_text(encoding="utf-8"), PythonLexer(), formatter)
        body = shown.replace('<span id="L-', '<span id="L')
        parents = [{"title": "Sources", "link": uri(page, "_modules/index")}]
        title = file.removeprefix("src/")
        body = f'<h1>{escape(title)}</h1><div class="source">{body}</div>'
        yield page, {"title": title, "body": body, "parents": parents}, "page.html"
        items.append(f'<li><a href="{uri("_modules/index", page)}">{escape(title)}</a></li>')
    body = f"<h1>Sources</h1><ul>{''.join(items)}</ul>"
    yield "_modules/index", {"title": "Sources", "body": body, "parents": []}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("source-read", mark_links, priority=400)
    app.connect("doctree-read", link_descriptions)
    app.connect("doctree-resolved", open_links)
    app.connect("html-collect-pages", pages)
    app.add_css_file("source.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
