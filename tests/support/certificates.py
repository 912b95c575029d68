"""Certificates for tests of TLS, made anew by openssl for 127.0.0.1 and localhost."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from support.peers.process import require


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate and its key, PEM files both."""

    file: Path
    key: Path


def certificate(folder, names="IP:127.0.0.1,DNS:localhost", *, expired=False):
    """Make one; `names` as openssl's subjectAltName has them."""
    program = require("openssl", "openssl")
    folder.mkdir(exist_ok=True)
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    words = ["req", "-x509", *kind, "-subj", "/CN=test", "-addext", f"subjectAltName={names}"]
    files = ["-keyout", str(made.key), "-out", str(made.file)]
    subprocess.run([program, *words, *files], check=True, capture_output=True, timeout=100)
    if expired:  # `req` makes none that has
        words = ["x509", "-in", str(made.file), "-signkey", str(made.key), "-days", "-1"]
        words += ["-out", str(made.file)]
        subprocess.run([program, *words], check=True, capture_output=True, timeout=100)
    return made
