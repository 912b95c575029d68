"""What is known of the specs' requirements when the pages are built, and the list of their pages.

Each spec has a page that says nothing but a directive: even titles are words of the specs.  The
files are written when a build begins, and again only if what the page will show has changed.
"""

import functools
import hashlib
import json
import re

from definitions import REPO
from sphinx.application import Sphinx

from rfc_annotations import evidence, results
from rfc_annotations.project import Project
from rfc_annotations.record import Book, Chapter, Part, part_document
from rfc_annotations.scan import uncollected

FOLDER = "6-conformance/specs"
EVIDENCE = REPO / ".annotations.json"  # what `make test` leaves
MUTANTS = REPO / "rfc_annotations/mutants.txt"  # what the runs of `make mutants` added up to
FIELD = "Field"  # our own ledger of what only peers define
RFC = re.compile(r"RFC (\d+)")
STUB = """\
---
hide-toc: true
---
% {digest}

```{{spec}} {name}
```
"""


@functools.cache
def book() -> Book:
    """Everything, read once a build."""
    project = Project(REPO)
    proof = evidence.load(EVIDENCE) if EVIDENCE.is_file() else None
    with uncollected():
        scores = results.load(MUTANTS, project) if MUTANTS.is_file() else {}
        found = Book(project, proof, scores)
        assert found.parts
    return found


@functools.cache
def parts() -> dict[str, Part]:
    """The specs by name."""
    return {part.name: part for part in book().parts}


def page_of_spec(name: str) -> str:
    """The page of a spec."""
    return f"{FOLDER}/{parts()[name].slug}"


def anchor(section: str, slug: str = "") -> str:
    """The place on its page of a section, or of a requirement."""
    place = "s" + re.sub(r"[^\w.]+", "-", section)
    return f"{place}-{slug}" if slug else place


def section_link(chapter: Chapter) -> str:
    """Where others publish the text of a section; empty for what is no RFC."""
    rfc = RFC.fullmatch(chapter.spec)
    if not rfc or not re.fullmatch(r"[A-Z\d.]+", chapter.number):
        return ""
    kind = "section" if chapter.number[0].isdigit() else "appendix"
    return f"https://www.rfc-editor.org/rfc/rfc{rfc[1]}#{kind}-{chapter.number}"


def write_stubs(app: Sphinx) -> None:
    """Bring the files of the pages up to date."""
    folder = app.srcdir / FOLDER
    folder.mkdir(exist_ok=True)
    wanted = {f"{part.slug}.md": _stub(part) for part in parts().values()}
    for path in folder.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def read_again(app: Sphinx, *_: object) -> list[str]:
    """The pages about all specs, which no file of theirs says to be out of date."""
    return ["6-conformance/index", "6-conformance/matrix"]


def _stub(part: Part) -> str:
    """The file of one page; its digest is of the data and of the lines of code that it shows."""
    digest = hashlib.sha256(json.dumps(part_document(part)).encode())
    excerpts = book().excerpts
    for rule in part.rules:
        for spot in rule.code:
            digest.update("\n".join(excerpts.text(spot.file, spot.lines)).encode())
    if part.name == FIELD:
        digest.update((REPO / book().project.ledgers[FIELD]).read_bytes())
    return STUB.format(name=part.name, digest=digest.hexdigest()[:16])


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_config_value("spec_texts", "", "env")  # a folder of copies: their text is shown too
    app.connect("builder-inited", write_stubs)
    app.connect("env-get-outdated", read_again)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
