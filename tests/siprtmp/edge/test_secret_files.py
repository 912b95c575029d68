"""Files with passwords and keys: made for their owner alone, and a warning where others can read.

The commands run as in a shell, `users ... > FILE`, under the usual umask.
"""

import os
import subprocess
import sys

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.process import Process

from siprtmp.edge.gateway import warn_of_readers
from siprtmp.settings.load import load_file

TRUNK = '[[trunk]]\nname = "t"\naddress = "sip:us@127.0.0.1"\nnumbers = ["+49*"]\n'
ROUTE = '[[route]]\nmatch = "hot"\nstream = "s"\npush = "rtmp://live.example/app/KEY"\n'


class Lines:
    """A log that keeps its lines."""

    def __init__(self):
        self.lines = []

    def warning(self, what, **values):
        self.lines.append((what, values["file"].name))


def make_user(package, path, how):
    """`users` as a shell runs it with its output in a file; the file's mode then."""
    words = [sys.executable, "-m", package, "users", "bob", "home"]
    flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if how == ">>" else os.O_TRUNC)
    out = os.open(path, flags, 0o644)
    try:
        done = subprocess.run(words, input=f"{PASSWORD}\n", text=True, stdout=out, timeout=60)
    finally:
        os.close(out)
    assert done.returncode == 0
    return path.stat().st_mode & 0o777


def warn(path, log):
    """Warn as a gateway that is started with this file."""
    settings = load_file(path)
    warn_of_readers(settings.access, settings.tls, settings.source, log)


@pytest.mark.parametrize("package", ["siprtmp", "rtmplite"])
def test_a_new_file_of_users_is_for_its_owner_alone(package, tmp_path):
    """One that has users keeps the mode that the operator gave it."""
    path = tmp_path / "users"
    assert make_user(package, path, ">>") == 0o600
    path.chmod(0o640)
    assert make_user(package, path, ">>") == 0o640
    assert path.read_text().count("bob:home:") == 4
    fresh = tmp_path / "fresh"
    assert make_user(package, fresh, ">") == 0o600


@pytest.mark.parametrize(
    ("text", "is_secret"),
    [
        ("", False),
        ('push = ["live/*=rtmp://far.example/live"]\n', False),
        ('push = ["live/*=rtmp://ann:secret@far.example/live"]\n', True),
        ('pull = ["live/*=rtmp://ann:secret@far.example/live"]\n', True),
        ('location = "redis://:secret@192.0.2.7:6379/0"\n', True),
        ('tree-redis = "redis://:secret@192.0.2.7:6379/0"\n', True),
        ('tree-auth = "http://127.0.0.1:9000/who?key=KEY"\n', True),
        ('tree-auth = "http://127.0.0.1:9000/who"\n', False),
        ('publish-key = ["demo=KEY"]\n', True),
        ('play-key = ["demo=KEY"]\n', True),
        (TRUNK + 'password = "secret"\n', True),
        (TRUNK + "register = false\n", False),
        (ROUTE, True),
    ],
)
def test_settings_with_a_secret_that_others_can_read_are_said(text, is_secret, tmp_path):
    path = tmp_path / "siprtmp.toml"
    path.write_text(text)
    for mode, is_open in ((0o644, True), (0o640, False)):
        path.chmod(mode)
        log = Lines()
        warn(path, log)
        said = [("password-readable", path.name)] if is_secret and is_open else []
        assert log.lines == said


def test_each_file_with_a_secret_that_others_can_read_is_said(tmp_path):
    """A key in a file of its own makes the certificate harmless."""
    for name in ("users", "sign.key", "cert.pem", "key.pem"):
        (tmp_path / name).touch(0o644)
    path = tmp_path / "siprtmp.toml"
    lines = ['users = "users"', 'sign-key = "sign.key"', 'tls-cert = "cert.pem"']
    for more, last in (([], "cert.pem"), (['tls-key = "key.pem"'], "key.pem")):
        path.write_text("\n".join([*lines, *more]))
        log = Lines()
        warn(path, log)
        assert [name for _, name in log.lines] == ["users", "sign.key", last]


SERVERS = {
    "siprtmp": ["--rtmp", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--rtmfp", "off", "--http", "off"],
    "rtmplite": ["serve", "--rtmp", "127.0.0.1:0"],
    "p2psip": ["serve", "--sip", "127.0.0.1:0"],
}


class ServerProcess(Process):
    """One of the three servers, with users."""

    def __init__(self, folder, package, users):
        words = [sys.executable, "-m", package, *SERVERS[package], "--users", users]
        super().__init__(folder, words)

    def is_ready(self):
        return "ready " in self.output or "serving " in self.output


@pytest.mark.parametrize("package", SERVERS)
def test_a_server_says_it_and_runs(package, tmp_path):
    file = users_file(tmp_path, "alice")
    for mode, is_said in ((0o600, False), (0o640, False), (0o644, True)):
        os.chmod(file, mode)
        with ServerProcess(tmp_path / f"{mode:o}", package, file) as server:
            said = [line for line in server.output.splitlines() if "chmod o-r" in line]
        assert len(said) == is_said and all(file in line for line in said)
