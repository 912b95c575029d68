"""TLS handshakes by openssl's s_time, several clients at once, and the certificates for them."""

import re
import subprocess
from pathlib import Path

CLIENTS = 4  # so that the server always has one to answer
KINDS = {
    "RSA 2048": ["-newkey", "rsa:2048"],
    "ECDSA P-256": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
}
_DONE = re.compile(r"^(\d+) connections in \d+ real seconds", re.MULTILINE)


def certificate(kind: str, folder: Path) -> Path:
    """A self-signed certificate of this kind and its key, in one file."""
    key, file = folder / "key.pem", folder / "certificate.pem"
    words = ["openssl", "req", "-x509", *KINDS[kind], "-nodes", "-days", "2", "-subj", "/CN=load"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(file)]
    subprocess.run(words, check=True, capture_output=True)
    file.chmod(0o600)  # since the key is in it now
    file.write_text(file.read_text() + key.read_text())
    return file


def handshakes(port: int, seconds: int, core: int, clients: int = CLIENTS) -> int:
    """Let the clients connect again and again, each time with a whole handshake; how often."""
    words = ["taskset", "-c", str(core), "openssl", "s_time", "-connect", f"127.0.0.1:{port}"]
    words += ["-new", "-time", str(seconds)]
    running = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(clients)
    ]
    found = [_DONE.search(each.communicate()[0]) for each in running]
    if not all(found):
        raise RuntimeError("a client of openssl ended without a count")
    return sum(int(each[1]) for each in found if each)
