"""Tasks that clients begin and end while the gateway runs, such as the recording of a stream.

Own design: the tasks of one kind are a branch.  POST begins a task, and DELETE ends it.  It also
ends with its stream or call.  Its name is a number that is used once.
"""

from collections.abc import Callable, Collection, Iterable
from itertools import count
from typing import Generic, Protocol, TypeVar

from p2psip.errors import RemoteError
from siprtmp.web.branches.roles import Role, Roles
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.branch import Change, Path, Teller
from siprtmp.web.resources.entity import JSON, Entity, JsonValue
from siprtmp.web.resources.mode import Right

Row = dict[str, object]
T = TypeVar("T")


class Tasks(Protocol[T]):
    """The tasks of one kind.  Refusals are RemoteErrors, with a status of HTTP.

    `on_change(task, is_over)` is called when one has begun, is another way, or is over.
    """

    words: Collection[str]  # that a client may say to begin one, each with a text
    on_change: Callable[[T, bool], object]

    def running(self) -> Iterable[T]:
        """The tasks that have begun and are not over."""

    def row(self, task: T) -> Row:
        """The members of a task's resource."""

    def begin(self, said: dict[str, str]) -> T:
        """Begin a task with the members of a client's request."""

    def end(self, task: T) -> object:
        """End one."""


class TaskBranch(Generic[T]):
    """The tasks of one kind, which clients of the role `needs` begin and end, and `reads` read."""

    def __init__(
        self,
        roles: Roles,
        tasks: Tasks[T],
        needs: Role = Role.OPERATOR,
        reads: Role = Role.VIEWER,
    ) -> None:
        self._roles, self._tasks, self._needs, self._reads = roles, tasks, needs, reads
        self._names: dict[T, str] = {}
        self._numbers = count(1)
        self._teller: Teller | None = None
        tasks.on_change = self._changed

    # -- Branch -------------------------------------------------------------------------

    def attach(self, teller: Teller) -> None:
        self._teller = teller

    def may(self, path: Path, right: Right, asker: Asker) -> bool:
        role = self._roles.role(asker)
        if right in (Right.READ, Right.SUBSCRIBE):
            return role >= self._reads
        return role >= self._needs and right is (Right.UPDATE if path else Right.CREATE)

    def read(self, path: Path, asker: Asker | None = None) -> Entity | None:
        if not path:
            return Entity(JSON, {})
        task = self._find(path)
        return None if task is None else Entity(JSON, self._tasks.row(task))

    def children(self, path: Path) -> list[str]:
        return [] if path else [self._name(each) for each in self._tasks.running()]

    def create(self, path: Path, entity: Entity, asker: Asker) -> str:
        said, words = entity.data, self._tasks.words
        if not isinstance(said, dict) or not all(
            key in words and isinstance(each, str) for key, each in said.items()
        ):
            raise RemoteError(f"An object of texts, please: {', '.join(words)}", 422)
        return self._name(self._tasks.begin(said))

    def put(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError("What has begun cannot be changed: end it, and begin another one", 405)

    def patch(self, path: Path, change: JsonValue, asker: Asker) -> None:
        raise RemoteError("What has begun cannot be changed: end it, and begin another one", 405)

    def remove(self, path: Path, asker: Asker) -> None:
        task = self._find(path)
        if task is None:
            raise RemoteError("That is not running", 404)
        self._tasks.end(task)

    def event(self, path: Path, entity: Entity, asker: Asker) -> None:
        raise RemoteError("These take no events", 405)

    def gone(self, connection: str) -> None:
        """Nothing: a task outlives the client that has begun it."""

    # -- within -------------------------------------------------------------------------

    def _name(self, task: T) -> str:
        if task not in self._names:
            self._names[task] = str(next(self._numbers))
        return self._names[task]

    def _find(self, path: Path) -> T | None:
        if len(path) != 1:
            return None
        return next((each for each in self._tasks.running() if self._name(each) == path[0]), None)

    def _changed(self, task: T, is_over: bool) -> None:
        is_new = task not in self._names
        if is_over and is_new:  # its file was closed after its end, which has been told
            return
        name = self._name(task)
        change = Change.DELETE if is_over else Change.CREATE if is_new else Change.UPDATE
        if is_over:
            del self._names[task]
        if self._teller is not None:
            self._teller.changed((name,), change, Entity(JSON, self._tasks.row(task)))
