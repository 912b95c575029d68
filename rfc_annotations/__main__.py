"""The command line: check, report, show, explain, index, mark, mutants."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from rfc_annotations import evidence, mutants, report, specs
from rfc_annotations.check import Check
from rfc_annotations.claims import collect
from rfc_annotations.fingerprint import fingerprint
from rfc_annotations.grammar import Citation, Grammar, spell
from rfc_annotations.project import TOOL, Project

DEFAULT_SPECS = "../shared/specs"


class UsageError(Exception):
    """What was asked for cannot be done; the message is one line."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, instead of a page of usage and then the line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 fine, 1 problems found, 2 wrong usage."""
    try:
        return _run(_parser().parse_args(arguments))
    except BrokenPipeError:
        return 0
    except UsageError as error:
        print(f"{TOOL}: {error}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    root = _find_root(Path(options.root).resolve() if options.root else Path.cwd())
    project = Project(root, _specs_folder(options.specs, root))
    commands = {
        "check": _check,
        "report": _report,
        "show": _show,
        "explain": _explain,
        "index": _index,
        "mark": _mark,
        "mutants": _mutants,
    }
    return commands[options.command](project, options)


def _parser() -> argparse.ArgumentParser:
    shared = _Parser(add_help=False)
    shared.add_argument("--root", help="the repository (default: around the current folder)")
    shared.add_argument("--specs", help=f"local copies (default: RFC_SPECS or {DEFAULT_SPECS})")
    parser = _Parser(prog=f"python -m {TOOL}", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    check = commands.add_parser("check", parents=[shared], help="apply the rules")
    check.add_argument("--evidence", help="what `pytest --annotations FILE` wrote")
    check.add_argument("--update", action="store_true", help="write coverage.txt first")
    writing = commands.add_parser("report", parents=[shared], help="count by section")
    writing.add_argument("--write", action="store_true", help="write coverage.txt too")
    show = commands.add_parser("show", parents=[shared], help="all about one section")
    show.add_argument("citation", help="such as 'RFC 3261 §17.1.3' (or without the §)")
    explain = commands.add_parser("explain", parents=[shared], help="what a file cites")
    explain.add_argument("place", help="FILE or FILE:LINE")
    commands.add_parser("index", parents=[shared], help="write the section index from the copies")
    mark = commands.add_parser("mark", parents=[shared], help="make the mark of a sentence")
    mark.add_argument("citation")
    mark.add_argument("first", help="the first words of the sentence")
    mark.add_argument("last", nargs="?", default=".", help="its last words (default: to the stop)")
    trying = commands.add_parser("mutants", parents=[shared], help="try mutants of claimed lines")
    trying.add_argument("--evidence", required=True, help="what `pytest --annotations` wrote")
    trying.add_argument("--only", nargs="+", default=[], metavar="FILE", help="or folder")
    trying.add_argument("--seconds", type=float, default=600.0, help="start none after (600)")
    trying.add_argument("--docstrings", action="store_true", help="and whole functions that claim")
    return parser


def _find_root(start: Path) -> Path:
    for folder in (start, *start.parents):
        if (folder / TOOL / "project.toml").is_file():
            return folder
    raise UsageError(f"no {TOOL} folder in {start} or above; give --root")


def _specs_folder(option: str | None, root: Path) -> Path | None:
    asked = option or os.environ.get("RFC_SPECS")
    folder = Path(asked) if asked else root / DEFAULT_SPECS
    if folder.is_dir():
        return folder
    if asked:
        raise UsageError(f"{folder} is not a folder of specs")
    return None


def _check(project: Project, options: argparse.Namespace) -> int:
    proof = _evidence(options.evidence) if options.evidence else None
    if options.update:
        project.snapshot.write_text(report.snapshot(project, collect(project)))
    check = Check(project, proof)
    problems = check.run()
    for problem in problems:
        print(problem)
    if check.unverified:
        print("unverified for want of local copies:", ", ".join(check.unverified))
    if proof is None:
        print("no evidence of a test run: test claims are taken at their word (rules 4 and 11)")
    print(f"{report.totals(project, check.claims)}, {len(problems)} problems")
    return int(bool(problems))


def _evidence(name: str) -> evidence.Evidence:
    try:
        return evidence.load(Path(name))
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UsageError(f"{name} is not what `pytest --annotations` wrote") from None


def _report(project: Project, options: argparse.Namespace) -> int:
    claims = collect(project)
    for line in report.table(project, claims):
        print(line)
    print(report.totals(project, claims))
    if options.write:
        project.snapshot.write_text(report.snapshot(project, claims))
    return 0


def _section(project: Project, text: str) -> tuple[str, str]:
    """Read `RFC 3261 §17.1.3`, or the same without the sign."""
    marked = (
        text if "§" in text else re.sub(r'\s+((?:[A-Z]|\d+)(?:\.\d+)*|"[^"]+")$', r" §\1", text)
    )
    for item in Grammar(project.library.specs).parse(marked):
        if isinstance(item, Citation) and item.spec:
            return item.spec, item.section
    raise UsageError(f"cannot read {text!r} as a citation")


def _show(project: Project, options: argparse.Namespace) -> int:
    spec, section = _section(project, options.citation)
    if section not in project.index.get(spec, {}):
        print(f"there is no {spell(spec, section)}", file=sys.stderr)
        return 1
    for line in report.show(project, collect(project), spec, section):
        print(line)
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
    only = [os.path.relpath(path, project.root) for path in options.only]
    try:
        trial = mutants.Trial(mutants.accepted(project.folder / "mutants.toml"))
        if not Path(options.evidence).is_file():
            raise mutants.Unusable(f"no {options.evidence}: run the tests with --annotations")
        proof = _evidence(options.evidence)
        planned = mutants.plan(project, proof, only, options.docstrings)
        for found in mutants.run(project, planned, trial, options.seconds):
            print(f"{found.file}:{found.line}: survived: {found.was}  ->  {found.now}", flush=True)
    except mutants.Unusable as error:
        print(error, file=sys.stderr)
        return 2
    for entry in trial.needless():
        print(f"accepted, and killed now: {entry}")
    print(trial)
    return int(bool(trial.survivors))


def _index(project: Project, options: argparse.Namespace) -> int:
    written = specs.write_index(project.library, project.folder / "index")
    print(f"{len(written)} files written")
    return 0


def _mark(project: Project, options: argparse.Namespace) -> int:
    spec, section = _section(project, options.citation)
    sections = project.library.sections(spec)
    if sections is None:
        raise UsageError(f"there is no local copy of {spec}: make specs, or give --specs")
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
