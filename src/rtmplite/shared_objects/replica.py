"""The client's side of a remote shared object: a copy that follows the server's.

Implements RTMP 1.0 §7.1.3.  Own changes show at once, as a script expects; when the server has put
them into its order, the copy agrees with those of all other clients.

    >>> mirror = Mirror("users")
    >>> mirror.set("ann", 1.0).events, mirror.data
    ((RequestChange(name='ann', value=1.0),), {'ann': 1.0})
    >>> events = said.Change("ann", 2.0), said.Success("ann")
    >>> told = SharedObject("users", 7, Flags.NONE, events)
    >>> mirror.receive(told), mirror.data
    ([Sync(code='change', name='ann'), Sync(code='success', name='ann')], {'ann': 1.0})
"""

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from rtmplite.amf.values import Value
from rtmplite.rtmp.wire import shared_object as said
from rtmplite.rtmp.wire.shared_object import Event, Flags, SharedObject


@dataclass(frozen=True, slots=True)
class Sync:
    """The copy has changed: `code` is use, clear, change, success or delete.

    Own design: after the codes of ActionScript's SyncEvent.
    """

    code: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """A call of one user to all users: §7.1.3."""

    name: str
    args: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The server has refused a request: §7.1.3."""

    code: str
    level: str


News: TypeAlias = Sync | Heard | Refused


class Mirror:
    """One client's copy of an object.  Own design: methods give the message to send.

    `data` is the copy, `version` the server's; `is_used` is whether the server has let us use it.
    """

    def __init__(self, name: str, persistent: bool = False) -> None:
        self.name, self.version, self.is_used = name, 0, False
        self.data: dict[str, Value] = {}
        self._flags = Flags.PERSISTENT if persistent else Flags.NONE
        self._asked = deque[Event]()  # what has no answer yet; answers come in the same order

    def use(self) -> SharedObject:
        """Ask to use the object: §7.1.3."""
        return self._ask(said.Use())

    def release(self) -> SharedObject:
        """Stop using the object: §7.1.3."""
        self.is_used = False
        return self._message(said.Release())

    def set(self, name: str, value: Value) -> SharedObject:
        """Give a slot a value: §7.1.3."""
        self.data[name] = value
        return self._ask(said.RequestChange(name, value))

    def remove(self, name: str) -> SharedObject:
        """Remove a slot: §7.1.3."""
        self.data.pop(name, None)
        return self._ask(said.RequestRemove(name))

    def send(self, name: str, *args: Value) -> SharedObject:
        """Call all users of the object, ourselves as well: §7.1.3."""
        return self._message(said.SendMessage((name, *args)))

    def receive(self, message: SharedObject) -> list[News]:
        """Follow a message of the server: §7.1.3; gives the news in order."""
        self.version = message.version
        news = []
        for event in message.events:
            if (heard := self._follow(event)) is not None:
                news.append(heard)
        return news

    def _follow(self, event: Event) -> News | None:
        match event:
            case said.UseSuccess():
                self.is_used = True
                self._answered(said.Use())
                return Sync("use")
            case said.Clear():
                self.data.clear()
                return Sync("clear")
            case said.Change(name, value):
                self.data[name] = value
                return Sync("change", name)
            case said.Success(name):
                if self._asked and isinstance(wish := self._asked[0], said.RequestChange):
                    self._asked.popleft()
                    self.data[wish.name] = wish.value
                return Sync("success", name)
            case said.Remove(name):
                self.data.pop(name, None)
                self._answered(said.RequestRemove(name))  # or somebody else's was, which is as good
                return Sync("delete", name)
            case said.SendMessage((str(name), *args)):
                return Heard(name, tuple(args))
            case said.Status(code, level):
                if self._asked:
                    self._asked.popleft()
                return Refused(code, level)
        return None

    def _ask(self, event: Event) -> SharedObject:
        self._asked.append(event)
        return self._message(event)

    def _answered(self, wish: Event) -> None:
        if self._asked and self._asked[0] == wish:
            self._asked.popleft()

    def _message(self, event: Event) -> SharedObject:
        return SharedObject(self.name, self.version, self._flags, (event,))
