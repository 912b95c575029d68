"""The laboratory's command, and the gateway's, which forwards to it."""

import os
import re
import subprocess
import sys

import pytest

import rtclab
import siprtmp
from rtclab.__main__ import COMMANDS, main


@pytest.fixture(autouse=True)
def started_as_rtclab(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/rtclab"])


def test_help_has_a_line_for_each_command(capsys):
    for words in ([], ["--help"], ["-h"], ["help"]):
        assert main(words) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("usage: rtclab COMMAND ")
        assert re.findall(r"^  ([a-z]+) .*\.$", shown, re.MULTILINE) == list(COMMANDS)


def test_laboratory_and_gateway_have_one_version(capsys):
    assert rtclab.__version__ == siprtmp.__version__
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rtclab {rtclab.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lnit"], "no such command: lnit; did you mean lint?"),
        (["sing"], "no such command: sing; try --help"),
        (["explain", "--sing"], "there is no option --sing; did you mean --json?"),
        (["lint"], "the following arguments are required: FILE"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, said, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert not out and err == f"rtclab: {said}\n"


@pytest.mark.parametrize(
    ("started_as", "name"),
    [
        ("/usr/bin/rtclab", "rtclab"),
        ("/lib/rtclab/__main__.py", "python -m rtclab"),
        ("/usr/bin/siprtmp", "siprtmp"),
        ("/lib/siprtmp/__main__.py", "python -m siprtmp"),
        ("/lib/pytest/__main__.py", "python -m rtclab"),
    ],
)
def test_commands_name_the_program_as_it_was_started(capsys, monkeypatch, started_as, name):
    monkeypatch.setattr(sys, "argv", [started_as])
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: {name} {command} ")
    assert main(["lint"]) == 2
    assert capsys.readouterr().err.startswith(f"{name.removeprefix('python -m ')}: ")


EVENT = "040a00a0"  # of a telephone


def run(program, *words):
    return subprocess.run(
        [sys.executable, "-m", program, *words], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["explain", "--as", "telephone-event", EVENT], 0),
        (["explain", "--as", "telephone-event", "04"], 1),
        (["oracle", "list"], 0),
        (["conform", "rtp", "--list"], 0),
        (["conform", "sip", "notauri"], 2),
        (["lint", "no/such/file"], 2),
    ],
)
def test_the_gateway_forwards(words, code):
    """Output and exit code are the same; only the program that speaks has another name."""
    own, forwarded = run("rtclab", *words), run("siprtmp", *words)
    assert own.returncode == forwarded.returncode == code
    assert own.stdout == forwarded.stdout and bool(own.stdout) == (code < 2)
    assert own.stderr.replace("rtclab: ", "siprtmp: ") == forwarded.stderr
    assert bool(forwarded.stderr) == (code == 2)


@pytest.mark.parametrize("chosen", [None, ""])
def test_the_families_are_read_from_their_sources(chosen):
    """A compiled reader cannot be watched; what a tool starts still runs as it would."""
    told = {} if chosen is None else {"SIPRTMP_PURE": chosen}
    environ = {name: value for name, value in os.environ.items() if name != "SIPRTMP_PURE"}
    report = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, rtclab, rtmplite.amf.amf0 as amf, p2psip.sip.uri as uri\n"
            "print(amf.__file__[-3:], uri.__file__[-3:], os.environ.get('SIPRTMP_PURE'))",
        ],
        env=environ | told,
        capture_output=True,
        text=True,
        check=True,
    )
    assert report.stdout == f".py .py {chosen}\n"


def test_the_gateways_command_reads_sources_too():
    """It has imported the families by then; with the compiled form this would end in an error."""
    environ = {name: value for name, value in os.environ.items() if name != "SIPRTMP_PURE"}
    words = [sys.executable, "-m", "siprtmp", "explain", "--as", "amf0", "003ff0000000000000"]
    shown = subprocess.run(words, env=environ, capture_output=True, text=True, check=True).stdout
    assert "value = 1.0" in shown
