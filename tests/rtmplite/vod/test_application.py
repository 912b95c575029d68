"""The vod application, and what play2 changes."""

import pytest
from support.rtmp.rtmp_world import World
from support.rtmp.vod_world import INTER, KEY, VodWorld, film

from rtmplite.amf import amf0
from rtmplite.auth.guard import Calling, GuardedApplication
from rtmplite.flv.tag import Tag
from rtmplite.rtmp.application import LiveApplication
from rtmplite.vod.application import VodApplication


def marks(viewer):
    """Time and file of all frames."""
    frames = [each for each in viewer.tags if each[0] == 9]
    return [(time, data[-1:]) for _, time, data in frames if data[:-1] in (KEY, INTER)]


def switching(**options):
    """A client that plays `low` for 1.7 s and then calls play2."""
    world = VodWorld(low=film(9, b"1"), high=film(9, b"2"), short=film(1, b"3"))
    viewer = world.viewer("low")
    world.wait(1.7)
    viewer.send("play2", options)
    world.wait(3.0)
    return world, viewer


def test_nobody_publishes_here():
    """Own design: and nothing else can be called."""
    world = VodWorld(demo=film(1))
    peer = world.client()
    peer.publish("demo")
    assert peer.codes() == ["NetStream.Publish.BadName"]
    with pytest.raises(Exception, match="No such call"):
        peer.call("whatever")


@pytest.mark.parametrize("transition", ["switch", "swap", None])
def test_another_bit_rate_without_a_gap(transition):
    """Covers RTMP 1.0 §7.2.2.2 [on-the-same-time-line] [a-file-for-each-bit-rate].

    From its next key frame on.
    """
    world, viewer = switching(streamName="high", oldStreamName="low", transition=transition)
    assert marks(viewer) == [
        *[(0, b"1"), (500, b"1"), (1000, b"1"), (1500, b"1")],
        *[(at, b"2") for at in range(2000, 5000, 500)][: len(marks(viewer)) - 4],
    ]
    assert viewer.pictures[-1] >= 4500
    assert viewer.codes[2:] == ["Play.Transition", "Play.TransitionComplete"]
    viewer.send("seek", 3000.0)
    world.wait(0.0)
    assert marks(viewer)[-1] == (3000, b"2")
    viewer.send("closeStream")
    assert world.shelf.open_files == 0


def test_what_cannot_be_switched_to_changes_nothing():
    """Covers RTMP 1.0 §7.2.2.2."""
    for options in (
        {"streamName": "short"},
        {"streamName": "none"},
        {"streamName": "high", "oldStreamName": "never played"},
        {"streamName": "high", "transition": "sideways"},
        {"transition": "switch"},
    ):
        world, viewer = switching(**options)
        assert viewer.codes[2:] == ["Play.Failed"] and {mark for _, mark in marks(viewer)} == {b"1"}
        world.wait(9.0)
        assert viewer.codes[-1] == "eof" and world.shelf.open_files == 0
    _, viewer = switching()
    viewer.send("play2", "high")
    assert viewer.codes[-1] == "Play.Failed"


def test_a_second_thought_before_the_switch():
    """Own design: the last one asked for is switched to; a seek forgets it."""
    world = VodWorld(low=film(9, b"1"), high=film(9, b"2"), best=film(9, b"3"))
    viewer = world.viewer("low")
    world.wait(1.2)
    viewer.send("play2", {"streamName": "high"})
    viewer.send("play2", {"streamName": "best"})
    world.wait(1.0)
    assert marks(viewer)[-1] == (2000, b"3")
    viewer.send("play2", {"streamName": "high"})
    viewer.send("seek", 500.0)
    world.wait(2.0)
    assert marks(viewer)[-1][1] == b"3"
    viewer.send("closeStream")
    assert world.shelf.open_files == 0


def test_playlists_by_play2():
    """Covers RTMP 1.0 §7.2.2.2 [options-of-actionscript]: its NetStreamPlayTransitions."""
    world = VodWorld(a=film(1, b"1"), b=film(1, b"2"), c=film(1, b"3"))
    viewer = world.viewer("a")
    for name, old, transition in (
        ("b", None, "append"),
        ("c", None, "append"),
        ("a", "c", "swap"),
        ("a", None, "append"),
    ):
        viewer.send("play2", {"streamName": name, "oldStreamName": old, "transition": transition})
    world.wait(4.0)
    assert [mark for _, mark in marks(viewer)][::2] == [b"1", b"2", b"1", b"1"]
    viewer = world.viewer("a")
    viewer.send("play2", {"streamName": "b", "transition": "append"})
    viewer.send("play2", {"transition": "stop"})
    world.wait(4.0)
    assert {mark for _, mark in marks(viewer)} == {b"1"} and viewer.codes[-1] == "eof"


def test_going_on_after_a_lost_connection():
    """Own design: "resume" begins where the options say; "reset" at the start."""
    world = VodWorld(low=film(9, b"1"), high=film(9, b"2"))
    viewer = world.viewer("low")
    viewer.send("play2", {"streamName": "high", "transition": "resume", "offset": 5000.0})
    world.wait(0.0)
    assert marks(viewer)[-1] == (5000, b"2")
    viewer.send("play2", {"streamName": "low", "transition": "reset", "start": 0.0, "len": 600.0})
    world.wait(3.0)
    assert marks(viewer)[-2:] == [(0, b"1"), (500, b"1")] and world.shelf.open_files == 0


def test_data_in_amf3_reaches_who_has_only_amf0():
    """Covers E-RTMP v2 §"Enabling AMF3 in FLV" [tag-type-15].

    Covers RTMP Errata §8.1.1 [no-extended-without]: as type 18, and not in a format nobody knows.
    """
    said, cue = (amf0.encode(name, {"a": 1}, avmplus=True) for name in ("onMetaData", "onCuePoint"))
    tags = [
        Tag(15, 0, b"\0" + said),
        *film(1),
        Tag(15, 600, b"\0" + cue),
        Tag(15, 700, b"\1" + cue),
    ]
    world = VodWorld(demo=tags)
    viewer = world.viewer("demo")
    world.wait(2.0)
    data = [(time, payload) for type_id, time, payload in viewer.tags if type_id == 18]
    assert (0, said) in data and (600, cue) in data and 15 not in {each[0] for each in viewer.tags}


def test_a_length_is_told_before_anything_is_played():
    """Covers RTMP 1.0 §7.2.1.2: of a file; of what is none, or live, 0, which clients expect."""
    world = VodWorld(demo=film(20), **{"room/a": film(2)})
    client = world.client("rtmp://host/vod")
    assert client.call("getStreamLength", "demo?token=1") == (None, 19.5)
    assert client.call("getStreamLength", "missing") == (None, 0.0)
    assert client.call("getStreamLength") == (None, 0.0)
    assert world.client("rtmp://host/vod/room").call("getStreamLength", "a") == (None, 1.5)
    assert world.shelf.open_files == 0
    assert World().client().call("getStreamLength", "demo") == (None, 0.0)
    world.shelf.slow = True
    stream = client.stream()
    client.client.call("getStreamLength", "demo")
    client.send("play", "demo", stream_id=stream)
    assert len(world.shelf.waiting) == 1  # the file is opened when the answer has been given
    world.shelf.answer()
    assert client.events[-1].values == (None, 19.5) and len(world.shelf.waiting) == 1
    world.shelf.answer()
    assert client.codes()[-1] == "NetStream.Play.Start"
    client.send("deleteStream", float(stream))
    client.client.call("getStreamLength", "demo")
    world.run()
    client.server.transport.connection_lost(world.now)
    world.shelf.answer()  # too late
    assert world.shelf.open_files == 0


def test_a_length_behind_a_guard():
    """Own design: told to whoever was let in, if there is one."""
    everybody = Calling(lambda question: True)
    world = VodWorld(demo=film(20))
    world.application = GuardedApplication(world.application, everybody)
    assert world.client("rtmp://host/vod").call("getStreamLength", "demo") == (None, 19.5)
    live = World(GuardedApplication(LiveApplication(), everybody))
    assert live.client().call("getStreamLength", "demo") == (None, 0.0)


class Nothing:
    """A library without files."""

    def open(self, name, then):
        then(None, 0.0)


def guarded_world():
    """Two films, of which a client is given none unless it says a word."""
    world = VodWorld(low=film(9, b"1"), high=film(9, b"2"))
    asked = []

    def library_for(connection, query):
        asked.append(query)
        return world.shelf if query == "word" else Nothing()

    world.application = VodApplication(world.shelf, world.wake, library_for)
    return world, asked


def test_not_everybody_may_have_every_file():
    """Own design: whatever way a file is asked for, it is asked who wants it."""
    world, asked = guarded_world()
    assert world.viewer("low").codes == ["Play.StreamNotFound"]
    client = world.client()
    assert client.call("getStreamLength", "low") == (None, 0.0)
    assert client.call("getStreamLength", "low?word") == (None, 8.5)
    assert asked == ["", "", "word"]
    viewer = world.viewer("low?word")
    world.wait(1.0)
    assert "Play.Start" in viewer.codes
    viewer.send("play", "high", -2.0, -1.0, False)  # after the first, and without the word
    viewer.send("play2", {"streamName": "high", "oldStreamName": "low", "transition": "switch"})
    viewer.send("play2", {"streamName": "high", "transition": "reset"})
    world.wait(20.0)
    assert {mark for _, mark in marks(viewer)} == {b"1"}
