"""Where the registrar's bindings are kept, and the log lines about the store.

Own design: in the Redis of `--location`, or else in a file of the folder `--state`, or without
these options in memory alone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from p2psip.errors import LocalError
from p2psip.net.location_sqlite import SqliteLocation
from siprtmp.operation.arguments import ConfigError, needs_extra
from siprtmp.operation.logs import Log
from siprtmp.settings.table import ProcessSettings

if TYPE_CHECKING:
    from p2psip.net.location_redis import RedisLocation

FILE: Final = "location.sqlite"


def open_location(settings: ProcessSettings, log: Log) -> "SqliteLocation | RedisLocation | None":
    """The store of bindings, if there is to be one; ConfigError if it cannot be used.

    See `p2psip.net.location_redis` and `p2psip.net.location_sqlite`.
    """
    if settings.location is not None:
        return _open_redis(settings.location, log)
    if settings.state is None:
        return None
    try:
        return SqliteLocation(settings.state / FILE, _teller(log, FILE))
    except LocalError as error:
        raise ConfigError(f"--state: {error}") from None


def _open_redis(url: str, log: Log) -> "RedisLocation":
    try:
        from p2psip.net.location_redis import RedisLocation
    except ImportError:
        raise ConfigError(needs_extra("--location", "redis")) from None
    try:
        return RedisLocation(url, _teller(log, "redis"))
    except LocalError as error:
        raise ConfigError(f"--location: {error}") from None


def _teller(log: Log, file: str) -> Callable[[str, str], None]:
    """A reporter of a store: whether bindings will outlive the process, once a change."""

    def tell(what: str, reason: str) -> None:
        if reason:
            log.warning(what, file=file, reason=reason)
        else:
            log.event(what, file=file)

    return tell
