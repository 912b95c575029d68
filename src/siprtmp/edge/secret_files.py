"""Warns of files with passwords and keys that other users of this machine can read.

Own design: the gateway runs all the same, since the machine may have no other users.
"""

from collections.abc import Iterator
from pathlib import Path

from rtmplite.net.secret_files import is_open_to_all
from siprtmp.operation.logs import Log
from siprtmp.settings.load import load_file
from siprtmp.settings.table import Settings

_CURE = "chmod o-r"


def warn_of_readers(settings: Settings, log: Log) -> None:
    """Log each file with a secret that everybody on this machine can read."""
    for path, cure in _secret_files(settings):
        if is_open_to_all(path):
            log.warning("password-readable", file=path, cure=cure)


def _secret_files(settings: Settings) -> Iterator[tuple[Path, str]]:
    access, tls = settings.access, settings.tls
    key = tls.tls_key or tls.tls_cert  # which may have the key as well
    for path in (access.users, access.sign_key, key):
        if path is not None:
            yield path, _CURE
    if settings.source is not None and _has_secret(load_file(settings.source)):
        yield settings.source, f"{_CURE}, or use the environment"


def _has_secret(written: Settings) -> bool:
    """Whether a configuration file has passwords or keys itself."""
    relays, access = written.relays, written.access
    urls = (*relays.push, *relays.pull, written.process.location or "")
    return bool(
        access.publish_key
        or access.play_key
        or any("@" in url for url in urls)
        or any(each.push for each in written.route)  # whose last part is the key of a stream
        or any(each.in_file for each in written.trunk)
    )
