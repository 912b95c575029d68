"""Profiles, and where the specs and the corpus are found."""

import doctest
import gc
import logging
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from p2psip.sip.known import forget

NO_CLOCK = [HealthCheck.too_slow]  # which a busy machine fails
settings.register_profile("dev", max_examples=50, deadline=None, suppress_health_check=NO_CLOCK)
settings.register_profile(
    "ci",
    max_examples=100,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=NO_CLOCK,
)
settings.register_profile("nightly", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

pytest_plugins = [
    "support.built",
    "support.compiling",
    "support.limits",
    "support.order",
    "support.skips",
    "support.turns",
]

REPO = Path(__file__).resolve().parent.parent


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Modules and items stay to the end: searching them for garbage is a twelfth of the work.

    Neither is the line sought of a docstring that shows no example.
    """
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(doctest.DocTestFinder, "_get_test", _shown(doctest.DocTestFinder))
            return (yield)
    finally:
        gc.enable()
        gc.freeze()


def _shown(finder: Any) -> Callable[..., doctest.DocTest | None]:
    """The finder's own look at an object, for those alone whose docstring has a prompt."""
    whole = finder._get_test

    def look(self: Any, of: Any, *rest: Any) -> doctest.DocTest | None:
        text = of if isinstance(of, str) else getattr(of, "__doc__", None)
        return whole(self, of, *rest) if text and ">>>" in str(text) else None

    return look


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[None]:
    """Only modules that have doctests are searched for them; most have none."""
    found = yield
    if b">>>" in file_path.read_bytes():
        return found
    return [each for each in found if type(each) is pytest.Module]


@pytest.fixture(autouse=True)
def readers_read() -> None:
    """No test gets a value that the reader of an earlier one has made."""
    forget()


def pytest_sessionfinish() -> None:
    """pytest searches five times for garbage now, in all that the run still holds."""
    gc.freeze()


def _folder(variable: str, default: str) -> Path:
    path = Path(os.environ.get(variable) or REPO / default)
    if not path.is_dir():
        message = f"{path} is absent; set {variable} to a copy"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


@pytest.fixture(scope="session")
def specs() -> Path:
    """The folder of spec texts: RFC_SPECS, or the default beside the repository."""
    return _folder("RFC_SPECS", "../shared/specs")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of captures and media: TEST_CORPUS, or the default beside the repository."""
    return _folder("TEST_CORPUS", "../shared/corpus")


@pytest.fixture(scope="session", autouse=True)
def _children_hear_signals():
    """What a test starts hears SIGINT and SIGHUP, though the run itself is to ignore them.

    nohup, and a script that puts the run into the background, ignore them for all descendants;
    a handler that does nothing is for this process alone.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(scope="session", autouse=True)
def _help_is_as_wide_everywhere():
    """argparse breaks its lines as wide as the terminal is, here and in what a test starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        yield


@pytest.fixture(autouse=True)
def _same_log_as_before():
    """A program that a test has run in this process leaves no handler and no filter behind."""
    root = logging.getLogger()
    before = {handler: list(handler.filters) for handler in root.handlers}
    yield
    for handler in list(root.handlers):
        if handler in before:
            handler.filters[:] = before[handler]
        elif not type(handler).__module__.startswith("_pytest"):
            root.removeHandler(handler)
