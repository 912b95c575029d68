"""A client of a tree of resources with calls that wait, on gevent (extra `web`).

Implements Resources §9.

    with TreeClient("ws://127.0.0.1:8080/tree") as tree:
        tree.put("/login/bob", {"name": "Bob"})
        tree.subscribe("/login", print)

Own design: one greenlet reads, and connects again when the connection is lost.  Resources that
the client has made are transient: after a reconnection it makes them again, in `on_connected`.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, cast

import gevent
from gevent import socket
from gevent.event import AsyncResult, Event
from gevent.lock import RLock

from p2psip.errors import RemoteError
from siprtmp.edge.web.tree_wire import READ_SIZE, TIMEOUT, WAITS, ClientWire
from siprtmp.web.resources.client import Answer, JsonValue, OnNotification, ResourceClient


class TreeClient:
    """A connection to `ws://[USER:PASSWORD@]HOST:PORT/tree`; raises OSError or RemoteError.

    A `token` takes the place of user and password.  `on_connected` is called after each connection.
    """

    def __init__(
        self, url: str, *, token: str = "", on_connected: Callable[[], None] = lambda: None
    ) -> None:
        self._wire, self._on_connected = ClientWire(url, token), on_connected
        self._core = ResourceClient(self._send)
        self._socket: Any = None
        self._lock, self._closed = RLock(), Event()
        self._connect()
        self._reader = gevent.spawn(self._run)
        self._on_connected()

    def __enter__(self) -> "TreeClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def get(self, resource: str, view: str = "entity") -> JsonValue:
        """What a resource holds, its `children`, or its `access`."""
        return self.request("GET", resource, view=view).entity

    def put(self, resource: str, entity: JsonValue, **more: JsonValue) -> Answer:
        """Make or replace a resource."""
        return self.request("PUT", resource, entity=entity, **more)

    def post(self, resource: str, entity: JsonValue, **more: JsonValue) -> str:
        """Make a resource below this one; its name."""
        return str(self.request("POST", resource, entity=entity, **more).entity["id"])

    def patch(self, resource: str, change: JsonValue, **more: JsonValue) -> JsonValue:
        """Change what a resource holds; what it holds then."""
        return self.request("PATCH", resource, entity=change, **more).entity

    def delete(self, resource: str, **more: JsonValue) -> None:
        """End a resource."""
        self.request("DELETE", resource, **more)

    def notify(self, resource: str, data: JsonValue) -> None:
        """Send an event to all others who listen."""
        self.request("NOTIFY", resource, data=data)

    def subscribe(self, resource: str, heard: OnNotification) -> None:
        """Have `heard` called, in the greenlet that reads, with each notification."""
        answer: AsyncResult[Answer] = AsyncResult()
        self._core.subscribe(resource, heard, _into(answer))
        answer.get(timeout=TIMEOUT)

    def unsubscribe(self, resource: str) -> None:
        """End a subscription."""
        answer: AsyncResult[Answer] = AsyncResult()
        self._core.unsubscribe(resource, _into(answer))
        answer.get(timeout=TIMEOUT)

    def subscribe_url(
        self, resource: str, url: str, *, secret: str = "", persistent: bool = True
    ) -> JsonValue:
        """Have notifications posted to a URL; the subscription, with the `secret` that signs them.

        One that is not persistent ends with this connection, and is not made again.
        """
        answer: AsyncResult[Answer] = AsyncResult()
        into = _into(answer)
        self._core.subscribe_url(resource, url, into, secret=secret, persistent=persistent)
        found: Any = answer.get(timeout=TIMEOUT)
        return found.entity

    def unsubscribe_url(self, resource: str, url: str) -> None:
        """Have nothing more posted to a URL."""
        answer: AsyncResult[Answer] = AsyncResult()
        self._core.unsubscribe_url(resource, url, _into(answer))
        answer.get(timeout=TIMEOUT)

    def request(self, method: str, resource: str, **members: JsonValue) -> Answer:
        """Send any request.  Raises RemoteError if it is refused."""
        answer: AsyncResult[Answer] = AsyncResult()
        self._core.request(method, resource, _into(answer), **members)
        found: Any = answer.get(timeout=TIMEOUT)  # its stubs think that it may be None
        return cast(Answer, found)

    def close(self) -> None:
        """End the connection for good."""
        self._closed.set()
        self._socket.close()
        self._reader.kill(block=False)
        self._core.disconnected()

    def _connect(self) -> None:
        connected = socket.create_connection((self._wire.host, self._wire.port), TIMEOUT)
        try:
            connected.sendall(self._wire.open())
            while not self._wire.opened(connected.recv(READ_SIZE)):
                pass
        except (OSError, RemoteError):
            connected.close()
            raise
        connected.settimeout(None)
        self._socket = connected

    def _send(self, text: str) -> None:
        self._write(self._wire.frame(text))

    def _write(self, data: bytes) -> None:
        with self._lock:  # so that two greenlets do not mix their frames
            self._socket.sendall(data)

    def _run(self) -> None:
        """Read until `close`, by one connection after the other."""
        while not self._closed.is_set():
            try:
                while self._read():
                    pass
            except (OSError, RemoteError):
                self._socket.close()
            self._core.disconnected()
            if not self._closed.is_set():
                self._connect_again()

    def _connect_again(self) -> None:
        waits = iter(WAITS)
        wait = 0.0
        while not self._closed.wait(wait):
            try:
                self._connect()
            except (OSError, RemoteError):
                wait = next(waits, WAITS[-1])
                continue
            self._core.connected()
            gevent.spawn(self._on_connected)
            return

    def _read(self) -> bool:
        """Read some messages; whether the connection goes on."""
        texts, answer, goes_on = self._wire.receive(self._socket.recv(READ_SIZE))
        for text in texts:
            self._core.receive(text)
        if answer:
            self._write(answer)
        return goes_on


def _into(result: "AsyncResult[Answer]") -> Callable[[Answer | RemoteError], None]:
    def answered(answer: Answer | RemoteError) -> None:
        if isinstance(answer, RemoteError):
            result.set_exception(answer)
        else:
            result.set(answer)

    return answered
