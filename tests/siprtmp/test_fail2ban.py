"""The filter for fail2ban in examples/: it finds the hosts that guess, and no others.

Own design: `fail2ban-regex` judges where it is installed; else what its manual says of a filter.
"""

import configparser
import logging
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.sip.homes import BOB, Home, answer_to, register, request, signed, store

from rtmplite.auth.credentials import NO_USER
from rtmplite.auth.guard import Event, Question
from siprtmp.edge.rtmp_side import RtmpSide
from siprtmp.operation.audit_log import AuditLog
from siprtmp.operation.logs import Log, TextFormatter

FILTER = Path(__file__).parent.parent.parent / "examples" / "fail2ban" / "filter.conf"
ADDR = r"(?P<addr>(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)"
BAIT = "192.0.2.1"  # whom an attacker would like to see shut out


def hosts(lines):
    """Whom the filter finds, a host for each line that matches."""
    text = configparser.RawConfigParser()
    text.read(FILTER)
    pattern = re.compile(text["Definition"]["failregex"].replace("<ADDR>", ADDR))
    dated = [line.partition("Z")[2] for line in lines]  # fail2ban takes the time off first
    found = [pattern.search(line) for line in dated]
    return [match["addr"] for match in found if match]


@pytest.fixture
def log(caplog):
    """A log, and what it wrote as the gateway writes it."""
    caplog.set_level(logging.INFO, "siprtmp")
    lines = TextFormatter()
    return Log("siprtmp"), lambda: [lines.format(record) for record in caplog.records]


def test_who_guesses_is_found(log):
    """Own design: by SIP, in both kinds of address; and nobody who was only asked."""
    written, lines = log
    home = Home(users=store("bob"))
    home.endpoint.observer = AuditLog(home.endpoint.registrar, written)
    for host in (BOB, "2001:db8::7"):
        asked = answer_to(home.hear(register(), source=host))
        home.hear(signed(register(), asked, password="guess"), source=host)
    home.hear(request("INVITE", "sip:nobody@home", ("From", "<sip:eve@away>;tag=1")))
    assert hosts(lines()) == [BOB, "2001:db8::7"] and len(lines()) == 3


def test_who_guesses_by_rtmp_is_found(log):
    """Own design: of the same shape."""
    written, lines = log
    side = RtmpSide.__new__(RtmpSide)
    side._log = written
    empty = [""] * 7
    for reason in (NO_USER, "Denied."):
        asked = Question(Event.CONNECT, "2001:db8::9", 1, *empty, (), "name", "name")
        side._refused(asked, reason)
    assert hosts(lines()) == ["2001:db8::9"]


@pytest.mark.parametrize(
    "bait",
    [
        f"x source={BAIT} ",
        f" info    siprtmp login-refused source=UDP:{BAIT} ",
        f'" source=UDP:{BAIT} ',
        f"\n2026-01-01T00:00:00.000Z info    siprtmp login-refused source=UDP:{BAIT}",
    ],
)
def test_nobody_is_found_for_what_another_said(log, bait):
    """Own design: names are quoted, and stand behind the address."""
    written, lines = log
    for event in ("login-refused", "call-refused", "refused"):
        written.event(event, source="UDP:198.51.100.7", user=bait, reason=bait)
        written.event("proxy-start", call=bait, caller=bait)
    assert hosts(lines()) == ["198.51.100.7"]


@pytest.mark.skipif(
    shutil.which("fail2ban-regex") is None and not os.environ.get("CI"),
    reason="fail2ban is not installed; see make peers",
)
def test_fail2ban_agrees(log, tmp_path):
    """Own design: the program itself, with the time as the gateway writes it."""
    written, lines = log
    for number in range(3):
        written.event("login-refused", source=f"UDP:198.51.100.{number}", user="sip:bob@home")
    written.event("call-refused", source=f"UDP:{BAIT}")
    (tmp_path / "log").write_text("\n".join(lines()) + "\n")
    told = subprocess.run(
        ["fail2ban-regex", tmp_path / "log", FILTER], capture_output=True, text=True, check=False
    )
    assert "3 matched, 1 missed" in told.stdout
