"""Copies of shared objects: whatever clients do at once, in the end all have the same."""

from collections import deque

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.rtmp.shared_world import LIMITS, Client, SlowStore

from rtmplite.amf import amf0
from rtmplite.rtmp.wire.shared_object import (
    Change,
    Clear,
    Flags,
    OtherSharedObjectEvent,
    Remove,
    SendMessage,
    SharedObject,
    Status,
    Success,
    UseSuccess,
)
from rtmplite.shared_objects.replica import Heard, Mirror, Refused, Sync
from rtmplite.shared_objects.server import SharedObjects


def told(mirror, *events):
    return mirror.receive(SharedObject("o", 9, Flags.NONE, events))


def test_a_mirror_follows_and_tells_what_is_new():
    """Covers RTMP 1.0 §7.1.3: every event that a server sends."""
    mirror = Mirror("o")
    assert told(mirror, UseSuccess(), Clear()) == [Sync("use"), Sync("clear")] and mirror.is_used
    assert told(mirror, Change("x", 1.0)) == [Sync("change", "x")] and mirror.version == 9
    assert told(mirror, SendMessage(("hello", 1.0))) == [Heard("hello", (1.0,))]
    assert told(mirror, SendMessage(()), SendMessage((1.0,)), OtherSharedObjectEvent(12, b"")) == []
    assert told(mirror, Remove("x")) == [Sync("delete", "x")] and mirror.data == {}
    assert told(mirror, Status("no", "error")) == [Refused("no", "error")]


def test_own_changes_show_at_once_and_come_in_their_place():
    """Own design: as a script that has just set something expects."""
    mirror = Mirror("o")
    mirror.set("x", 1.0)
    mirror.set("x", 2.0)
    assert mirror.data == {"x": 2.0}
    told(mirror, Change("x", 3.0))
    assert mirror.data == {"x": 3.0}
    told(mirror, Success("x"))
    assert mirror.data == {"x": 1.0}
    told(mirror, Success("x"), Success("x"))
    assert mirror.data == {"x": 2.0}
    mirror.set("x", 4.0)
    told(mirror, Status("no", "error"), Change("x", 2.0), Success("x"))
    assert mirror.data == {"x": 2.0}


class Sharing(RuleBasedStateMachine):
    """Three clients and one object, every message on its way for as long as it likes."""

    clients = st.integers(0, 2)
    names = st.sampled_from("abcd")
    values = st.one_of(st.floats(allow_nan=False), st.text(max_size=5), st.just("x" * 500))

    def __init__(self):
        super().__init__()
        self.store = SlowStore()
        self.objects = SharedObjects(self.store, LIMITS)
        self.now = 0.0
        self.flags = Flags.PERSISTENT
        self.members = [Client(amf3=number == 2) for number in range(3)]
        self.mirrors = [Mirror("o", persistent=True) for _ in range(3)]
        self.up = [deque() for _ in range(3)]
        self.calls, self.heard = [], [[], [], []]

    def ask(self, number, message):
        self.up[number].append(message)

    @rule(number=clients)
    def use(self, number):
        self.ask(number, self.mirrors[number].use())

    @rule(number=clients)
    def release(self, number):
        self.ask(number, self.mirrors[number].release())

    @rule(number=clients, name=names, value=values)
    def set(self, number, name, value):
        self.ask(number, self.mirrors[number].set(name, value))

    @rule(number=clients, name=names)
    def remove(self, number, name):
        self.ask(number, self.mirrors[number].remove(name))

    @rule(number=clients)
    def call(self, number):
        self.ask(number, self.mirrors[number].send("call", float(len(self.calls))))
        self.calls.append(number)

    @rule(number=clients)
    def arrive(self, number):
        if self.up[number] and not self.members[number].ended:
            self.now += 0.01
            self.objects.receive(self.members[number], "app", self.up[number].popleft(), self.now)

    @rule(number=clients)
    def hear(self, number):
        if self.members[number].down:
            for news in self.mirrors[number].receive(self.members[number].down.popleft()):
                if isinstance(news, Heard):
                    self.heard[number].append(news.args[0])
                assert not isinstance(news, Refused) or news.level == "error"

    @precondition(lambda self: self.store.loading)
    @rule()
    def disk_answers(self):
        self.store.answer()

    @rule()
    def disk_writes(self):
        self.store.flush()

    @rule(number=clients)
    def break_off(self, number):
        """The connection ends, and a new one begins with nothing."""
        self.objects.leave(self.members[number], self.now)
        self.members[number] = Client(amf3=number == 2)
        self.mirrors[number] = Mirror("o", persistent=True)
        self.up[number].clear()
        self.heard[number].clear()

    @invariant()
    def nothing_is_kept_beyond_its_users(self):
        sizes = [thing.size for thing in self.objects._objects.values()]
        assert self.objects._account._taken == sum(sizes) <= LIMITS.total
        assert len(self.objects) == len(
            {id(t) for m in self.objects._uses.values() for t in m.values()}
        )
        assert all(len(thing.slots) <= LIMITS.slots for thing in self.objects._objects.values())

    def teardown(self):
        """Covers RTMP 1.0 §7.1.3 [change-to-others] [success-to-requester]."""
        for _ in range(1000):
            busy = False
            while self.store.loading:
                self.store.answer()
            for number, member in enumerate(self.members):
                if member.ended:
                    self.break_off(number)
                    busy = True
                elif self.up[number] or member.down:
                    self.arrive(number)
                    self.hear(number)
                    busy = True
            if not busy and not self.store.loading:
                break
        thing = self.objects._objects.get("app?o")
        users = [n for n, member in enumerate(self.members) if thing and member in thing.users]
        for number in users:
            truth = {name: value for name, (value, _) in thing.slots.items()}
            assert self.mirrors[number].data == truth
            assert self.mirrors[number].is_used
        for number in range(3):
            assert len(self.heard[number]) == len(set(self.heard[number]))
        for number in range(3):
            self.objects.leave(self.members[number], self.now)
        self.store.flush()
        assert len(self.objects) == 0 and self.objects._account._taken == 0
        if thing is not None and "app?o" in self.store.saved:
            stored = SharedObject.read(self.store.saved["app?o"])
            assert {e.name: amf0.encode(e.value) for e in stored.events} == {
                name: amf0.encode(value) for name, (value, _) in thing.slots.items()
            }


TestSharing = Sharing.TestCase
