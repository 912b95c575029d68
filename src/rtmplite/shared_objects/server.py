"""The server's side of remote shared objects: data that many clients share and change.

Implements RTMP 1.0 §7.1.3.  The server puts all changes into one order.  Every client that uses the
object hears of them in that order, of its own changes by a success, so that all end with the same
data.  The last change of a slot wins.

    >>> class Client:  # stands for a connection
    ...     output_size, queued, amf3 = 0, 0, False
    ...     def __init__(self): self.heard = []
    ...     def send_shared(self, message): self.heard += SharedObject.parse(message).events
    >>> objects, ann, bob = SharedObjects(), Client(), Client()
    >>> for client in (ann, bob):
    ...     objects.receive(client, "app", SharedObject("o", 0, Flags.NONE, (said.Use(),)), 0.0)
    >>> change = said.RequestChange("x", 1.0)
    >>> objects.receive(ann, "app", SharedObject("o", 0, Flags.NONE, (change,)), 0.0)
    >>> ann.heard[-1], bob.heard[-1]
    (Success(name='x'), Change(name='x', value=1.0))
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from rtmplite.amf import amf0
from rtmplite.amf.values import Value
from rtmplite.errors import LocalError, RemoteError
from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.rtmp.wire import shared_object as said
from rtmplite.rtmp.wire.message import Message
from rtmplite.rtmp.wire.shared_object import Event, Flags, SharedObject

# ActionScript's words for what can go wrong: Field §"Shared object events".
NO_ACCESS: Final = "SharedObject.NoReadAccess"
NO_WRITING: Final = "SharedObject.NoWriteAccess"
BAD_PERSISTENCE: Final = "SharedObject.BadPersistence"

BATCH: Final = 64 * 1024  # bytes of slots in one message to a new user
_OVERHEAD: Final = 256  # bytes of memory for a slot beside its name and value


class Member(Protocol):
    """A client that uses objects; `ServerConnection` is one.  Own design: all they need of it."""

    @property
    def output_size(self) -> int:
        """The number of bytes that the network has not taken."""

    @property
    def amf3(self) -> bool:
        """Whether to write to it in AMF3: RTMP Errata §8.1.1."""

    @property
    def queued(self) -> int:
        """The number of bytes that wait, with those of this turn, unlike `output_size`."""

    def send_shared(self, message: Message) -> None:
        """Send one message: RTMP 1.0 §7.1.3."""

    def abort(self, reason: str, now: float) -> None:
        """Close without sending the queue."""


class Store(Protocol):
    """Keeps persistent objects on disk.  Own design: its methods return at once."""

    def load(self, key: str, then: Callable[[bytes | None, float], None]) -> None:
        """Call `then`, now or later, with the value saved under `key`, None if there is none."""

    def save(self, key: str, content: Callable[[], bytes]) -> None:
        """Call `content` soon, and save its result; many changes become one write."""


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """Limits what clients may keep in objects; sizes in bytes.

    Own design: `objects` is how many may be in use at once, `uses` how many by one client; `size`
    is that of one object, `total` that of all.  A client that leaves `unread` bytes is cut off.
    """

    objects: int = 10_000
    uses: int = 100
    slots: int = 1_000
    value: int = 64 * 1024
    size: int = 1024 * 1024
    total: int = 64 * 1024 * 1024
    waiting: int = 100
    unread: int = 4 * 1024 * 1024


class _Object:
    """One object in use; `waiting` has messages while it is being loaded, else it is None."""

    __slots__ = ("flags", "key", "name", "size", "slots", "users", "version", "waiting")

    def __init__(self, key: str, name: str, flags: Flags) -> None:
        self.key, self.name, self.flags = key, name, flags
        self.version, self.size = 0, 0
        self.slots: dict[str, tuple[Value, int]] = {}  # value, and what it takes in bytes
        self.users: dict[Member, None] = {}
        self.waiting: list[tuple[Member, SharedObject]] | None = None

    def message(self, events: Iterable[Event]) -> SharedObject:
        return SharedObject(self.name, self.version, self.flags, tuple(events))

    def content(self) -> bytes:
        changes = (said.Change(name, value) for name, (value, _) in self.slots.items())
        return bytes(self.message(changes))


class SharedObjects:
    """All objects of a server, each in the scope of one application instance.

    Own design: `permits` decides whether a client may use an object, from the client, the scope,
    the name, and whether it is persistent.
    """

    def __init__(self, store: Store | None = None, limits: SharedLimits = SharedLimits()) -> None:
        self.permits: Callable[[Member, str, str, bool], bool] = lambda *what: True
        self.store = store
        self._limits = limits
        self._objects: dict[str, _Object] = {}
        self._uses: dict[Member, dict[str, _Object]] = {}
        self._account = Account(MemoryBudget(limits.total))

    def __len__(self) -> int:
        """The number of objects in use."""
        return len(self._objects)

    def receive(self, member: Member, scope: str, message: SharedObject, now: float) -> None:
        """Take a message of a client: §7.1.3; never raises."""
        key = f"{scope}?{message.name}"  # no scope has a question mark
        thing = self._uses.get(member, {}).get(key)
        if thing is None:
            thing = self._begin(member, scope, key, message)
            if thing is None:
                return
        if thing.waiting is None:
            self._obey(thing, member, message, now)
        elif len(thing.waiting) < self._limits.waiting:
            thing.waiting.append((member, message))
        else:
            member.abort("too impatient for a shared object", now)

    def leave(self, member: Member, now: float) -> None:
        """Release all objects of a client that has gone: §7.1.3."""
        for thing in list(self._uses.get(member, {}).values()):
            self._release(thing, member)

    def _begin(self, member: Member, scope: str, key: str, message: SharedObject) -> _Object | None:
        """Give a client the object that it begins to use; None if it may not or does not."""
        if not any(isinstance(event, said.Use) for event in message.events):
            if any(
                isinstance(each, said.RequestChange | said.RequestRemove) for each in message.events
            ):
                self._refuse(member, message, NO_WRITING)
            return None
        thing = self._objects.get(key)
        persistent = message.is_persistent
        if thing is not None and bool(thing.flags & Flags.PERSISTENT) != persistent:
            self._refuse(member, message, BAD_PERSISTENCE)
            return None
        if persistent and self.store is None:
            self._refuse(member, message, BAD_PERSISTENCE)
            return None
        uses = self._uses.get(member, {})
        full = thing is None and len(self._objects) >= self._limits.objects
        if full or len(uses) >= self._limits.uses:
            self._refuse(member, message, NO_ACCESS)
            return None
        if not self.permits(member, scope, message.name, persistent):
            self._refuse(member, message, NO_ACCESS)
            return None
        if thing is None:
            size = 2 * len(key)  # the limit on the number of objects bounds the rest
            try:
                self._account.take(size)
            except RemoteError:
                self._refuse(member, message, NO_ACCESS)
                return None
            thing = self._make(key, message, size)
        self._uses.setdefault(member, {})[key] = thing
        thing.users[member] = None
        return thing

    def _make(self, key: str, message: SharedObject, size: int) -> _Object:
        thing = _Object(key, message.name, message.flags & Flags.PERSISTENT)
        thing.size = size
        self._objects[key] = thing
        if thing.flags and self.store is not None:
            thing.waiting = []

            def loaded(content: bytes | None, now: float) -> None:
                self._loaded(thing, content, now)

            self.store.load(key, loaded)
        return thing

    def _loaded(self, thing: _Object, content: bytes | None, now: float) -> None:
        if self._objects.get(thing.key) is not thing:
            return  # all its users have gone
        if content is not None:
            try:
                stored = SharedObject.read(content)
            except RemoteError:  # the store reports that; the object begins empty
                stored = thing.message(())
            thing.version = stored.version
            for event in stored.events:
                if isinstance(event, said.Change):
                    self._set(thing, event.name, event.value)
        waiting, thing.waiting = thing.waiting or [], None
        for member, message in waiting:
            if member in thing.users:
                self._obey(thing, member, message, now)

    def _obey(self, thing: _Object, member: Member, message: SharedObject, now: float) -> None:
        """Apply the events, then tell the client, and then all others."""
        answers: list[Event] = []
        news: list[Event] = []
        version = thing.version
        for event in message.events:
            match event:
                case said.Use():
                    self._tell(member, thing.message(answers), now)
                    answers = []
                    self._welcome(thing, member, now)
                case said.Release():
                    self._release(thing, member)
                    break
                case said.RequestChange(name, value):
                    if self._set(thing, name, value):
                        thing.version += 1
                        answers.append(said.Success(name))  # §7.1.3 [success-to-requester]
                        news.append(said.Change(name, value))  # §7.1.3 [change-to-others]
                    else:
                        answers.append(said.Status(NO_WRITING, "error"))  # §7.1.3 [status-on-error]
                        answers.append(_truth(thing, name))
                case said.RequestRemove(name):
                    if self._drop(thing, name):
                        thing.version += 1
                        news.append(said.Remove(name))
                    answers.append(said.Remove(name))  # §7.1.3 [remove-deletes]
                case said.SendMessage():
                    answers.append(event)  # §7.1.3 [broadcast-to-all]
                    news.append(event)
        self._tell(member, thing.message(answers), now)
        if news:
            self._broadcast(thing, member, thing.message(news), now)
        if thing.version != version and thing.flags and self.store is not None:
            self.store.save(thing.key, thing.content)

    def _welcome(self, thing: _Object, member: Member, now: float) -> None:
        """Send all slots in parts (§7.1.3), counted at once as a short message asks for them."""
        if member.queued > self._limits.unread:
            member.abort("too many uses of a shared object", now)
            return
        # §7.1.3 [use-success] [clear-after-use]
        events: list[Event] = [said.UseSuccess(), said.Clear()]
        size = 0
        for name, (value, cost) in thing.slots.items():
            if size + cost > BATCH:
                self._tell(member, thing.message(events), now)
                events, size = [], 0
            events.append(said.Change(name, value))
            size += cost
        self._tell(member, thing.message(events), now)

    def _broadcast(self, thing: _Object, origin: Member, news: SharedObject, now: float) -> None:
        """Tell all users but `origin`; the message is encoded once for AMF0 and once for AMF3."""
        written: dict[bool, Message] = {}
        for member in list(thing.users):
            if member is origin:
                continue
            if member.amf3 not in written:
                written[member.amf3] = news.message(member.amf3)
            self._send(member, written[member.amf3], now)

    def _tell(self, member: Member, message: SharedObject, now: float) -> None:
        if message.events:
            self._send(member, message.message(member.amf3), now)

    def _send(self, member: Member, message: Message, now: float) -> None:
        member.send_shared(message)
        if member.output_size > self._limits.unread:
            member.abort(f"too slow: {member.output_size} bytes behind", now)

    def _refuse(self, member: Member, message: SharedObject, code: str) -> None:
        """Refuse a client that does not use the object (§7.1.3)."""
        # §7.1.3 [status-on-error]
        answer = SharedObject(message.name, 0, message.flags, (said.Status(code, "error"),))
        member.send_shared(answer.message(member.amf3))

    def _set(self, thing: _Object, name: str, value: Value) -> bool:
        """Give a slot its value if there is room: §7.1.3."""
        limits = self._limits
        try:
            cost = _OVERHEAD + 2 * len(name) + len(amf0.encode(value))
        except LocalError:
            return False
        before = thing.slots.get(name, (None, 0))[1]
        size = thing.size + cost - before
        full = name not in thing.slots and len(thing.slots) >= limits.slots
        if full or cost > limits.value or size > limits.size:
            return False
        try:
            self._account.take(cost)
        except RemoteError:
            return False
        self._account.give(before)
        thing.slots[name] = value, cost
        thing.size = size
        return True

    def _drop(self, thing: _Object, name: str) -> bool:
        _, cost = thing.slots.pop(name, (None, 0))
        thing.size -= cost
        self._account.give(cost)
        return cost > 0

    def _release(self, thing: _Object, member: Member) -> None:
        """Forget a user, and after the last one the object (§7.1.3)."""
        thing.users.pop(member, None)  # §7.1.3 [release]
        uses = self._uses.get(member, {})
        uses.pop(thing.key, None)
        if not uses:
            self._uses.pop(member, None)
        if not thing.users and self._objects.get(thing.key) is thing:
            del self._objects[thing.key]
            self._account.give(thing.size)


def _truth(thing: _Object, name: str) -> Event:
    """The event that tells a client a slot's true value."""
    return said.Change(name, thing.slots[name][0]) if name in thing.slots else said.Remove(name)
