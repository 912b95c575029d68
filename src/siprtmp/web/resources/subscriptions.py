"""The subscriptions to resources, and the latest events.

Own design: each event has a number, one more than the last of the whole tree, so that a client that
comes back can ask for those it has missed.  The `epoch` names the tree's life: numbers of an
earlier one mean nothing.  How many a client may have missed is bounded, in number and in octets.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change
from siprtmp.web.resources.entity import Entity, JsonValue
from siprtmp.web.resources.nodes import Access, TreeLimits
from siprtmp.web.resources.path import Path, write_path


@dataclass(frozen=True, slots=True)
class Event:
    """What the subscribers of `resource` are told.

    `notify` is the word of the message.  With a `change`, the last name of `subject` is the child
    that it happened to.  `access` is the subject's at that time, None within a branch; `origin` is
    the connection that caused it, which is not told.
    """

    sequence: int
    resource: Path
    subject: Path
    notify: str
    change: Change | None
    entity: Entity | None
    access: Access | None
    origin: str

    def message(self, *, with_entity: bool) -> dict[str, JsonValue]:
        """The message to a subscriber."""
        said: dict[str, JsonValue] = {"notify": self.notify, "resource": write_path(self.resource)}
        if self.entity is not None and with_entity:
            said["type"] = self.entity.type
            said["data" if self.notify == "NOTIFY" else "entity"] = self.entity.for_message
        if self.change is not None:
            # Resources §2.3 [update-names-the-child]
            said[self.change.value] = self.subject[-1]
        return said | {"seq": self.sequence}

    @property
    def octets(self) -> int:
        return 200 + (len(self.entity.octets) if self.entity is not None else 0)


class Subscriptions:
    """All of a tree."""

    def __init__(self, limits: TreeLimits) -> None:
        self._limits = limits
        self._of_resource: dict[Path, dict[str, Asker]] = {}
        self._of_connection: dict[str, dict[Path, None]] = {}
        self._of_children: dict[Path, dict[str, Asker]] = {}
        self._history: deque[Event] = deque()
        self._octets = 0
        self.sequence = 0

    def __len__(self) -> int:
        return sum(map(len, self._of_connection.values()))

    def add(self, path: Path, asker: Asker, *, with_children: bool = False) -> None:
        """Subscribe, perhaps to the events of the children as well.

        Raises RemoteError if a connection has too many.
        """
        own = self._of_connection.setdefault(asker.connection, {})
        if path not in own and len(own) >= self._limits.subscriptions:
            raise RemoteError("A connection has no more subscriptions than that", 507)
        own[path] = None
        self._of_resource.setdefault(path, {})[asker.connection] = asker
        if with_children:
            self._of_children.setdefault(path, {})[asker.connection] = asker

    def remove(self, path: Path, connection: str) -> bool:
        """Unsubscribe; whether there was a subscription."""
        own = self._of_connection.get(connection, {})
        if path not in own:
            return False
        del own[path]
        if not own:
            del self._of_connection[connection]
        for subscribed in (self._of_resource, self._of_children):
            subscribers = subscribed.get(path, {})
            subscribers.pop(connection, None)
            if not subscribers:
                subscribed.pop(path, None)
        return True

    def gone(self, connection: str) -> None:
        """Forget a connection."""
        for path in list(self._of_connection.get(connection, ())):
            self.remove(path, connection)

    def ended(self, path: Path) -> None:
        """Forget those of a resource that is no more."""
        for connection in list(self._of_resource.get(path, ())):
            self.remove(path, connection)

    def of(self, path: Path) -> list[Asker]:
        """The subscribers of a resource."""
        return list(self._of_resource.get(path, {}).values())

    def of_event(self, path: Path) -> list[Asker]:
        """The subscribers that hear of an event of a resource, those of its parent among them."""
        # Resources §13.1 [events-of-children]
        above = self._of_children.get(path[:-1], {}) if path else {}
        return [*self.of(path), *above.values()]

    def add_event(self, event: Event) -> None:
        """Remember the newest event, and forget the oldest ones if there are too many."""
        self._history.append(event)
        self._octets += event.octets
        while len(self._history) > self._limits.history or (
            self._octets > self._limits.history_octets
        ):
            self._octets -= self._history.popleft().octets

    def since(self, sequence: int, path: Path) -> Iterator[Event]:
        """The events of a resource after a number."""
        return (e for e in list(self._history) if e.sequence > sequence and e.resource == path)

    def has_all_since(self, sequence: int) -> bool:
        """Whether no event after this number has been forgotten."""
        oldest = self._history[0].sequence if self._history else self.sequence + 1
        return oldest - 1 <= sequence <= self.sequence
