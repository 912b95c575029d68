"""Where the registrar's bindings are kept, and the log lines about them.

Own design: in the Redis of `--location`, or else in a file of the folder `--state`, or without
these options in memory alone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from p2psip.errors import LocalError
from p2psip.net.location_sqlite import SqliteLocation
from p2psip.server.domains import Aor
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.operation.audit_log import address_of, user_and_host
from siprtmp.operation.logs import Log
from siprtmp.settings.table import ProcessSettings

if TYPE_CHECKING:
    from p2psip.net.location_redis import RedisLocation

FILE: Final = "location.sqlite"


class LocationLog:
    """Logs contacts that are given up, and a file that cannot be written."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def contact(self, what: str, aor: Aor, contact: Address) -> None:
        """Log that a registered phone cannot be called any more: RFC 5626 §7."""
        user = user_and_host(Uri("sip", aor[0], None, aor[1]))
        self._log.event(what, user=user, contact=address_of(contact.uri))

    def of(self, file: str) -> Callable[[str, str], None]:
        """A reporter of a store: whether bindings will outlive the process, once a change."""

        def tell(what: str, reason: str) -> None:
            if reason:
                self._log.warning(what, file=file, reason=reason)
            else:
                self._log.event(what, file=file)

        return tell


def open_location(
    settings: ProcessSettings, log: LocationLog
) -> "SqliteLocation | RedisLocation | None":
    """The store of bindings, if there is to be one; ConfigError if it cannot be used.

    See `p2psip.net.location_redis` and `p2psip.net.location_sqlite`.
    """
    if settings.location is not None:
        return _open_redis(settings.location, log)
    if settings.state is None:
        return None
    try:
        return SqliteLocation(settings.state / FILE, log.of(FILE))
    except LocalError as error:
        raise ConfigError(f"--state: {error}") from None


def _open_redis(url: str, log: LocationLog) -> "RedisLocation":
    try:
        from p2psip.net.location_redis import RedisLocation
    except ImportError:
        raise ConfigError(needs_extra("--location", "redis")) from None
    try:
        return RedisLocation(url, log.of("redis"))
    except LocalError as error:
        raise ConfigError(f"--location: {error}") from None
