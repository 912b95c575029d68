"""A server's NetStream does what its client asks, as far as the application agrees."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.rtmp.rtmp_world import World

from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Called, Ended
from rtmplite.rtmp.netstream import MAX_KIND, MAX_NAME, NETSTREAM, State
from rtmplite.rtmp.wire.message import Message

KEY, INTER = b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0inter"


class Undecided(LiveApplication):
    """Says nothing to publish and play; the test does."""

    def on_publish(self, connection, stream, name, now):
        connection.data = (stream, name)

    on_play = on_publish


class Tape:
    """A sink that keeps everything."""

    def __init__(self):
        self.messages, self.ended = [], 0

    def write(self, type_id, timestamp, payload, now):
        self.messages.append((type_id, timestamp, payload))

    def end(self, now):
        self.ended += 1


def undecided():
    """A connection whose streams wait for a verdict."""
    world = World(Undecided())
    return world, world.client()


def test_publishing_begins_with_the_verdict():
    """Covers RTMP 1.0 §7.2.2.6 [on-status] and RTMP 1.0 §7.3.1."""
    world, peer = undecided()
    stream_id = peer.publish("demo?token=5", "record")
    stream, name = peer.server.data
    assert (name, stream.name, stream.query, stream.kind) == ("demo", "demo", "token=5", "record")
    assert stream.state is State.WANTS_TO_PUBLISH and peer.codes() == []
    peer.write(8, 0, stream_id, b"too early")
    tape = Tape()
    stream.accept_publish(tape, world.now)
    world.run()
    assert stream.state is State.PUBLISHING and peer.codes() == ["NetStream.Publish.Start"]
    peer.write(8, 20, stream_id, b"sound")
    peer.write(18, 20, stream_id, b"data")
    peer.client.transport.put(
        peer.client.transport._writer.write(Message(15, 40, stream_id, b"\0data in type 15"), 9)
    )
    peer.write(9, 40, stream_id + 1, b"nobody's")
    assert tape.messages == [(8, 20, b"sound"), (18, 20, b"data"), (18, 40, b"data in type 15")]
    peer.send("deleteStream", float(stream_id))
    assert tape.ended == 1


@pytest.mark.parametrize("act", ["publish", "play"])
def test_a_name_has_an_end(act):
    """Own design: it is kept for as long as it is in use, and many are."""
    client = World().client()
    getattr(client, act)("n" * MAX_NAME)
    assert not client.server.closed
    getattr(client, act)("n" * (MAX_NAME + 1))
    assert client.server.transport.aborted and "a name of 4097 characters" in client.server.reason


def test_a_kind_is_a_word():
    """Own design: whatever it is, not more than that is kept of it."""
    client = World().client()
    number = client.publish("demo", "k" * 10_000)
    assert client.server.streams[number].kind == "k" * MAX_KIND


def test_false_for_a_name_is_the_end():
    """RTMP 1.0 §7.2.2: what scripts of Flash write to publish or play no longer."""
    world = World()
    source, player = world.client(), world.client()
    number = player.stream()
    player.send("play", "demo", stream_id=number)
    publishing = source.publish("demo")
    source.send("publish", False, stream_id=publishing)
    assert source.codes()[-1] == "NetStream.Unpublish.Success"
    player.send("play", False, stream_id=number)
    assert player.codes()[-2:] == ["NetStream.Play.UnpublishNotify", "NetStream.Play.Stop"]
    assert world.registry.streams == 0


def test_a_refusal_leaves_the_stream_idle():
    """Covers RTMP 1.0 §7.2.2: level and code tell."""
    world, peer = undecided()
    peer.publish("demo")
    stream, _ = peer.server.data
    stream.reject_publish("NetStream.Publish.BadName", "taken", world.now)
    stream.reject_publish("NetStream.Publish.BadName", "taken", world.now)
    world.run()
    assert stream.state is State.IDLE and peer.codes() == ["NetStream.Publish.BadName"]
    peer.send("play", "demo", stream_id=stream.id)
    stream.reject_play("NetStream.Play.StreamNotFound", "no such stream", world.now)
    stream.reject_play("NetStream.Play.StreamNotFound", "no such stream", world.now)
    world.run()
    assert stream.state is State.IDLE and peer.codes()[1:] == ["NetStream.Play.StreamNotFound"]
    assert not peer.server.closed


def test_a_verdict_that_comes_too_late_does_nothing():
    """Own design: and a sink that nobody will write to is told so."""
    world, peer = undecided()
    peer.publish("demo")
    stream, _ = peer.server.data
    peer.send("closeStream", stream_id=stream.id)
    tape = Tape()
    stream.accept_publish(tape, world.now)
    stream.accept_play(world.registry.open("live", "demo"), world.now)
    world.run()
    assert tape.ended == 1 and peer.codes() == [] and world.registry.streams == 0


def test_who_waits_no_longer_is_known():
    """Own design: an application that is calling somebody must know when to stop."""
    world, peer = undecided()
    stream_id = peer.publish("demo")
    stream, _ = peer.server.data
    withdrawn = []
    stream.on_withdrawn = withdrawn.append
    peer.send("deleteStream", float(stream_id))
    assert withdrawn == [world.now]
    peer.send("publish", "demo", stream_id=peer.publish("other"))
    assert withdrawn == [world.now]


def test_a_publication_taken_back_closes_the_connection():
    """A failed call ends so: the status has the reason, then nothing more comes."""
    world, peer = undecided()
    peer.publish("bob@example.com")
    stream, _ = peer.server.data
    tape = Tape()
    stream.accept_publish(tape, world.now)
    stream.end_publish("NetStream.Publish.Rejected", "486 Busy Here", world.now)
    world.run()
    assert peer.codes() == ["NetStream.Publish.Start", "NetStream.Publish.Rejected"]
    assert peer.server.closed and not peer.server.transport.aborted and tape.ended == 1


def test_playing_begins_as_players_expect():
    """Covers RTMP 1.0 §7.2.2.1 [reset-if-asked] [start-is-told]: the order of the message flow."""
    world = World()
    peer = world.client()
    peer.play("demo")
    assert peer.codes() == ["NetStream.Play.Reset", "NetStream.Play.Start"]
    first = next(each for each in peer.events if isinstance(each, Message))
    assert first.payload.startswith(b"\x02\x00\x11|RtmpSampleAccess")
    informed = next(each.command.args[0] for each in peer.events if isinstance(each, Called))
    assert informed["details"] == "demo" and informed["clientid"] == peer.server.id


def test_no_reset_no_reset_status():
    """Covers RTMP 1.0 §7.2.2.1 [reset-if-asked]."""
    peer = World().client()
    peer.play("demo", -2000.0, -1.0, False)
    assert peer.codes() == ["NetStream.Play.Start"]


def test_the_end_of_a_publication_is_told_twice():
    """Covers RTMP 1.0 §7.1.7: ffmpeg wants the status, Flash the StreamEOF; both may stay."""
    world = World()
    player, publisher = world.client(), world.client()
    stream_id = player.play("demo")
    publishing = publisher.publish("demo")
    publisher.send("deleteStream", float(publishing))
    assert player.codes()[2:] == ["NetStream.Play.PublishNotify", "NetStream.Play.UnpublishNotify"]
    assert Ended(stream_id) in player.events
    publisher.publish("demo")
    assert player.codes()[4:] == ["NetStream.Play.PublishNotify"]


def test_pause_stops_and_unpause_starts_at_a_key_frame():
    """Covers RTMP 1.0 §7.2.2.8 [notify] [stops]."""
    world = World()
    player, publisher = world.client(), world.client()
    playing, publishing = player.play("demo"), publisher.publish("demo")
    publisher.write(9, 0, publishing, KEY)
    player.send("pause", True, 0.0, stream_id=playing)
    publisher.write(9, 40, publishing, KEY)
    player.send("pause", False, 0.0, stream_id=playing)
    for time, frame in ((80, INTER), (120, KEY), (160, INTER)):
        publisher.write(9, time, publishing, frame)
    assert [time for _, time, _ in player.media()] == [0, 120, 160]
    assert player.codes()[-2:] == ["NetStream.Pause.Notify", "NetStream.Unpause.Notify"]


@pytest.mark.parametrize(("command", "type_id"), [("receiveAudio", 8), ("receiveVideo", 9)])
def test_a_medium_can_be_switched_off(command, type_id):
    """Covers RTMP 1.0 §7.2.2.4 [says-when-on] [switched-off].

    And RTMP 1.0 §7.2.2.5 [says-when-on] [switched-off].
    """
    world = World()
    player, publisher = world.client(), world.client()
    playing, publishing = player.play("demo"), publisher.publish("demo")
    said = len(player.codes())
    player.send(command, False, stream_id=playing)
    for time in (0, 20):
        publisher.write(9, time, publishing, KEY)
        publisher.write(8, time, publishing, b"sound")
    assert {kind for kind, _, _ in player.media()} == {17 - type_id}
    assert len(player.codes()) == said
    player.send(command, True, stream_id=playing)
    assert player.codes()[said:] == ["NetStream.Seek.Notify", "NetStream.Play.Start"]
    publisher.write(9, 40, publishing, KEY)
    publisher.write(8, 40, publishing, b"sound")
    assert [each[:2] for each in player.media()][-2:] == [(9, 40), (8, 40)]


def test_commands_for_what_is_not_played_are_harmless():
    """Covers RTMP 1.0 §7.2.2.7: a seek fails and says so."""
    peer = World().client()
    stream_id = peer.stream()
    for name in ("receiveAudio", "receiveVideo", "closeStream", "pause", "seek"):
        peer.send(name, stream_id=stream_id)
    assert peer.codes() == ["NetStream.Unpause.Notify", "NetStream.Seek.Failed"]


def test_close_stream_says_what_has_ended():
    """Covers Field §"Names in use" [freed-by-close-stream]: the stream can be used again."""
    world = World()
    peer = world.client()
    stream_id = peer.publish("demo")
    peer.send("closeStream", stream_id=stream_id)
    peer.send("play", "demo", stream_id=stream_id)
    peer.send("closeStream", stream_id=stream_id)
    assert peer.codes() == [
        "NetStream.Publish.Start",
        "NetStream.Unpublish.Success",
        "NetStream.Play.Reset",
        "NetStream.Play.Start",
        "NetStream.Play.Stop",
    ]
    assert world.registry.streams == 0


class AnyClient(RuleBasedStateMachine):
    """One stream, asked for anything in any order; verdicts come whenever they come."""

    @initialize()
    def connect(self):
        """One connection, one stream."""
        self.world, self.peer = undecided()
        self.stream_id, self.tapes = self.peer.stream(), []

    @property
    def stream(self):
        return self.peer.server.streams[self.stream_id]

    @rule(name=st.sampled_from(["publish", "play", "closeStream", "pause", "receiveVideo"]))
    def ask(self, name):
        """Covers RTMP 1.0 §7.2.2."""
        self.peer.send(name, "demo", stream_id=self.stream_id)

    @rule(yes=st.booleans())
    def decide_to_publish(self, yes):
        """The application speaks, perhaps out of turn."""
        if yes:
            self.tapes.append(Tape())
            self.stream.accept_publish(self.tapes[-1], self.world.now)
        else:
            self.stream.reject_publish("NetStream.Publish.BadName", "no", self.world.now)

    @rule(yes=st.booleans())
    def decide_to_play(self, yes):
        """The application speaks, perhaps out of turn."""
        if yes:
            self.stream.accept_play(self.world.registry.open("live", "demo"), self.world.now)
        else:
            self.stream.reject_play("NetStream.Play.StreamNotFound", "no", self.world.now)

    @rule()
    def send_media(self):
        """Whether or not somebody listens."""
        self.peer.write(8, 0, self.stream_id, b"sound")

    @invariant()
    def a_sink_is_open_only_while_publishing(self):
        """And every other one was ended, once."""
        open_tapes = [tape for tape in self.tapes if not tape.ended]
        assert len(open_tapes) == (self.stream.state is State.PUBLISHING)
        assert all(tape.ended <= 1 for tape in self.tapes)
        live = self.world.registry.get("live", "demo")
        assert (live.players if live else 0) == (self.stream.state is State.PLAYING)
        assert not self.peer.server.closed


TestAnyClient = AnyClient.TestCase


def test_every_state_of_the_table_is_reached_and_left():
    targets = {target for arrows in NETSTREAM.values() for target, _ in arrows.values()}
    assert targets == set(State) == NETSTREAM.keys() and all(NETSTREAM.values())
