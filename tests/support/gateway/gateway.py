"""The gateway as its users run it: a process of its own, on free loopback ports."""

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from support.limits import core_waits
from support.peers.process import PATIENCE, Process

from siprtmp.edge.media_side import PUMP_FIGURES

REPO = Path(__file__).resolve().parents[3]


ANY_PORT = "127.0.0.1:0"
WITHHELD = 0.25  # s without a core, in all, by which a gateway is late with some sound
DEFAULTS = ["--rtmp", ANY_PORT, "--rtmfp", "off", "--http", ANY_PORT]


class Gateway(Process):
    """`python -m siprtmp` with every listener on 127.0.0.1:0 unless `options` say otherwise.

    After `start`, `listeners` holds what the ready line says, such as {"rtmp": "127.0.0.1:4711"}.
    Leaving the block sends SIGTERM and fails the test unless the gateway ends with exit code 0.
    """

    def __init__(self, folder: Path, *options: str, program: tuple[str, ...] = ()) -> None:
        """`options` are appended to the command line and so win over the defaults.

        `program` replaces `python -m siprtmp`, to try this class itself.
        """
        words = program or (sys.executable, "-m", "siprtmp")
        also = () if "--sip" in options else ("--sip", ANY_PORT)  # which may be given twice
        super().__init__(folder, [*words, *DEFAULTS, *also, *options])
        self.listeners: dict[str, str] = {}

    def is_ready(self) -> bool:
        """Truthy once the ready line is complete; reads the listeners from it."""
        for line in self.output.splitlines(keepends=True):
            if line.startswith("ready ") and line.endswith("\n"):
                self.listeners = dict(word.split("=", 1) for word in line.split()[1:])
        return bool(self.listeners)

    @property
    def rtmp(self) -> str:
        """host:port of the RTMP listener."""
        return self.listeners["rtmp"]

    @property
    def rtmfp(self) -> str:
        """host:port of the RTMFP listener."""
        return self.listeners["rtmfp"]

    @property
    def sip(self) -> str:
        """host:port of the SIP listener, UDP and TCP."""
        return self.listeners["sip"]

    @property
    def sips(self) -> str:
        """host:port of the SIP listener for TLS."""
        return self.listeners["sips"]

    @property
    def ws(self) -> str:
        """host:port of the SIP listener for WebSocket."""
        return self.listeners["ws"]

    def place(self, transport: str) -> tuple[str, int]:
        """Where it takes SIP over one transport."""
        name = {"TLS": "sips", "WS": "ws"}.get(transport, "sip")
        host, _, port = self.listeners[name].rpartition(":")
        return host, int(port)

    def url(self, application: str, stream: str = "") -> str:
        """The RTMP address of `application`, with `stream` appended when given."""
        return f"rtmp://{self.rtmp}/{application}" + (f"/{stream}" if stream else "")

    def status(self) -> dict[str, Any]:
        """The figures of /status."""
        url = f"http://{self.listeners['http']}/status"
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            figures: dict[str, Any] = json.load(answer)
        return figures

    def wait_status(self, expected: dict[str, Any], timeout: float = PATIENCE) -> None:
        """Poll /status until every figure named in `expected` has that value.

        The lag of the loop comes and goes with what else the machine does, and the packets of calls
        are counted for ever; they are not waited for.  Nor is sound that was left out, where the
        gateway itself had no core for it in time.
        """
        seen: dict[str, Any] = {}
        ignored = ["loop_lag_ms", *PUMP_FIGURES]
        if max(core_waits(self.child.pid).values(), default=0.0) >= WITHHELD:
            ignored.append("media_left_out")
        expected = {name: value for name, value in expected.items() if name not in ignored}

        def agrees() -> bool:
            seen.update(self.status())
            return all(seen.get(name) == value for name, value in expected.items())

        try:
            self.wait_until(agrees, what="/status to settle", timeout=timeout)
        except pytest.fail.Exception as failure:
            wrong = {k: (seen.get(k), v) for k, v in expected.items() if seen.get(k) != v}
            pytest.fail(f"/status (is, should be): {wrong}\n{failure}")

    def __exit__(self, *error: object) -> None:
        """SIGTERM; a clean end is part of every test that did not fail already."""
        code = self.stop(PATIENCE)
        if error[0] is None:
            assert code == 0, f"the gateway ended with {code} after SIGTERM\n{self.tail()}"
