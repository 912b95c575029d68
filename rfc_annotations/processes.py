"""Processes that run tests on a changed source file: one that imports all anew, or one that did.

To import a program and to collect tests takes longer than most tests.  So a `Nursery` does both
once for a source file, and forks for each change: the child puts the changed code into the
functions that are there.  It serves only to find the tests that fail: whatever passes, hangs, or
changes what an import did (a constant, a class, a function that was called) is tried by `outcome`,
which starts from nothing.
"""

import gc
import importlib.util
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Final

import pytest

from rfc_annotations.evidence import PARAMETERS
from rfc_annotations.settings import load

MEMORY: Final = 4 << 30  # bytes that a mutant may fill
POLL: Final = 0.002  # s
OPTIMIZED: Final = 1  # the flag of functions, which modules and classes lack
FAILED: Final = int(pytest.ExitCode.TESTS_FAILED)
_context = multiprocessing.get_context("fork")  # with pytest and Hypothesis loaded already


class Outcome(Enum):
    """What tests say of a mutant."""

    KILLED = "a test failed"
    SURVIVED = "all tests passed"
    TOO_SLOW = "stopped: they hang, or the machine is busy"


def outcome(
    top: Path, tests: Iterable[str], patience: float, write_bytecode: bool = False
) -> Outcome:
    """Run tests in a process of their own, and stop it after `patience` seconds."""
    process = _context.Process(target=_run, args=(top, _ordered(tests), write_bytecode))
    process.start()
    assert process.pid
    try:
        process.join(patience)
        is_late = process.is_alive()
    finally:  # after Ctrl-C too, which the process does not get
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # it, or what its tests started
        process.join()
    if is_late:
        return Outcome.TOO_SLOW
    return Outcome.KILLED if process.exitcode else Outcome.SURVIVED


def import_roots(top: Path) -> list[str]:
    """Name the folders from which the code of a repository is imported."""
    roots = []
    for name in load(top).code:
        folder = top / name if (top / name).is_dir() else (top / name).parent
        while (folder / "__init__.py").is_file():
            folder = folder.parent
        roots.append(str(folder))
    return list(dict.fromkeys(roots))


def _ordered(tests: Iterable[str]) -> list[str]:
    return sorted(tests, key=lambda test: ("::Test" in test, test))  # state machines last


def _run(top: Path, tests: list[str], write_bytecode: bool, *plugins: object) -> None:
    import resource

    os.setsid()
    os.chdir(top)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.dont_write_bytecode = not write_bytecode
    os.environ["PYTHONPATH"] = os.pathsep.join(roots := import_roots(top))
    sys.path[:0] = roots  # before what is installed
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # in the processes that tests start
    options = ["-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "--no-header"]
    os._exit(int(pytest.main([*options, *tests], plugins=[_Quick(), *plugins])))


class _Quick:
    """Draws the same examples each time; replays no failure of another mutant, shrinks none."""

    def pytest_configure(self) -> None:
        if importlib.util.find_spec("hypothesis") is None:
            return
        from hypothesis import Phase, settings

        settings.register_profile(
            "mutants",
            settings.default,
            phases=(Phase.explicit, Phase.generate),
            derandomize=True,
            database=None,
            report_multiple_bugs=False,
        )
        settings.load_profile("mutants")


class Nursery:
    """Has collected the tests of a source file, and shows which changes they notice at once."""

    def __init__(self, top: Path, file: str, tests: Iterable[str], patience: float) -> None:
        self.file, names = file, _ordered(tests)
        self._patience = patience
        self._pipe, theirs = _context.Pipe()
        host = _Host(top / file, theirs, self._pipe)
        self._process = _context.Process(target=_serve, args=(host, top, names))
        self._process.start()
        theirs.close()
        unchanged = self._ask((top / file).read_text(), frozenset(names))
        self._is_usable = unchanged == 0  # else they mind that they were not imported anew

    def kills(self, text: str, tests: frozenset[str]) -> bool:
        """Whether one of `tests` is known to fail where the file holds `text`."""
        return self._is_usable and self._ask(text, tests) == FAILED

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.kill()
        self._process.join()

    def _ask(self, text: str, tests: frozenset[str]) -> int | None:
        with suppress(EOFError, ConnectionError):
            self._pipe.send((text, tests, self._patience))
            answer: int | None = self._pipe.recv()
            return answer
        self._is_usable = False
        return None


def _serve(host: "_Host", top: Path, tests: list[str]) -> None:
    sys.setprofile(host.functions.note)
    _run(top, tests, False, host)


class _Host:
    """The pytest plugin of the process that collects, and of its children, which run tests."""

    def __init__(self, path: Path, pipe: Connection, other_end: Connection) -> None:
        self._path, self._pipe, self._other_end = path, pipe, other_end
        self.functions = Functions(str(path))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Fork for each change; run the tests in the child alone."""
        sys.setprofile(None)
        self._other_end.close()
        self.functions.find(self._path.read_text())
        while not session.testsfailed:
            try:
                text, names, patience = self._pipe.recv()
            except EOFError:
                break
            child = os.fork()
            if not child:
                os.setsid()
                if not self.functions.change(text):
                    os._exit(int(pytest.ExitCode.INTERNAL_ERROR))
                chosen = [each for each in session.items if _name(each) in names]
                session.items[:] = chosen
                return
            self._pipe.send(_wait(child, patience))
        os._exit(0)


def _name(item: pytest.Item) -> str:
    return PARAMETERS.sub("", item.nodeid)


def _wait(child: int, patience: float) -> int | None:
    """Give the exit code of a process, or None for one that had to be stopped."""
    end, status = time.monotonic() + patience, None
    while status is None and time.monotonic() < end:
        ended, how = os.waitpid(child, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(how)
        else:
            time.sleep(POLL)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # it, or what its tests started
    if status is None:
        os.waitpid(child, 0)
    return status


class Functions:
    """The functions of a source file that this process has imported."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._called: set[tuple[str, int]] = set()  # which must not change: what they did, stays
        self._live: dict[tuple[str, int], list[FunctionType]] = {}
        self._codes: list[tuple[CodeType, ...]] = []

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Remember which of them an import, or the collection of tests, calls."""
        if event == "call" and frame.f_code.co_filename == self._path:
            self._called.add(_key(frame.f_code))

    def find(self, source: str) -> None:
        """Look for the functions that were made of the source."""
        self._codes = list(_codes(compile(source, self._path, "exec", dont_inherit=True)))
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename == self._path:
                self._live.setdefault(_key(each.__code__), []).append(each)

    def change(self, source: str) -> bool:
        """Let them do what another source says; False if more than they would have to change."""
        found = list(_codes(compile(source, self._path, "exec", dont_inherit=True)))
        if [chain[-1].co_qualname for chain in found] != [
            chain[-1].co_qualname for chain in self._codes
        ]:
            return False
        after = {}
        for old, new in zip(self._codes, found, strict=True):
            if _own(old[-1]) == _own(new[-1]):
                continue
            homes = [at for at, code in enumerate(old) if _key(code) in self._live]
            if not homes or any(self._is_fixed(code) for code in old):
                return False
            after.update({_key(old[at]): new[at] for at in homes})
        for key, code in after.items():
            for function in self._live[key]:
                if function.__code__.co_freevars != code.co_freevars:
                    return False
                function.__code__ = code
        return True

    def _is_fixed(self, code: CodeType) -> bool:
        key = _key(code)
        alike = [chain for chain in self._codes if _key(chain[-1]) == key]
        return bool(code.co_flags & OPTIMIZED) and (key in self._called or len(alike) > 1)


def _codes(code: CodeType, *outer: CodeType) -> Iterator[tuple[CodeType, ...]]:
    """Give each code object of a module behind the code objects around it, outermost first.

    >>> [chain[-1].co_name for chain in _codes(compile("def f():\\n  def g(): pass", "", "exec"))]
    ['<module>', 'f', 'g']
    """
    yield (*outer, code)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each, *outer, code)


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _own(code: CodeType) -> tuple[object, ...]:
    """What a piece of code does, but for the code within it, and for lines."""
    constants = [(type(each), repr(each)) for each in code.co_consts if type(each) is not CodeType]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, code.co_exceptiontable, constants, names
