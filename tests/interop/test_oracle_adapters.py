"""The oracle's adapters in five languages agree with it, those of libraries show their errors.

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
from siprtmp.oracle.codec import KINDS, REFUSALS
from siprtmp.oracle.compare import SECONDS, Comparison
from siprtmp.oracle.neutral import difference
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


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("language", COMMANDS)
def test_a_foreign_adapter_of_less_than_30_lines_agrees(language, tmp_path):
    codec, clock = catalogue.find("rtp"), count(step=SECONDS / 50).__next__
    with Program(COMMANDS[language](tmp_path), PATIENCE) as program:
        comparison = Comparison(codec, program.ask, clock)
        cases = max(15, WANTED // 10)
        report = comparison.run(catalogue.cases_of(codec), KINDS, cases, seed=5)
    assert report.findings == [] and report.cases and not report.skipped
    assert not report.members.missing | report.members.unknown


def test_every_adapter_has_less_than_30_lines():
    adapters = list(FOLDER.glob("rtp.*"))
    assert len(adapters) == len(COMMANDS)
    assert all(len(path.read_text().splitlines()) < 30 for path in adapters)


KNOWN = [
    # the adapter, its codec, octets that it reads wrongly, and a part of its answer
    ("dpkt_readers", "rtp", "a0000000000000000000000001", '"payload": "01"'),
    ("dpkt_readers", "rtp", "810000000000000000000000", '"csrcs": []'),
    ("dpkt_readers", "rtp", "900000000000000000000000bede0000", '"payload": "bede0000"'),
    ("dpkt_readers", "stun", "000100002112a443000000000000000000000000", '"attributes": []'),
    ("dpkt_readers", "stun", "000100042112a442000000000000000000000000", '"attributes": []'),
    ("py3amf_reader", "amf0", "0a00000001", "value []"),
    ("py3amf_reader", "amf0", "11", "value []"),
    ("py3amf_reader", "amf0", "0300016109", '"members": []'),
    ("py3amf_reader", "amf0", "0f00000000", "error ParseError"),
]


@pytest.mark.parametrize(("adapter", "name", "octets", "answer"), KNOWN)
def test_what_others_read_wrongly_is_found(adapter, name, octets, answer):
    """`docs/3-howto/use-as-oracle.md` has these."""
    codec = catalogue.find(name)
    words = [sys.executable, str(FOLDER / f"{adapter}.py"), name]
    with Program(words, PATIENCE) as program:
        said = program.ask(f"decode {octets}")
    assert answer in str(said)
    try:
        assert difference(codec.to_neutral(codec.decode(bytes.fromhex(octets))), said.content)
    except REFUSALS:
        assert said.word == "value"
