"""Reads the settings: from defaults, then a TOML file, then the command line.

Own design: the command line and the file use the same names, so that an option of `--help` can be
written into the file unchanged.  No option may be shortened, so that a later version can have a new
one.
"""

import argparse
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rtmplite.net.settings import (
    FILE,
    FilePath,
    Setting,
    add_options,
    gathered,
    groups,
    rows,
    setting,
)
from siprtmp.operation.arguments import ConfigError, Parser, did_you_mean, program
from siprtmp.settings.check import check
from siprtmp.settings.routes import pushes, read_routes
from siprtmp.settings.table import TABLES, Settings
from siprtmp.settings.trunks import read_trunks
from siprtmp.settings.webhooks import read_webhooks


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What the command line has beyond settings."""

    config: Path | None = setting(
        FILE, None, "Read settings from this TOML file, whose keys are these names."
    )


READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "trunk": read_trunks,
    "route": read_routes,
    "webhook": read_webhooks,
}


def build_parser() -> argparse.ArgumentParser:
    """The parser of `siprtmp serve`; a bad option raises ConfigError."""
    parser = Parser(
        prog=f"{program()} serve",
        usage="%(prog)s [OPTION...]",
        allow_abbrev=False,
        description="Run the gateway between RTMP streams and SIP calls until it gets SIGTERM. "
        "HOST:PORT is an address such as 127.0.0.1:1935 or [::1]:1935; port 0 takes a free port, "
        "and off opens no listener. Defaults are in parentheses.",
        add_help=False,
    )
    parser.add_argument(
        *("-h", "--help"), action="help", default=argparse.SUPPRESS, help="Show these options."
    )
    for title, options in {"the configuration": rows(CommandLine), **groups(Settings)}.items():
        add_options(parser.add_argument_group(title).add_argument, options)
    return parser


def load(arguments: Sequence[str]) -> Settings:
    """Settings from the command line, then from the file that it names, then the defaults.

    Raises ConfigError for a bad option or file, or a combination that can't be served.
    """
    said = build_parser().parse_args(arguments)
    settings = load_file(said.config) if "config" in said else Settings()
    settings = settings.with_values(gathered(Settings, said))
    pushed = pushes(settings.route, "mixed" if settings.calls.mix_calls else "call")
    return check(settings.with_values({"push": (*settings.relays.push, *pushed)}))


def load_file(path: Path) -> Settings:
    """Settings from a TOML file, in which unknown names and wrong types are errors.

    A file that it names is looked for beside it, wherever the gateway is started.
    Raises ConfigError naming the file and the key.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return replace(Settings().with_values(read_document(document, path)), source=path)


def read_document(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The values of a parsed file, by the names of options and tables.  Raises ConfigError."""
    known = {row.option: row for row in _rows()}
    values: dict[str, Any] = {}
    for key, value in document.items():
        try:
            if key in READERS:
                values[key] = READERS[key](value)
            elif (row := known.get(key.replace("_", "-"))) is None:
                like = did_you_mean(key, (*known, *TABLES))
                raise ConfigError(f"{path}: unknown setting {key!r}{like}")
            else:
                read = row.type.read(value)
                values[row.name] = path.parent / read if isinstance(row.type, FilePath) else read
        except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
            raise ConfigError(f"{path}: {key}: {error}") from None
    return values


def _rows() -> Iterator[Setting]:
    for group in groups(Settings).values():
        yield from group
