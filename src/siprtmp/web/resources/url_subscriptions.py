"""The subscriptions with a URL: whose they are, and what waits to be posted there.

Implements Resources §13.

Own design: to the tree each is a client with a connection of its own, so that the rights of its
user are judged for each notification as those of a WebSocket are.  A persistent one is kept as a
resource below `/subscription`, where nothing else can be.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from p2psip.errors import RemoteError
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.deliveries import Deliveries
from siprtmp.web.resources.entity import JSON, Entity, JsonValue
from siprtmp.web.resources.nodes import Held, Store
from siprtmp.web.resources.path import Path, read_path, write_path

NAME: Final = "subscription"  # the branch that shows them
MAX_OF_ONE: Final = 20
MAX_OF_ALL: Final = 200
MAX_OCTETS: Final = 256 << 10  # that wait for one URL
MAX_URL: Final = 2048  # letters
LEAST_SECRET, MOST_SECRET = 16, 128  # letters
GONE: Final = "status 410"  # by which a service ends its subscription
_ID, _SECRET = 9, 32  # octets


@dataclass(slots=True)
class UrlSubscription:
    """One: `asker` is its user, with its identifier as connection.

    `connection` is the one that it ends with, empty if it is persistent.  It is over once its
    resource has ended and what waits has been posted.
    """

    path: Path
    asker: Asker
    url: str
    connection: str
    deliveries: Deliveries
    has_ended: bool = False
    is_over: bool = False

    @property
    def id(self) -> str:
        return self.asker.connection

    def shown(self) -> dict[str, JsonValue]:
        """What its owner reads."""
        return {
            "resource": write_path(self.path),
            "url": self.url,
            "user": self.asker.user,
            "persistent": not self.connection,
            "waiting": len(self.deliveries),
            "failing": self.deliveries.has_failed,
        }


class PostingSide(Protocol):
    """What is outside: the check of URLs, the time of day, the log, and who posts."""

    def check(self, url: str) -> None:
        """Raise RemoteError for a URL that the operator lets nobody choose."""

    def stamp(self) -> str:
        """The time of day, as text."""

    def say(self, subscription: UrlSubscription, what: str, reason: str) -> None:
        """Log "failed" or "lost"; see `Deliveries`."""

    def wake(self, subscription: UrlSubscription) -> None:
        """There is something to post, or the subscription is over."""


class UrlSubscriptions:
    """All of a tree, by their identifiers; `on_end` is told the identifier of one that ends."""

    def __init__(
        self,
        random: Callable[[int], bytes],
        surroundings: PostingSide,
        store: Store | None = None,
    ) -> None:
        self._random, self._around, self._store = random, surroundings, store
        self._all: dict[str, UrlSubscription] = {}
        self.on_end: Callable[[str], object] = lambda identifier: None
        self.missed: Callable[[], dict[str, JsonValue]] = dict

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[UrlSubscription]:
        return iter(list(self._all.values()))

    def find(self, identifier: str) -> UrlSubscription | None:
        """The subscription with this identifier, if there is one."""
        return self._all.get(identifier)

    def found(self, path: Path, user: str | None, url: str) -> UrlSubscription | None:
        """That of a user to a resource with a URL, if there is one."""
        wanted = path, user, url
        own = (each for each in self if (each.path, each.asker.user, each.url) == wanted)
        return next((each for each in own if not each.has_ended), None)

    def add(
        self, path: Path, asker: Asker, url: str, secret: str, *, is_persistent: bool
    ) -> tuple[UrlSubscription, bool]:
        """Subscribe, or renew the one with this URL; and whether it is new.  Raises RemoteError."""
        self._check(url, secret)
        secret = secret or self._random(_SECRET).hex()
        connection = "" if is_persistent else asker.connection
        old = self.found(path, asker.user, url)
        if old is not None:
            old.deliveries.secret, old.connection = secret, connection
            old.asker = replace(asker, connection=old.id)
            self._keep(old)
            return old, False
        # Resources §13.6 [urls-are-bounded]
        if sum(each.asker.user == asker.user for each in self) >= MAX_OF_ONE:
            raise RemoteError("You have as many subscriptions with a URL as one may have", 507)
        if len(self) >= MAX_OF_ALL:
            raise RemoteError("There is no room for another subscription with a URL", 507)
        named = replace(asker, connection=self._random(_ID).hex())
        made = self._make(path, named, url, secret, connection)
        self._keep(made)
        return made, True

    def put(self, subscription: UrlSubscription, text: str, epoch: str) -> None:
        """Have a notification posted."""
        if subscription.has_ended:
            return
        subscription.deliveries.add(self._body(subscription, json.loads(text) | {"epoch": epoch}))
        self._around.wake(subscription)

    def answered(self, subscription: UrlSubscription, reason: str, now: float) -> None:
        """The service has taken a delivery if there is no reason: see `Deliveries`."""
        if subscription.is_over:
            return
        deliveries = subscription.deliveries
        deliveries.answered(reason, now)
        # Resources §13.5 [gone-ends-it]
        if reason == GONE or (subscription.has_ended and not len(deliveries)):
            self.end(subscription)

    def resource_ended(self, path: Path) -> None:
        """A resource is no more: what waits is still posted, and then its subscriptions end."""
        for each in self:
            if each.path == path and not each.has_ended:
                each.has_ended = True
                self._keep(each)
                if not len(each.deliveries):
                    self.end(each)

    def connection_ended(self, connection: str) -> None:
        """End those that are this connection's."""
        for each in self:
            if each.connection == connection:
                self.end(each)

    def keep_users(self, knows: Callable[[Asker], bool]) -> None:
        """End those of users who are not known any more."""
        for each in self:
            if not knows(each.asker):
                self.end(each)

    def end(self, subscription: UrlSubscription) -> None:
        """End a subscription, and give up what waits."""
        if self._all.pop(subscription.id, None) is not None:
            subscription.has_ended = subscription.is_over = True
            self._keep(subscription)
            self.on_end(subscription.id)
            self._around.wake(subscription)

    def restore(self, may: Callable[[Path, Asker], bool]) -> list[UrlSubscription]:
        """Have again what is kept, of those that `may` be; the others are forgotten."""
        if self._store is None:
            return []
        # Resources §13.1 [urls-outlive-a-restart]
        kept = [(path, held) for path, held in self._store.load() if path[:1] == (NAME,)]
        for path, held in kept:
            try:
                made = self._restored(path[-1], held)
                self._check(made.url, made.deliveries.secret)
                is_good = len(path) == 2 and may(made.path, made.asker)
            except (RemoteError, TypeError, KeyError):
                is_good = False
            if not is_good:
                self._all.pop(path[-1], None)
                self._store.keep(path, None)
        return list(self)

    def _restored(self, identifier: str, held: Held) -> UrlSubscription:
        said = held.entity.data
        groups, by_token = frozenset(said["groups"]), bool(said["by_token"])
        asker = Asker(held.owner, groups, identifier, str(said["host"]), by_token)
        return self._make(read_path(said["resource"]), asker, said["url"], said["secret"], "")

    def _make(
        self, path: Path, asker: Asker, url: str, secret: str, connection: str
    ) -> UrlSubscription:
        def say(what: str, reason: str) -> None:
            self._around.say(made, what, reason)

        def gap() -> bytes:  # Resources §13.3 [gap-is-told]
            return self._body(made, {"notify": "MISSED", **self.missed()})

        deliveries = Deliveries(secret, say, gap, MAX_OCTETS)
        made = UrlSubscription(path, asker, url, connection, deliveries)
        self._all[made.id] = made
        return made

    def _body(self, subscription: UrlSubscription, said: dict[str, JsonValue]) -> bytes:
        whole = {"subscription": subscription.id, "at": self._around.stamp(), **said}
        return json.dumps(whole).encode("ascii")

    def _check(self, url: Any, secret: Any) -> None:
        if not isinstance(url, str) or not (url.isascii() and url.isprintable() and " " not in url):
            raise RemoteError("A URL has printable letters of ASCII")
        if len(url) > MAX_URL:
            raise RemoteError(f"A URL has {MAX_URL} letters at most", 414)
        is_plain = isinstance(secret, str) and secret.isascii() and secret.isprintable()
        if not is_plain or (secret and not LEAST_SECRET <= len(secret) <= MOST_SECRET):
            raise RemoteError(f"A secret has {LEAST_SECRET} to {MOST_SECRET} letters of ASCII")
        self._around.check(url)

    def _keep(self, subscription: UrlSubscription) -> None:
        if self._store is None:
            return
        held = None
        if not (subscription.connection or subscription.has_ended):
            asker = subscription.asker
            said = {
                "resource": write_path(subscription.path),
                "url": subscription.url,
                "secret": subscription.deliveries.secret,
                "groups": sorted(asker.groups),
                "host": asker.host,
                "by_token": asker.by_token,
            }
            held = Held(Entity(JSON, said), asker.user, None, None)
        self._store.keep((NAME, subscription.id), held)
