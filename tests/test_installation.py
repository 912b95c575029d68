"""What an installation needs beside the code: commands on PATH, a unit for systemd, an image.

The image is built where podman or buildah is installed and can fetch its base; elsewhere that test
skips, in continuous integration too: a container can rarely build another one, and the base comes
from a registry that may be out of reach.
"""

import configparser
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.peers.process import require

REPO = Path(__file__).parent.parent
UNIT = REPO / "examples" / "systemd" / "siprtmp.service"
CONTAINERFILE = REPO / "examples" / "Containerfile"


def commands() -> dict[str, str]:
    """The commands that an installation puts on PATH, and the functions that they call."""
    text = configparser.ConfigParser()
    text.read(REPO / "setup.cfg")
    lines = text["options.entry_points"]["console_scripts"].strip().splitlines()
    return {name.strip(): place.strip() for name, place in (line.split("=") for line in lines)}


def test_every_program_is_a_command():
    assert set(commands()) == {"siprtmp", "p2psip", "rtmplite", "rfc-annotations"}


@pytest.mark.parametrize("name", ["siprtmp", "p2psip", "rtmplite", "rfc-annotations"])
def test_a_command_calls_a_function_without_arguments(name, monkeypatch, capsys):
    module, _, function = commands()[name].partition(":")
    monkeypatch.setattr(sys, "argv", [f"/usr/local/bin/{name}", "--help"])
    try:
        assert not getattr(importlib.import_module(module), function)()
    except SystemExit as end:
        assert not end.code
    assert capsys.readouterr().out.startswith("usage: ")


def test_the_unit_is_one_for_systemd(tmp_path):
    """What `systemd-analyze verify` says of it; the program stands elsewhere here."""
    verify, program = require("systemd-analyze", "systemd"), shutil.which("true")
    text = UNIT.read_text()
    assert "ExecStart=/opt/siprtmp/bin/siprtmp " in text and "%S/siprtmp" in text
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("/opt/siprtmp/bin/siprtmp", program or ""))
    done = subprocess.run([verify, "verify", str(unit)], capture_output=True, text=True, timeout=60)
    ours = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert done.returncode == 0 and not ours, done.stderr


def test_the_image_has_what_an_installation_needs():
    """Every source that is copied is there, and the program is one of our commands."""
    text = CONTAINERFILE.read_text()
    copied = [line.split()[:-1] for line in re.findall(r"^COPY (.*)$", text, re.M)]
    assert copied and all((REPO / source).exists() for sources in copied for source in sources)
    [program] = re.findall(r'^ENTRYPOINT \["(.*)"\]$', text, re.M)
    assert program in commands()


@pytest.mark.timeout(900)
def test_the_image_builds_and_runs():
    tool = shutil.which("podman") or shutil.which("buildah")
    if tool is None:
        pytest.skip("neither podman nor buildah is installed: apt-get install podman")
    [base] = re.findall(r"^FROM (\S+)$", CONTAINERFILE.read_text(), re.M)
    if subprocess.run([tool, "pull", "-q", base], capture_output=True).returncode:
        pytest.skip(f"{tool} cannot fetch {base}")
    words = ["-t", "siprtmp-test", "-f", str(CONTAINERFILE), str(REPO)]
    done = subprocess.run([tool, "build", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if tool.endswith("podman"):
        run = [tool, "run", "--rm", "siprtmp-test", "--version"]
        assert subprocess.check_output(run, text=True).startswith("siprtmp ")
