"""A list of the gateway as resources that viewers read, and operators end if they can be ended.

Own design: the rows are those of the operator's list and of the settings; they are looked up when
they are asked for, and nothing is kept.
"""

from collections.abc import Callable, Iterable
from typing import Final

from p2psip.errors import LocalError, RemoteError
from siprtmp.web.branches.roles import Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change, Path, Teller
from siprtmp.web.resources.entity import JSON, Entity, JsonValue
from siprtmp.web.resources.mode import Right

Row = dict[str, object]
READ_ONLY: Final = "That cannot be changed here"


class ListedBranch:
    """The resources of `rows()`, each a path and what it holds.

    `end(row)` ends what a row describes, and raises LocalError if it cannot; None if nothing can.
    `change(row, values)` changes the row by some values, and raises RemoteError where it cannot.
    """

    def __init__(
        self,
        roles: Roles,
        rows: Callable[[], Iterable[tuple[Path, Row]]],
        end: Callable[[Row], object] | None = None,
        *,
        change: Callable[[Row, JsonValue], object] | None = None,
        is_public: bool = False,
    ) -> None:
        self._roles, self._rows, self._end, self._change = roles, rows, end, change
        self._is_public = is_public
        self._teller: Teller | None = None

    def tell(self, path: Path, change: Change = Change.UPDATE) -> None:
        """Tell the subscribers that a row has come, has changed or has gone."""
        if self._teller is not None:
            self._teller.changed(path, change, self.read(path))

    # -- Branch -------------------------------------------------------------------------

    def attach(self, teller: Teller) -> None:
        self._teller = teller

    def may(self, path: Path, right: Right, asker: Asker) -> bool:
        """Viewers read and subscribe, operators end; everybody may read what is public."""
        if self._is_public and right is Right.READ:
            return True
        if right in (Right.READ, Right.SUBSCRIBE):
            return self._roles.is_viewer(asker)
        return right is Right.UPDATE and self._roles.is_operator(asker)

    def read(self, path: Path, asker: Asker | None = None) -> Entity | None:
        is_above = not path
        for each, row in self._rows():
            if each == path:
                return Entity(JSON, row)
            is_above |= each[: len(path)] == path
        return Entity(JSON, {}) if is_above else None

    def children(self, path: Path) -> list[str]:
        depth = len(path)
        below = (each for each, _ in self._rows() if len(each) > depth and each[:depth] == path)
        return [*dict.fromkeys(each[depth] for each in below)]

    def create(self, path: Path, entity: Entity, asker: Asker) -> str:
        raise RemoteError(READ_ONLY, 405)

    def put(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError(READ_ONLY, 405)

    def patch(self, path: Path, change: JsonValue, asker: Asker) -> None:
        row = self._row(path)
        if row is None or self._change is None:
            raise RemoteError(READ_ONLY, 405)
        self._change(row, change)
        self.tell(path)

    def remove(self, path: Path, asker: Asker) -> None:
        row = self._row(path)
        if row is None or self._end is None:
            raise RemoteError("That cannot be ended", 405)
        try:
            self._end(row)
        except LocalError as error:
            raise RemoteError(str(error), 409) from None

    def event(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError(READ_ONLY, 405)

    def gone(self, connection: str) -> None:
        """Nothing: no row is a client's."""

    def _row(self, path: Path) -> Row | None:
        return next((row for each, row in self._rows() if each == path), None)
