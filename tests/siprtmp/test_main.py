"""The command as its users run it: words, exit codes, signals, and what is said where."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from support.gateway.accounts import PASSWORD
from support.gateway.gateway import DEFAULTS, REPO, Gateway
from support.peers.nursery import finished
from support.peers.process import require

from p2psip.server.users import UserStore
from p2psip.sip.auth import ha1
from siprtmp import __main__, __version__
from siprtmp.operation.build import build

EXAMPLE = str(REPO / "examples" / "siprtmp.toml")


def run(*words, given=""):
    """Run `python -m siprtmp` to its end."""
    argv = [sys.executable, "-m", "siprtmp", *words]
    if not given:
        return finished(argv, timeout=30)
    return subprocess.run(argv, input=given, capture_output=True, text=True, timeout=100)


def is_one_line(text):
    return text.startswith("siprtmp: ") and text.count("\n") == 1 and text.endswith("\n")


@pytest.mark.parametrize(
    "words",
    [
        ["sing"],
        ["--sing"],
        ["serve", "--rtmp", "nowhere"],
        ["--rtmp", "192.0.2.1:1935"],
        ["--rtmp", "a..b:1935"],
        ["--pull", "live/*=rtmp://[::1/live"],
        ["--push", "live/*=rtmp://a..b/live"],
        ["--reconnect-to", "rtmp://[::1/live"],
        ["--on-play", "http://[::1/"],
        ["--config", "no/such/file"],
        ["check-config"],
        ["check-config", "no/such/file"],
        ["check-config", "/"],
        ["demo", "--sing"],
        ["users", "bob"],
        ["users", "bo:b", "home"],
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, capsys):
    assert __main__.main(words) == 2
    out, err = capsys.readouterr()
    assert not out and is_one_line(err) and "Errno" not in err


def test_a_mistake_in_a_url_tells_no_secret(capsys):
    rule = "live/*=rtmp://ann:zanzibar@[::1/live?key=zanzibar"
    assert __main__.main(["--push", rule]) == 2
    said = capsys.readouterr().err
    assert is_one_line(said) and "[::1" in said and "zanzibar" not in said


def test_from_outside_it_is_the_same():
    done = run("--sip-t1", "never")
    assert done.returncode == 2 and not done.stdout and is_one_line(done.stderr)


@pytest.mark.parametrize(
    ("listener", "host"),
    [("rtmp", "127.0.0.1"), ("sip", "127.0.0.1"), ("http", "127.0.0.1"), ("sip", "192.0.2.77")],
)
def test_an_address_that_cannot_be_had_is_one_line_and_exit_code_2(listener, host):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"{host}:{taken.getsockname()[1]}"
        others = [] if listener == "sip" else ["--sip", "127.0.0.1:0"]
        done = run(*DEFAULTS, *others, "--allow-anonymous", f"--{listener}", address)
    assert done.returncode == 2 and not done.stdout and is_one_line(done.stderr)
    assert f"--{listener} {address}" in done.stderr


def test_help_and_version(capsys):
    for words in (["--help"], ["help"], ["-h"]):
        assert __main__.main(words) == 0
        assert "check-config FILE" in capsys.readouterr().out
    assert __main__.main(["--version"]) == 0
    assert capsys.readouterr().out == f"siprtmp {__version__} ({build()})\n"
    with pytest.raises(SystemExit) as end:
        __main__.main(["serve", "--help"])
    assert end.value.code == 0 and "--external-ip" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("started_as", "name"),
    [("/usr/bin/siprtmp", "siprtmp"), ("/lib/siprtmp/__main__.py", "python -m siprtmp")],
)
def test_help_names_the_program_as_it_was_started(capsys, monkeypatch, started_as, name):
    monkeypatch.setattr(sys, "argv", [started_as, "--help"])
    assert __main__.main() == 0
    assert capsys.readouterr().out.startswith(f"usage: {name} [COMMAND]")
    for command in ("serve", "demo", "calls", "explain"):
        with pytest.raises(SystemExit):
            __main__.main([command, "--help"])
        assert capsys.readouterr().out.startswith(f"usage: {name} {command} ")


def test_help_has_a_line_for_each_command(capsys):
    assert __main__.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^  ([a-z-]+) .*\.$", shown, re.MULTILINE) == list(__main__._COMMANDS)


def test_a_mistyped_command_gets_a_suggestion(capsys):
    assert __main__.main(["serv"]) == 2
    assert capsys.readouterr().err == "siprtmp: no such command: serv; did you mean serve?\n"


def test_check_config(tmp_path, capsys):
    assert __main__.main(["check-config", EXAMPLE]) == 0
    assert capsys.readouterr().out == f"{EXAMPLE}: good\n"
    bad = tmp_path / "bad.toml"
    bad.write_text('rtmp = "192.0.2.1:1935"\n')
    assert __main__.main(["check-config", str(bad)]) == 2
    assert is_one_line(capsys.readouterr().err)


def test_users_prints_what_the_users_file_wants():
    """Covers RFC 7616 §3.4.2."""
    done = run("users", "bob", "home", given=f"{PASSWORD}\n")
    assert done.returncode == 0
    users = UserStore.parse(done.stdout)
    for algorithm in ("SHA-256", "MD5"):
        assert users.lookup("bob", "home", algorithm) == ha1("bob", "home", PASSWORD, algorithm)
    done = run("users", "bob", "home", given="\n")
    assert done.returncode == 2 and is_one_line(done.stderr)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0(tmp_path, number):
    with Gateway(tmp_path / "gateway") as gateway:
        assert set(gateway.listeners) == {"rtmp", "sip", "http"}
        gateway.child.send_signal(number)
        assert gateway.child.wait(10) == 0
    ready, stopping = gateway.output.splitlines()
    assert re.fullmatch(r"ready rtmp=\S+ sip=\S+ http=\S+", ready)
    assert f" stopping signal={number.name} calls=0 streams=0 rtmp_connections=0" in stopping


@pytest.mark.parametrize("words", [["siprtmp"], ["rtmplite", "serve"]])
def test_a_terminal_that_closes_ends_it_with_0(words):
    """The terminal is ours to close; what the program writes goes elsewhere."""
    ours, its = os.openpty()
    listeners = DEFAULTS if words == ["siprtmp"] else DEFAULTS[:2]
    command = [require("setsid", "util-linux"), "--ctty", sys.executable, "-m", *words, *listeners]
    options = {"stdin": its, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **options) as child:
        os.close(its)
        try:
            assert child.stdout is not None and child.stdout.readline().startswith("ready rtmp=")
            os.close(ours)
            assert child.wait(10) == 0
        finally:
            child.kill()


def test_under_nohup_a_terminal_that_closes_ends_nothing(tmp_path):
    program = ("nohup", sys.executable, "-m", "siprtmp")
    with Gateway(tmp_path / "gateway", program=program) as gateway:
        gateway.child.send_signal(signal.SIGHUP)
        gateway.child.send_signal(signal.SIGUSR1)
        gateway.wait_until(lambda: " status " in gateway.output, what="the status")
        assert gateway.child.poll() is None


@pytest.mark.parametrize("level", ["info", "error"])
def test_sigusr1_logs_the_status(tmp_path, level):
    options = ("--log-level", level, "--log-format", "json")
    with Gateway(tmp_path / "gateway", *options) as gateway:
        gateway.child.send_signal(signal.SIGUSR1)
        gateway.wait_until(lambda: '"event": "status"' in gateway.output, what="the status")
        figures = gateway.status()
        [line] = [line for line in gateway.output.splitlines() if '"status"' in line]
    logged = json.loads(line)
    for name in ("calls", "transactions", "dialogs", "registrations", "streams"):
        assert logged[name] == figures[name]
    assert "greenlets" in logged and "sockets" in logged


def test_off_means_off(tmp_path):
    with Gateway(tmp_path / "gateway", "--sip", "off") as gateway:
        assert set(gateway.listeners) == {"rtmp", "http"} and "calls" not in gateway.status()


def test_a_reader_that_has_seen_enough_is_no_error():
    """As of `siprtmp conform sip --list | head -1`."""
    words = [sys.executable, "-m", "siprtmp", "conform", "sip", "--list"]
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")
