"""Options as rows of a table: each has a type that reads the command line and the file.

Own design: the field of a frozen dataclass is the row, so that an option is written in one place
and used in another.  `setting` declares a row, `section` a group of rows; the parser, the readers
of files and the pages of the manual go through `rows` and `groups`.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

T = TypeVar("T")
N = TypeVar("N", bound=float)
D = TypeVar("D")
Schema = Mapping[str, Any]

STRING: Final[Schema] = {"type": "string"}
FIRST: Final = "0.1.0"  # the version that the first rows came in
_ROW, _TITLE = "row", "title"


class SettingType(Generic[T]):
    """How the value of an option is written.

    `parse` reads a word of the command line, and raises ArgumentTypeError or ValueError.
    `metavar` stands for that word in `--help`.  `schema` describes the value of a file, in words
    of JSON Schema.
    """

    def __init__(
        self, parse: Callable[[str], T], metavar: str | None = None, schema: Schema = STRING
    ) -> None:
        self.parse, self.metavar, self.schema = parse, metavar, schema

    @property
    def argument(self) -> dict[str, Any]:
        """What `add_argument` is told."""
        return {"type": self.parse, "metavar": self.metavar}

    def gather(self, parsed: Any) -> T:
        """Make the value from the word, or the words, that argparse has read."""
        return cast(T, parsed)

    def read(self, value: object) -> T:
        """Read the value of a file.  Raises ValueError or ArgumentTypeError."""
        return self.parse(string(value))

    def write(self, value: Any) -> Any:
        """The value for a file; None if no file can say it."""
        return None if value is None else str(value)


class Flag(SettingType[bool]):
    """An option that is given or not, and true or false in a file."""

    def __init__(self) -> None:
        super().__init__(bool, schema={"type": "boolean"})

    @property
    def argument(self) -> dict[str, Any]:
        return {"action": "store_true"}

    def read(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value

    def write(self, value: bool) -> bool:
        return value


class Number(SettingType[N]):
    """A number from `low` to `high`, a whole one if `kind` is int."""

    def __init__(
        self,
        kind: Callable[[str], N],
        metavar: str | None = None,
        low: float = -inf,
        high: float = inf,
    ) -> None:
        limits = {"minimum": low, "maximum": high}
        given = {name: limit for name, limit in limits.items() if isfinite(limit)}
        schema = {"type": "integer" if kind is int else "number", **given}

        def parse(text: str) -> N:
            try:
                value = kind(text)
            except ValueError:
                what = "a whole number" if kind is int else "a number"
                raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
            if not low <= value <= high:
                raise argparse.ArgumentTypeError(
                    f"{text} is not between {low:.15g} and {high:.15g}"
                )
            return value

        super().__init__(parse, metavar, schema)

    def read(self, value: object) -> N:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("must be a number")
        return self.parse(str(value))

    def write(self, value: Any) -> Any:
        return int(value) if value is not None and value == int(value) else value


class FilePath(SettingType[Path]):
    """A file or a folder; a relative path in a file begins at the folder of that file."""

    def __init__(self, metavar: str) -> None:
        super().__init__(Path, metavar)


class Choice(SettingType[str]):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        super().__init__(str, schema={"enum": words})
        self.words = words

    @property
    def argument(self) -> dict[str, Any]:
        return {"choices": self.words}

    def read(self, value: object) -> str:
        if value not in self.words:
            raise ValueError(f"must be one of {', '.join(self.words)}")
        return string(value)


class Many(SettingType[tuple[T, ...]]):
    """Several values after one option; a file may have one value in place of a list."""

    def __init__(self, item: SettingType[T]) -> None:
        schema = {"anyOf": [item.schema, {"type": "array", "items": item.schema}]}
        super().__init__(lambda text: (item.parse(text),), item.metavar, schema)
        self.item = item

    @property
    def argument(self) -> dict[str, Any]:
        return {**self.item.argument, "action": "extend", "nargs": "+"}

    def gather(self, parsed: Iterable[T]) -> tuple[T, ...]:
        return tuple(parsed)

    def read(self, value: object) -> tuple[T, ...]:
        return self.gather(map(self.item.read, value if isinstance(value, list) else [value]))

    def write(self, value: tuple[T, ...]) -> Any:
        written = [self.item.write(each) for each in value]
        return written[0] if len(written) == 1 else written or None


class Repeated(Many[str]):
    """Several texts, each after the same option again."""

    def __init__(self, metavar: str) -> None:
        super().__init__(SettingType(str, metavar))

    @property
    def argument(self) -> dict[str, Any]:
        return {**self.item.argument, "action": "append"}

    def read(self, value: object) -> tuple[str, ...]:
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) for each in texts):
            raise ValueError("must be a string, or a list of strings")
        return tuple(texts)


def string(value: object) -> str:
    """The value of a file, if it is a string.  Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


def text(metavar: str | None = None) -> SettingType[str]:
    """The type of a text whose form is checked by the row, or where it is used."""
    return SettingType(str, metavar)


FLAG: Final = Flag()
FILE: Final = FilePath("FILE")
FOLDER: Final = FilePath("DIR")


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the table.

    `help` is a sentence or two, in which `{default}` stands for the default.  `note` is what the
    example file says in addition, `example` its value of an option that is off by default.
    `check` raises ValueError for a value that is well written and can't be served; of several
    values it gets each.  `since` is the first version that has the option.
    """

    type: SettingType[Any]
    default: Any
    help: str
    unit: str = ""
    note: str = ""
    example: object = None
    check: Callable[[Any], None] | None = None
    since: str = FIRST
    name: str = ""

    @property
    def option(self) -> str:
        """The name on the command line and in the file."""
        return self.name.replace("_", "-")

    @property
    def written(self) -> Any:
        """The default for a file, None if there is none."""
        return None if self.default is MISSING else self.type.write(self.default)

    @property
    def meaning(self) -> str:
        """The help, with the default."""
        return self.help.replace("{default}", str(self.written))

    def verify(self, value: Any) -> None:
        """Raise ValueError, which names the option, for a value that can't be served."""
        if self.check is None or value is None:
            return
        for each in value if isinstance(value, tuple) else (value,):
            try:
                self.check(each)
            except ValueError as error:
                raise ValueError(f"--{self.option} {error}") from None


def setting(
    kind: SettingType[T], default: D, help: str, *, repr: bool = True, **more: Any
) -> T | D:
    """Declare a row as the field of a dataclass; `more` are the other columns of `Setting`."""
    row = Setting(kind, default, help, **more)
    made: Any = field(default=default, repr=repr, metadata={_ROW: row})
    return cast(T, made)


def required(kind: SettingType[T], help: str, **more: Any) -> T:
    """Declare a row of a table that lacks a default."""
    made: Any = field(metadata={_ROW: Setting(kind, MISSING, help, **more)})
    return cast(T, made)


def changed(owner: type, name: str, **columns: Any) -> Any:
    """Declare a row of a base class again, with other columns."""
    row = replace(next(each for each in rows(owner) if each.name == name), **columns)
    return field(default=row.default, metadata={_ROW: row})


def section(owner: type[T], title: str) -> T:
    """Declare the rows of `owner` as one part of a program's settings, shown under `title`."""
    made: Any = field(default_factory=owner, metadata={_TITLE: title})
    return cast(T, made)


def rows(owner: type) -> list[Setting]:
    """The rows of a dataclass, in order."""
    declared = ((each.name, each.metadata.get(_ROW)) for each in fields(owner))
    return [replace(row, name=name) for name, row in declared if row is not None]


def sections(program: type) -> Iterator[tuple[str, str, type]]:
    """The name, the title and the dataclass of each section of a program's settings."""
    for each in fields(program):
        if _TITLE in each.metadata:
            yield each.name, each.metadata[_TITLE], cast(type, each.default_factory)


def groups(program: type) -> dict[str, list[Setting]]:
    """The rows of a program by title; sections of one title are one group."""
    found: dict[str, list[Setting]] = {}
    for _, title, owner in sections(program):
        found.setdefault(title, []).extend(rows(owner))
    return found


def chosen(owner: type[T], given: Mapping[str, Any], base: T | None = None) -> T:
    """A dataclass of rows with the values of `given`; the others are those of `base`."""
    own = {row.name: given[row.name] for row in rows(owner) if row.name in given}
    return cast(T, replace(cast(Any, base or owner()), **own))


def composed(program: type[T], given: Mapping[str, Any], base: T | None = None) -> T:
    """The settings of a program with the values of `given`, by the names of the rows."""
    base = base or program()
    parts = {
        name: chosen(owner, given, getattr(base, name)) for name, _, owner in sections(program)
    }
    return cast(T, replace(cast(Any, base), **parts))


def gathered(program: type, options: argparse.Namespace) -> dict[str, Any]:
    """The values that a command line gives to rows of a program, by their names."""
    said = vars(options)
    declared = (row for group in groups(program).values() for row in group)
    return {row.name: row.type.gather(said[row.name]) for row in declared if row.name in said}


def parsed(program: type[T], options: argparse.Namespace) -> T:
    """The settings of a program, from its command line alone."""
    return composed(program, gathered(program, options))


def add_options(add: Callable[..., Any], rows: Iterable[Setting]) -> None:
    """Declare options by `add_argument`; without defaults, so that absent ones can be told."""
    for row in rows:
        add(
            f"--{row.option}",
            default=argparse.SUPPRESS,
            help=row.meaning.replace("%", "%%"),
            **row.type.argument,
        )
