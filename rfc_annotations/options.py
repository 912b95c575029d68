"""The options of the command line.  Own design: README.md shows every command once."""

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from rfc_annotations.settings import TOOL, VERSION

COMMAND = "rfc-annotations"
ABOUT = "Citations of specs in code and tests, checked against a catalogue of requirements."


class UsageError(Exception):
    """The command cannot be carried out; the message is one line."""


class _Parser(argparse.ArgumentParser):
    """Reports a wrong option in one line, without the page of usage that argparse prints first."""

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message)
        hint = did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2])) if choice else ""
        raise UsageError(f"{message}{hint}")


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Give the end of a message about an unknown word: the known word most like it, if any.

    >>> did_you_mean("chek", ["show", "check"]), did_you_mean("fly", ["show", "check"])
    ('; did you mean check?', '')
    """
    found = difflib.get_close_matches(typed, known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; raises UsageError, which suggests the word that may be meant."""
    top, commands = _parsers()
    options, unknown = top.parse_known_args(arguments)
    if unknown:
        option = next((word for word in unknown if word.startswith("-")), "").partition("=")[0]
        known = commands[options.command]._option_string_actions
        hint = did_you_mean(option, known)
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    return options


def _parsers() -> tuple[_Parser, dict[str, _Parser]]:
    """Say which commands there are, and the options of each."""
    shared = _shared()
    typed = COMMAND if Path(sys.argv[0]).stem == COMMAND else f"python -m {TOOL}"
    parser = _Parser(prog=typed, description=ABOUT)
    parser.add_argument("--version", action="version", version=f"{COMMAND} {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    _add_counting(commands, shared)
    show = commands.add_parser("show", parents=[shared], help="all about one section")
    show.add_argument("citation", nargs="+", help="such as RFC 3261 §17.1.3, or rfc3261 17.1.3")
    find = commands.add_parser("find", parents=[shared], help="search the catalogue and titles")
    find.add_argument("words", nargs="+", help="all of them must be there")
    explain = commands.add_parser("explain", parents=[shared], help="what a file cites")
    explain.add_argument("place", help="FILE or FILE:LINE")
    commands.add_parser("index", parents=[shared], help="write the section index from the copies")
    mark = commands.add_parser("mark", parents=[shared], help="make the mark of a sentence")
    mark.add_argument("citation")
    mark.add_argument("first", help="the first words of the sentence")
    mark.add_argument("last", nargs="?", default=".", help="its last words (default: to the stop)")
    drafting = commands.add_parser("catalogue", parents=[shared], help="draft entries of a spec")
    drafting.add_argument("file", help="a copy, such as specs/rfc3261.txt, or rfc3261 for ours")
    trying = commands.add_parser("mutants", parents=[shared], help="try mutants of claimed lines")
    trying.add_argument("--evidence", required=True, help="what `pytest --annotations` wrote")
    trying.add_argument("--only", nargs="+", default=[], metavar="FILE", help="or folder")
    trying.add_argument("--seconds", type=float, default=600.0, help="start none after (600)")
    trying.add_argument("--sample", type=int, metavar="N", help="try one mutant of N random claims")
    trying.add_argument("--seed", type=int, default=0, help="of that choice (0)")
    trying.add_argument(
        "--results", help="add what was tried to this file, for `coverage --mutants`"
    )
    return parser, commands._name_parser_map


def _shared() -> _Parser:
    shared = _Parser(add_help=False)
    shared.add_argument("--root", help="the repository (default: around the current folder)")
    shared.add_argument("--specs", help="local copies (default: RFC_SPECS, or as in the settings)")
    return shared


def _add_counting(commands: "argparse._SubParsersAction[_Parser]", shared: _Parser) -> None:
    known = _Parser(add_help=False, parents=[shared])
    known.add_argument("--evidence", help="what `pytest --annotations FILE` wrote")
    mutants = "what `mutants --results FILE` wrote"
    check = commands.add_parser("check", parents=[known], help="apply the rules")
    check.add_argument("--update", action="store_true", help="do `coverage --write` first")
    told = "JSON of gcov or llvm-cov: lines that ran in other languages than Python"
    check.add_argument("--coverage", nargs="+", default=[], metavar="FILE", help=told)
    counting = commands.add_parser("coverage", parents=[known], help="count what is accounted for")
    counting.add_argument("spec", nargs="*", help="only this one, by section")
    counting.add_argument("--mutants", help=mutants)
    counting.add_argument("--write", action="store_true", help="write coverage.txt and figures")
    counting.add_argument("--against", metavar="REV|FILE", help="promises added or dropped since")
    writing = commands.add_parser("report", parents=[known], help="requirements by section")
    writing.add_argument("--html", metavar="FILE", help="write all of it, with the code, as a page")
    writing.add_argument("--json", metavar="FILE", help="write all of it for programs")
    writing.add_argument("--mutants", help=mutants)
