"""The command line.

It has the commands check, coverage, report, show, find, explain, index, mark, catalogue, mutants.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rfc_annotations import (
    counts,
    crowded,
    draft,
    evidence,
    executed,
    lookup,
    mutants_accepted,
    page,
    promises,
    ratchet,
    record,
    report,
    results,
    settings,
    specs,
)
from rfc_annotations.check import Check
from rfc_annotations.claims import collect
from rfc_annotations.fingerprint import fingerprint
from rfc_annotations.grammar import spell
from rfc_annotations.options import UsageError, parse
from rfc_annotations.project import Project
from rfc_annotations.settings import TABLE, TOOL, SettingsError

INTERRUPTED = 130  # the exit code of a program that SIGINT ends
SHOWN = 8  # sections that a message names
RFC = re.compile(r"\W*RFC\W*(\d+)", re.IGNORECASE)


class NotFoundError(Exception):
    """The section, requirement or file does not exist; the message is one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; give the exit code: 0 fine, 1 problems, 2 wrong usage, 130 Ctrl-C."""
    try:
        return _run(parse(arguments))
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except NotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    except (UsageError, SettingsError) as error:
        print(f"{TOOL}: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    root = _find_root(Path(options.root).resolve() if options.root else Path.cwd())
    project = Project(root)
    project.specs_folder = _specs_folder(options.specs, project)
    commands = {
        "check": _check,
        "coverage": _coverage,
        "report": _report,
        "show": _show,
        "find": _find,
        "explain": _explain,
        "index": _index,
        "mark": _mark,
        "catalogue": _catalogue,
        "mutants": _mutants,
    }
    return commands[options.command](project, options)


def _find_root(start: Path) -> Path:
    found = settings.find_root(start)
    if found is None:
        raise UsageError(f"no {settings.FILE} with {TABLE} in {start} or above; give --root")
    return found


def _specs_folder(option: str | None, project: Project) -> Path | None:
    asked = option or os.environ.get("RFC_SPECS")
    folder = Path(asked).resolve() if asked else project.root / project.settings.specs
    if folder.is_dir():
        return folder
    if asked:
        raise UsageError(f"{folder} is not a folder of specs")
    return None


def _check(project: Project, options: argparse.Namespace) -> int:
    proof = _evidence(options.evidence) if options.evidence else None
    if options.update:
        _update(project)
    ran = _executed(options.coverage, project.root) if options.coverage else None
    check = Check(project, proof, ran)
    problems = check.run()
    for problem in problems:
        print(problem)
    if check.unverified:
        print("unverified for want of local copies:", ", ".join(check.unverified))
    if proof is None:
        print("no evidence of a test run: test claims are taken at their word (rules 4 and 11)")
    if check.uncounted:
        print("no coverage of these, whose claims are taken at their word:", *check.uncounted)
    figures = counts.count(project, check.claims, check.measured, proof)
    print(counts.headline(figures, check.measured))
    print(f"{report.totals(project, check.claims)}, {len(problems)} problems")
    return int(bool(problems))


def _coverage(project: Project, options: argparse.Namespace) -> int:
    """Count, or tell the promises that came and went; exit with 1 if one is dropped."""
    proof = _evidence(options.evidence) if options.evidence else None
    scores = _results(options.mutants, project) if options.mutants else {}
    asked = _spec(project, " ".join(options.spec)) if options.spec else None
    if options.write:
        _update(project)
    if options.against:
        before = promises.read(promises.at(project, options.against))
        now = promises.read(report.snapshot(project, collect(project)))
        change = promises.compare(before, now)
        print("\n".join([*change.lines, str(change)]))
        return int(change.dropped > 0)
    check = Check(project)
    killed = results.by_requirement(scores)
    figures = counts.count(project, check.claims, check.measured, proof, killed)
    if asked:
        figures = {asked: figures.get(asked, {})}
    unverified = ratchet.unverified(project, figures)
    listed = counts.by_section if asked else counts.by_spec
    print("\n".join([counts.COLUMNS, *listed(figures, check.measured, unverified)]))
    print(counts.headline(figures, check.measured))
    return 0


def _spec(project: Project, text: str) -> str:
    found = lookup.find_section(text, project.library.specs, project.index).specs
    if len(found) != 1:
        raise UsageError(f"which spec is {text!r}? {', '.join(found) or 'none of specs.toml'}")
    return found[0]


def _update(project: Project) -> None:
    """Write the present numbers: first ratchet.toml, then coverage.txt and the pages."""
    committed = ratchet.load(project)
    now = ratchet.lowered(committed, ratchet.measure(project, committed))
    ratchet.save(
        project.folder / ratchet.NAME, now, _claims_to_commit(project), _tests_to_commit(project)
    )
    claims = collect(project)
    project.snapshot.write_text(report.snapshot(project, claims))
    for path in report.pages(project):
        path.write_text(report.restated(project, claims, path.read_text()))


def _lower_claims(project: Project) -> None:
    """Commit the claims that have just got a killed mutant, where their number is held."""
    if ratchet.load_claims(project) is not None:
        committed = ratchet.load(project)
        claims, tests = _claims_to_commit(project), ratchet.load_tests(project)
        ratchet.save(project.folder / ratchet.NAME, committed, claims, tests)


def _claims_to_commit(project: Project) -> int | None:
    """How many claims may be without a killed mutant from now on: no more than before."""
    now, allowed = ratchet.measure_claims(project), ratchet.load_claims(project)
    return now if now is None or allowed is None else min(now, allowed)


def _tests_to_commit(project: Project) -> int:
    """How many tests may claim more than eight requirements from now on: no more than before."""
    return min(len(list(crowded.tests(project))), ratchet.load_tests(project))


def _evidence(name: str) -> evidence.Evidence:
    try:
        return evidence.load(Path(name))
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UsageError(f"{name} is not what `pytest --annotations` wrote") from None


def _executed(names: Sequence[str], root: Path) -> executed.Executed:
    try:
        return executed.load(map(Path, names), root)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        named = ", ".join(names)
        raise UsageError(
            f"{named} is not what `gcov --json-format` or `llvm-cov export` writes"
        ) from None


def _results(name: str, project: Project) -> results.Scores:
    try:
        return results.load(Path(name), project)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UsageError(f"{name} is not what `mutants --results` wrote") from None


def _report(project: Project, options: argparse.Namespace) -> int:
    claims = collect(project)
    for line in report.table(project, claims):
        print(line)
    committed = ratchet.load(project)
    print(counts.headline(counts.count(project, claims, committed), committed))
    print(report.totals(project, claims))
    if options.html or options.json:
        _write_book(project, options)
    return 0


def _write_book(project: Project, options: argparse.Namespace) -> None:
    proof = _evidence(options.evidence) if options.evidence else None
    scores = _results(options.mutants, project) if options.mutants else {}
    book = record.Book(project, proof, scores)
    try:
        if options.json:
            Path(options.json).write_text(record.dumped(book))
        if options.html:
            Path(options.html).write_text("".join(page.page(book)))
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None


def _place(project: Project, text: str) -> tuple[str, str]:
    """Read `RFC 3261 §17.1.3`, or an abbreviation of it."""
    found = lookup.find_section(text, project.library.specs, project.index)
    if len(found.places) == 1:
        return found.places[0]
    if not found.places and (named := lookup.of_slug(text, project.folder / "requirements")):
        found = lookup.Found(named, (), "")
        if len(named) == 1:
            return named[0]
    if found.places:
        shown = ", ".join(spell(*place) for place in found.places[:SHOWN])
        more = len(found.places) - SHOWN
        raise NotFoundError(f"which one? {shown}{f' and {more} more' if more > 0 else ''}")
    if not found.specs:
        _deny(project, text)
    asked, known = found.specs[0], project.index.get(found.specs[0], {})
    if not found.rest:
        raise NotFoundError(f"{asked} has {len(known)} sections; say which one")
    near = lookup.near(found.rest, known)[:SHOWN]
    hint = f"; there is {', '.join(near)}" if near else ""
    raise NotFoundError(f"there is no {spell(asked, found.rest)}{hint}")


def _deny(project: Project, text: str) -> NoReturn:
    """Say that `text` names no spec, what else it may name, and what is near."""
    if rfc := RFC.match(text):
        raise NotFoundError(f"there is no spec RFC {rfc[1]} in {project.data('specs.toml')}")
    slug = text.strip("[]")
    if lookup.SLUG.fullmatch(slug):
        near = lookup.near_slugs(slug, project.folder / "requirements")[:SHOWN]
        hint = f"; there is {', '.join(near)}" if near else ""
        raise NotFoundError(f"there is no requirement {slug}{hint}")
    raise UsageError(f"cannot read {text!r} as a citation; try `find` with words")


def _show(project: Project, options: argparse.Namespace) -> int:
    spec, section = _place(project, " ".join(options.citation))
    project.narrow(spec, section)
    for line in report.show(project, collect(project), spec, section):
        print(line)
    return 0


def _find(project: Project, options: argparse.Namespace) -> int:
    words = [word for text in options.words for word in text.split()]
    lines = list(lookup.find(words, project.catalogue, project.index))
    if not lines:
        raise NotFoundError(f"neither the catalogue nor a title has {' '.join(words)!r}")
    print("\n".join(lines))
    return 0


def _explain(project: Project, options: argparse.Namespace) -> int:
    name, colon, number = options.place.rpartition(":")
    path, line = (name, int(number)) if colon and number.isdigit() else (options.place, None)
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path}")
    file = os.path.relpath(path, project.root)
    lines = list(report.explain(project, collect(project), Path(file).as_posix(), line))
    print("\n".join(lines) or f"{options.place} cites nothing")
    return 0 if lines else 1


def _mutants(project: Project, options: argparse.Namespace) -> int:
    from rfc_annotations import mutants  # with pytest, which takes longer than the other commands

    only = [os.path.relpath(path, project.root) for path in options.only]
    try:
        trial = mutants.Trial(mutants_accepted.accepted(project.folder / "mutants.toml"))
        if not Path(options.evidence).is_file():
            raise mutants_accepted.Unusable(
                f"no {options.evidence}: run the tests with --annotations"
            )
        proof = _evidence(options.evidence)
        if options.sample is None:
            planned = mutants.plan(project, proof, only)
        else:
            planned = mutants.draw(project, proof, only, options.sample, options.seed)
        for found in mutants.run(project, planned, trial, options.seconds):
            print(f"{found.file}:{found.line}: survived: {found.was}  ->  {found.now}", flush=True)
    except mutants_accepted.Unusable as error:
        print(error, file=sys.stderr)
        return 2
    for slow in trial.too_slow:
        print(f"{slow.file}:{slow.line}: too slow to tell: {slow.was}  ->  {slow.now}")
    for entry in trial.needless():
        print(f"accepted, and killed now: {entry}")
    print(trial)
    if options.results:
        results.save(Path(options.results), trial, project)
        _lower_claims(project)
    return int(bool(trial.survivors))


def _index(project: Project, options: argparse.Namespace) -> int:
    written = specs.write_index(project.library, project.folder / "index")
    print(f"{len(written)} files written")
    return 0


def _catalogue(project: Project, options: argparse.Namespace) -> int:
    path = _copy(project, options.file)
    spec = draft.spec_of(project, path)
    if spec is None:
        raise UsageError(f"{path.name} is the file of no spec; specs.toml has their names")
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    for line in draft.draft(project, spec, text):
        print(line)
    return 0


def _copy(project: Project, typed: str) -> Path:
    """Find the copy of a spec, by its path or by the name of the spec."""
    path, library = Path(typed), project.library
    if path.exists():
        return path
    named = lookup.find_section(typed, library.specs, project.index).specs
    if len(named) != 1:
        raise UsageError(f"{path}: No such file")
    if library.folder is None or named[0] not in library.present:
        raise UsageError(f"there is no local copy of {named[0]}; give --specs")
    return library.folder / library.specs[named[0]].file


def _mark(project: Project, options: argparse.Namespace) -> int:
    spec, section = _place(project, options.citation)
    sections = project.library.sections(spec)
    if sections is None:
        raise UsageError(f"there is no local copy of {spec}; give --specs")
    text = " ".join(sections.get(section, ("", ""))[1].split())
    start = text.find(options.first)
    end = text.find(options.last, start + len(options.first) - 1)
    if start < 0 or end < 0 or (start and text[start - 1] != " "):
        print(f"{spell(spec, section)} of the local copy has no such sentence", file=sys.stderr)
        return 1
    sentence = text[start : end + len(options.last)]
    print(f'mark = "{fingerprint(sentence)}"  # {sentence}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
