"""Child processes for tests: started in a folder of their own, polled until ready, always stopped.

Nothing here sleeps for a fixed time to be safe: every wait polls a condition that can be seen
(a port that answers, a line in the log) and gives up with the tail of the log in the message.
"""

import codecs
import contextlib
import io
import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn, Self, TypeVar

import gevent
import pytest
from support.limits import Clock
from support.peers.nursery import Nursling

T = TypeVar("T")

PEER_NICENESS = -10
POLL_SECONDS = 0.02, 0.1  # at first, and at last: what takes long may take a twentieth longer
PORTS = range(20000, 32000, 4)  # below Linux's ephemeral ports, so no client socket takes one first
SYSTEM_PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/usr/local/sbin"  # for servers

TCP_LISTEN = "0A"  # the state in /proc/net/tcp

PATIENCE = 30.0  # s for what a real program does at once where it has a core to itself

DICE = random.SystemRandom()  # workers that are seeded alike must not draw the same ports

_held: list[socket.socket] = []  # what keeps the ports that were given from all other processes


def require(binary: str, package: str) -> str:
    """The full path of `binary`; without it the test skips, or fails where CI is set.

    `package` is the Debian package to name. CI promises all peers, so there a skip would be a lie.
    """
    path = shutil.which(binary, path=SYSTEM_PATH)
    if path is None:
        lack(binary, package)
    return path


def lack(what: str, package: str) -> NoReturn:
    """Skip the test for want of something, or fail where CI is set."""
    missing = f"{what} is not installed: apt-get install {package}, or make peers"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


def free_port() -> int:
    """A loopback port free for UDP and TCP, as is its successor; no two calls give the same.

    Nor do calls in two workers, though it takes a peer a while to bind its port.
    """
    for port in DICE.sample(PORTS, len(PORTS)):
        if _is_mine(port) and all(map(_is_free, (port, port + 1))):
            return port
    raise RuntimeError("no free port left for a test peer")


def _is_mine(port: int) -> bool:
    """Hold a port against all processes that ask here too, until this one ends.

    A name that Linux keeps in no folder goes with the process.
    """
    holding = socket.socket(socket.AF_UNIX)
    try:
        holding.bind(f"\0siprtmp-test-port-{port}")
    except OSError:
        holding.close()
        return False
    _held.append(holding)
    return True


def _is_free(port: int) -> bool:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def tcp_answers(port: int) -> bool:
    """True once somebody accepts TCP connections on this loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def udp_is_bound(port: int) -> bool:
    """True once some process holds this UDP port."""
    return port_is_bound(port, socket.SOCK_DGRAM)


def port_is_bound(port: int, kind: socket.SocketKind) -> bool:
    """True once some process holds this UDP port, or listens at this TCP port.

    The kernel's lists say so: who tries to bind the port takes it from whom we wait for.
    """
    names = ("udp", "udp6") if kind == socket.SOCK_DGRAM else ("tcp", "tcp6")
    lists = [Path("/proc/net", name) for name in names]
    sockets = [line.split() for each in lists if each.exists() for line in each.open()]
    return any(
        local.endswith(f":{port:04X}") and (kind == socket.SOCK_DGRAM or state == TCP_LISTEN)
        for _, local, _, state, *_ in sockets
    )


def wait_until(
    condition: Callable[[], T], *, what: str, timeout: float = PATIENCE, log: Path | None = None
) -> T:
    """Poll `condition` until it is true and return its value; fail after `timeout` seconds.

    The greenlets of the test itself run meanwhile, such as an agent that a phone talks to.  What
    nobody had a core for does not count.
    """
    clock = Clock()
    while True:
        if value := condition():
            return value
        if clock.over(timeout):
            pytest.fail(f"waited {clock.wall:.0f} s in vain: {what}\n{tail(log) if log else ''}")
        first, last = POLL_SECONDS
        gevent.sleep(min(max(first, clock.wall / 20), last))


class Growing:
    """The text of a file that a program writes on; each octet of it is read once."""

    def __init__(self, path: Path) -> None:
        """The file need not be there yet."""
        self._path = path
        self._begin()

    def _begin(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._size, self._text = 0, ""

    @property
    def text(self) -> str:
        """All of it by now; nothing if there is no file."""
        if not self._path.is_file():
            return ""
        size = self._path.stat().st_size
        if size < self._size:  # it was emptied
            self._begin()
        if size > self._size:
            with self._path.open("rb") as file:
                file.seek(self._size)
                added = file.read()
            self._size += len(added)
            self._text += self._decoder.decode(added)
        return self._text


def tail(log: Path, lines: int = 40) -> str:
    """The last `lines` lines of a log, or a note that there is none."""
    if not log.is_file():
        return f"({log.name} was never written)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


class Process:
    """One child process; its output goes to `log` and it lives in `folder`.

    A subclass builds the command line and overrides `is_ready`. Used as a context manager it is
    ready inside the block and gone, with all its own children, after it.
    """

    never_waits = False  # for a core, whoever else wants it

    def __init__(self, folder: Path, argv: Iterable[str | Path] = ()) -> None:
        """Keep `argv` for `start`; a subclass may set it later in its own way."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.argv = [str(word) for word in argv]
        self.log = folder / f"{folder.name}.log"
        self._output = Growing(self.log)
        self.process: subprocess.Popen[bytes] | Nursling | None = None

    def start(self, timeout: float = PATIENCE) -> Self:
        """Start it and return when `is_ready` says so."""
        self.launch(subprocess.DEVNULL)
        self.wait_until(self.is_ready, what=f"{self.folder.name} to be ready", timeout=timeout)
        return self

    def launch(self, stdin: int) -> None:
        """Start it, before the tests that compute beside it, as if it had a machine of its own.

        Phones and encoders keep time; one that waits for a core loses sound which nobody can
        give it back, and a phone that drops sound as soon as it is late `never_waits`.  Where the
        system does not permit that, it is one among all.
        """
        with self.log.open("ab") as log:
            if stdin == subprocess.DEVNULL and Nursling.takes(self.argv):
                self.process = Nursling(self.argv, self.folder, self.log)
            else:
                self.process = subprocess.Popen(
                    self.argv,
                    cwd=self.folder,
                    stdin=stdin,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # so that stop() reaches workers it forks
                )
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self.process.pid, PEER_NICENESS)
            if self.never_waits:
                os.sched_setscheduler(self.process.pid, os.SCHED_RR, os.sched_param(1))

    def is_ready(self) -> object:
        """Truthy when the process can be used; the base class asks for nothing."""
        return True

    def wait_until(self, condition: Callable[[], T], *, what: str, timeout: float = PATIENCE) -> T:
        """Like the function, but fails at once when the process has ended."""

        def alive_and_true() -> T:
            code = self.child.poll()
            if not (value := condition()) and code is not None:
                pytest.fail(f"{self.folder.name} ended with {code}, awaiting {what}\n{self.tail()}")
            return value

        return wait_until(alive_and_true, what=what, timeout=timeout, log=self.log)

    @property
    def child(self) -> "subprocess.Popen[bytes] | Nursling":
        """The running process; asking before `start` is a mistake of the test."""
        assert self.process is not None, f"{self.folder.name} was not started"
        return self.process

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self._output.text

    def tail(self, lines: int = 40) -> str:
        """The last lines of its log, for failure messages."""
        return tail(self.log, lines)

    def finish(self, timeout: float = PATIENCE) -> int:
        """Wait until it ends by itself; its exit code."""
        what = f"{self.folder.name} to end"
        wait_until(lambda: self.child.poll() is not None, what=what, timeout=timeout, log=self.log)
        return self.child.wait()

    def stop(self, timeout: float = 5.0) -> int:
        """Ask it to end, then make it; the exit code (negative: the signal)."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
        _kill_group(self.process.pid)
        return self.process.wait()

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop it, however the block ended."""
        self.stop()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
