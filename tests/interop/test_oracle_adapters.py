"""The oracle's example adapters in five languages agree with it, and dpkt's shows where dpkt errs.

Own design: gcc and node are peers of all tests.  Go and Rust are optional, since their compilers
are large and slow: `make oracle` asks them where they are installed.
"""

import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from support.oracle import WANTED
from support.peers.process import require

from siprtmp.oracle import catalogue
from siprtmp.oracle.compare import SECONDS, Comparison
from siprtmp.oracle.program import Program

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "oracle"
PATIENCE = 60.0  # s

pytestmark = pytest.mark.interop


def optional(program):
    """The compiler of an adapter that only `make oracle` compiles, and only where it is there."""
    if not WANTED:
        pytest.skip(f"make oracle compiles the adapter for {program}")
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program}, an optional compiler, is absent")
    return path


def compiled(tmp_path, *words):
    subprocess.run([*words], cwd=tmp_path, check=True, capture_output=True)
    return [str(tmp_path / "rtp")]


COMMANDS = {
    "python": lambda tmp_path: [sys.executable, str(FOLDER / "rtp.py")],
    "javascript": lambda tmp_path: [require("node", "nodejs"), str(FOLDER / "rtp.js")],
    "c": lambda tmp_path: compiled(
        tmp_path, require("gcc", "gcc"), "-Wall", "-Werror", "-o", "rtp", str(FOLDER / "rtp.c")
    ),
    "go": lambda tmp_path: compiled(
        tmp_path, optional("go"), "build", "-o", "rtp", str(FOLDER / "rtp.go")
    ),
    "rust": lambda tmp_path: compiled(
        tmp_path, optional("rustc"), "-o", "rtp", str(FOLDER / "rtp.rs")
    ),
}


def compare(name, words, kinds=("valid", "odd", "broken")):
    codec = catalogue.find(name)
    cases = max(15, WANTED // 10)
    with Program(words, PATIENCE) as program:
        comparison = Comparison(codec, program.ask, count(step=SECONDS / 50).__next__)
        return comparison.run(catalogue.cases_of(codec), kinds, cases, seed=5)


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("language", COMMANDS)
def test_a_foreign_adapter_of_less_than_30_lines_agrees(language, tmp_path):
    report = compare("rtp", COMMANDS[language](tmp_path))
    assert report.findings == [] and report.cases >= 40 and not report.skipped
    assert not report.members.missing | report.members.unknown


def test_every_adapter_has_less_than_30_lines():
    adapters = list(FOLDER.glob("rtp.*"))
    assert len(adapters) == len(COMMANDS)
    assert all(len(path.read_text().splitlines()) < 30 for path in adapters)


def test_dpkt_takes_the_padding_of_rtp_for_payload():
    words = [sys.executable, str(FOLDER / "dpkt_readers.py"), "rtp"]
    report = compare("rtp", words, ["valid"])
    assert [finding.key for finding in report.findings] == [
        ("RFC 3550 §5.1", "is read otherwise: payload")
    ]
    assert report.members.missing == {"extension", "padding"}
