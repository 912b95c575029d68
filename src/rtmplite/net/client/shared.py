"""Remote shared objects for clients: data that changes for all clients that use it.

users = client.shared_object("users")
users.on_news = print
users["ann"] = {"online": True}
users.send("greet", "hello")
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gevent.event import Event

from rtmplite.amf.values import Value
from rtmplite.errors import RemoteError
from rtmplite.net.clock import now
from rtmplite.rtmp.wire.shared_object import SharedObject
from rtmplite.shared_objects.replica import Mirror, News, Refused

TIMEOUT: Final = 10.0  # s


class RemoteObject(Mapping[str, Value]):
    """A shared object in use, as a mapping of its slots; `Client.shared_object` makes it.

    `on_news` is called with every `Sync`, `Heard` and `Refused`, in the greenlet that reads, so it
    must not wait for the server.
    """

    def __init__(self, name: str, persistent: bool, send: Callable[[SharedObject], None]) -> None:
        self.on_news: Callable[[News], None] = lambda news: None
        self._mirror, self._send = Mirror(name, persistent), send
        self._changed = Event()
        self._error: RemoteError | None = None

    def use(self) -> None:
        """Ask the server for it; `Client` calls this when it can route the answer."""
        self._send(self._mirror.use())

    @property
    def is_used(self) -> bool:
        """Whether the server lets us use it."""
        return self._mirror.is_used

    @property
    def version(self) -> int:
        """The number of changes it has had, as far as the server has told."""
        return self._mirror.version

    def __getitem__(self, name: str) -> Value:
        """The value of a slot."""
        return self._mirror.data[name]

    def __iter__(self) -> Iterator[str]:
        """The names of slots."""
        return iter(list(self._mirror.data))

    def __len__(self) -> int:
        """The number of slots."""
        return len(self._mirror.data)

    def __setitem__(self, name: str, value: Value) -> None:
        """Give a slot a value, here at once and soon everywhere."""
        self._send(self._mirror.set(name, value))

    def __delitem__(self, name: str) -> None:
        """Remove a slot, here at once and soon everywhere."""
        self._send(self._mirror.remove(name))

    def send(self, name: str, *args: Value) -> None:
        """Call all clients that use it, this one as well."""
        self._send(self._mirror.send(name, *args))

    def close(self) -> None:
        """Use it no longer."""
        if self.is_used:
            self._send(self._mirror.release())

    def wait_until(self, condition: Callable[[], object], timeout: float = TIMEOUT) -> None:
        """Wait for news that make `condition` true.

        Raises RemoteError if the server refuses something or the connection ends, TimeoutError.
        """
        end = now() + timeout
        while not condition():
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if not self._changed.wait(max(0.0, end - now())) and now() >= end:
                raise TimeoutError(f"not within {timeout:g} s")
            self._changed.clear()

    def take(self, message: SharedObject) -> None:
        """Take a message of the server; `Client` calls it."""
        for news in self._mirror.receive(message):
            if isinstance(news, Refused):
                self._error = RemoteError(f"{self._mirror.name} is refused", news.code, news.level)
            self.on_news(news)
        self._changed.set()

    def end(self, error: RemoteError) -> None:
        """Wake the calls that wait; `Client` calls it."""
        self._error = error
        self._changed.set()
