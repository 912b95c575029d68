"""A branch: a part of the tree that is not stored, since it is the gateway's own state.

Own design: the tree finds the branch of a request by its first name, judges whether the client
`may`, and has the branch do it.  A branch refuses by RemoteError, whose status is one of HTTP.  It
tells the tree of each change, by whomever it was made, and the tree tells the subscribers.
"""

from enum import Enum
from typing import Protocol

from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import Entity, JsonValue
from siprtmp.web.resources.mode import Right
from siprtmp.web.resources.path import Path

__all__ = ("Branch", "Change", "Path", "Teller")


class Change(Enum):
    """What has become of a resource."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Teller(Protocol):
    """Tells the subscribers of a branch; a path is one below the branch."""

    def changed(self, path: Path, change: Change, entity: Entity | None) -> None:
        """Tell those of the resource and those of its parent; `entity` is what it holds now."""

    def notify(self, path: Path, entity: Entity) -> None:
        """Tell those of the resource of an event, as NOTIFY does."""

    def is_heard(self, path: Path) -> bool:
        """Whether the resource has subscribers."""


class Branch(Protocol):
    """A part of the gateway's state as resources.  Whatever it refuses, it says by RemoteError.

    The tree has asked `may` before it calls any of the others for a client; a branch may refuse
    for other reasons, such as 409 for a state that does not allow it.
    """

    def attach(self, teller: Teller) -> None:
        """Be mounted in a tree: from now on tell it of each change."""

    def may(self, path: Path, right: Right, asker: Asker) -> bool:
        """Whether a client may, by its user, groups and host: its connection counts for nothing.

        The subscribers of a resource are asked again for each change, one of each such kind.
        """

    def read(self, path: Path, asker: Asker | None = None) -> Entity | None:
        """What the resource holds, or None if there is none.

        With the `asker` whose GET it is, it may also hold what is about this client alone.
        """

    def children(self, path: Path) -> list[str]:
        """The names below the resource."""

    def create(self, path: Path, entity: Entity, asker: Asker) -> str:
        """POST: make a resource below this one, and return its name."""

    def put(self, path: Path, entity: Entity, asker: Asker) -> None:
        """PUT: make or replace the resource itself."""

    def patch(self, path: Path, change: JsonValue, asker: Asker) -> None:
        """PATCH: change what is there by a JSON merge patch (see `merge_patch`)."""

    def remove(self, path: Path, asker: Asker) -> None:
        """DELETE: end the resource."""

    def event(self, path: Path, entity: Entity, asker: Asker) -> None:
        """NOTIFY: act on the event; the tree then tells the subscribers."""

    def gone(self, connection: str) -> None:
        """A client's connection has ended, and with it what should not outlive it."""
