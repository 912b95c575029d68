"""The compiled form of a parser makes of any input what its source makes of it, or the same error.

The other tests hold each form to the specifications.  This one compares the two directly, also for
what no peer sends and callers may: octets that are no `bytes`, a text of a class of their own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from siprtmp.operation.build import build

REPO = Path(__file__).resolve().parent.parent


def form(*arguments: str, **environ: str) -> list[str]:
    """The lines that a process with one form of the modules prints."""
    paths = os.pathsep.join(str(REPO / each) for each in ("src", "tests"))
    child = subprocess.run(
        [sys.executable, "-m", "support.forms", *arguments],
        env=os.environ | {"PYTHONPATH": paths, "SIPRTMP_PURE": ""} | environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return child.stdout.splitlines()


@pytest.mark.skipif(build() == "python", reason="no module is compiled: make testfast")
def test_both_forms_read_alike(tmp_path):
    file = str(tmp_path / "input")
    form("draw", file, "--count", "30", SIPRTMP_PURE="1")
    sources = form("read", file, SIPRTMP_PURE="1")
    compiled = form("read", file)
    assert len(sources) == len(compiled) > 10_000
    torn = [
        (json.loads(source), json.loads(other)[-1])
        for source, other in zip(sources, compiled, strict=True)
        if source != other
    ]
    assert torn == []
