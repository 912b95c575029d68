"""The configurations of examples/, one for each scenario, as scenarios.md uses them."""

import re
import subprocess
import sys

import pytest
from support.certificates import certificate
from support.gateway.accounts import users_file
from support.gateway.gateway import REPO, Gateway

SCENARIOS = ("home", "office", "broadcaster", "doorbell")
PAGE = (REPO / "docs/3-howto/scenarios.md").read_text()
LISTENER = re.compile(r'"(?:\d+\.){3}\d+:\d+"')


def prepare(folder, name):
    """A copy beside the files that it names, as the page says to make them."""
    text = (REPO / "examples" / f"{name}.toml").read_text()
    path = folder / f"{name}.toml"
    path.write_text(text)
    path.chmod(0o600)
    (folder / users_file(folder, "alice")).rename(folder / "siprtmp.users")
    if "tls-cert" in text:
        made = certificate(folder)
        made.file.rename(folder / "siprtmp.pem")
        made.key.rename(folder / "siprtmp.key")
    return path


@pytest.mark.parametrize("name", SCENARIOS)
def test_check_config_takes_it_and_a_page_leads_to_it(name, tmp_path):
    path = prepare(tmp_path, name)
    words = [sys.executable, "-m", "siprtmp", "check-config", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}: good\n", "")
    assert f"](../../examples/{name}.toml)" in PAGE


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_runs(name, tmp_path):
    """Each address is one of loopback, each name that of a server that does not answer there."""
    path = prepare(tmp_path, name)
    text = LISTENER.sub('"127.0.0.1:0"', path.read_text())
    text = re.sub(r"(provider|platform|stun)\.example(\.net)?", "127.0.0.1", text)
    path.write_text(text)
    wanted = set(re.findall(r'^(\w+) = "127.0.0.1:0"', text, re.MULTILINE))
    fixed = ["--config", str(path), "--external-ip", "127.0.0.1"]
    with Gateway(tmp_path / "gateway", *fixed) as gateway:
        assert wanted | {"http"} == set(gateway.listeners)
        assert "password-readable" not in gateway.output


def test_no_scenario_lacks_a_line_here():
    about = "docs/3-howto/scenarios.md says how to use this file"
    files = (REPO / "examples").glob("*.toml")
    assert {path.stem for path in files if about in path.read_text()} == set(SCENARIOS)
