"""The resources that clients have made: what they hold, whose they are, and what they cost.

Own design: an owner has the rights of the class `self` for everything below as well, as the
article has it for a user's own folder.  Each resource counts for the user or the host that made it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.mode import Mode, Right, Standing
from siprtmp.web.resources.path import Path


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """What clients may have in a tree, all together and each user or host."""

    resources: int = 20_000
    resources_of_one: int = 2_000
    octets: int = 64 << 20
    octets_of_one: int = 8 << 20
    entity_octets: int = 64 << 10
    subscriptions: int = 200  # of one connection
    history: int = 2_000  # events that a client can catch up on ...
    history_octets: int = 4 << 20  # ... and what they hold


class Held(NamedTuple):
    """What outlives the process of a persistent resource; mode and group may be inherited."""

    entity: Entity
    owner: str | None
    group: str | None
    mode: Mode | None


class Store(Protocol):
    """Keeps persistent resources."""

    def load(self) -> Iterable[tuple[Path, Held]]:
        """What is kept, parents before their children."""

    def keep(self, path: Path, held: Held | None) -> None:
        """Keep what a resource holds now, or no longer."""


@dataclass(slots=True)
class Node:
    """One resource; `connection` is empty if it is persistent."""

    entity: Entity
    owner: str | None
    connection: str
    payer: str
    group: str | None = None
    mode: Mode | None = None
    children: dict[str, "Node"] = field(default_factory=dict)

    def is_of(self, asker: Asker) -> bool:
        """Whether this client is the owner."""
        if self.owner is not None:
            return self.owner == asker.user
        return bool(self.connection) and self.connection == asker.connection

    @property
    def held(self) -> Held:
        return Held(self.entity, self.owner, self.group, self.mode)

    @property
    def octets(self) -> int:
        return len(self.entity.octets) + len(self.entity.type)


class Access(NamedTuple):
    """All that decides who may: from the resource itself, or from the nearest above that says.

    Owners are `users`, and `connections` of anonymous clients.
    """

    mode: Mode
    group: str | None
    users: frozenset[str]
    connections: frozenset[str]

    def allows(self, asker: Asker, right: Right) -> bool:
        """Whether this client has the right."""
        return self.mode.allows(self.kind(asker), right)

    def kind(self, asker: Asker) -> Standing:
        """The class of a client, by which it is judged."""
        # Resources §5.1 [first-class-counts]
        if asker.user in self.users or asker.connection in self.connections:
            return Standing.SELF
        if self.group is not None and self.group in asker.groups:
            return Standing.GROUP
        return Standing.ANONYMOUS if asker.user is None else Standing.AUTHENTICATED


class Nodes:
    """All of them, below a top that is nobody's and has `mode`."""

    def __init__(self, mode: Mode, limits: TreeLimits, store: Store | None = None) -> None:
        self._top = Node(Entity(JSON, None), None, "", "", None, mode)
        self._mode, self._limits, self._store = mode, limits, store
        self._count, self._octets = Counter[str](), Counter[str]()
        self._of_connection: dict[str, dict[Path, None]] = {}
        for path, held in store.load() if store is not None else ():
            parent = self.find(path[:-1])
            if parent is not None and path:
                owner = held.owner
                node = Node(held.entity, owner, "", owner or "", held.group, held.mode)
                parent.children[path[-1]] = node
                self._pay(node, 1)

    def __len__(self) -> int:
        return self._count.total()

    @property
    def octets(self) -> int:
        """What all of them hold."""
        return self._octets.total()

    def find(self, path: Path) -> Node | None:
        """The resource at a path, if there is one."""
        node: Node | None = self._top
        for name in path:
            node = node.children.get(name) if node is not None else None
        return node

    def access(self, path: Path) -> Access:
        """Return the access at a path; an empty path has that of the nearest resource above it."""
        node, mode, group = self._top, self._mode, None
        users, connections = set[str](), set[str]()
        for name in path:
            found = node.children.get(name)
            if found is None:
                break
            node = found
            # Resources §5.3 [mode-is-inherited]
            mode, group = node.mode or mode, group if node.group is None else node.group
            if node.owner is not None:
                users.add(node.owner)
            elif node.connection:
                connections.add(node.connection)
        return Access(mode, group, frozenset(users), frozenset(connections))

    def add(self, path: Path, node: Node) -> None:
        """Add a resource below one that is there.  Raises RemoteError if there is no room."""
        self.check_new(path, node)
        parent = self.find(path[:-1])
        assert parent is not None and path
        parent.children[path[-1]] = node
        self._pay(node, 1)
        self._tie(path, node)
        self._keep(path, node)

    def check_new(self, path: Path, node: Node) -> None:
        """Raise RemoteError if a resource cannot be added."""
        if not node.connection:
            self.check_above(path)
        self._check(node.payer, 1, node.octets)

    def check_above(self, path: Path) -> None:
        """Raise RemoteError if a resource cannot be persistent, since the one above it is not."""
        parent = self.find(path[:-1])
        if parent is not None and parent.connection:  # Resources §7 [persistent-below-persistent]
            raise RemoteError("What is above a persistent resource has to be persistent", 409)

    def adopt(self, path: Path, held: Held) -> None:
        """Set a persistent resource as it was agreed on elsewhere: nothing is checked or stored."""
        owner, parent = held.owner, self.find(path[:-1])
        if parent is None or not path:
            return
        before = parent.children.get(path[-1])
        node = Node(held.entity, owner, "", owner or "", held.group, held.mode)
        if before is not None:
            self._pay(before, -1)
            self._untie(path, before)
            node.children = before.children
        parent.children[path[-1]] = node
        self._pay(node, 1)

    def change(self, path: Path, node: Node, entity: Entity) -> None:
        """Let a resource hold something else.  Raises RemoteError if there is no room."""
        self.check_room(node, entity)
        self._pay(node, -1)
        node.entity = entity
        self._pay(node, 1)
        self._keep(path, node)

    def check_room(self, node: Node, entity: Entity) -> None:
        """Raise RemoteError if there is no room for the new entity of a resource."""
        self._check(node.payer, 0, len(entity.octets) + len(entity.type) - node.octets)

    def take(self, path: Path, node: Node, connection: str) -> None:
        """Tie a resource to a connection; an empty one makes it persistent.

        Raises RemoteError where one of the two would outlive what it stands below.
        """
        if node.connection == connection:
            return
        if not connection:
            self.check_above(path)
        if connection and any(not child.connection for child in node.children.values()):
            raise RemoteError("There are persistent resources below", 409)
        self._untie(path, node)
        node.connection = connection
        self._tie(path, node)
        self._keep(path, node, was_kept=bool(connection))

    def set_access(self, path: Path, node: Node, mode: Mode | None, group: str | None) -> None:
        """Set the mode and the group of a resource, None for those of the resource above it."""
        node.mode, node.group = mode, group
        self._keep(path, node)

    def remove(self, path: Path) -> None:
        """Remove a resource and all below it."""
        parent = self.find(path[:-1])
        assert parent is not None and path
        for each, node in self.below(path):
            self._pay(node, -1)
            self._untie(each, node)
            if self._store is not None and not node.connection:
                self._store.keep(each, None)
        del parent.children[path[-1]]

    def below(self, path: Path) -> Iterator[tuple[Path, Node]]:
        """A resource and all below it, children first."""
        node = self.find(path)
        if node is None:
            return
        for name in list(node.children):
            yield from self.below((*path, name))
        yield path, node

    def of_connection(self, connection: str) -> list[Path]:
        """The resources that end with a connection."""
        return list(self._of_connection.get(connection, ()))

    def _check(self, payer: str, more: int, octets: int) -> None:
        limits = self._limits  # Resources §8 [limits-are-507]
        if more and self._count[payer] + more > limits.resources_of_one:
            raise RemoteError("You have as many resources as one may have", 507)
        if more and len(self) + more > limits.resources:
            raise RemoteError("There is no room for another resource", 507)
        if octets > 0 and self._octets[payer] + octets > limits.octets_of_one:
            raise RemoteError("Your resources hold as much as those of one may", 507)
        if octets > 0 and self.octets + octets > limits.octets:
            raise RemoteError("There is no room for so much", 507)

    def _pay(self, node: Node, sign: int) -> None:
        payer = node.payer
        self._count[payer] += sign
        self._octets[payer] += sign * node.octets
        if not self._count[payer]:
            del self._count[payer], self._octets[payer]

    def _tie(self, path: Path, node: Node) -> None:
        if node.connection:
            self._of_connection.setdefault(node.connection, {})[path] = None

    def _untie(self, path: Path, node: Node) -> None:
        paths = self._of_connection.get(node.connection)
        if paths is not None:
            paths.pop(path, None)
            if not paths:
                del self._of_connection[node.connection]

    def _keep(self, path: Path, node: Node, *, was_kept: bool = False) -> None:
        if self._store is not None and (was_kept or not node.connection):
            self._store.keep(path, None if node.connection else node.held)
