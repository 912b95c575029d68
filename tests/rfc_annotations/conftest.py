"""A little repository about brewing tea, sound in every respect, for the rules to look at."""

import shutil
from pathlib import Path

import pytest

from rfc_annotations import ratchet
from rfc_annotations.check import Check
from rfc_annotations.evidence import load
from rfc_annotations.fingerprint import fingerprint
from rfc_annotations.project import Project
from rfc_annotations.report import snapshot

SPEC = """\
1 Pouring

   The host MUST warm the pot before any
   water of a rolling boil is poured on the
Host                     Standards Track                    [Page 1]
RFC 7001                       Tea                      April 2024
   leaves that were measured out for the guests in the room.

1.1 Milk

   Milk SHOULD come last.  In former days, milk came first.

2 Waiting

   The host MUST wait four minutes.
"""
WARM = "The host MUST warm the pot before any"
CATALOGUE = f"""\
spec = "RFC 7001"

[[requirement]]
section = "2"
slug = "waits"
level = "MUST"
who = "host"
summary = "Four minutes, by the clock."
mark = "{fingerprint("The host MUST wait four minutes.")}"
"""
SPECS = """\
[[spec]]
name = "RFC 7001"
title = "Tea"
file = "rfc7001.txt"

[[spec]]
name = "Field"
title = "Our own ledger"
file = ""
style = "markdown"
"""
SETTINGS = """\
[tool.pytest.ini_options]
pythonpath = ["src"]

[tool.rfc_annotations]
specs = "../shared/specs"
must_cite = ["src/tea"]
"""
CODE = '''\
"""Tea.  Implements RFC 7001 §1."""

MINUTES = 4


def brew(minutes):
    """Brew, if it took long enough (§2)."""
    if minutes < MINUTES:
        return "water"
    return "tea"  # §2 [waits]
'''
TEST = '''\
"""Tea is tea."""

from tea.pot import brew


def test_brew():
    """Covers RFC 7001 §2 [waits]."""
    assert brew(4) == "tea"
'''


class Repo:
    """The repository in a folder, with a way to look for the problems of one rule."""

    def __init__(self, root):
        self.root = root
        self.write("specs/rfc7001.txt", SPEC)
        self.write("pyproject.toml", SETTINGS)
        self.write("rfc_annotations/specs.toml", SPECS)
        self.write("rfc_annotations/index/rfc7001.txt", "1\tPouring\n1.1\tMilk\n2\tWaiting\n")
        self.write("rfc_annotations/index/field.md", "# Field\n\n## Old kettles\n")
        self.write("rfc_annotations/requirements/rfc7001.toml", CATALOGUE)
        self.write("src/tea/pot.py", CODE)
        self.write("tests/test_pot.py", TEST)
        self.write("README.md", "# Tea\n\nRFC 7001 §2 is why it takes so long.\n")
        self.update()

    def write(self, file, text):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def replace(self, file, old, new):
        text = (self.root / file).read_text()
        assert old in text
        self.write(file, text.replace(old, new))

    def project(self, specs=True):
        return Project(self.root, self.root / "specs" if specs else None)

    def update(self):
        check = Check(self.project())
        path = self.root / "rfc_annotations" / ratchet.NAME
        ratchet.save(path, ratchet.lowered(check.committed, check.measured))
        check.project.snapshot.write_text(snapshot(check.project, check.claims))

    def problems(self, rule=None, evidence=None, specs=True):
        check = Check(self.project(specs), load(evidence) if evidence else None)
        return [str(p) for p in check.run() if rule in (None, p.rule)]


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path / "repo")


@pytest.fixture
def without_specs(repo):
    shutil.rmtree(Path(repo.root, "specs"))
    return repo
