"""Where the registrar's bindings are kept, and the log lines about them.

Own design: in a file of the folder `--state`, or without that option in memory alone.
"""

from typing import Final

from p2psip.errors import LocalError
from p2psip.net.location_sqlite import SqliteLocation
from p2psip.server.domains import Aor
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from siprtmp.operation.arguments import ConfigError
from siprtmp.operation.audit_log import address_of, user_and_host
from siprtmp.operation.config import Settings
from siprtmp.operation.logs import Log

FILE: Final = "location.sqlite"


class LocationLog:
    """Logs contacts that are given up, and a file that cannot be written."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def contact(self, what: str, aor: Aor, contact: Address) -> None:
        """Log that a registered phone cannot be called any more: RFC 5626 §7."""
        user = user_and_host(Uri("sip", aor[0], None, aor[1]))
        self._log.event(what, user=user, contact=address_of(contact.uri))

    def file(self, what: str, reason: str) -> None:
        """Log whether bindings will outlive the process, once for each change."""
        if reason:
            self._log.warning(what, file=FILE, reason=reason)
        else:
            self._log.event(what, file=FILE)


def open_location(settings: Settings, log: LocationLog) -> SqliteLocation | None:
    """The file of bindings, if there is a folder for it; ConfigError if it cannot be used.

    See `p2psip.net.location_sqlite`.
    """
    if settings.state is None:
        return None
    try:
        return SqliteLocation(settings.state / FILE, log.file)
    except LocalError as error:
        raise ConfigError(f"--state: {error}") from None
