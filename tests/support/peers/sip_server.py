"""Our registrar and proxy as its users run it: `python -m p2psip serve`."""

import re
import sys
from pathlib import Path

from support.certificates import Certificate
from support.gateway.accounts import users_file
from support.peers.process import Process

READY = re.compile(r"^serving .* at ([\d.:]+)(?:, by TLS ([\d.:]+))?$", re.MULTILINE)


class SipServer(Process):
    """It serves the users of some domains by UDP and TCP, with a certificate by TLS as well.

    Registrations are kept at `location`.  The `users` all have `PASSWORD`; without them anybody may
    be anybody.  After `start`, `places` holds host:port by transport.
    """

    def __init__(
        self,
        folder: Path,
        *domains: str,
        users: tuple[str, ...] = (),
        certificate: Certificate | None = None,
        location: str = "",
    ) -> None:
        super().__init__(folder)
        words = ["serve", "--listen", "127.0.0.1:0"]
        words += [word for domain in domains for word in ("--domain", domain)]
        if users:
            words += ["--users", users_file(folder, *users, realm=domains[0])]
        if certificate is not None:
            files = ["--tls-cert", str(certificate.file), "--tls-key", str(certificate.key)]
            words += ["--sips", "127.0.0.1:0", *files]
        words += ["--location", location] if location else []
        self.argv = [sys.executable, "-m", "p2psip", *words]
        self.places: dict[str, str] = {}

    def is_ready(self) -> bool:
        """Truthy once it says where it listens."""
        if said := READY.search(self.output):
            self.places = {"udp": said[1], "tcp": said[1], "tls": said[2] or ""}
        return bool(said)

    @property
    def sip(self) -> str:
        """host:port of the listener for UDP and TCP."""
        return self.places["udp"]
