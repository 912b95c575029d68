"""A client of a tree of resources, without I/O: what it sends, and what it hears.

Implements Resources §2, §6.3 and §13.1.

Own design: the client remembers its subscriptions and the number of the last notification, so that
after a reconnection it subscribes again and gets what it has missed.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from p2psip.errors import RemoteError

JsonValue = Any

MAX_REQUESTS: Final = 1000  # that wait for their answers
ENDED: Final = (401, 403, 404)  # of a SUBSCRIBE to what has gone, or is not for this client now


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request that has succeeded."""

    status: int
    entity: JsonValue
    etag: str
    resource: str


@dataclass(frozen=True, slots=True)
class Notification:
    """What has happened to a resource, or to the `child` directly below it.

    `kind` is PUT, DELETE, NOTIFY, `create`, `update` or `delete`, the last three with a `child`; or
    MISSED, for all that the client has subscribed to.
    """

    kind: str
    resource: str
    child: str
    entity: JsonValue


OnAnswer = Callable[[Answer | RemoteError], None]
OnNotification = Callable[[Notification], None]


class ResourceClient:
    """Requests and their answers over one connection after the other.

    `send` takes a text of WebSocket.  An answer is given to the function that came with its
    request, a notification to that of the subscription.
    """

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send, self._last_id = send, 0
        self._waiting: dict[int, OnAnswer] = {}
        self._subscribed: dict[str, OnNotification] = {}
        self._heard: dict[str, int] = {}  # the number of the last event, by resource
        self._epoch = ""

    def request(self, method: str, resource: str, answered: OnAnswer, **members: JsonValue) -> None:
        """Send a request; underscores of members become hyphens.  Raises RemoteError if many wait.

        `answered` gets the answer, or the RemoteError that it is.  What `send` raises is raised.
        """
        if len(self._waiting) >= MAX_REQUESTS:
            raise RemoteError("Too many requests wait for an answer", 503)
        self._last_id += 1
        self._waiting[self._last_id] = answered
        said = {name.replace("_", "-"): value for name, value in members.items()}
        message = {"method": method, "resource": resource, "id": self._last_id} | said
        try:
            self._send(json.dumps(message))
        except OSError:  # nothing is sent, so no answer will come
            self._waiting.pop(self._last_id, None)
            raise

    def subscribe(self, resource: str, heard: OnNotification, answered: OnAnswer) -> None:
        """Subscribe, also after each reconnection until `unsubscribe`."""
        self._subscribed[resource] = heard
        self._subscribe(resource, answered)

    def unsubscribe(self, resource: str, answered: OnAnswer) -> None:
        """End a subscription."""
        self._subscribed.pop(resource, None)
        self._heard.pop(resource, None)
        self.request("UNSUBSCRIBE", resource, answered)

    def subscribe_url(
        self,
        resource: str,
        url: str,
        answered: OnAnswer,
        *,
        secret: str = "",
        persistent: bool = True,
    ) -> None:
        """Have notifications posted to a URL: Resources §13.1.

        The entity of the answer has the `secret` of their signature, unless it is said here.
        """
        more = {"secret": secret} if secret else {}
        said = {"url": url, "persistent": persistent, **more}
        self.request("SUBSCRIBE", resource, answered, **said)

    def unsubscribe_url(self, resource: str, url: str, answered: OnAnswer) -> None:
        """Have nothing more posted to a URL."""
        self.request("UNSUBSCRIBE", resource, answered, url=url)

    def connected(self) -> None:
        """A new connection is there: subscribe again, and hear what was missed."""
        for resource in list(self._subscribed):
            self._subscribe(resource, partial(self._again, resource))

    def disconnected(self) -> None:
        """The connection has ended, and so have the requests that wait: they fail with 503."""
        waiting, self._waiting = self._waiting, {}
        for answered in waiting.values():
            answered(RemoteError("The connection has ended", 503))

    def receive(self, text: str) -> None:
        """Take a message.  Raises RemoteError if it is none of the protocol."""
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            raise RemoteError("That is not JSON") from None
        if not isinstance(said, dict):
            raise RemoteError("A message is an object")
        if "notify" in said:
            self._hear(said)
            return
        identifier = said.get("id")
        answered = self._waiting.pop(identifier, None) if isinstance(identifier, int) else None
        if answered is not None:
            answered(_answer(said))

    def _again(self, resource: str, answer: Answer | RemoteError) -> None:
        """What is refused after a reconnection has ended meanwhile: so does the subscription."""
        if isinstance(answer, RemoteError) and answer.status in ENDED:
            self._tell(Notification("DELETE", resource, "", None))

    def _subscribe(self, resource: str, answered: OnAnswer) -> None:
        since = self._heard.get(resource)
        more = {} if since is None else {"since": since, "epoch": self._epoch}

        def subscribed(answer: Answer | RemoteError) -> None:
            if isinstance(answer, Answer) and answer.entity is not None:
                state: Mapping[str, JsonValue] = answer.entity
                self._epoch = str(state.get("epoch", ""))
                if not state.get("missed"):
                    self._heard.setdefault(resource, int(state.get("seq", 0)))
                else:
                    self._heard[resource] = int(state.get("seq", 0))
                    self._tell(Notification("MISSED", resource, "", None))
            answered(answer)

        self.request("SUBSCRIBE", resource, subscribed, **more)

    def _hear(self, said: Mapping[str, JsonValue]) -> None:
        kind, child, sequence = str(said["notify"]), "", said.get("seq")
        if kind == "MISSED":
            for resource in list(self._subscribed):
                self._count(resource, sequence)
                self._tell(Notification(kind, resource, "", None))
            return
        resource = str(said.get("resource", ""))
        for word in ("create", "update", "delete"):
            if kind == "UPDATE" and word in said:
                kind, child = word, str(said[word])
        self._count(resource, sequence)
        self._tell(Notification(kind, resource, child, said.get("data", said.get("entity"))))

    def _count(self, resource: str, sequence: JsonValue) -> None:
        if isinstance(sequence, int):
            self._heard[resource] = sequence

    def _tell(self, notification: Notification) -> None:
        resource = notification.resource
        heard = self._subscribed.get(resource)
        if notification.kind == "DELETE":  # Resources §6.1: the subscription ends with it
            self._subscribed.pop(resource, None)
            self._heard.pop(resource, None)
        if heard is not None:
            heard(notification)


def _answer(said: Mapping[str, JsonValue]) -> Answer | RemoteError:
    status = said.get("status")
    if not isinstance(status, int) or status >= 300:
        code = status if isinstance(status, int) else 500
        return RemoteError(str(said.get("reason", "No reason")), code)
    entity = said.get("entity")
    if "seq" in said:  # of a subscription
        entity = {name: said[name] for name in ("seq", "epoch", "missed") if name in said}
    return Answer(status, entity, str(said.get("etag", "")), str(said.get("resource", "")))
