"""What an installation needs beside the code: commands on PATH, a unit for systemd, an image.

The image is built where podman or buildah is installed and can fetch its base; elsewhere that test
skips, in continuous integration too: a container can rarely build another one, and the base comes
from a registry that may be out of reach.
"""

import configparser
import importlib
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from support.certificates import certificate
from support.gateway.gateway import Gateway
from support.peers.process import require

REPO = Path(__file__).parent.parent
UNIT = REPO / "examples" / "systemd" / "siprtmp.service"
HOOK = REPO / "examples" / "certbot" / "siprtmp.sh"
LOGROTATE = REPO / "examples" / "logrotate" / "siprtmp"
CONTAINERFILE = REPO / "examples" / "Containerfile"
PROGRAMS = ("siprtmp", "p2psip", "rtmplite", "rtclab", "rfc-annotations")


def commands() -> dict[str, str]:
    """The commands that an installation puts on PATH, and the functions that they call."""
    text = configparser.ConfigParser()
    text.read(REPO / "setup.cfg")
    lines = text["options.entry_points"]["console_scripts"].strip().splitlines()
    return {name.strip(): place.strip() for name, place in (line.split("=") for line in lines)}


def test_every_program_is_a_command():
    assert set(commands()) == {*PROGRAMS}


@pytest.mark.parametrize("name", PROGRAMS)
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


def extras(text: str) -> set[str]:
    """The extras of this package that a recipe installs."""
    [named] = re.findall(r"pip install .*\[([\w,]+)\]", text)
    return set(named.split(","))


@pytest.mark.parametrize("recipe", [CONTAINERFILE, REPO / "docs" / "3-howto" / "systemd.md"])
def test_a_recipe_installs_what_calls_need(recipe):
    """All extras but those of who develops, tests and measures, and the library for Speex."""
    known = configparser.ConfigParser()
    known.read(REPO / "setup.cfg")
    text = recipe.read_text()
    assert extras(text) == set(known["options.extras_require"]) - {"load", "oracle", "test", "docs"}
    assert re.search(r"apt-get install .*\blibspeex1\b", text)


def test_a_renewed_certificate_reaches_the_gateway_by_the_hook_of_certbot(tmp_path):
    """systemctl is replaced by what the unit's ExecReload does."""
    old, renewed = certificate(tmp_path / "old"), certificate(tmp_path / "renewed")
    folder, bin_ = tmp_path / "etc", tmp_path / "bin"
    folder.mkdir(), bin_.mkdir()
    old.file.rename(folder / "siprtmp.pem")
    old.key.rename(folder / "siprtmp.key")
    renewed.file.rename(tmp_path / "renewed" / "fullchain.pem")
    renewed.key.rename(tmp_path / "renewed" / "privkey.pem")
    new = (tmp_path / "renewed" / "fullchain.pem").read_text()
    files = ["--tls-cert", str(folder / "siprtmp.pem"), "--tls-key", str(folder / "siprtmp.key")]
    with Gateway(tmp_path / "gateway", "--sips", "127.0.0.1:0", *files) as gateway:
        command = bin_ / "systemctl"
        command.write_text(
            f'#!/bin/sh\ntest "$*" = "reload siprtmp" && kill -HUP {gateway.child.pid}'
        )
        command.chmod(0o755)
        environ = os.environ | {
            "PATH": f"{bin_}:{os.environ['PATH']}",
            "RENEWED_LINEAGE": str(tmp_path / "renewed"),
            "SIPRTMP_FOLDER": str(folder),
            "SIPRTMP_GROUP": str(os.getgid()),
        }
        subprocess.run([str(HOOK)], env=environ, check=True, timeout=60)
        gateway.wait_until(
            lambda: ssl.get_server_certificate(gateway.place("TLS")) == new, what="the new one"
        )
        assert "reloaded option=tls-cert" in gateway.output
    assert (folder / "siprtmp.key").stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in folder.iterdir()) == ["siprtmp.key", "siprtmp.pem"]


def test_a_log_that_is_copied_and_emptied_goes_on(tmp_path):
    """As logrotate does with `copytruncate`: no gap of zeros, since the shell appends."""
    shell = ("sh", "-c", 'exec "$0" -m siprtmp "$@" 2>> err.log', sys.executable)
    assert "copytruncate" in LOGROTATE.read_text()
    with Gateway(tmp_path / "gateway", program=shell) as gateway:
        log = tmp_path / "gateway" / "err.log"
        for _ in range(2):
            gateway.child.send_signal(signal.SIGUSR1)
            gateway.wait_until(lambda: b" status " in log.read_bytes(), what="the status")
            assert re.match(rb"\d{4}-\d\d-\d\dT", log.read_bytes())
            os.truncate(log, 0)


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
