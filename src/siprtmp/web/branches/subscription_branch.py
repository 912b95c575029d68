"""The subscriptions with a URL as resources, which their owners and admins read and end.

Implements Resources §13.5.
"""

from p2psip.errors import RemoteError
from siprtmp.web.branches.listed_branch import READ_ONLY
from siprtmp.web.branches.roles import Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Path, Teller
from siprtmp.web.resources.entity import JSON, Entity, JsonValue
from siprtmp.web.resources.mode import Right
from siprtmp.web.resources.url_subscriptions import UrlSubscription, UrlSubscriptions


class SubscriptionBranch:
    """One resource for each; none holds the secret, which the answer to SUBSCRIBE has told."""

    def __init__(self, roles: Roles, urls: UrlSubscriptions) -> None:
        self._roles, self._urls = roles, urls

    def attach(self, teller: Teller) -> None:
        """Nothing: nobody subscribes to these."""

    def may(self, path: Path, right: Right, asker: Asker) -> bool:
        """All read the branch; an owner reads and ends its own, an admin those of all."""
        if not path:
            return right is Right.READ
        found = self._find(path)
        is_own = found is not None and asker.user is not None and found.asker.user == asker.user
        is_ours = is_own or self._roles.is_admin(asker)
        # Resources §13.5 [listed-for-the-owner]
        return is_ours and right in (Right.READ, Right.UPDATE)

    def read(self, path: Path, asker: Asker | None = None) -> Entity | None:
        if not path:
            return Entity(JSON, {})
        found = self._find(path)
        return None if found is None else Entity(JSON, found.shown())

    def children(self, path: Path) -> list[str]:
        return [] if path else [each.id for each in self._urls]

    def create(self, path: Path, entity: Entity, asker: Asker) -> str:
        raise RemoteError("SUBSCRIBE to a resource makes these", 405)

    def put(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError(READ_ONLY, 405)

    def patch(self, path: Path, change: JsonValue, asker: Asker) -> None:
        raise RemoteError(READ_ONLY, 405)

    def remove(self, path: Path, asker: Asker) -> None:
        found = self._find(path)
        if found is None:
            raise RemoteError(READ_ONLY, 405)
        self._urls.end(found)

    def event(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError(READ_ONLY, 405)

    def gone(self, connection: str) -> None:
        """Nothing: the tree ends what is a connection's."""

    def _find(self, path: Path) -> UrlSubscription | None:
        return self._urls.find(path[0]) if len(path) == 1 else None
