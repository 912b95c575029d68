"""A publisher whose connection is dead, and the one who wants its name."""

import pytest
from support.rtmfp.flash_world import FlashWorld
from support.rtmp.rtmp_world import World

from rtmplite.amf import amf0
from rtmplite.auth.guard import Calling, Event, GuardedApplication
from rtmplite.live.timestamp_rebase import ANSWER, QUIET, STEP
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.netstream import RELEASED
from rtmplite.rtmp.server import ConnectionLimits

AVC, KEY, INTER = b"\x17\x00\0\0\0avcC", b"\x17\x01\0\0\0key", b"\x27\x01\0\0\0inter"
META = amf0.encode("onMetaData", {"width": 320.0})
SILENT = QUIET + ANSWER
BAD_NAME = ["NetStream.Publish.BadName"]


def published(world, name="demo"):
    """A publisher and its stream, of which something has been sent."""
    publisher = world.client()
    stream_id = publisher.publish(name)
    for kind, at, payload in ((18, 0, META), (9, 0, AVC), (9, 1000, KEY), (9, 1040, INTER)):
        publisher.write(kind, at, stream_id, payload)
    return publisher, stream_id


def cut(peer):
    """Its cable is pulled: nothing arrives at either end, and nobody is told."""
    peer.carry = lambda: bool(peer.server.transport.take_output())


class Tap:
    """Somebody who records."""

    def __init__(self, live):
        self.times, self.ends = [], 0
        live.tap(self)

    def write(self, type_id, timestamp, payload, now):
        self.times.append(timestamp)

    def end(self, now):
        self.ends += 1


def test_a_newcomer_takes_the_name_of_who_is_lost():
    """Own design: not before it had the time to answer, and the dead connection is closed."""
    world = World()
    first, _ = published(world)
    cut(first)
    world.wait(SILENT - 0.1)
    assert published(world)[0].codes() == BAD_NAME
    world.wait(0.1)
    second, stream_id = published(world)
    assert second.codes() == ["NetStream.Publish.Start"]
    assert first.server.closed and "another client" in first.server.reason
    assert not second.server.closed and world.registry.get("live", "demo").publishing
    second.send("deleteStream", float(stream_id))
    assert world.registry.get("live", "demo") is None


def test_who_is_lost_is_told_in_case_it_hears():
    """And it cannot end what is not its own any more."""
    world = World()
    first, _ = published(world)
    carry = first.carry
    cut(first)
    world.wait(SILENT)
    first.carry = carry
    published(world)
    assert first.codes()[-1:] == BAD_NAME and first.server.closed
    assert world.registry.get("live", "demo").publishing


@pytest.mark.parametrize("seconds", [SILENT, 30.0, 600.0])
def test_a_camera_that_pauses_keeps_its_name(seconds):
    """It answers pings: it is there, however long it sends no pictures."""
    world = World()
    first, stream_id = published(world)
    world.wait(seconds)
    assert published(world)[0].codes() == BAD_NAME
    first.write(9, 700_000, stream_id, KEY)
    assert not first.server.closed


def test_nobody_is_closed_for_silence_alone():
    """Own design: as long as nobody wants the name, a connection may come back as before."""
    world = World(limits=ConnectionLimits(ping_after=60.0, ping_timeout=30.0))
    first, _ = published(world)
    carry = first.carry
    cut(first)
    world.wait(80.0)
    first.carry = carry
    world.wait(5.0)
    assert not first.server.closed
    cut(first)
    world.wait(91.0)
    assert first.server.closed and first.server.reason == "silent"


def test_whoever_is_not_read_from_is_not_lost():
    """It cannot be heard: Own design."""
    world = World()
    first, _ = published(world)
    first.server.pause_reading()
    world.wait(2 * SILENT)
    assert published(world)[0].codes() == BAD_NAME


def test_a_loop_that_stood_still_blames_nobody():
    """Own design: nobody is lost who had no time to answer."""
    world = World()
    published(world)
    world.now += 100.0
    assert published(world)[0].codes() == BAD_NAME


def test_pictures_come_from_a_publisher_that_is_not_pinged_more_than_others():
    """Own design: a ping is for who is silent."""
    world = World()
    first, stream_id = published(world)
    sent = []
    send_control = first.server.transport.send_control
    first.server.transport.send_control = lambda message: (
        sent.append(message) or send_control(message)
    )
    for at in range(20):
        world.wait(1.0)
        first.write(9, 2000 + 1000 * at, stream_id, INTER)
    assert sent == []


def test_those_who_watch_see_one_publication():
    """Nothing ends, and times go on: at a step back or a gap players stop."""
    world = World()
    player = world.client()
    player.play("demo")
    first, _ = published(world)
    cut(first)
    world.wait(SILENT)
    second = world.client()
    stream_id = second.publish("demo")
    for kind, at, payload in ((18, 0, META), (9, 0, AVC), (9, 77_000, KEY), (9, 77_040, INTER)):
        second.write(kind, at, stream_id, payload)
    assert "NetStream.Play.UnpublishNotify" not in player.codes()
    assert player.codes().count("NetStream.Play.PublishNotify") == 2
    again = [(18, 1040, META), (9, 1040, AVC), (9, 1040 + STEP, KEY), (9, 1080 + STEP, INTER)]
    assert player.media()[4:] == again
    late = world.client()
    late.play("demo")
    assert late.media() == [(18, 0, META), (9, 1080 + STEP, AVC)]


def test_one_after_the_other():
    """The times of a third follow those of the second, on to where 32 bits end."""
    world = World()
    player = world.client()
    player.play("demo")
    for start in (0xFFFFFFF0, 5, 900):
        publisher = world.client()
        stream_id = publisher.publish("demo")
        publisher.write(8, start, stream_id, b"\xb2sound")
        cut(publisher)
        world.wait(SILENT)
    assert [at for _, at, _ in player.media()] == [0xFFFFFFF0, STEP - 16, 2 * STEP - 16]


def test_a_successor_of_who_sent_nothing_has_its_own_times():
    """Own design: there is nothing to follow."""
    world = World()
    player = world.client()
    player.play("demo")
    first = world.client()
    first.publish("demo")
    cut(first)
    world.wait(SILENT)
    second = world.client()
    second.write(8, 500, second.publish("demo"), b"\xb2sound")
    assert [at for _, at, _ in player.media()] == [500]


def test_recordings_are_two():
    """Who records hears the end of the one and the beginning of the other."""
    world, taps = World(), []
    world.registry.on_begin.append(lambda live, now: taps.append(Tap(live)))
    first, _ = published(world)
    cut(first)
    world.wait(SILENT)
    second, stream_id = published(world)
    second.send("deleteStream", float(stream_id))
    assert [tap.ends for tap in taps] == [1, 1] and [len(tap.times) for tap in taps] == [4, 4]


def test_a_hook_is_told_of_both():
    """The newcomer must have been let in before anybody has to go; DONE follows for each."""
    told = []

    def decide(question):
        told.append((question.event, question.query))
        return question.event is not Event.PUBLISH or question.query != "key=wrong"

    world = World(GuardedApplication(LiveApplication(), Calling(decide)))
    first, _ = published(world, "demo?key=1")
    cut(first)
    world.wait(SILENT)
    guess, _ = published(world, "demo?key=wrong")
    assert guess.codes() == ["NetStream.Publish.Rejected"] and not first.server.closed
    second, stream_id = published(world, "demo?key=2")
    second.send("deleteStream", float(stream_id))
    assert [each for each in told if each[0] is not Event.CONNECT] == [
        *((Event.PUBLISH, "key=1"), (Event.PUBLISH, "key=wrong"), (Event.PUBLISH, "key=2")),
        *((Event.DONE, "key=1"), (Event.DONE, "key=2")),
    ]


def test_who_may_not_be_replaced():
    """A phone, or a relay: nobody knows of it whether it is lost."""
    world = World()
    world.registry.open("live", "demo").begin(0.0)
    world.wait(100.0)
    assert published(world)[0].codes() == BAD_NAME


def publishes_again(world, name="demo", host=""):
    """A client that asks for the name to be released, as encoders do, and then publishes."""
    peer = world.client()
    peer.server.transport.peer_address = (host, 1)
    peer.call("releaseStream", f"{name}?key=1")
    peer.publish(name)
    return peer


def test_who_comes_back_has_its_name_sooner():
    """Own design: by releaseStream, from the same host, if its former connection is dead."""
    world = World()
    first, _ = published(world)
    cut(first)
    world.wait(QUIET + RELEASED - 0.1)
    assert publishes_again(world).codes() == BAD_NAME
    world.wait(0.1)
    assert publishes_again(world, host="192.0.2.9").codes() == BAD_NAME
    assert published(world)[0].codes() == BAD_NAME
    assert publishes_again(world).codes() == ["NetStream.Publish.Start"]
    assert first.server.closed


def test_a_publisher_that_answers_keeps_its_name_from_who_comes_back():
    world = World()
    first, _ = published(world)
    world.wait(QUIET + ANSWER)
    assert publishes_again(world).codes() == BAD_NAME and not first.server.closed


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("released", [True, False])
def test_by_rtmfp_a_dead_publisher_is_noticed_as_well(dies, released):
    """Covers RFC 7016 §3.5.4.1: a Ping is sent soon to who publishes and says nothing."""
    world = FlashWorld()
    first = world.client()
    first.publish("demo")
    world.run()
    if dies:
        world.link.nodes.pop(first.server_session.address)
    world.run(QUIET + (RELEASED if released else ANSWER) - 0.5)
    second = world.client()  # a second passes
    second.server.transport.peer_address = first.server.peer_address
    if released:
        second.call("releaseStream", "demo")
    second.publish("demo")
    world.run()
    assert second.codes() == (["NetStream.Publish.Start"] if dies else BAD_NAME)
    assert first.server.closed == dies
