"""The clients of one case: who they are, and by which way they ask.

Own design: a case has a resource of its own at the top, whose mode lets all clients do all, so that
its rights do not disturb what else is judged.  It ends with the case.
"""

import json
import os
from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from rtclab.conform.case import Cases, NotApplicable, Unmet, Unreachable
from rtclab.conform.checks import expect_equal, expect_status
from rtclab.conform.resource.line import AVAILABLE, Message, ResourceLine
from rtclab.conform.resource.service import PostedTo, PostService
from rtclab.conform.web.peer import HttpAnswer, WebPeer

HTTP: Final = "http"
SOCKET: Final = "websocket"
ALL: Final = "cruws" * 4
OWNER: Final = "cruws" + "-----" * 3
JSON: Final = "application/json"
_QUERY: Final = ("view", "persistent", "mode", "group")

cases: Cases["ResourcePeer"] = Cases()
Run = Callable[["ResourcePeer"], None]


def ways(section: str, slug: str = "", level: str = "MUST") -> Callable[[Run], Run]:
    """Make two cases of the function below, by plain HTTP and by WebSocket."""

    def keep(run: Run) -> Run:
        for way in (HTTP, SOCKET):

            def over(peer: ResourcePeer, way: str = way) -> None:
                peer.way = way
                run(peer)

            over.__name__ = f"{run.__name__}_by_{way}"
            over.__doc__, over.__module__ = run.__doc__, run.__module__
            cases.case(f"Resources §{section}", slug, level=level, role=way)(over)
        return run

    return keep


def by(way: str, section: str, slug: str = "", level: str = "MUST") -> Callable[[Run], Run]:
    """Make a case of the function below, by this way alone."""

    def keep(run: Run) -> Run:
        def over(peer: ResourcePeer) -> None:
            peer.way = way
            run(peer)

        over.__name__, over.__doc__, over.__module__ = run.__name__, run.__doc__, run.__module__
        cases.case(f"Resources §{section}", slug, level=level, role=way)(over)
        return run

    return keep


@dataclass(frozen=True, slots=True)
class Told:
    """An answer, by either way; octets of a type that is not JSON are octets."""

    status: int
    type: str
    entity: Any
    tag: str
    path: str  # of the new resource

    def __str__(self) -> str:
        return f"{self.status} {self.entity!r}"[:100]

    def expect(self, *statuses: int) -> "Told":
        """Unmet unless the status is one of these, or one of the class that a digit stands for."""
        expect_status(self.status, str(self), statuses)
        return self


class ResourceClient:
    """Asks by one way, with the same words for both; `line` is its WebSocket."""

    def __init__(self, peer: "ResourcePeer", way: str, proof: str) -> None:
        self._peer, self._proof, self.way = peer, proof, way
        self._line = peer.line(proof) if way == SOCKET else None

    @property
    def line(self) -> ResourceLine:
        """The WebSocket of a client that has one."""
        assert self._line is not None
        return self._line

    def ask(self, method: str, path: str, **members: Any) -> Told:
        """Send a request; an `entity` of octets is of its `type`, underscores are hyphens.

        By HTTP, PUT and POST make what is persistent, and PUT leaves what is there as it was.
        """
        return (self._by_http if self._line is None else self._by_socket)(method, path, members)

    def read(self, path: str, **members: Any) -> Any:
        """What a resource holds, which must be there."""
        return self.ask("GET", path, **members).expect(200).entity

    def make(self, path: str, entity: Any = None, **members: Any) -> Told:
        """Make a resource, which must be new."""
        return self.ask("PUT", path, entity=entity, **members).expect(201)

    def _by_http(self, method: str, path: str, members: Message) -> Told:
        asked: Message = {name: members[name] for name in _QUERY if name in members}
        there = self._peer.there
        if method == "POST" or (method == "PUT" and path not in there):
            asked.setdefault("persistent", True)
        query = urlencode(
            {name: json.dumps(v) if isinstance(v, bool) else v for name, v in asked.items()}
        )
        body, kind = b"", ""
        if "entity" in members:
            entity = members["entity"]
            body = entity if isinstance(entity, bytes) else json.dumps(entity).encode()
            merge = "application/merge-patch+json" if method == "PATCH" else JSON
            kind = members.get("type", merge)
        answer = self._peer.ask(
            method,
            path,
            body,
            kind,
            query,
            Authorization=self._proof,
            If_Match=members.get("if_match", ""),
            If_None_Match=members.get("if_none_match", ""),
        )
        if answer.status == 201:
            there.add(path)
        elif method == "DELETE" and answer.status // 100 == 2:
            there.difference_update([e for e in there if f"{e}/".startswith(f"{path}/")])
        return told(answer, self._peer.url.path)

    def _by_socket(self, method: str, path: str, members: Message) -> Told:
        said = {name.replace("_", "-"): value for name, value in members.items()}
        if isinstance(entity := said.get("entity"), bytes):
            said["entity"] = b64encode(entity).decode()
        self.line.send({"method": method, "resource": path} | said)
        answer = self.line.answer()
        kind, entity = str(answer.get("type", "")), answer.get("entity")
        if kind and not is_json(kind):
            try:
                entity = b64decode(str(entity), validate=True)
            except ValueError:
                raise Unmet("an entity of base64", repr(entity)[:80]) from None
        tag, where = str(answer.get("etag", "")), str(answer.get("resource", ""))
        return Told(_status(answer), kind, entity, tag, where)


class ResourcePeer:
    """What a case talks to; `proofs` are those of up to two users, as Authorization.

    `service` is what the target may post to, if there is one.
    """

    def __init__(
        self, proofs: Sequence[str], target: str, service: PostService | None = None
    ) -> None:
        url = urlsplit(target)
        if url.scheme not in ("http", "ws") or not url.hostname or url.username:
            raise ValueError("a target is http://HOST:PORT/tree; users are said by --user, --token")
        if not AVAILABLE:
            raise ValueError("conform resource needs the extra web: pip install 'siprtmp[web]'")
        self.url = SplitResult("http", url.netloc, url.path.rstrip("/") or "/tree", "", "")
        self.proofs, self.way = proofs, SOCKET
        self.web = WebPeer("", self.url.geturl())
        self._lines: list[ResourceLine] = []
        self._rooms: list[tuple[str, str]] = []
        self._service, self._hooks = service, list[PostedTo]()
        self._posted: list[str] = []  # the subscriptions with a URL
        self.there: set[str] = set()  # the paths that the case has made by HTTP

    def close(self) -> None:
        """End the connections, and what a case has left."""
        for line in self._lines:
            line.close()
        for identifier in self._posted:
            with suppress(Unmet, Unreachable):
                self.ask("DELETE", f"/subscription/{identifier}", Authorization=self.proofs[0])
        for hook in self._hooks:
            hook.close()
        for path, proof in self._rooms:
            with suppress(Unmet, Unreachable):
                self.ask("PATCH", path, _OPEN, JSON, "view=access", Authorization=proof)
                self.ask("DELETE", path, Authorization=proof)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        kind: str = "",
        query: str = "",
        **headers: str,
    ) -> HttpAnswer:
        """Send a request by plain HTTP, and read its answer."""
        url = f"{self.url.geturl()}{quote(path)}{'?' * bool(query)}{query}"
        return self.web.ask(method, url, body, kind, **headers)

    def line(self, proof: str = "", **more: Any) -> ResourceLine:
        """A WebSocket, which may be refused."""
        line = ResourceLine(self.url, proof, **more)
        self._lines.append(line)
        if line.refused in (401, 404) and not more:
            raise NotApplicable(f"this client gets no WebSocket: {line.refused}")
        return line

    def client(self, way: str = "") -> ResourceClient:
        """A client of the first user, or without one of nobody."""
        return ResourceClient(self, way or self.way, self.proofs[0] if self.proofs else "")

    def owner(self) -> ResourceClient:
        """A client of the first user."""
        self._need(1)
        return ResourceClient(self, self.way, self.proofs[0])

    def second(self) -> ResourceClient:
        """A client of the second user."""
        self._need(2)
        return ResourceClient(self, self.way, self.proofs[1])

    def anonymous(self) -> ResourceClient:
        """A client of nobody; NotApplicable if the target serves none."""
        client = ResourceClient(self, self.way, "")
        absent = client.ask("GET", f"/{fresh_name()}")
        if absent.status != 404:
            raise NotApplicable(f"clients without a user are not served: {absent}")
        return client

    def group(self) -> str:
        """The name of a group of the second user, which its token tells."""
        self._need(2)
        with suppress(ValueError, LookupError, TypeError):
            part = self.proofs[1].partition("Bearer ")[2].split(".")[1]
            return str(json.loads(urlsafe_b64decode(part + "==="))["groups"][0])
        raise NotApplicable("not run without a second user whose --token has groups")

    def hook(self) -> PostedTo:
        """A URL of the case's own that the target may post to."""
        if self._service is None:
            raise NotApplicable("not run without a web service for the target: --webhook")
        hook = self._service.open()
        self._hooks.append(hook)
        return hook

    def told_url(self, answer: Told) -> Any:
        """What the target says of a new subscription with a URL, which ends with the case."""
        if answer.status == 403:
            raise NotApplicable(f"the target may not post to this service: {answer}")
        said = answer.expect(201).entity
        if not isinstance(said, dict) or not isinstance(said.get("id"), str):
            raise Unmet("an id", str(answer))
        self._posted.append(said["id"])
        return said

    def room(self, client: ResourceClient, entity: Any = None, mode: str = ALL) -> str:
        """Make a resource of the case's own at the top; its path."""
        path = f"/{fresh_name()}"
        made = client.ask("PUT", path, entity=entity, mode=mode)
        if made.status in (401, 403):
            raise NotApplicable(f"this client may not make resources at the top: {made}")
        made.expect(201)
        self.leave(path)
        return path

    def leave(self, path: str) -> None:
        """Have a resource removed behind the case."""
        self._rooms.append((path, self.proofs[0] if self.proofs else ""))

    def _need(self, count: int) -> None:
        if len(self.proofs) < count:
            words = ("a", "a second")[count - 1]
            raise NotApplicable(f"not run without {words} user: --user or --token")


_OPEN: Final = json.dumps({"mode": ALL}).encode()


def fresh_name() -> str:
    """A name that nothing has."""
    return f"conform-{os.urandom(6).hex()}"


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence == JSON or essence.endswith("+json")


def told(answer: HttpAnswer, root: str) -> Told:
    """An answer by HTTP of the tree whose top has this path."""
    entity: Any = answer.body
    if is_json(answer.type):
        try:
            entity = json.loads(answer.body)
        except ValueError:
            raise Unmet("JSON", str(answer)) from None
    where = unquote(urlsplit(answer.header("Location")).path).removeprefix(root)
    return Told(answer.status, answer.header("Content-Type"), entity, answer.header("ETag"), where)


def _status(answer: Message) -> int:
    if not isinstance(status := answer["status"], int):
        raise Unmet("a status of HTTP", repr(status))
    return status


def is_refused(told: Told, client: ResourceClient, path: str) -> None:
    """Unmet unless a request was refused, and nothing was made of it."""
    told.expect(4)
    expect_equal("status of GET", 404, client.ask("GET", path).status)


def connecting(
    *proofs: str, service: PostService | None = None
) -> Callable[[str], closing[ResourcePeer]]:
    """How the clients of a case are made of a target, with these users and this service."""
    return lambda target: closing(ResourcePeer(proofs, target, service))


def reach(target: str) -> None:
    """Raise Unreachable unless there is an answer to OPTIONS, and ValueError for a bad target."""
    with closing(ResourcePeer((), target)) as peer:
        peer.web.reach()
