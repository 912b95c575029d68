"""The bindings of a gateway: where they are kept, and what its log says of them.

Own design: with `--state` in a file there, else in memory alone.
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
    """Tells of contacts that are given up, and of a file that fails.  Own design."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def contact(self, what: str, aor: Aor, contact: Address) -> None:
        """Say that a phone can't be called any more though it has not said so: RFC 5626 §7."""
        user = user_and_host(Uri("sip", aor[0], None, aor[1]))
        self._log.event(what, user=user, contact=address_of(contact.uri))

    def file(self, what: str, reason: str) -> None:
        """Say whether bindings will outlive the process.  Own design: once for each change."""
        if reason:
            self._log.warning(what, file=FILE, reason=reason)
        else:
            self._log.event(what, file=FILE)


def open_location(settings: Settings, log: LocationLog) -> SqliteLocation | None:
    """The file of bindings, if there is a folder for it; ConfigError if it is not ours.

    Own design: see `p2psip.net.location_sqlite`.
    """
    if settings.state is None:
        return None
    try:
        return SqliteLocation(settings.state / FILE, log.file)
    except LocalError as error:
        raise ConfigError(f"--state: {error}") from None
