"""A client of a tree of resources with calls to await, on asyncio (extra `web`).

Implements Resources §9.

    async with AsyncTreeClient("ws://127.0.0.1:8080/tree") as tree:
        await tree.put("/login/bob", {"name": "Bob"})
        await tree.subscribe("/login", print)

Own design: it has the calls of the client on gevent and the same core.  One task reads, and
connects again; what the client has made it makes again in `on_connected`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from types import TracebackType

from p2psip.errors import RemoteError
from siprtmp.edge.web.tree_wire import READ_SIZE, TIMEOUT, WAITS, ClientWire
from siprtmp.web.resources.client import (
    Answer,
    JsonValue,
    Notification,
    OnNotification,
    ResourceClient,
)


class AsyncTreeClient:
    """A connection to `ws://[USER:PASSWORD@]HOST:PORT/tree`, from `connect` to `close`.

    Raises LocalError for another URL.  A `token` takes the place of user and password.
    `on_connected` is awaited after each connection.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        on_connected: Callable[[], Coroutine[None, None, None]] | None = None,
    ) -> None:
        self._wire, self._on_connected = ClientWire(url, token), on_connected
        self._core = ResourceClient(self._send)
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "AsyncTreeClient":
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connect for the first time.  Raises OSError, TimeoutError or RemoteError."""
        await self._connect()
        self._start(self._run())
        if self._on_connected is not None:
            await self._on_connected()

    async def get(self, resource: str, view: str = "entity") -> JsonValue:
        """What a resource holds, its `children`, or its `access`."""
        return (await self.request("GET", resource, view=view)).entity

    async def put(self, resource: str, entity: JsonValue, **more: JsonValue) -> Answer:
        """Make or replace a resource."""
        return await self.request("PUT", resource, entity=entity, **more)

    async def post(self, resource: str, entity: JsonValue, **more: JsonValue) -> str:
        """Make a resource below this one; its name."""
        return str((await self.request("POST", resource, entity=entity, **more)).entity["id"])

    async def patch(self, resource: str, change: JsonValue, **more: JsonValue) -> JsonValue:
        """Change what a resource holds; what it holds then."""
        return (await self.request("PATCH", resource, entity=change, **more)).entity

    async def delete(self, resource: str, **more: JsonValue) -> None:
        """End a resource."""
        await self.request("DELETE", resource, **more)

    async def notify(self, resource: str, data: JsonValue) -> None:
        """Send an event to all others who listen."""
        await self.request("NOTIFY", resource, data=data)

    async def subscribe(self, resource: str, heard: OnNotification) -> None:
        """Have `heard` called by the event loop with each notification, in their order."""
        loop = asyncio.get_running_loop()

        def later(notification: Notification) -> None:  # so that an error of `heard` is its own
            loop.call_soon(heard, notification)

        await self._ask(partial(self._core.subscribe, resource, later))

    async def unsubscribe(self, resource: str) -> None:
        """End a subscription."""
        await self._ask(partial(self._core.unsubscribe, resource))

    async def subscribe_url(
        self, resource: str, url: str, *, secret: str = "", persistent: bool = True
    ) -> JsonValue:
        """Have notifications posted to a URL; the subscription, with the `secret` that signs them.

        One that is not persistent ends with this connection, and is not made again.
        """
        ask = partial(self._core.subscribe_url, resource, url, secret=secret, persistent=persistent)
        return (await self._ask(ask)).entity

    async def unsubscribe_url(self, resource: str, url: str) -> None:
        """Have nothing more posted to a URL."""
        await self._ask(partial(self._core.unsubscribe_url, resource, url))

    async def request(self, method: str, resource: str, **members: JsonValue) -> Answer:
        """Send any request.  Raises RemoteError if it is refused, OSError without a connection."""
        return await self._ask(partial(self._core.request, method, resource, **members))

    async def close(self) -> None:
        """End the connection for good."""
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._hang_up()

    async def _ask(self, send: Callable[[Callable[[Answer | RemoteError], None]], None]) -> Answer:
        """Send by this, which takes what its answer is given to, and wait for that."""
        found: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        send(partial(_settle, found))
        async with asyncio.timeout(TIMEOUT):
            if self._writer is not None:
                await self._writer.drain()
            return await found

    async def _connect(self) -> None:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_connection(self._wire.host, self._wire.port)
            try:
                writer.write(self._wire.open())
                while not self._wire.opened(await reader.read(READ_SIZE)):
                    pass
            except BaseException:  # a cancellation leaves no socket open either
                writer.close()
                raise
        self._reader, self._writer = reader, writer

    def _send(self, text: str) -> None:
        if self._writer is None or self._writer.is_closing():
            raise ConnectionError("There is no connection to the tree")
        self._writer.write(self._wire.frame(text))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        """Read until `close`, by one connection after the other."""
        while True:
            with suppress(OSError, RemoteError):
                while await self._read():
                    pass
            self._hang_up()
            await self._connect_again()

    async def _read(self) -> bool:
        """Read some messages; whether the connection goes on."""
        texts, answer, goes_on = self._wire.receive(await self._reader.read(READ_SIZE))
        for text in texts:
            self._core.receive(text)
        if answer and self._writer is not None:
            self._writer.write(answer)
        return goes_on

    async def _connect_again(self) -> None:
        for wait in chain((0.0,), WAITS, repeat(WAITS[-1])):
            await asyncio.sleep(wait)
            with suppress(OSError, RemoteError):  # and TimeoutError, which is an OSError
                await self._connect()
                self._core.connected()
                break
        if self._on_connected is not None:
            self._start(self._on_connected())

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._core.disconnected()


def _settle(found: "asyncio.Future[Answer]", answer: Answer | RemoteError) -> None:
    if found.done():  # nobody waits any more
        return
    if isinstance(answer, RemoteError):
        found.set_exception(answer)
    else:
        found.set_result(answer)
