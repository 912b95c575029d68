"""The settings: the table `[tool.rfc_annotations]` of the repository's pyproject.toml.

Own design: where a project keeps its files is for each to say; README.md explains every setting.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any, Final

# Here, since a folder of the name in the current one hides `__init__.py` of an editable install.
VERSION: Final = "0.1.0"
FILE: Final = "pyproject.toml"
TOOL: Final = "rfc_annotations"
TABLE: Final = f"[tool.{TOOL}]"


class SettingsError(Exception):
    """The settings, or the files that they name, cannot be used; the message is one line."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is read, and as what; paths are relative to the top of the repository.

    `specs` alone, the folder of the local copies, may be outside of it, and may be absent.
    """

    folder: str = TOOL
    specs: str = "specs"
    code: tuple[str, ...] = ("src",)
    tests: tuple[str, ...] = ("tests",)
    tools: tuple[str, ...] = ()
    markdown: tuple[str, ...] = (".",)
    ignore: tuple[str, ...] = ()
    must_cite: tuple[str, ...] = ()
    need_not_cite: tuple[str, ...] = ()
    figures: tuple[str, ...] = ("README.md",)
    beside: tuple[str, ...] = ()


READ: Final = ("code", "tests", "tools", "markdown", "must_cite", "need_not_cite")
OUTSIDE: Final = ("specs", "beside")  # of the repository


def find_root(start: Path) -> Path | None:
    """Find the repository: the nearest folder, from `start` upwards, with a table of settings."""
    return next((top for top in (start, *start.parents) if _table(top) is not None), None)


def load(root: Path) -> Settings:
    """Read the settings of a repository; raise SettingsError where they cannot be used."""
    table = _table(root)
    if table is None:
        raise SettingsError(f"{root / FILE} has no {TABLE}")
    settings = Settings(**dict(_values(table)))
    for name in READ:
        for path in getattr(settings, name) if name in table else ():
            if not exists(root / path):
                raise SettingsError(f"{FILE}: {name} in {TABLE} names {path}, which is not there")
    return settings


def exists(path: Path) -> bool:
    """Whether there is a folder or file, or a module of that name."""
    return path.exists() or path.with_name(f"{path.name}.py").is_file()


def _table(root: Path) -> Mapping[str, Any] | None:
    path = root / FILE
    if not path.is_file():
        return None
    try:
        tools = tomllib.loads(path.read_text()).get("tool")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    table = tools.get(TOOL) if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise SettingsError(f"{FILE}: tool.{TOOL} is to be a table")
    return table


def _values(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    defaults = {field.name: field.default for field in fields(Settings)}
    for name, value in table.items():
        if name not in defaults:
            known = ", ".join(defaults)
            raise SettingsError(f"{FILE}: {TABLE} has no setting {name!r}; there is {known}")
        if isinstance(defaults[name], str):
            if not isinstance(value, str):
                raise SettingsError(f"{FILE}: {name} in {TABLE} is to be a string")
            yield name, _path(name, value)
        else:
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise SettingsError(f"{FILE}: {name} in {TABLE} is to be a list of strings")
            yield name, tuple(_path(name, one) for one in value)


def _path(name: str, text: str) -> str:
    """Write a path in one way, without `./` before or `/` behind it."""
    path = PurePosixPath(text)
    if name not in OUTSIDE and (path.is_absolute() or ".." in path.parts):
        raise SettingsError(f"{FILE}: {name} in {TABLE} names {text}, outside of the repository")
    return path.as_posix()
