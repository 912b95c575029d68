"""In a fresh tree one worker compiles while the others wait; later nobody waits."""

import fcntl
import os
import py_compile
from types import SimpleNamespace

import pytest
from support import compiling


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "test_tea.py"
    path.write_text("MINUTES = 4\n")
    return path


@pytest.fixture
def collect(request, source, tmp_path):
    """Begin to collect `source`, as a worker; what ends it."""

    def begin():
        module = pytest.Module.from_parent(request.session, path=source)
        module.config = SimpleNamespace(stash={compiling.LOCK: tmp_path / "lock"})
        steps = compiling.pytest_make_collect_report(module)
        next(steps)
        return steps

    return begin


def is_free(lock):
    """Whether another worker may begin."""
    with lock.open("w") as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_one_compiles_at_a_time(collect, tmp_path):
    steps = collect()
    assert not is_free(tmp_path / "lock")
    with pytest.raises(StopIteration):
        steps.send(None)
    assert is_free(tmp_path / "lock")


def test_what_is_compiled_is_read_by_all_at_once(collect, source, tmp_path):
    py_compile.compile(str(source), doraise=True)
    collect()
    assert is_free(tmp_path / "lock")


def test_what_has_changed_since_is_compiled_again(source):
    assert not compiling.is_compiled(source)
    compiled = py_compile.compile(str(source), doraise=True)
    assert compiling.is_compiled(source)
    later = os.stat(compiled).st_mtime + 1
    os.utime(source, (later, later))
    assert not compiling.is_compiled(source)
