"""Drafts of catalogue entries for the sentences of a spec that nobody has catalogued.

A draft has the place, the word that binds and the mark; its sentence stands above it in a comment,
for the author to say it again in other words: rule 8 fails while the comment is there.  Where the
catalogue that comes with the tool knows the sentence, its entry is given instead, without excuses
and refusals, which each project decides itself.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rfc_annotations import catalogue, sentences
from rfc_annotations.catalogue import Requirement
from rfc_annotations.fingerprint import fingerprint, locate
from rfc_annotations.project import Project
from rfc_annotations.specs import Spec, cut

# The sentence on how to read the words of RFC 2119, which demands nothing itself.
BOILERPLATE: Final = re.compile(r"\bkey ?words\b.*\binterpreted\b", re.IGNORECASE)
RFC_FILE: Final = re.compile(r"rfc(\d+)\.txt", re.IGNORECASE)
SHIPPED: Final = Path(__file__).parent / "requirements"
PERMITTED: Final = ("MAY", "OPTIONAL")


def spec_of(project: Project, file: Path) -> Spec | None:
    """Tell which spec a local copy is of, by its name; an RFC may be one that is not listed yet."""
    for spec in project.library.specs.values():
        if spec.file and spec.file == file.name:
            return spec
    rfc = RFC_FILE.fullmatch(file.name)
    return Spec(f"RFC {rfc[1]}", "", file.name) if rfc else None


def draft(project: Project, spec: Spec, text: str, shipped: Path = SHIPPED) -> Iterator[str]:
    """Yield the lines of a TOML file: an entry for each binding sentence that has no mark yet.

    `shipped` is the folder of the catalogue that comes with the tool.
    """
    yield f"spec = {json.dumps(spec.name)}"
    known = catalogue.load(shipped, shipped.parent, spec.name)
    for section, (_, body) in cut(spec, text).items():
        marks = tuple(project.catalogue.marks(spec.name, section))
        for item in known.of(spec.name, section):
            if not set(item.marks).intersection(marks) and locate(body, item.marks[0]):
                marks += item.marks
                yield from _known(item)
        for number, sentence in enumerate(sentences.unmarked(body, marks, spec.plain), 1):
            if section and not BOILERPLATE.search(sentence):
                yield from _entry(section, number, sentence, body, spec.plain)


def _known(item: Requirement) -> Iterator[str]:
    yield f"\n# replaced by {item.replaced_by}" if item.replaced_by else ""
    yield "[[requirement]]"
    for name in ("section", "slug", "level", "who", "summary"):
        yield f"{name} = {json.dumps(getattr(item, name), ensure_ascii=False)}"
    first, *also = item.marks
    yield f'mark = "{first}"'
    if also:
        yield f"also = {json.dumps(also)}"
    if item.as_one:
        yield f"as-one = {json.dumps(item.as_one, ensure_ascii=False)}"


def _entry(section: str, number: int, sentence: str, body: str, plain: bool) -> Iterator[str]:
    mark = fingerprint(sentence)
    found = locate(body, mark) is not None
    level = level_of(sentence, plain)
    yield f"\n# {sentence}"
    yield "[[requirement]]"
    yield f"section = {json.dumps(section, ensure_ascii=False)}"
    yield f'slug = "draft-{number}"'
    yield f'level = "{level}"'
    yield 'who = ""'
    yield 'summary = ""'
    yield f'mark = "{mark}"' if found else f'mark = ""  # make it with `mark`: {mark} is not found'


def level_of(sentence: str, plain: bool = False) -> str:
    """Guess the level: the first word that commands, or else the first that permits.

    >>> [level_of(text) for text in ("It MAY go, but MUST NOT run.", "It MAY go.")]
    ['MUST NOT', 'MAY']
    >>> level_of("The host must wait.", plain=True)
    'MUST'
    """
    words = sentences.PLAIN if plain else sentences.KEYWORD
    found = [" ".join(match[0].upper().split()) for match in words.finditer(sentence)]
    commands = [word for word in found if word not in PERMITTED]
    return next(iter(commands or found), "FACT")
