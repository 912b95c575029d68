"""Warns of files with passwords and keys that other users of this machine can read.

Own design: the gateway runs all the same, since the machine may have no other users.
"""

from pathlib import Path
from typing import Final

from rtmplite.net.secret_files import is_open_to_all
from rtmplite.net.server.settings import AccessSettings, TlsSettings
from siprtmp.operation.logs import Log
from siprtmp.settings.load import load_file

CURE: Final = "chmod o-r"


def warn_of_readers(
    access: AccessSettings, tls: TlsSettings, source: Path | None, log: Log
) -> None:
    """Log each file with a secret that everybody on this machine can read.

    `source` is the configuration file.
    """
    key = tls.tls_key or tls.tls_cert  # which may have the key as well
    cures = {path: CURE for path in (access.users, access.sign_key, key) if path is not None}
    if source is not None and load_file(source).has_secret:
        cures[source] = f"{CURE}, or use the environment"
    for path, cure in cures.items():
        if is_open_to_all(path):
            log.warning("password-readable", file=path, cure=cure)
