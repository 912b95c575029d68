"""What carries calls and TLS: a user agent, a proxy of ours, and references beside them."""

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

from cpu import Server, Usage, clock_mhz, cpu_clock

HERE = Path(__file__).resolve().parent
PORTS = range(12000, 20000, 2)
STARTING = 20.0  # s until a program has its port
DICE = random.SystemRandom()
# A registrar and record-routing proxy with one worker, all in memory.
KAMAILIO = """\
#!KAMAILIO
debug=0
log_stderror=yes
children=1
{transports}
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


KAMAILIO_TLS = """\
tcp_children=1
enable_tls=yes
listen=tls:127.0.0.1:{port}
loadmodule "tls.so"
modparam("tls", "tls_method", "TLSv1.2+")
modparam("tls", "private_key", "{pem}")
modparam("tls", "certificate", "{pem}")
modparam("tls", "verify_certificate", 0)
modparam("tls", "require_certificate", 0)
"""
MODULES = "*/kamailio/modules/tls.so"  # below /usr/lib, by machine


def free_port() -> int:
    """A port that nobody has by UDP or TCP, below those that the system gives to clients."""
    for port in DICE.sample(PORTS, len(PORTS)):
        with suppress(OSError), ExitStack() as probes:
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                probes.enter_context(socket.socket(socket.AF_INET, kind)).bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port left")


def is_bound(port: int, sockets: str) -> bool:
    """Whether somebody has this port, by /proc/net/udp or tcp."""
    lines = Path(f"/proc/net/{sockets}").read_text().splitlines()[1:]
    return any(line.split()[1].endswith(f":{port:04X}") for line in lines)


class Uas(Server):
    """The user agent of `sip_uas.py`."""

    def __init__(self, core: int) -> None:
        """Start it on a free port."""
        self.port = free_port()
        super().__init__([sys.executable, str(HERE / "sip_uas.py"), str(self.port)], core)


class Proxy(Server):
    """`python -m p2psip serve`."""

    def __init__(self, core: int, pem: Path | None = None) -> None:
        """Start it on a free port; by TLS with this certificate and key if there is a `pem`."""
        self.port = self.udp = free_port()
        words = ["-m", "p2psip", "serve", "--listen", f"127.0.0.1:{self.udp}"]
        if pem is not None:
            self.port = free_port()
            words += ["--sips", f"127.0.0.1:{self.port}", "--tls-cert", str(pem)]
        super().__init__([sys.executable, *words], core, ready="serving ")


class FamilyMeter:
    """The CPU seconds of a process and its children, since it was made."""

    def __init__(self, pid: int) -> None:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self._clocks = [cpu_clock(each) for each in (pid, *map(int, children))]
        self._begin, self._wall = self._sum(), time.monotonic()

    def _sum(self) -> float:
        return sum(time.clock_gettime(clock) for clock in self._clocks)

    def read(self) -> Usage:
        """The window so far."""
        seconds = time.monotonic() - self._wall
        return Usage(seconds, self._sum() - self._begin, clock_mhz())


class Program:
    """A program that says nothing when it is ready: pinned, and there once its port is bound."""

    def __init__(self, words: list[str], core: int, port: int, sockets: str = "udp") -> None:
        """Start it; `sockets` are those of /proc/net that its port is in."""
        self.port = port
        self.process = subprocess.Popen(
            ["taskset", "-c", str(core), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + STARTING
        while not is_bound(port, sockets):
            if self.process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise RuntimeError(f"{words[0]} does not serve")
            time.sleep(0.02)

    def meter(self) -> FamilyMeter:
        """A new window on the clocks of all its processes."""
        return FamilyMeter(self.process.pid)

    def __enter__(self) -> Self:
        """It runs since it was made."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()


class Kamailio(Program):
    """Kamailio as a proxy, in a folder of its own."""

    def __init__(self, core: int, pem: Path | None = None) -> None:
        """Start it on a free port; with a `pem` TLS has a port of its own."""
        program = shutil.which("kamailio", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
        if program is None or (pem and not any(Path("/usr/lib").glob(MODULES))):
            raise RuntimeError("kamailio, with TLS, is the reference: make peers installs it")
        udp, secure = free_port(), free_port()
        transports = "disable_tcp=yes"
        if pem is not None:
            transports = KAMAILIO_TLS.format(port=secure, pem=pem)
        self._folder = tempfile.TemporaryDirectory()
        config = Path(self._folder.name) / "kamailio.cfg"
        config.write_text(KAMAILIO.format(port=udp, transports=transports))
        # 64 MB, its default, hold the transactions of some 370 calls a second: give it more.
        words = [program, "-f", str(config), "-m", "512", "-DD", "-E", "-Y", self._folder.name]
        if pem is None:
            super().__init__(words, core, udp)
        else:
            super().__init__(words, core, secure, "tcp")

    def __exit__(self, *_: object) -> None:
        """End it and remove its folder."""
        super().__exit__()
        self._folder.cleanup()


class Answering(Program):
    """SIPp as a phone that answers at once."""

    def __init__(self, core: int) -> None:
        """Start it on a free port."""
        port = free_port()
        words = ["sipp", "-nostdin", "-sf", str(HERE / "sipp_callee.xml"), "-i", "127.0.0.1"]
        super().__init__([*words, "-p", str(port)], core, port)


class Openssl(Program):
    """The server of openssl's command line, which answers one handshake after the other."""

    def __init__(self, core: int, pem: Path) -> None:
        """Start it on a free port."""
        port = free_port()
        words = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", str(pem), "-www"]
        super().__init__(words, core, port, "tcp")


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
