"""Users for a gateway under test."""

import hashlib
from pathlib import Path

PASSWORD = "zanzibar"


def users_file(folder: Path, *names: str, realm: str = "127.0.0.1") -> str:
    """A --users file where everybody has `PASSWORD`; returns its path."""
    lines = []
    for name in names:
        text = f"{name}:{realm}:{PASSWORD}".encode()
        lines.append(f"{name}:{realm}:{hashlib.sha256(text).hexdigest()}")
        lines.append(f"{name}:{realm}:{hashlib.md5(text).hexdigest()}")
    path = folder / "users"
    path.write_text("\n".join(lines))
    path.chmod(0o600)
    return str(path)
