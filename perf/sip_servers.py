"""What carries the calls of bench_sip.py: a user agent, a proxy of ours, and kamailio beside it."""

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from cpu import Server

HERE = Path(__file__).resolve().parent
PORTS = range(12000, 20000, 2)
DICE = random.SystemRandom()
# A registrar and record-routing proxy with one worker, all in memory.
KAMAILIO = """\
#!KAMAILIO
debug=0
log_stderror=yes
children=1
disable_tcp=yes
auto_aliases=no
listen=udp:127.0.0.1:{port}
loadmodule "tm.so"
loadmodule "sl.so"
loadmodule "rr.so"
loadmodule "maxfwd.so"
loadmodule "siputils.so"
loadmodule "textops.so"
loadmodule "pv.so"
loadmodule "usrloc.so"
loadmodule "registrar.so"
modparam("usrloc", "db_mode", 0)
request_route {{
    if (!mf_process_maxfwd_header("10")) {{ sl_send_reply("483", "Too Many Hops"); exit; }}
    if (has_totag()) {{
        if (loose_route()) t_relay();
        exit;
    }}
    t_check_trans();
    if (is_method("REGISTER")) {{ save("location"); exit; }}
    record_route();
    if (!lookup("location")) {{ sl_send_reply("404", "Not Found"); exit; }}
    t_relay();
}}
"""


def free_port() -> int:
    """A port that nobody has by UDP or TCP, below those that the system gives to clients."""
    for port in DICE.sample(PORTS, len(PORTS)):
        with suppress(OSError), ExitStack() as probes:
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                probes.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port left")


class Uas(Server):
    """The user agent of `sip_uas.py`."""

    def __init__(self, core: int) -> None:
        """Start it on a free port."""
        self.port = free_port()
        super().__init__([sys.executable, str(HERE / "sip_uas.py"), str(self.port)], core)


class Proxy(Server):
    """`python -m p2psip serve`."""

    def __init__(self, core: int) -> None:
        """Start it on a free port."""
        self.port = free_port()
        words = ["-m", "p2psip", "serve", "--listen", f"127.0.0.1:{self.port}"]
        super().__init__([sys.executable, *words], core, ready="serving ")


class Kamailio:
    """Kamailio as a proxy, in a folder of its own."""

    def __init__(self, core: int) -> None:
        """Start it on a free port."""
        program = shutil.which("kamailio", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
        if program is None:
            raise RuntimeError("kamailio is the reference: make peers installs it")
        self.port = free_port()
        self._folder = tempfile.TemporaryDirectory()
        config = Path(self._folder.name) / "kamailio.cfg"
        config.write_text(KAMAILIO.format(port=self.port))
        # 64 MB, its default, hold the transactions of some 370 calls a second: give it more.
        words = [program, "-f", str(config), "-m", "512", "-DD", "-E", "-Y", self._folder.name]
        self.process = subprocess.Popen(
            ["taskset", "-c", str(core), *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        """It runs since it was made."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it and remove its folder."""
        self.process.terminate()
        self.process.wait()
        self._folder.cleanup()


def register(port: int, contact: int, seconds: float = 20.0) -> None:
    """Register `service` at a proxy with a contact port, as soon as the proxy answers."""
    text = (
        f"REGISTER sip:127.0.0.1:{port} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:{{}};branch=z9hG4bKr"
        f"\r\nFrom: <sip:service@127.0.0.1:{port}>;tag=r\r\nTo: <sip:service@127.0.0.1:{port}>\r\n"
        f"Call-ID: r\r\nCSeq: 1 REGISTER\r\nContact: <sip:service@127.0.0.1:{contact}>\r\n"
        "Max-Forwards: 70\r\nExpires: 3600\r\nContent-Length: 0\r\n\r\n"
    )
    end = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
        phone.bind(("127.0.0.1", 0))
        phone.settimeout(0.2)
        while time.monotonic() < end:
            phone.sendto(text.format(phone.getsockname()[1]).encode(), ("127.0.0.1", port))
            try:
                if phone.recv(65536).startswith(b"SIP/2.0 200"):
                    return
            except TimeoutError:
                continue
    raise RuntimeError("the proxy takes no registration")
