"""The page of the laboratory: each of its runs prints what the page shows."""

import shlex
import subprocess
import sys

import pytest
from support.lint.scene import datagrams
from support.lint.sip_cases import call, request, response
from support.pages import REPO, blocks, commands

from rtclab.__main__ import COMMANDS, main

PAGE = REPO / "docs" / "1-start" / "laboratory.md"
OURS = ".venv/bin/python -m rtclab "
PHONE = ".venv/bin/python -m p2psip "
RUNS = {
    line.removeprefix(OURS).split()[0]: (line.removeprefix(OURS), shown)
    for line, shown in zip(
        (line for line in commands(PAGE) if line.startswith(OURS)),
        blocks(PAGE, "text"),
        strict=True,
    )
}


@pytest.fixture
def phone():
    """The phone of the page, at a port that is free; its address."""
    [line] = [line for line in commands(PAGE) if line.startswith(PHONE)]
    words = shlex.split(line.removeprefix(PHONE).removesuffix(" &").replace(":5070", ":0"))
    program = [sys.executable, "-m", "p2psip", *words]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield child.stdout.readline().split()[-1]
        finally:
            child.terminate()


def run(name, capsys, **places):
    line, shown = RUNS[name]
    for written, real in places.items():
        line = line.replace(written, real)
    words = [word.replace(".venv/bin/python", sys.executable) for word in shlex.split(line)]
    code = main(words)
    assert capsys.readouterr().out == shown
    return code


def test_the_page_has_a_run_of_each_command():
    assert RUNS.keys() == set(COMMANDS)


def test_its_packet_is_explained(capsys):
    assert run("explain", capsys) == 0


def test_its_capture_is_judged(capsys, tmp_path, monkeypatch):
    again = call(bye=request("BYE", 3, 1), bye_ok=response(200, 3, "1 BYE"))
    (tmp_path / "call.pcap").write_bytes(datagrams(again))
    monkeypatch.chdir(tmp_path)
    assert run("lint", capsys) == 1


def test_its_adapter_agrees(capsys, monkeypatch):
    monkeypatch.chdir(REPO)
    assert run("oracle", capsys) == 0


def test_its_servers_can_be_reached(capsys):
    assert run("load", capsys) == 0


def test_its_phone_meets_the_requirements(capsys, phone):
    assert run("conform", capsys, **{"sip:anonymous@127.0.0.1:5070": phone}) == 0
