"""The messages between a client and the tree, and what the tree answers to each.

Implements Resources §2 and §9.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JSON, Entity, JsonValue
from siprtmp.web.resources.path import Path, read_path, write_path
from siprtmp.web.resources.shared import BUSY, TRIES, StaleError
from siprtmp.web.resources.tree import NO_WISHES, Tree, Wishes
from siprtmp.web.resources.url_subscriptions import NAME

PROTOCOL: Final = "resource.v1"
METHODS: Final = (
    "GET",
    "PUT",
    "POST",
    "PATCH",
    "DELETE",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "NOTIFY",
)
VIEWS: Final = ("entity", "children", "access")
_CHANGING: Final = ("PUT", "POST", "PATCH", "DELETE", "NOTIFY")
_HAS_ENTITY: Final = ("PUT", "POST", "PATCH", "NOTIFY")
MAX_ID: Final = 64  # letters
_MAX_SEQ: Final = 1 << 53  # what JavaScript counts exactly

# The members of a request, each with its JSON Schema.
MEMBERS: Final[Mapping[str, dict[str, Any]]] = {
    "method": {"enum": list(METHODS)},
    "resource": {"type": "string", "pattern": "^/"},
    "type": {"type": "string"},
    "entity": {},
    "data": {},
    "id": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "view": {"enum": list(VIEWS)},
    "if-match": {"type": "string"},
    "if-none-match": {"type": "string"},
    "persistent": {"type": "boolean"},
    "mode": {"type": "string", "pattern": "^([c-][r-][u-][w-][s-]){4}$"},
    "group": {"type": "string", "minLength": 1},
    "since": {"type": "integer", "minimum": 0},
    "epoch": {"type": "string"},
    "url": {"type": "string", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"},
    "secret": {"type": "string"},
}
_TYPES: Final[Mapping[str, type]] = {"string": str, "boolean": bool, "integer": int}


def schema() -> dict[str, Any]:
    """The JSON Schema of a request."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A request of {PROTOCOL}",
        "type": "object",
        "properties": dict(MEMBERS),
        "required": ["method", "resource"],
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client; `change` is the merge patch of a PATCH.

    With a `url`, which HTTP has in the content, SUBSCRIBE and UNSUBSCRIBE are about posting there.
    """

    method: str
    path: Path
    entity: Entity | None = None
    change: JsonValue = None
    view: str = "entity"
    wishes: Wishes = NO_WISHES
    since: int | None = None
    epoch: str = ""
    url: str | None = None
    secret: str = field(default="", repr=False)

    @classmethod
    def read(cls, said: Mapping[str, JsonValue]) -> "Request":
        """Read the members of a message.  Raises RemoteError."""
        for name, value in said.items():
            check(name, value)
        method, view = said.get("method"), said.get("view", "entity")
        if method not in METHODS:
            raise RemoteError("There is no such method", 405)
        entity = change = None
        if method in _HAS_ENTITY:
            # Resources §2.1 [data-is-the-entity]
            names = ("data", "entity") if method == "NOTIFY" else ("entity",)
            found = [said[name] for name in names if name in said]
            if not found:
                raise RemoteError(f"{method} has an entity")
            if method == "PATCH":
                change = found[0]
            else:
                entity = Entity.of_message(said.get("type", JSON), found[0])
        wishes = Wishes(
            said.get("if-match", ""),
            said.get("if-none-match", ""),
            said.get("persistent"),
            said.get("mode"),
            said.get("group"),
        )
        path = read_path(said.get("resource"))
        since, epoch = said.get("since"), said.get("epoch", "")
        posted = said.get("url"), said.get("secret", "")
        return cls(method, path, entity, change, view, wishes, since, epoch, *posted)


def check(name: str, value: JsonValue) -> None:
    """Raise RemoteError for a member that is unknown, or not of its type."""
    member = MEMBERS.get(name)
    if member is None:  # Resources §2.1 [unknown-members-are-refused]
        raise RemoteError(f"A request has no member {name[:40]!r}")
    if "enum" in member and value not in member["enum"]:
        raise RemoteError(f"That is no {name}", 405 if name == "method" else 400)
    kinds = member.get("anyOf", [member] if "type" in member else [])
    known = [_TYPES[each["type"]] for each in kinds]
    is_bool = isinstance(value, bool)
    if known and not any(isinstance(value, each) and is_bool == (each is bool) for each in known):
        raise RemoteError(f"{name} has another type")
    if isinstance(value, str):
        _check_text(name, value, member)
    if isinstance(value, int) and not 0 <= abs(value) <= _MAX_SEQ:
        raise RemoteError(f"{name} is too large")
    if name == "since" and value < 0:
        raise RemoteError("since counts from 0")


def _check_text(name: str, value: str, member: Mapping[str, Any]) -> None:
    if not re.search(member.get("pattern", ""), value) or len(value) < member.get("minLength", 0):
        raise RemoteError(f"{name} has another form")
    if name == "id" and len(value) > MAX_ID:
        raise RemoteError("id is too long")


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request.

    `more` are the members of a message that HTTP has no field for, and `events` what a subscriber
    has missed, as messages.
    """

    status: int
    path: Path
    entity: Entity | None = None
    tag: str = ""
    more: tuple[tuple[str, JsonValue], ...] = ()
    events: tuple[str, ...] = ()

    def message(self) -> dict[str, JsonValue]:
        """The message, without the `id` of its request."""
        said: dict[str, JsonValue] = {"status": self.status, "resource": write_path(self.path)}
        if self.entity is not None:
            said |= {"type": self.entity.type, "entity": self.entity.for_message}
        if self.tag:
            said["etag"] = self.tag
        return said | dict(self.more)


def refusal(error: RemoteError) -> dict[str, JsonValue]:
    """The message that answers a request with an error."""
    return {"status": error.status, "reason": error.reason}


def answer(tree: Tree, request: Request, asker: Asker) -> Reply:
    """Do what a request asks.  Raises RemoteError, with a status of HTTP."""
    if tree.on_change is not None and (request.method in _CHANGING or request.url is not None):
        said = request.change if request.entity is None else request.entity.data
        if request.url is not None:
            said = {"url": request.url}
        tell = partial(tree.on_change, request.method, request.path, said, asker)
        try:
            reply = _judged(tree, request, asker)
        except RemoteError as error:
            tell(error.status)
            raise
        tell(reply.status)
        return reply
    return _judged(tree, request, asker)


def _judged(tree: Tree, request: Request, asker: Asker) -> Reply:
    """Do what a request asks; judge it again while other gateways are faster."""
    if tree.shared is None:
        return _answer(tree, request, asker)
    try:
        for _ in range(TRIES):
            with suppress(StaleError):  # Resources §15.2 [judged-by-all-before]
                return _answer(tree, request, asker)
        raise RemoteError(BUSY, 503)
    finally:
        tree.shared.leave()


def _answer(tree: Tree, request: Request, asker: Asker) -> Reply:
    match request.method:
        case "GET":
            return _get(tree, request, asker)
        case "PUT":
            assert request.entity is not None
            entity, is_new = tree.put(request.path, request.entity, asker, request.wishes)
            # Resources §4.2 [put-makes-or-replaces]
            return Reply(201 if is_new else 200, request.path, tag=entity.tag)
        case "POST":
            assert request.entity is not None
            name = tree.post(request.path, request.entity, asker, request.wishes)
            # Resources §4.3 [post-tells-the-identifier]
            return Reply(201, (*request.path, name), Entity(JSON, {"id": name}))
        case "PATCH" if request.view == "access":
            return Reply(200, request.path, tree.set_access(request.path, request.change, asker))
        case "PATCH":
            entity = tree.patch(request.path, request.change, asker, request.wishes)
            return Reply(200, request.path, entity, entity.tag)
        case "DELETE":
            tree.delete(request.path, asker, request.wishes)
        case "NOTIFY":
            assert request.entity is not None
            tree.notify(request.path, request.entity, asker)
        case "SUBSCRIBE":
            return _subscribe(tree, request, asker)
        case _:
            tree.unsubscribe(request.path, asker, request.url)
    return Reply(204, request.path)


def _get(tree: Tree, request: Request, asker: Asker) -> Reply:
    path = request.path
    if request.view == "children":  # Resources §4.1
        return Reply(200, path, Entity(JSON, tree.children(path, asker)))
    if request.view == "access":
        return Reply(200, path, tree.access(path, asker))
    entity = tree.get(path, asker)
    return Reply(200, path, entity, entity.tag)


def _subscribe(tree: Tree, request: Request, asker: Asker) -> Reply:
    """Subscribe, and return the events that the client has missed: Resources §6.3."""
    if request.url is not None:
        return _subscribe_url(tree, request, request.url, asker)
    last, missed, events = tree.subscribe(request.path, asker, request.since, request.epoch)
    more: tuple[tuple[str, JsonValue], ...] = (("seq", last), ("epoch", tree.epoch))
    if missed:  # Resources §6.3 [missed-is-told]
        more += (("missed", True),)
    return Reply(200, request.path, more=more, events=tuple(events))


def _subscribe_url(tree: Tree, request: Request, url: str, asker: Asker) -> Reply:
    persistent = bool(request.wishes.persistent)
    made, is_new = tree.subscribe_url(
        request.path, asker, url, request.secret, is_persistent=persistent
    )
    said = {**made.shown(), "seq": tree.sequence, "epoch": tree.epoch}
    if not request.secret:  # Resources §13.4 [secret-is-told-once]
        said["secret"] = made.deliveries.secret
    where = (NAME, made.id)
    return Reply(201 if is_new else 200, where, Entity(JSON, {"id": made.id, **said}))
