"""Every word of README and CONTRIBUTING, on a machine with Python and make and nothing else.

Words that install the same get a copy of the repository and a `.venv` of their own, so that nothing
another word has brought hides what is missing. PATH leads to few programs, and the specs
and recordings are absent. The programs of README's quick start run as the page has them, in a
network of their own. `make bare` runs this; continuous integration does too.
"""

import os
import re
import shutil
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pages import FENCE
from support.peers.process import require
from test_docs import make_words

REPO = Path(__file__).resolve().parent.parent
PROGRAMS = (  # what a Debian has that was just installed, and make
    *("sh", "bash", "make", "git", "cat", "cp", "cut", "env", "expand", "expr", "getconf", "grep"),
    *(
        "head",
        "id",
        "ls",
        "mkdir",
        "mktemp",
        "rm",
        "sed",
        "sleep",
        "sort",
        "tail",
        "touch",
        "tr",
        "uname",
        "wc",
    ),
)
RUN = {  # words that share what they install, and what lets each end soon
    "core": {"help": "", "demo": "", "bench": "--help", "clean": ""},
    "test": {
        "lint": "",
        "types": "",
        "check": "",  # before there is evidence, of a few tests alone
        "test": "tests/p2psip/sdp -x",
        "oracle": "tests/rtmplite/strategies",
        "vectors": "--seed 1 --count 2",
    },
    "docs": {"docs": ""},
}
ELSEWHERE = {
    "peers": ".ci/run installs them first",
    "specs": "downloads from the RFC Editor",
    "mutants": ".ci/run tries a sample, with the evidence of its tests",
    "reach": ".ci/run",
    "sanitize": ".ci/run",
    "soak": ".ci/run, for three minutes",
    "bare": "this file",
    "fast": "needs a compiler: .ci/run, within testfast",
    "testfast": ".ci/run",
    "pure": ".ci/run, after testfast",
}
EXTRAS = {  # the option or command that needs each extra
    "load": "python -c 'from rtclab.load import screen; assert screen.AVAILABLE'",
    "oracle": "python -m rtclab oracle vectors sip --count 2 --seed 1",
    "redis": "python -c 'import p2psip.net.location_redis'",
    "srtp": "python -c 'from p2psip.srtp import libsrtp; assert libsrtp.pylibsrtp'",
    "transcode": "python -c 'import av, siprtmp.media.transcode.audio_decoder'",
    "web": "python -m siprtmp --rtmp 127.0.0.1:0 --rtmfp off --http off --sip 127.0.0.1:0"
    " --ws 127.0.0.1:0 > ready & until grep ws= ready; do sleep 0.1; jobs %1; done; kill %1",
    "webrtc": "python -m siprtmp --rtmp 127.0.0.1:0 --rtmfp off --http 127.0.0.1:0"
    " --sip 127.0.0.1:0 --webrtc 127.0.0.1:0 > ready"
    " & until grep webrtc= ready; do sleep 0.1; jobs %1; done; kill %1",
}
pytestmark = [pytest.mark.bare, pytest.mark.timeout(1200)]


class Machine:
    """A copy of the repository, and the environment of somebody who has just come."""

    def __init__(self, folder: Path) -> None:
        """Copy what git would give."""
        self.repo = folder / "siprtmp"
        listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=REPO, text=True)
        for name in filter(None, listed.split("\0")):
            if (REPO / name).exists():
                (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(REPO / name, self.repo / name)
        path = folder / "bin"
        path.mkdir()
        for program in (*PROGRAMS, "timeout"):
            (path / program).symlink_to(require(program, "coreutils"))
        (path / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
        kept = ("PIP_", "SSL_", "HTTP", "http", "LANG")  # ways to the packages
        self.environ = {key: os.environ[key] for key in os.environ if key.startswith(kept)}
        self.environ |= {"PATH": str(path), "HOME": str(folder), "TMPDIR": str(folder)}
        self.environ["PIP_COMPILE"] = "0"  # of what is installed, each command imports little

    def run(self, command: str) -> str:
        """What a command of the shell prints; it must succeed."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.repo,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}"
        return done.stdout

    def install(self, extra: str = "") -> None:
        """Make a `.venv` by hand, with one extra or none."""
        self.run("python3 -m venv .venv")
        self.run(f".venv/bin/python -m pip install -q -e '.{extra and f'[{extra}]'}'")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    yield Machine(tmp_path)
    shutil.rmtree(tmp_path)  # a `.venv` has half a gigabyte


def test_every_word_is_run_here_or_elsewhere():
    here = [word for words in RUN.values() for word in words]
    assert sorted([*here, *ELSEWHERE]) == sorted(make_words())


@pytest.mark.parametrize("packages", RUN)
def test_the_words_of_the_makefile(machine: Machine, packages: str):
    for word, arguments in RUN[packages].items():
        machine.run(f"make {word}" + (f' ORACLE_DRAWS=20 ARGS="{arguments}"' if arguments else ""))


@pytest.mark.parametrize("build", ["python", "compiled"])
def test_an_installation_compiles_where_a_compiler_is(machine: Machine, build: str):
    """Not an editable one, as all others here; and the variable forces Python again."""
    if build == "compiled":
        for program in ("gcc", "as", "ld"):
            (Path(machine.environ["PATH"]) / program).symlink_to(require(program, "gcc"))
    machine.run("python3 -m venv .venv")
    machine.run(".venv/bin/python -m pip install -q .")
    say = ".venv/bin/siprtmp --version"
    assert machine.run(say).endswith(f"({build})\n")
    assert machine.run(f"SIPRTMP_PURE=1 {say}").endswith("(python)\n")
    machine.run(".venv/bin/siprtmp demo --seconds 2")
    machine.run(".venv/bin/siprtmp explain --as amf0 003ff0000000000000")


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_an_extra_is_for(machine: Machine, extra: str):
    machine.install(extra)
    machine.run(EXTRAS[extra].replace("python", ".venv/bin/python", 1))


def test_every_extra_is_tried():
    lines = (REPO / "setup.cfg").read_text().partition("[options.extras_require]")[2]
    assert set(re.findall(r"^(\w+) =", lines, re.MULTILINE)) == {*EXTRAS, "test", "docs"}


def test_the_quick_start(machine: Machine):
    """Gateway, phone, caller and status by README's own lines, on its own ports."""
    fences = [
        code for kind, code in FENCE.findall((REPO / "README.md").read_text()) if kind == "sh"
    ]
    _, gateway, _, listen, call, _, look = (fence.strip() for fence in fences[:7])
    assert "siprtmp" in gateway and "listen" in listen and "curl" in look
    for program, package in (("ffmpeg", "ffmpeg"), ("curl", "curl")):
        (Path(machine.environ["PATH"]) / program).symlink_to(require(program, package))
    machine.install()
    script = machine.repo / "quick-start.sh"
    script.write_text(
        f"set -e\n{require('ip', 'iproute2')} link set lo up\n"
        f"{gateway} > ready & gateway=$!\n"
        "until grep -q ready ready; do sleep 0.1; done\n"
        f"{listen} & phone=$!\n"
        f"until {look} -s | grep -q 'registrations.: 1'; do sleep 0.1; done\n"
        f"{call} </dev/null\nwait $phone\n{look} -s > status\nkill $gateway\nwait $gateway\n"
    )
    alone = f"{require('unshare', 'util-linux')} --map-root-user --net"
    machine.run(f"{alone} bash quick-start.sh")
    with wave.open(str(machine.repo / "bob.wav")) as heard:
        assert heard.getnframes() > 9 * heard.getframerate()
