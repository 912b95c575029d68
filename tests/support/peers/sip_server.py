"""Our registrar and proxy as its users run it: `python -m p2psip serve`."""

import re
import sys
from pathlib import Path

from support.certificates import Certificate
from support.gateway.accounts import users_file
from support.peers.process import Process

READY = re.compile(r"^serving .* at ([\d.:]+)(?:, by TLS ([\d.:]+))?$", re.MULTILINE)


class SipServer(Process):
    """It serves the `users` of a domain, who all have `PASSWORD`, by UDP, TCP and TLS.

    After `start`, `places` holds host:port by transport.
    """

    def __init__(
        self, folder: Path, domain: str, users: tuple[str, ...], certificate: Certificate
    ) -> None:
        super().__init__(folder)
        files = {
            "--users": users_file(folder, *users, realm=domain),
            "--tls-cert": certificate.file,
            "--tls-key": certificate.key,
        }
        words = [str(word) for option in files.items() for word in option]
        words += ["--domain", domain, "--listen", "127.0.0.1:0", "--sips", "127.0.0.1:0"]
        self.argv = [sys.executable, "-m", "p2psip", "serve", *words]
        self.places: dict[str, str] = {}

    def is_ready(self) -> bool:
        """Truthy once it says where it listens."""
        if said := READY.search(self.output):
            self.places = {"udp": said[1], "tcp": said[1], "tls": said[2]}
        return bool(said)
