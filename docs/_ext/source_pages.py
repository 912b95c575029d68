"""Sources as pages of the site, a room on each, and links that open them at the line.

A page links `[uac.py](../../src/p2psip/ua/uac.py#Uac.invite)`, which a browser of the repository
opens as a file; here it opens `_modules/src/p2psip/ua.html` where `Uac.invite` is defined.
What the Python domain describes gets a link to its source, found through the front doors.
"""

import functools
import importlib
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from html import escape
from types import ModuleType
from typing import Any

from definitions import REPO, definitions
from docutils import nodes
from highlighted import place_of
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
        link["refuri"] += f"#{place_of(file, place)}"


def list_titles(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object
) -> None:
    """Let the list of all pages be made of their titles, which is all that it shows.

    Sphinx copies every heading and every name of every page for it, once for each page.
    """
    make: Callable[..., str] | None = context.get("toctree")
    if make is None:
        return

    def toctree(**options: object) -> str:
        whole = app.env.tocs
        app.env.tocs = {name: title_of(toc) for name, toc in whole.items()}
        try:
            return make(**options)
        finally:
            app.env.tocs = whole

    context["toctree"] = toctree


@functools.cache  # every page asks for all of them
def title_of(toc: nodes.bullet_list) -> nodes.bullet_list:
    """A table of contents without what is below its title, unless that leads to other pages."""
    if len(toc) != 1 or any(toc.findall(addnodes.toctree)):
        return toc
    return nodes.bullet_list("", nodes.list_item("", toc[0][0]))


def page_of(file: str) -> str:
    """The page that shows a file: that of its room."""
    return f"{TOP}/{posixpath.dirname(file)}"


def pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every room of sources, and a list of them."""
    rooms: dict[str, list[str]] = defaultdict(list)
    for path in sorted(path for top in SHOWN for path in (REPO / top).rglob("*.py")):
        file = path.relative_to(REPO).as_posix()
        rooms[page_of(file)].append(file)
    uri, items = app.builder.get_relative_uri, []
    add_names(app, rooms)
    top = {"parents": [], "toctree": lambda **options: ""}  # the list of all pages is the heaviest
    for page, files in sorted(rooms.items()):
        title = page.removeprefix(f"{TOP}/")
        links = (f'<a href="#{place_of(file)}">{posixpath.basename(file)}</a>' for file in files)
        body = f"<h1>{escape(title)}</h1><p>{' · '.join(links)}</p>"
        body += "".join(
            f'<h2 id="{place_of(file)}">{escape(posixpath.basename(file))}</h2>'
            + source_html(file, functools.partial(uri, page))
            for file in files
        )
        parents = [{"title": "Sources", "link": uri(page, f"{TOP}/index")}]
        yield page, top | {"title": title, "body": body, "parents": parents}, "page.html"
        items.append(f'<li><a href="{uri(f"{TOP}/index", page)}">{escape(title)}</a></li>')
    body = f"<h1>Sources</h1><ul>{''.join(items)}</ul>"
    yield f"{TOP}/index", top | {"title": "Sources", "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.connect("source-read", mark_links, priority=400)
    app.connect("doctree-read", link_descriptions)
    app.connect("doctree-resolved", open_links)
    app.connect("html-collect-pages", pages)
    app.connect("html-page-context", list_titles, priority=400)  # before the theme
    app.add_css_file("source.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
