"""Which form of a module runs: the compiled one, or its source."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from fnmatch import fnmatch
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from siprtmp.operation import build as module
from siprtmp.operation.build import build, compiled_modules

REPO = Path(__file__).resolve().parents[3]
SUFFIX = EXTENSION_SUFFIXES[0]


def package(folder: Path, family: str) -> None:
    """A package that obeys the variable as `family` does, with one module in both forms.

    What stands for the compiled form is broken, so that an import tells which form it took.
    """
    room = folder / "twofold" / "room"
    room.mkdir(parents=True)
    first = f"from {family}.compiled import obey_environment\n\nobey_environment(__path__)\n"
    (folder / "twofold" / "__init__.py").write_text(first)
    (room / "__init__.py").touch()
    (room / "table.py").write_text("FORM = 'source'\n")
    (room / f"table{SUFFIX}").write_text("broken")


def imported(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    src = str(Path(module.__file__).parents[2])
    return subprocess.run(
        [sys.executable, "-c", "from twofold.room.table import FORM; print(FORM)"],
        env={"PYTHONPATH": f"{folder}:{src}"} | environ,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("family", ["p2psip", "rtmplite"])
def test_the_variable_chooses_the_source(tmp_path, family):
    package(tmp_path, family)
    assert imported(tmp_path, SIPRTMP_PURE="1").stdout == "source\n"
    for environ in ({}, {"SIPRTMP_PURE": ""}):
        assert f"table{SUFFIX}" in imported(tmp_path, **environ).stderr


def test_other_packages_keep_their_extensions(tmp_path):
    """The variable is about our packages alone: one that does not ask is read as ever."""
    package(tmp_path, "p2psip")
    (tmp_path / "twofold" / "__init__.py").write_text("import p2psip\n")
    assert f"table{SUFFIX}" in imported(tmp_path, SIPRTMP_PURE="1").stderr


def test_what_is_compiled_is_named(tmp_path, monkeypatch):
    package(tmp_path, "p2psip")
    (tmp_path / "twofold" / "__init__.py").touch()
    (tmp_path / "twofold" / "room" / "other.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("SIPRTMP_PURE", raising=False)
    monkeypatch.setattr(module, "FAMILIES", ("twofold",))
    assert compiled_modules() == ["twofold.room.table"]
    assert build.__wrapped__() == "compiled"
    (tmp_path / "twofold" / "room" / f"table{SUFFIX}").unlink()
    assert build.__wrapped__() == "python"


def compiled_by_setup() -> set[str]:
    """The modules that setup.py compiles where it can."""
    src = REPO / "src"  # also where the package is installed elsewhere
    tree = ast.parse((REPO / "setup.py").read_text())
    tables = {
        ast.unparse(node.targets[0]): eval(ast.unparse(node.value))
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("ROOMS", "PYTHON")
    }
    files = {
        path.relative_to(src).as_posix()
        for family, rooms in tables["ROOMS"].items()
        for room in rooms
        for path in src.glob(f"{family}/{room}")
        if path.name != "__init__.py"
    }
    return {name.removesuffix(".py").replace("/", ".") for name in files - tables["PYTHON"]}


def our_classes() -> list[type]:
    """Every class of the gateway and its families."""
    modules = [
        importlib.import_module(found.name)
        for family in module.FAMILIES
        for found in pkgutil.walk_packages(importlib.import_module(family).__path__, f"{family}.")
        if not fnmatch(found.name, "*.__main__")
    ]
    return [
        value
        for each in modules
        for value in vars(each).values()
        if isinstance(value, type) and value.__module__ == each.__name__
    ]


def is_protocol(each: type) -> bool:
    return bool(getattr(each, "_is_protocol", False))


def is_open(each: type) -> bool:
    """Whether mypyc leaves a class to Python."""
    source = Path(module.__file__).parents[2] / (each.__module__.replace(".", "/") + ".py")
    return f"\n@open_to_heirs\nclass {each.__name__}" in source.read_text()


def test_no_class_that_stays_python_has_a_compiled_base():
    """mypyc's classes cannot be bases of others: one that is fails when it is made.

    A protocol never is, nor one that says so.
    """
    compiled = compiled_by_setup()
    assert "p2psip.transaction.machine" in compiled
    torn = [
        f"{each.__module__}.{each.__name__}"
        for each in our_classes()
        if each.__module__ not in compiled and not issubclass(each, BaseException)
        if not is_protocol(each)
        if any(base.__module__ in compiled and not is_open(base) for base in each.__mro__)
    ]
    assert torn == []
