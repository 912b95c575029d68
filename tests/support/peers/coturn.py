"""coturn, a STUN and TURN server, on loopback."""

from pathlib import Path

from support.peers.process import Process, free_port, require, udp_is_bound

REALM = "example.org"
USER, PASSWORD = "user1", "pass1"


class Coturn(Process):
    """Relays for one user, to peers on loopback; `port` again gives a server its old address."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        """`options` are appended to the command line."""
        program = require("turnserver", "coturn")
        super().__init__(folder)
        self.port = free_port() if port is None else port
        words = ["-n", "-L", "127.0.0.1", "-E", "127.0.0.1", "-p", str(self.port), "-m", "1"]
        words += ["--no-tls", "--no-dtls", "--no-cli", "--allow-loopback-peers", "--no-rfc5780"]
        words += ["-a", "-u", f"{USER}:{PASSWORD}", "-r", REALM, "-v"]
        words += ["--log-file", "stdout", "--simple-log", "--db", str(folder / "turndb")]
        self.argv = [program, *words, "--pidfile", str(folder / "turnserver.pid"), *options]

    @property
    def address(self) -> str:
        """host:port of its UDP and TCP listeners."""
        return f"127.0.0.1:{self.port}"

    def is_ready(self) -> bool:
        """Truthy once the listener exists."""
        return udp_is_bound(self.port)
