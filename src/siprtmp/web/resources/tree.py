"""The tree of resources: what a request does, and whom it concerns.

Implements Resources §3 to §8.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Branch, Change
from siprtmp.web.resources.entity import JSON, Entity, JsonValue, is_json
from siprtmp.web.resources.hearing import Hearing, Judge
from siprtmp.web.resources.merge_patch import merged
from siprtmp.web.resources.mode import DEFAULT_MODE, Mode, Right, Standing
from siprtmp.web.resources.nodes import Access, Held, Node, Nodes, Store, TreeLimits
from siprtmp.web.resources.path import Path, check_name
from siprtmp.web.resources.shared import AWAY, Act, Edit, SharedLog
from siprtmp.web.resources.subscriptions import Event, Subscriptions
from siprtmp.web.resources.url_subscriptions import UrlSubscription, UrlSubscriptions

ANY: Final = "*"  # of If-Match and If-None-Match
NONE: Final = "There is no such resource"
_GROUP: Final = 128  # letters of its name


class Outbox(Protocol):
    """Takes the messages to one connection; never waits."""

    def put(self, text: str) -> None:
        """Send a notification, or leave it out and say so later."""


OnChange = Callable[[str, Path, JsonValue, Asker, int], object]
"""Is told of a request that changes something: method, path, what it says, client and status."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a request may say beside its entity: conditions, and how a new resource is to be."""

    if_match: str = ""
    if_none_match: str = ""
    persistent: bool | None = None
    mode: str | None = None
    group: str | None = None


NO_WISHES: Final = Wishes()
NO_TREE: Final = dict.fromkeys(("resources", "resource_connections", "subscriptions"), 0)


class Tree:
    """All resources, subscriptions and branches.  Its methods raise RemoteError with a status.

    `on_change` is told of each request to change something, when it has been done or refused.
    `mode` is that of the top, `random` makes names, `store` keeps what is persistent, and `urls`
    are the subscriptions with a URL, if there may be any.  With a `shared` log in place of a store,
    requests that change what is persistent wait, and raise StaleError if they have to come again.
    """

    def __init__(
        self,
        random: Callable[[int], bytes],
        mode: str = DEFAULT_MODE,
        limits: TreeLimits | None = None,
        store: Store | None = None,
        urls: UrlSubscriptions | None = None,
        shared: SharedLog | None = None,
    ) -> None:
        self._random, self._limits, self._urls = random, limits or TreeLimits(), urls
        self.shared = shared
        self._nodes = Nodes(Mode.parse(mode), self._limits, store)
        self._subscriptions = Subscriptions(self._limits)
        self._branches: dict[str, Branch] = {}
        self._outboxes: dict[str, Outbox] = {}
        self.keeps = store is not None
        self.on_change: OnChange | None = None
        self.epoch = random(6).hex()
        if urls is not None:
            urls.on_end = self._subscriptions.gone
            urls.missed = lambda: {"seq": self.sequence, "epoch": self.epoch}

    def mount(self, name: str, branch: Branch) -> None:
        """Have all below `/name` served by a branch."""
        self._branches[name] = branch
        branch.attach(_BranchTeller(self, name))

    def connect(self, connection: str, outbox: Outbox) -> None:
        """Have a connection that subscriptions can be of."""
        self._outboxes[connection] = outbox

    @property
    def sequence(self) -> int:
        """The number of the last event."""
        return self._subscriptions.sequence

    def figures(self) -> dict[str, object]:
        """The figures of /status."""
        return {
            "resources": len(self._nodes),
            "resource_connections": len(self._outboxes),
            "subscriptions": len(self._subscriptions),
        }

    # -- reading ------------------------------------------------------------------------

    def get(self, path: Path, asker: Asker) -> Entity:
        """Read a resource."""
        self._demand(path, Right.READ, asker)
        return self._entity(path, asker)

    def children(self, path: Path, asker: Asker) -> list[str]:
        """The names below a resource, of those that this client may read."""
        self._demand(path, Right.READ, asker)
        self._entity(path)
        branch, rest = self._branch(path)
        if branch is not None:
            return [name for name in branch.children(rest) if self._may((*path, name), asker)]
        node = self._nodes.find(path)
        names = [*(node.children if node is not None else ()), *(() if path else self._branches)]
        return [name for name in names if self._may((*path, name), asker)]

    def access(self, path: Path, asker: Asker) -> Entity:
        """Whose a resource is, and who may."""
        self._demand(path, Right.READ, asker)
        return self._access(path)

    def _access(self, path: Path) -> Entity:
        node = self._own_node(path)
        access = self._nodes.access(path)
        said = {"owner": node.owner, "group": access.group, "mode": str(access.mode)}
        return Entity(JSON, said | {"persistent": not node.connection})

    # -- changes ------------------------------------------------------------------------

    def put(
        self, path: Path, entity: Entity, asker: Asker, wishes: Wishes = NO_WISHES
    ) -> tuple[Entity, bool]:
        """Make or replace a resource; what it holds now, and whether it is new."""
        self._check_size(entity)
        if not path:
            raise RemoteError("The top holds nothing", 405)
        branch, rest = self._branch(path)
        before = self._peek(path)
        self._demand(
            *((path, Right.UPDATE) if before is not None else (path[:-1], Right.CREATE)), asker
        )
        _check_conditions(before, wishes)
        if branch is not None:
            branch.put(rest, entity, asker)
            return branch.read(rest) or entity, before is None
        if before is None:
            self._add(path, entity, asker, wishes, "PUT")
            return entity, True
        self._replace(path, entity, asker, wishes)
        return entity, False

    def post(self, path: Path, entity: Entity, asker: Asker, wishes: Wishes = NO_WISHES) -> str:
        """Make a resource below this one; its name."""
        self._check_size(entity)
        self._demand(path, Right.CREATE, asker)
        self._entity(path)
        branch, rest = self._branch(path)
        if branch is not None:
            return branch.create(rest, entity, asker)
        name = self._random(9).hex()
        self._add((*path, name), entity, asker, wishes, "POST")
        return name

    def patch(
        self, path: Path, change: JsonValue, asker: Asker, wishes: Wishes = NO_WISHES
    ) -> Entity:
        """Change what a resource holds by a merge patch; what it holds then."""
        self._demand(path, Right.UPDATE, asker)
        before = self._entity(path)
        _check_conditions(before, wishes)
        branch, rest = self._branch(path)
        if branch is not None:
            branch.patch(rest, change, asker)
            return self._entity(path)
        if not path:
            raise RemoteError("The top holds nothing", 405)
        if not is_json(before.type):
            raise RemoteError("What this resource holds is not JSON", 409)
        entity = Entity(before.type, merged(before.data, change))
        self._check_size(entity)
        node = self._own_node(path)
        if self.shared is not None and not node.connection:
            self._nodes.check_room(node, entity)
            self._agree(Act.PUT, path, node.held._replace(entity=entity), asker)
            return entity
        self._nodes.change(path, node, entity)
        self._tell_change(path, Change.UPDATE, "PUT", entity, asker.connection)
        return entity

    def set_access(self, path: Path, change: JsonValue, asker: Asker) -> Entity:
        """Change `mode` and `group`, which only the owner may; null inherits them."""
        node = self._own_node(path)
        if not path or self._nodes.access(path).kind(asker) is not Standing.SELF:
            self._refuse(asker)  # Resources §5.2 [owner-alone-gives-rights]
        if not isinstance(change, dict) or not change.keys() <= {"mode", "group"}:
            raise RemoteError("An access has mode and group, and nothing else that changes")
        said = change.get("mode", node.mode)
        mode = said if said is None or isinstance(said, Mode) else Mode.parse(said)
        group = _group(change.get("group", node.group))
        if self.shared is not None and not node.connection:
            held = node.held._replace(mode=mode, group=group)
            self._agree(Act.ACCESS, path, held, asker)
        else:
            self._nodes.set_access(path, node, mode, group)
        return self._access(path)

    def delete(self, path: Path, asker: Asker, wishes: Wishes = NO_WISHES) -> None:
        """Remove a resource and all below it."""
        self._demand(path, Right.UPDATE, asker)
        before = self._entity(path)
        _check_conditions(before, wishes)
        branch, rest = self._branch(path)
        if branch is not None:
            branch.remove(rest, asker)
            return
        if not path:
            raise RemoteError("The top stays", 405)
        if self.shared is not None and not self._own_node(path).connection:
            self._agree(Act.DELETE, path, None, asker)
            return
        self._remove(path, asker.connection)

    # -- events -------------------------------------------------------------------------

    def notify(self, path: Path, entity: Entity, asker: Asker) -> None:
        """Pass an event to the subscribers of a resource."""
        self._check_size(entity)
        self._demand(path, Right.WRITE, asker)
        self._entity(path)
        branch, rest = self._branch(path)
        if branch is not None:
            branch.event(rest, entity, asker)
        elif self.shared is not None and not self._own_node(path).connection:
            self._agree(Act.EVENT, path, Held(entity, None, None, None), asker)
            return
        self._tell(path, path, "NOTIFY", None, entity, asker.connection)

    def subscribe(
        self, path: Path, asker: Asker, since: int | None = None, epoch: str = ""
    ) -> tuple[int, bool, list[str]]:
        """Subscribe: the number of the last event, whether any was missed, and those since."""
        if asker.connection not in self._outboxes:
            raise RemoteError("Subscriptions need a WebSocket", 405)
        self._demand(path, Right.SUBSCRIBE, asker)
        self._entity(path)
        self._subscriptions.add(path, asker)
        last = self._subscriptions.sequence
        if since is None:
            return last, False, []
        if epoch != self.epoch or not self._subscriptions.has_all_since(since):
            return last, True, []
        events = self._subscriptions.since(since, path)
        said = [self._hearing(each).text(asker) for each in events]
        return last, False, [text for text in said if text]

    def subscribe_url(
        self, path: Path, asker: Asker, url: str, secret: str, *, is_persistent: bool
    ) -> tuple[UrlSubscription, bool]:
        """Have notifications posted to a URL; the subscription, and whether it is new."""
        if asker.user is None:  # Resources §13.1 [proven-users-alone]
            self._refuse(asker)
        self._demand(path, Right.SUBSCRIBE, asker)
        self._entity(path)
        if self._urls is None:  # Resources §13.2 [listed-hosts-alone]
            raise RemoteError("The operator lets nobody choose a URL", 403)
        if not (is_persistent or asker.connection):  # Resources §13.1 [persistent-urls-by-http]
            raise RemoteError("Without a WebSocket, a subscription has to be persistent", 409)
        made, is_new = self._urls.add(path, asker, url, secret, is_persistent=is_persistent)
        self._subscriptions.add(path, made.asker, with_children=True)
        return made, is_new

    def restore_urls(self, knows: Callable[[Asker], bool]) -> None:
        """Have again the subscriptions with a URL that are kept, of users who are still known."""

        def may(path: Path, asker: Asker) -> bool:
            is_there = self._peek(path) is not None
            return is_there and knows(asker) and self._may(path, asker, Right.SUBSCRIBE)

        for each in [] if self._urls is None else self._urls.restore(may):
            self._subscriptions.add(each.path, each.asker, with_children=True)

    def unsubscribe(self, path: Path, asker: Asker, url: str | None = None) -> None:
        """End a subscription, or the one that the user has with this URL."""
        if url is None:
            if not self._subscriptions.remove(path, asker.connection):
                raise RemoteError("There is no such subscription", 404)
            return
        found = None if self._urls is None else self._urls.found(path, asker.user, url)
        if self._urls is None or found is None:
            raise RemoteError("There is no such subscription", 404)
        self._urls.end(found)

    def gone(self, connection: str) -> None:
        """A connection has ended: so do its subscriptions and its transient resources."""
        self._outboxes.pop(connection, None)
        if self._urls is not None and connection:
            self._urls.connection_ended(connection)
        self._subscriptions.gone(connection)
        for path in self._nodes.of_connection(connection):
            if self._nodes.find(path) is not None:  # it may have gone with the one above
                self._remove(path, connection)
        for branch in self._branches.values():
            branch.gone(connection)

    # -- several gateways ---------------------------------------------------------------

    def apply(self, edit: Edit) -> None:
        """Apply the next edit of the log of all gateways."""
        path, held, there = edit.path, edit.held, self._nodes.find(edit.path)
        if self._branch(path)[0] is not None:  # which the other gateway lacks
            return
        if edit.act is Act.DELETE:
            if there is not None and path:
                self._remove(path, edit.origin)
            return
        if held is None or (there is None and edit.act is not Act.PUT):
            return
        if edit.act is Act.EVENT:
            self._tell(path, path, "NOTIFY", None, held.entity, edit.origin)
            return
        self._nodes.adopt(path, held)
        if edit.act is Act.PUT:
            change = Change.CREATE if there is None else Change.UPDATE
            self._tell_change(path, change, "PUT", held.entity, edit.origin)

    def renew(self, kept: Mapping[Path, Held]) -> None:
        """Have these persistent resources and no others, and tell the differences."""
        for path in [each for each, _ in self.persistent() if each not in kept]:
            if self._nodes.find(path) is not None:  # it may have gone with the one above
                self._remove(path, "")
        for path in sorted(kept, key=len):
            there = self._nodes.find(path)
            if there is None or there.connection or there.held != kept[path]:
                self.apply(Edit(Act.PUT, path, kept[path]))

    def persistent(self, path: Path = ()) -> list[tuple[Path, Held]]:
        """The persistent resources at a path and below it, parents first."""
        found = [(each, node) for each, node in self._nodes.below(path) if each]
        kept = [(each, node.held) for each, node in found if not node.connection]
        return sorted(kept, key=lambda each: len(each[0]))

    def _agree(self, act: Act, path: Path, held: Held | None, asker: Asker) -> None:
        """Make a change at all gateways.  Raises StaleError or RemoteError."""
        assert self.shared is not None
        rows: list[tuple[Path, Held | None]] = [] if act is Act.EVENT else [(path, held)]
        if act is Act.DELETE:
            rows = [(each, None) for each, _ in self.persistent(path)]
        self.shared.commit(Edit(act, path, held, asker.connection), rows)

    # -- within -------------------------------------------------------------------------

    def _branch(self, path: Path) -> tuple[Branch | None, Path]:
        return (self._branches.get(path[0]), path[1:]) if path else (None, ())

    def _peek(self, path: Path, asker: Asker | None = None) -> Entity | None:
        branch, rest = self._branch(path)
        if branch is not None:
            return branch.read(rest, asker)
        node = self._nodes.find(path)
        return None if node is None else node.entity

    def _entity(self, path: Path, asker: Asker | None = None) -> Entity:
        entity = self._peek(path, asker)
        if entity is None:
            raise self._absent(NONE)
        return entity

    def _absent(self, reason: str) -> RemoteError:
        """The error for a resource that is absent here."""
        if self.shared is not None and not self.shared.is_loaded:
            return RemoteError(AWAY, 503)  # Resources §15.3 [changes-are-503]
        return RemoteError(reason, 404)

    def _own_node(self, path: Path) -> Node:
        node = self._nodes.find(path) if self._branch(path)[0] is None else None
        if node is None:
            raise RemoteError("That is no resource that clients have made", 404)
        return node

    def _judge(self, path: Path) -> Judge:
        branch, rest = self._branch(path)
        return self._nodes.access(path) if branch is None else _BranchJudge(branch, rest)

    def _may(self, path: Path, asker: Asker, right: Right = Right.READ) -> bool:
        return self._judge(path).allows(asker, right)

    def _demand(self, path: Path, right: Right, asker: Asker) -> None:
        """Raise RemoteError unless the client has the right, whether or not anything is there."""
        if not self._may(path, asker, right):
            self._refuse(asker)

    def _refuse(self, asker: Asker) -> None:
        if asker.user is None:  # Resources §5.4 [401-or-403]
            raise RemoteError("This needs a user who may", 401)
        raise RemoteError("This user may not", 403)

    def _check_size(self, entity: Entity) -> None:
        if len(entity.octets) > self._limits.entity_octets:
            raise RemoteError("That is too much for one resource", 413)

    def _add(self, path: Path, entity: Entity, asker: Asker, wishes: Wishes, method: str) -> None:
        check_name(path[-1])
        if self._nodes.find(path[:-1]) is None:
            # Resources §4.2 [parent-is-there]
            raise self._absent("There is nothing above it")
        # Resources §7 [transient-ends]
        connection = "" if wishes.persistent else asker.connection
        if not (wishes.persistent or connection):  # Resources §10 [persistent-by-http]
            raise RemoteError("Without a WebSocket, a resource has to be persistent", 409)
        mode = None if wishes.mode is None else Mode.parse(wishes.mode)
        is_shared = self.shared is not None and not connection
        payer = asker.user or ("" if is_shared else asker.host)
        node = Node(entity, asker.user, connection, payer, _group(wishes.group), mode)
        if is_shared:
            self._nodes.check_new(path, node)
            self._agree(Act.PUT, path, node.held, asker)
            return
        if self.shared is not None and connection not in self._outboxes:
            raise RemoteError("The connection has ended", 409)  # while its request was waiting
        self._nodes.add(path, node)
        self._tell_change(path, Change.CREATE, method, entity, asker.connection)

    def _replace(self, path: Path, entity: Entity, asker: Asker, wishes: Wishes) -> None:
        """Replace what is there; an owner takes it over to the connection it comes by."""
        node = self._own_node(path)
        is_own = node.is_of(asker)
        keeps = wishes.persistent in (None, not node.connection)
        if not is_own and not (keeps and wishes.mode is None and wishes.group is None):
            self._refuse(asker)  # Resources §5.2 [owner-alone-gives-rights]
        mode = node.mode if wishes.mode is None else Mode.parse(wishes.mode)
        group = node.group if wishes.group is None else _group(wishes.group)
        self._nodes.check_room(node, entity)
        if self.shared is not None and (wishes.persistent or not node.connection):
            if wishes.persistent is False:  # Resources §15.1 [shared-stays-persistent]
                raise RemoteError("What all gateways share stays persistent", 409)
            self._nodes.check_above(path)
            self._agree(Act.PUT, path, Held(entity, node.owner, group, mode), asker)
            return
        if is_own and (wishes.persistent or (node.connection and asker.connection)):
            # Resources §4.2 [owner-takes-over]
            self._nodes.take(path, node, "" if wishes.persistent else asker.connection)
        elif wishes.persistent is False and not node.connection:
            self._nodes.take(path, node, asker.connection)
        self._nodes.change(path, node, entity)
        self._nodes.set_access(path, node, mode, group)
        self._tell_change(path, Change.UPDATE, "PUT", entity, asker.connection)

    def _remove(self, path: Path, origin: str) -> None:
        # Resources §4.5 [delete-takes-all-below]
        for each, node in list(self._nodes.below(path)):
            self._tell_change(each, Change.DELETE, "DELETE", node.entity, origin)
            self._ended(each)
        self._nodes.remove(path)

    def _ended(self, path: Path) -> None:
        """End the subscriptions to a resource that is no more."""
        self._subscriptions.ended(path)
        if self._urls is not None:
            self._urls.resource_ended(path)

    def _tell_change(
        self, path: Path, change: Change, method: str, entity: Entity | None, origin: str
    ) -> None:
        """Tell the subscribers of a resource, and those of the one above it."""
        if change is not Change.CREATE:
            self._tell(path, path, method, None, entity, origin)
        if path:
            self._tell(path[:-1], path, "UPDATE", change, entity, origin)

    def _tell(
        self,
        resource: Path,
        subject: Path,
        notify: str,
        change: Change | None,
        entity: Entity | None,
        origin: str,
    ) -> None:
        subscriptions = self._subscriptions
        subscriptions.sequence += 1
        judge = self._judge(subject)
        access = judge if isinstance(judge, Access) else None
        event = Event(
            subscriptions.sequence, resource, subject, notify, change, entity, access, origin
        )
        subscriptions.add_event(event)
        is_event = notify == "NOTIFY"
        subscribers = subscriptions.of_event(resource) if is_event else subscriptions.of(resource)
        if not subscribers:
            return
        hearing = Hearing(event, self._judge(resource), judge)
        for asker in subscribers:
            # Resources §6.1 [not-its-own]
            if asker.connection != origin and (text := hearing.text(asker)):
                self._put(asker.connection, text)

    def _put(self, connection: str, text: str) -> None:
        """Send a notification to a connection, or to a URL."""
        outbox = self._outboxes.get(connection)
        if outbox is not None:
            outbox.put(text)
        elif self._urls is not None and (found := self._urls.find(connection)) is not None:
            self._urls.put(found, text, self.epoch)

    def _hearing(self, event: Event) -> Hearing:
        """What may be heard now of an event of before."""
        return Hearing(event, self._judge(event.resource), self._judge(event.subject))


class _BranchJudge(NamedTuple):
    """The rights at a path of a branch."""

    branch: Branch
    path: Path

    def kind(self, asker: Asker) -> Hashable:
        return asker.user, asker.groups, asker.host

    def allows(self, asker: Asker, right: Right) -> bool:
        return self.branch.may(self.path, right, asker)


class _BranchTeller:
    """Tells the subscribers of a branch."""

    def __init__(self, tree: Tree, name: str) -> None:
        self._tree, self._name = tree, name

    def changed(self, path: Path, change: Change, entity: Entity | None) -> None:
        whole = (self._name, *path)
        word = "DELETE" if change is Change.DELETE else "PUT"
        self._tree._tell_change(whole, change, word, entity, "")
        if change is Change.DELETE:
            self._tree._ended(whole)

    def notify(self, path: Path, entity: Entity) -> None:
        whole = (self._name, *path)
        self._tree._tell(whole, whole, "NOTIFY", None, entity, "")

    def is_heard(self, path: Path) -> bool:
        return bool(self._tree._subscriptions.of_event((self._name, *path)))


def _check_conditions(before: Entity | None, wishes: Wishes) -> None:
    """Raise RemoteError if a resource is not as the client thinks."""
    tags = {each.strip() for each in wishes.if_match.split(",")} - {""}
    if tags and (before is None or (before.tag not in tags and ANY not in tags)):
        # Resources §4.6 [if-match-is-412]
        raise RemoteError("The resource has changed", 412)
    tags = {each.strip() for each in wishes.if_none_match.split(",")} - {""}
    if tags and before is not None and (before.tag in tags or ANY in tags):
        raise RemoteError("The resource is there already", 412)


def _group(name: object) -> str | None:
    """Read the name of a group."""
    if name is None:
        return None
    if not isinstance(name, str) or not 0 < len(name) <= _GROUP:
        raise RemoteError("A group is a name")
    return name
