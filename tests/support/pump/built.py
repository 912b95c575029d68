"""What is written in C, compiled for the tests from its source, so that they need no `make fast`.

With `SANITIZE` set, its errors of memory end the process: see `make sanitize`.
"""

import functools
import importlib.util
import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[3] / "src"
FLAGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type",
         "-Wno-missing-field-initializers", "-ffp-contract=off", "-fPIC", "-shared")  # fmt: skip
SANITIZED = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
             "-fno-sanitize-recover=all")  # fmt: skip


@functools.cache
def built(name="_pump", package="siprtmp.pump"):
    """A module written in C; skips without a compiler or Python's headers."""
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        pytest.skip("no Python.h: apt-get install python3-dev")
    more = SANITIZED if os.environ.get("SANITIZE") else ("-O2",)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, f"{name}.so")
        source = SOURCES.joinpath(*package.split("."), f"{name}.c")
        subprocess.run(["gcc", *FLAGS, *more, f"-I{include}", source, "-o", library], check=True)
        spec = importlib.util.spec_from_file_location(f"{package}.{name}", library)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module
