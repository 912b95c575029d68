"""Highlighted sources as pages of the site, and links that open them at the line.

A page links `[uac.py](../../src/p2psip/ua/uac.py#Uac.invite)`, which a browser of the repository
opens as a file; here it opens `_modules/src/p2psip/ua/uac.html` where `Uac.invite` is defined.
What the Python domain describes gets a link to its source, found through the front doors.
"""

import functools
import importlib
import posixpath
import re
from collections.abc import Callable, Iterator
from html import escape
from types import ModuleType
from typing import Any

from definitions import REPO, definitions
from docutils import nodes
from margin import add_names, source_html
from sphinx import addnodes
from sphinx.application import Sphinx

SHOWN = ("src", "tests", "docs/_ext")
SCHEME = "source:"
NAME = "public-name:"
TOP = "_modules"  # folder of the pages
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
        if name and door and home_of(door, name):
            text = nodes.inline("", "[source]", classes=["viewcode-link"])
            signature += nodes.reference("", "", text, refuri=f"{NAME}{door}:{name}", internal=True)


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
    for link in list(tree.findall(nodes.reference)):
        if link.get("refuri", "").startswith(NAME):  # which may have moved since it was read
            home = home_of(*link["refuri"].removeprefix(NAME).split(":"))
            link["refuri"] = SCHEME + home
            if not home:
                link.parent.remove(link)
                continue
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


class Navigation:
    """The list of all pages, as it stands beside a source.

    It has no source in it, so it is the same beside all sources in folders of one depth.  Sphinx
    makes it for each page, which would take longer than all the rest.
    """

    def __init__(self) -> None:
        self._made: dict[object, str] = {}

    def share(
        self, app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object
    ) -> None:
        """Make it once for all sources that are equally deep."""
        make: Callable[..., str] | None = context.get("toctree")
        if make is None or not page.startswith(f"{TOP}/"):
            return

        def toctree(**options: object) -> str:
            key = page.count("/"), *sorted(options.items())
            if key not in self._made:
                self._made[key] = make(**options)
            return self._made[key]

        context["toctree"] = toctree


def page_of(file: str) -> str:
    """The page that shows a file."""
    return f"{TOP}/{file.removesuffix('.py')}"


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every file that is shown, and a list of them."""
    files = sorted(
        str(path.relative_to(REPO)) for top in SHOWN for path in (REPO / top).rglob("*.py")
    )
    uri, items = app.builder.get_relative_uri, []
    add_names(app, {page_of(file): file for file in files})
    for file in files:
        page = page_of(file)
        parents = [{"title": "Sources", "link": uri(page, f"{TOP}/index")}]
        title = file.removeprefix("src/")
        body = f"<h1>{escape(title)}</h1>{source_html(file, functools.partial(uri, page))}"
        yield page, {"title": title, "body": body, "parents": parents}, "page.html"
        items.append(f'<li><a href="{uri(f"{TOP}/index", page)}">{escape(title)}</a></li>')
    body = f"<h1>Sources</h1><ul>{''.join(items)}</ul>"
    yield f"{TOP}/index", {"title": "Sources", "body": body, "parents": []}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("source-read", mark_links, priority=400)
    app.connect("doctree-read", link_descriptions)
    app.connect("doctree-resolved", open_links)
    app.connect("html-collect-pages", pages)
    app.connect("html-page-context", Navigation().share, priority=400)  # before the theme
    app.add_css_file("source.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
