"""The gateway itself as a resource: its figures as they change, and the level of its log.

Own design: the figures are collected when somebody asks, and once a second while somebody is
subscribed, so that a gateway that nobody looks at pays nothing.
"""

from collections.abc import Callable
from typing import Final, Protocol

from p2psip.errors import RemoteError
from siprtmp.web.branches.audit_trail import AuditTrail
from siprtmp.web.branches.roles import Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change, Path, Teller
from siprtmp.web.resources.entity import JSON, Entity, JsonValue
from siprtmp.web.resources.mode import Right

Row = dict[str, object]
AUDIT: Final = "audit"
ENDED: Final = "ended"
LEVEL: Final = "log_level"
READ_ONLY: Final = "Of the gateway only log_level can be changed"


class LogLevel(Protocol):
    """The level of the log."""

    levels: tuple[str, ...]

    def get(self) -> str:
        """The level of now."""

    def set(self, level: str, by: str) -> None:
        """Set one of `levels`, and log by whom."""


class GatewayBranch:
    """The resource `/gateway`; `figures()` is what it holds beside the role and the log's level.

    `ended()` are the calls that have ended lately, at `/gateway/ended`; `audit` is at
    `/gateway/audit`, for admins.
    """

    def __init__(
        self,
        roles: Roles,
        figures: Callable[[], Row],
        level: LogLevel,
        audit: AuditTrail,
        ended: Callable[[], list[Row]] = list,
    ) -> None:
        self._roles, self._figures, self._level = roles, figures, level
        below: dict[str, Callable[[], Row]] = {ENDED: lambda: {"calls": ended()}, AUDIT: audit.read}
        self._below = below
        audit.followers.append(self._tell_entry)
        self._teller: Teller | None = None

    def tick(self) -> None:
        """Tell the subscribers, if there are any."""
        if self._teller is not None and self._teller.is_heard(()):
            self._teller.changed((), Change.UPDATE, self.read(()))

    def _tell_entry(self, entry: Row) -> None:
        if self._teller is not None and self._teller.is_heard((AUDIT,)):
            self._teller.notify((AUDIT,), Entity(JSON, {"entry": entry}))

    # -- Branch -------------------------------------------------------------------------

    def attach(self, teller: Teller) -> None:
        self._teller = teller

    def may(self, path: Path, right: Right, asker: Asker) -> bool:
        """Viewers read and subscribe, an admin also the audit, and sets the level of the log."""
        if path[:1] == (AUDIT,):
            return right in (Right.READ, Right.SUBSCRIBE) and self._roles.is_admin(asker)
        if right in (Right.READ, Right.SUBSCRIBE):
            return self._roles.is_viewer(asker)
        return right is Right.UPDATE and self._roles.is_admin(asker)

    def read(self, path: Path, asker: Asker | None = None) -> Entity | None:
        if path:
            below = self._below.get(path[0]) if len(path) == 1 else None
            return None if below is None else Entity(JSON, below())
        row = {**self._figures(), LEVEL: self._level.get()}
        if asker is not None:
            row["role"] = self._roles.role(asker).word
        return Entity(JSON, row)

    def children(self, path: Path) -> list[str]:
        return [] if path else [*self._below]

    def create(self, path: Path, entity: Entity, asker: Asker) -> str:
        raise RemoteError(READ_ONLY, 405)

    def put(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError(READ_ONLY, 405)

    def patch(self, path: Path, change: JsonValue, asker: Asker) -> None:
        """Set the level of the log."""
        if path or not isinstance(change, dict) or set(change) != {LEVEL}:
            raise RemoteError(READ_ONLY, 422)
        level = change[LEVEL]
        if level not in self._level.levels:
            raise RemoteError(f"{LEVEL} is one of {', '.join(self._level.levels)}", 422)
        self._level.set(str(level), asker.user or asker.host)
        self.tick()

    def remove(self, path: Path, asker: Asker) -> None:
        raise RemoteError("The gateway is ended by a signal", 405)

    def event(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError(READ_ONLY, 405)

    def gone(self, connection: str) -> None:
        """Nothing: the gateway is no client's."""
