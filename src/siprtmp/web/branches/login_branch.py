"""The users that are logged in as resources: `/login/USER@DOMAIN`.

Own design: a page puts what others may know of its user, and that lasts as long as its connection;
a rich client of RTMP is there as long as its line.  Whoever is a user of the gateway sees who is
there, and may send an event to one of them, such as an invitation.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final

from p2psip.errors import RemoteError
from siprtmp.calls.access.admission import Holder
from siprtmp.web.branches.roles import Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change, Path, Teller
from siprtmp.web.resources.entity import JSON, Entity, JsonValue, is_json
from siprtmp.web.resources.merge_patch import merged
from siprtmp.web.resources.mode import Right

MAX_LOGINS: Final = 10_000
MAX_OCTETS: Final = 4096  # of what is told of a user


@dataclass(frozen=True, slots=True)
class _Login:
    entity: Entity
    connection: str


class LoginBranch:
    """The users that are logged in; `lines()` are the identities of rich clients, as user@domain.

    `owners(identity)` are the users who may be an identity, as user@realm.  `canonical(identity)`
    is the same for two ways of writing one; it raises RemoteError for what is no address.
    """

    def __init__(
        self,
        roles: Roles,
        lines: Callable[[], Iterable[str]],
        owners: Callable[[str], Holder],
        canonical: Callable[[str], Hashable] = str,
    ) -> None:
        self._roles, self._lines, self._owners = roles, lines, owners
        self._canonical, self._pages = canonical, Counter[Hashable]()
        self._logins: dict[str, _Login] = {}
        self._teller: Teller | None = None

    def has_page(self, identity: Hashable) -> bool:
        """Whether the user of a canonical identity is logged in by a page."""
        return self._pages[identity] > 0

    # -- Branch -------------------------------------------------------------------------

    def attach(self, teller: Teller) -> None:
        self._teller = teller

    def may(self, path: Path, right: Right, asker: Asker) -> bool:
        """Users read, subscribe and write to each other; one that is another's is not changed."""
        if self._roles.is_operator(asker):
            return True
        if asker.user is None or len(path) > 1:
            return False
        if right is Right.UPDATE:
            return bool(path) and self._is_own(path[0], asker)
        return True

    def read(self, path: Path, asker: Asker | None = None) -> Entity | None:
        if not path:
            return Entity(JSON, {})
        if len(path) > 1:
            return None
        if login := self._logins.get(path[0]):
            return login.entity
        return Entity(JSON, {"by": "rtmp"}) if path[0] in self._lines() else None

    def children(self, path: Path) -> list[str]:
        return [] if path else [*dict.fromkeys((*self._logins, *self._lines()))]

    def create(self, path: Path, entity: Entity, asker: Asker) -> str:
        raise RemoteError("A login has the name of its user: PUT it", 405)

    def put(self, path: Path, entity: Entity, asker: Asker) -> None:
        """Log in as a user, or tell others something else."""
        if len(path) != 1:
            raise RemoteError("A login is /login/USER@DOMAIN", 404)
        if not (self._roles.is_operator(asker) or self._is_own(path[0], asker)):
            raise RemoteError("That is another user's name", 403)
        if not asker.connection:
            raise RemoteError("A login lasts as long as a connection: use the WebSocket", 409)
        self._check(entity)
        is_new = self.read(path) is None
        if is_new and len(self._logins) >= MAX_LOGINS:
            raise RemoteError("Too many are logged in", 503)
        identity = self._canonical(path[0])
        self._pages[identity] += path[0] not in self._logins
        self._logins[path[0]] = _Login(entity, asker.connection)
        self._tell(path, Change.CREATE if is_new else Change.UPDATE, entity)

    def patch(self, path: Path, change: JsonValue, asker: Asker) -> None:
        login = self._logins.get(path[0]) if len(path) == 1 else None
        if login is None:
            raise RemoteError("That is no login of a page", 404)
        self.put(path, Entity(JSON, merged(login.entity.data, change)), asker)

    def remove(self, path: Path, asker: Asker) -> None:
        if len(path) != 1 or path[0] not in self._logins:
            raise RemoteError("That is no login of a page", 404)
        self._forget(path[0])

    def event(self, path: Path, entity: Entity, asker: Asker) -> None:
        """Nothing more: who is subscribed hears it."""

    def gone(self, connection: str) -> None:
        for name in [name for name, its in self._logins.items() if its.connection == connection]:
            self._forget(name)

    # -- within -------------------------------------------------------------------------

    def _forget(self, name: str) -> None:
        identity = self._canonical(name)
        self._pages[identity] -= 1
        if not self._pages[identity]:
            del self._pages[identity]
        self._tell((name,), Change.DELETE, self._logins.pop(name).entity)

    def _is_own(self, identity: str, asker: Asker) -> bool:
        return self._roles.is_one_of(asker, self._owners(identity))

    def _check(self, entity: Entity) -> None:
        if not is_json(entity.type):
            raise RemoteError("What others may know of a user is JSON", 415)
        if len(entity.octets) > MAX_OCTETS:
            raise RemoteError("That is too much to tell of a user", 413)

    def _tell(self, path: Path, change: Change, entity: Entity) -> None:
        if self._teller is not None:
            self._teller.changed(path, change, entity)
