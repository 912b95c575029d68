"""Guards, and clients that they let in, send away, send elsewhere or keep waiting."""

import pytest
from support.rtmp.rtmp_world import World
from support.rtmp.vod_world import VodWorld, film

from rtmplite.auth.guard import ALLOWED, Calling, Event, GuardedApplication, Guards, Verdict
from rtmplite.flv.tag import Tag
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Reply
from rtmplite.rtmp.wire.chunk_writer import CHUNK_SIZE, ChunkWriter
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message


class Slow:
    """A guard that answers when told to, and remembers what it was asked and told."""

    def __init__(self):
        self.asked, self.told, self._answers = [], [], []

    def ask(self, question, answer, now):
        self.asked.append(question)
        self._answers.append(answer)

    def tell(self, question, now):
        self.told.append(question)

    def answer(self, world, verdict=ALLOWED):
        self._answers.pop(0)(verdict, world.now)
        world.run()


class Watched(LiveApplication):
    """`live`, and who came and went."""

    def __init__(self):
        self.heard = []

    def on_connect(self, connection, now):
        self.heard.append("connect")
        super().on_connect(connection, now)

    def on_disconnect(self, connection, now):
        self.heard.append("disconnect")


def guarded(*guards):
    """A world behind these guards."""
    guard = guards[0] if len(guards) == 1 else Guards(guards)
    return World(GuardedApplication(Watched(), guard))


def heard(world):
    return world.application._application.heard


def failure(peer):
    """The information object that connect was refused with."""
    (reply,) = [event for event in peer.events if isinstance(event, Reply)]
    assert not reply.succeeded
    return reply.values[-1]


def refuse(*events):
    """A guard that refuses these."""
    return Calling(lambda question: Verdict(question.event not in events, "Not you."))


def test_a_guard_without_objection_changes_nothing():
    """RTMP 1.0 §7.2.1.1, §7.2.2.1 and §7.2.2.6 go on as before."""
    asked = []
    world = guarded(Calling(lambda question: asked.append(question.event) or True))
    source, player = world.client(), world.client()
    player.play("demo")
    number = source.publish("demo")
    source.write(8, 20, number, b"\xb2sound")
    assert player.media() == [(8, 20, b"\xb2sound")]
    source.send("deleteStream", float(number))
    player.server.close(world.now)
    assert asked == ["connect", "connect", "play", "publish", "done", "done"]
    assert heard(world) == ["connect", "connect", "disconnect"]


def test_who_may_not_connect_hears_why_and_is_gone():
    """Covers RTMP 1.0 §7.2.1.1; the application never hears of it."""
    world = guarded(refuse(Event.CONNECT))
    peer = world.client()
    assert failure(peer)["code"] == "NetConnection.Connect.Rejected"
    assert failure(peer)["description"] == "Not you." and peer.server.closed
    assert heard(world) == []


def test_who_may_not_publish_hears_why_and_is_gone():
    """A guess costs a connection."""
    world = guarded(refuse(Event.PUBLISH))
    peer = world.client()
    peer.publish("demo")
    assert peer.codes() == ["NetStream.Publish.Rejected"] and peer.server.closed
    assert world.registry.streams == 0


def test_who_may_not_play_hears_why_and_stays():
    """Other streams may be open to it."""
    world = guarded(Calling(lambda question: question.name != "secret"))
    peer = world.client()
    peer.play("secret")
    assert peer.codes() == ["NetStream.Play.Failed"] and not peer.server.closed
    peer.play("open")
    assert peer.codes()[-1] == "NetStream.Play.Start"


@pytest.mark.parametrize("verdict", [Verdict(True, url="rtmp://b/c"), Verdict(True, name="c")])
def test_who_connects_is_sent_elsewhere(verdict):
    """Field §"Redirects": with a code and a place in `ex`."""
    peer = guarded(Calling(lambda question: verdict)).client("rtmp://host:1/live/x?y")
    url = verdict.url or "rtmp://host:1/c"
    assert failure(peer)["ex"] == {"code": 302.0, "redirect": url} and peer.server.closed


@pytest.mark.parametrize("act", ["publish", "play"])
def test_a_stream_is_elsewhere(act):
    """Field §"Redirects": said on the stream."""
    world = guarded(Calling(lambda q: Verdict(True, url="rtmp://b/c") if q.name else True))
    peer = world.client()
    getattr(peer, act)("demo")
    (status,) = [e.command.args[0] for e in peer.events if getattr(e, "stream_id", 0) == 1]
    assert status["ex"] == {"code": 302.0, "redirect": "rtmp://b/c"} and peer.server.closed


def test_a_stream_gets_another_name():
    """Own design: publisher and player say what they like and meet under one name."""
    names = {"key-of-ann": "ann"}
    world = guarded(Calling(lambda q: Verdict(True, name=names.get(q.name, ""))))
    source, player = world.client("rtmp://host/live/room"), world.client()
    player.play("room/ann")
    number = source.publish("key-of-ann?x=1")
    source.write(8, 20, number, b"\xb2sound")
    assert player.media() == [(8, 20, b"\xb2sound")]
    assert world.registry.get("live", "room/ann").publishing


def test_the_first_objection_decides_and_the_last_name_counts():
    """Own design: nobody after it is asked."""
    later = []
    world = guarded(
        Calling(lambda q: Verdict(True, name="one")),
        Calling(lambda q: Verdict(q.event == Event.CONNECT and False, "no")),
        Calling(lambda q: later.append(q) or True),
    )
    assert failure(world.client())["description"] == "no" and later == []
    world = guarded(
        Calling(lambda q: Verdict(True, name="one" if q.name else "")),
        Calling(lambda q: Verdict(True, name="two" if q.name else "")),
        Calling(lambda q: True),
    )
    world.client().publish("demo")
    assert [live.name for live in world.registry] == ["two"]


def test_a_slow_verdict_keeps_everything_in_order():
    """Own design: what was sent meanwhile is not lost, and nobody else waits."""
    guard = Slow()
    world = guarded(guard)
    source = world.client()
    assert source.server.transport.deciding and heard(world) == []
    guard.answer(world)
    number = source.stream()
    source.client.send("publish", "demo?key=1", "live", stream_id=number)
    for time in range(3):
        source.client.send_media(8, time, number, b"\xb2sound")
    world.run()
    assert not source.server.transport.reading and source.codes() == []
    asked = guard.asked[-1]
    assert (asked.event, asked.name, asked.query, asked.kind) == (
        "publish",
        "demo",
        "key=1",
        "live",
    )
    written = []

    class Sink:
        def write(self, type_id, timestamp, payload, now):
            written.append(timestamp)

        def end(self, now):
            written.append("end")

    live = world.registry.open("live", "demo")
    live.begin(0.0)
    live.tap(Sink())
    live.publishing = False
    world.application._application.on_publish = lambda c, stream, name, now: stream.accept_publish(
        Sink(), now
    )
    guard.answer(world)
    assert source.codes() == ["NetStream.Publish.Start"] and written == [0, 1, 2]
    assert source.server.transport.reading


def test_nothing_overtakes_a_verdict_inside_an_aggregate():
    """RTMP 1.0 §7.1.6: what is in one is not looked at before its time, so it holds media alone."""
    guard = Slow()
    world = guarded(guard)
    client = world.client()
    commands = [
        Command("createStream", 2.0, None, ()).message(0),
        Command("publish", 0.0, None, ("demo", "live")).message(1),
    ]
    parts = [bytes(Tag(each.type_id, 0, each.payload)) + bytes(4) for each in commands]
    guard.answer(world)
    client.client.transport.put(
        ChunkWriter(CHUNK_SIZE).write(Message(22, 0, 1, b"".join(parts)), 8)
    )
    world.run()
    assert [each.event for each in guard.asked] == [Event.CONNECT]
    assert not client.server.streams and not client.server.closed


def test_a_verdict_that_comes_too_late_does_nothing():
    """Own design: the client may be gone, and guards may say things twice."""
    guard = Slow()
    world = guarded(guard)
    gone, here = world.client(), world.client()
    gone.server.transport.connection_lost(world.now)
    guard.answer(world)
    assert gone.server.closed and heard(world) == []
    answers = list(guard._answers)
    guard.answer(world)
    answers[0](Verdict(False), world.now)
    assert heard(world) == ["connect"] and not here.server.closed
    here.send("play", "demo", stream_id=here.stream())
    here.server.transport.connection_lost(world.now)
    guard.answer(world, Verdict(False))
    assert here.codes() == [] and guard.told == []


def test_the_end_is_told_of_what_had_begun():
    """Own design: and of nothing else."""
    guard = Slow()
    world = guarded(guard)
    source = world.client()
    guard.answer(world)
    number = source.publish("demo")
    guard.answer(world, ALLOWED)
    rival = world.client()
    guard.answer(world)
    rival.publish("demo")
    guard.answer(world)
    assert rival.codes() == ["NetStream.Publish.BadName"]
    rival.server.close(world.now)
    assert guard.told == []
    source.send("closeStream", stream_id=number)
    (told,) = guard.told
    assert (told.event, told.was, told.name) == (Event.DONE, Event.PUBLISH, "demo")
    source.server.close(world.now)
    assert len(guard.told) == 1


def test_a_bug_behind_a_slow_verdict_costs_one_connection():
    """Own design: it would wait for ever, since the edge does not know whose bug it is."""
    guard = Slow()
    world = guarded(guard)
    peer = world.client()
    world.application._application.on_connect = lambda connection, now: 1 / 0
    with pytest.raises(ZeroDivisionError):
        guard.answer(world)
    assert peer.server.transport.aborted


def test_a_question_tells_what_is_known():
    """Covers RTMP 1.0 §7.2.1.1: what connect says, and RTMP Errata §8.1.5, what follows it."""
    guard = Slow()
    world = guarded(guard)
    properties = {"pageUrl": "http://page", "swfUrl": "x.swf", "flashVer": "FMLE/3.0"}
    peer = world.client("rtmp://host/live/room?a=1", properties=properties, args=("k", 2.0))
    (asked,) = guard.asked
    assert (asked.app, asked.tc_url) == ("live/room", "rtmp://host/live/room?a=1")
    assert (asked.page_url, asked.swf_url, asked.flash_version) == (
        "http://page",
        "x.swf",
        "FMLE/3.0",
    )
    assert (asked.connect_query, asked.args) == ("a=1", ("k", 2.0))
    guard.answer(world)
    peer.send("play", "demo?b=2", -1000.0, 5000.0, False, stream_id=peer.stream())
    asked = guard.asked[-1]
    assert (asked.name, asked.path, asked.query) == ("demo", "room/demo", "b=2")
    assert (asked.start, asked.duration, asked.reset) == (-1.0, 5000.0, False)


def test_every_item_of_a_playlist_is_over_once():
    """Own design: all are told when the stream stops, in the order in which they were allowed."""
    told = []

    def decide(question):
        told.append((question.event, question.path))
        return True

    world = VodWorld(one=film(1), two=film(1))
    world.application = GuardedApplication(world.application, Calling(decide))
    viewer = world.viewer("one")
    viewer.send("play", "two", 0.0, -1.0, False)
    world.wait(5.0)
    viewer.send("closeStream")
    assert told[1:] == [
        *((Event.PLAY, "one"), (Event.PLAY, "two"), (Event.DONE, "one"), (Event.DONE, "two")),
    ]
    viewer.send("play", "two")
    viewer.send("closeStream")
    assert told[5:] == [(Event.PLAY, "two"), (Event.DONE, "two")]
