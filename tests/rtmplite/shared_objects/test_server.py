"""Shared objects: whatever clients do at once, in the end all have the same."""

from support.rtmp.rtmp_world import World
from support.rtmp.shared_world import LIMITS, Client, SlowStore

from rtmplite.live.streams import Registry
from rtmplite.rtmp.connection import ConnectionLimits
from rtmplite.rtmp.wire import shared_object as said
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.shared_object import Flags, SharedObject
from rtmplite.shared_objects.replica import Mirror
from rtmplite.shared_objects.server import SharedLimits, SharedObjects


def say(objects, client, *events, name="o", scope="app", flags=Flags.NONE):
    """Let a client say something, and give what it hears."""
    objects.receive(client, scope, SharedObject(name, 0, flags, events), 0.0)
    return client.events()


def two(objects):
    """Two clients that use an object."""
    ann, bob = Client(), Client(amf3=True)
    for client in (ann, bob):
        say(objects, client, said.Use())
    return ann, bob


def test_use_gives_what_there_is():
    """Covers RTMP 1.0 §7.1.3 [use-success] [clear-after-use]."""
    objects, late = SharedObjects(), Client()
    ann, bob = two(objects)
    say(objects, ann, said.RequestChange("x", 1.0), said.RequestChange("y", [True]))
    assert say(objects, late, said.Use()) == [
        said.UseSuccess(),
        said.Clear(),
        said.Change("x", 1.0),
        said.Change("y", [True]),
    ]
    objects.receive(bob, "app", SharedObject("o", 0, Flags.NONE, (said.Use(),)), 0.0)
    assert bob.down[-1].version == 2


def test_a_change_is_a_success_here_and_a_change_there():
    """Covers RTMP 1.0 §7.1.3 [success-to-requester] [change-to-others]."""
    objects = SharedObjects()
    ann, bob = two(objects)
    bob.events()
    assert say(objects, ann, said.RequestChange("x", {"a": 1.0})) == [said.Success("x")]
    assert bob.events() == [said.Change("x", {"a": 1.0})] and ann.events() == []


def test_a_slot_is_removed_everywhere():
    """Covers RTMP 1.0 §7.1.3 [remove-deletes]."""
    objects = SharedObjects()
    ann, bob = two(objects)
    say(objects, ann, said.RequestChange("x", 1.0))
    bob.events()
    assert say(objects, bob, said.RequestRemove("x")) == [said.Remove("x")]
    assert ann.events() == [said.Remove("x")]
    assert say(objects, bob, said.RequestRemove("x")) == [said.Remove("x")] and ann.events() == []
    assert say(objects, Client(), said.Use()) == [said.UseSuccess(), said.Clear()]


def test_a_call_reaches_everybody():
    """Covers RTMP 1.0 §7.1.3 [broadcast-to-all]: the sender as well."""
    objects = SharedObjects()
    ann, bob = two(objects)
    bob.events()
    call = said.SendMessage(("hello", 1.0))
    assert say(objects, ann, call) == [call] == bob.events()


def test_who_releases_hears_no_more_and_the_last_one_ends_it():
    """Covers RTMP 1.0 §7.1.3 [release]."""
    objects = SharedObjects()
    ann, bob = two(objects)
    say(objects, ann, said.RequestChange("x", 1.0))
    bob.events()
    assert say(objects, bob, said.Release(), said.RequestChange("x", 2.0)) == []
    say(objects, ann, said.RequestChange("x", 3.0))
    assert bob.events() == [] and len(objects) == 1
    objects.leave(ann, 0.0)
    objects.leave(ann, 0.0)
    assert len(objects) == 0
    assert say(objects, bob, said.Use()) == [said.UseSuccess(), said.Clear()]


def test_objects_of_other_instances_are_others():
    """Own design: an instance is a room of its own, and no name leads to another."""
    objects, ann, bob = SharedObjects(), Client(), Client()
    say(objects, ann, said.Use(), scope="app/a", name="o")
    say(objects, bob, said.Use(), scope="app", name="a/o")
    say(objects, ann, said.RequestChange("x", 1.0), scope="app/a", name="o")
    assert bob.events() == [] and len(objects) == 2


def test_who_uses_nothing_changes_nothing():
    """Covers RTMP 1.0 §7.1.3 [status-on-error]."""
    objects, ann = SharedObjects(), Client()
    refused = said.Status("SharedObject.NoWriteAccess", "error")
    assert say(objects, ann, said.RequestChange("x", 1.0)) == [refused]
    assert say(objects, ann, said.RequestRemove("x")) == [refused]
    assert say(objects, ann, said.Release(), said.SendMessage(("x",))) == [] and len(objects) == 0


def test_what_is_refused_is_told_with_the_truth():
    """Covers RTMP 1.0 §7.1.3 [status-on-error]: every limit has its answer."""
    objects = SharedObjects(limits=LIMITS)
    ann, bob = two(objects)
    refused = said.Status("SharedObject.NoWriteAccess", "error")
    assert say(objects, ann, said.RequestChange("x", "y" * 500)) == [refused, said.Remove("x")]
    for name in "abc":
        say(objects, ann, said.RequestChange(name, name))
    assert say(objects, ann, said.RequestChange("d", 1.0)) == [refused, said.Remove("d")]
    assert say(objects, ann, said.RequestChange("a", "y" * 500)) == [refused, said.Change("a", "a")]
    say(objects, ann, said.Use(), name="p")
    denied = said.Status("SharedObject.NoReadAccess", "error")
    assert say(objects, ann, said.Use(), name="q") == [denied]
    bob.events()
    assert say(objects, bob, said.Use(), name="q") == [denied]
    objects.permits = lambda member, scope, name, persistent: name != "p"
    assert say(objects, bob, said.Use(), name="p") == [denied]


def test_all_objects_together_have_a_limit():
    """Own design: and what is removed or released makes room."""
    objects, ann = SharedObjects(limits=SharedLimits(total=3000, value=1000)), Client()
    for name in "abcd":
        say(objects, ann, said.Use(), name=name)
    heard = [say(objects, ann, said.RequestChange("x", "y" * 600), name=name)[0] for name in "abcd"]
    assert [type(event) for event in heard] == [*[said.Success] * 3, said.Status]
    say(objects, ann, said.Release(), name="a")
    assert say(objects, ann, said.RequestChange("x", "y" * 600), name="d") == [said.Success("x")]
    say(objects, ann, said.RequestRemove("x"), name="b")
    say(objects, ann, said.Use(), name="a")
    assert say(objects, ann, said.RequestChange("x", "y" * 600), name="a") == [said.Success("x")]
    objects.leave(ann, 0.0)
    assert objects._account._taken == 0


def test_names_of_objects_take_room_as_well():
    """Own design: they may have 64 kB each, and somebody has a hundred."""
    objects, ann = SharedObjects(limits=SharedLimits(total=3000)), Client()
    denied = said.Status("SharedObject.NoReadAccess", "error")
    first, second = "a" * 1000, "b" * 1000
    assert say(objects, ann, said.Use(), name=first)[0] == said.UseSuccess()
    assert say(objects, ann, said.Use(), name=second) == [denied] and len(objects) == 1
    objects.leave(ann, 0.0)
    assert say(objects, ann, said.Use(), name=second)[0] == said.UseSuccess()


def test_kinds_do_not_mix():
    """Covers RTMP 1.0 §7.1.3 [status-on-error]: persistent or not is settled by the first."""
    refused = said.Status("SharedObject.BadPersistence", "error")
    objects = SharedObjects()
    assert say(objects, Client(), said.Use(), flags=Flags.PERSISTENT) == [
        refused
    ]  # nowhere to keep it
    store = SlowStore()
    objects = SharedObjects(store)
    ann, bob = Client(), Client()
    assert say(objects, ann, said.Use(), flags=Flags.PERSISTENT) == []
    store.answer()
    assert ann.events() == [said.UseSuccess(), said.Clear()]
    assert say(objects, bob, said.Use()) == [refused]


def test_what_is_persistent_comes_back():
    """Own design: with its version, and before anything that was asked meanwhile."""
    store = SlowStore()
    objects, ann, bob = SharedObjects(store), Client(), Client()
    persistent = {"flags": Flags.PERSISTENT}
    say(objects, ann, said.Use(), **persistent)
    store.answer()
    say(objects, ann, said.RequestChange("x", 1.0), said.RequestChange("y", 2.0), **persistent)
    say(objects, ann, said.Release(), **persistent)
    store.flush()
    assert len(objects) == 0
    say(objects, bob, said.Use(), **persistent)
    assert say(objects, bob, said.RequestRemove("y"), **persistent) == []
    store.answer()
    assert [m.version for m in bob.down] == [2, 3]
    assert bob.events() == [
        said.UseSuccess(),
        said.Clear(),
        said.Change("x", 1.0),
        said.Change("y", 2.0),
        said.Remove("y"),
    ]
    store.saved["app?o"] = b"rubbish"
    objects.leave(bob, 0.0)
    store._unsaved.clear()
    say(objects, ann, said.Use(), **persistent)
    store.answer()
    assert ann.events()[-2:] == [said.UseSuccess(), said.Clear()]


def test_who_leaves_or_floods_while_it_is_loaded():
    """Own design: nobody is told anything, nothing stays."""
    store = SlowStore()
    objects, ann, bob = SharedObjects(store, LIMITS), Client(), Client()
    store.saved["app?o"] = bytes(SharedObject("o", 1, Flags.PERSISTENT, (said.Change("x", 1.0),)))
    say(objects, ann, said.Use(), flags=Flags.PERSISTENT)
    objects.leave(ann, 0.0)
    store.answer()
    assert ann.events() == [] and len(objects) == 0 and objects._account._taken == 0
    for _ in range(4):
        say(objects, bob, said.Use(), flags=Flags.PERSISTENT)
    assert "impatient" in bob.ended


def test_a_large_object_comes_in_parts():
    """Own design: nobody has to take a message of a megabyte."""
    objects, ann, late = SharedObjects(), Client(), Client()
    say(objects, ann, said.Use())
    for number in range(10):
        say(objects, ann, said.RequestChange(str(number), "x" * 30_000))
    say(objects, late, *[])
    objects.receive(late, "app", SharedObject("o", 0, Flags.NONE, (said.Use(),)), 0.0)
    assert len(late.down) == 5
    assert [e.name for e in late.events() if isinstance(e, said.Change)] == list("0123456789")


def test_who_does_not_read_is_cut_off():
    """Own design: and who asks for everything over and over."""
    objects = SharedObjects()
    ann, bob = two(objects)
    bob.output_size = 10_000_000
    say(objects, ann, said.RequestChange("x", 1.0))
    assert "too slow" in bob.ended
    ann.queued = 10_000_000
    say(objects, ann, said.Use())
    assert "too many uses" in ann.ended


def test_between_connections():
    """Covers RTMP 1.0 §7.1.3 through all of both ends, over connections of both encodings."""
    world = World(registry=Registry(), limits=ConnectionLimits())
    ann, bob = world.client(), world.client(properties={"objectEncoding": 3.0})
    mirrors = {ann: Mirror("o"), bob: Mirror("o")}

    def run(peer, message):
        peer.client.send_shared(message.message(peer is bob))
        world.run()
        for each, mirror in mirrors.items():
            for event in each.events:
                if isinstance(event, SharedObject):
                    mirror.receive(event)
            each.events.clear()

    for peer, mirror in mirrors.items():
        run(peer, mirror.use())
    run(ann, mirrors[ann].set("x", {"a": [1.0, None]}))
    run(bob, mirrors[bob].set("y", "z"))
    run(bob, mirrors[bob].remove("x"))
    assert mirrors[ann].data == mirrors[bob].data == {"y": "z"}
    ann.server.close(world.now)
    assert len(world.registry.shared) == 1
    bob.server.transport.connection_lost(world.now)
    assert len(world.registry.shared) == 0


def test_before_connect_there_are_none():
    """Own design: strangers get nothing to fill."""
    world = World()
    server = world.server()
    server.transport.receive(b"\x03" + bytes(1536) + bytes(1536), 0.0)
    peer = world.client()
    peer.client.transport._writer._sent.clear()
    use = SharedObject("o", 0, Flags.NONE, (said.Use(),))

    server.transport.receive(ChunkWriter().write(use.message(), 3), 0.0)
    assert server.transport.aborted and len(world.registry.shared) == 0
