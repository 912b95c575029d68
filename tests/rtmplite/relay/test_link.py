"""One link at a time: push and pull through every trouble a network has, in virtual time."""

import pytest
from support.gateway.h264_world import HEADER, slice_of, tag_of
from support.rtmp.relay_world import BACKOFF, FRAME, KEY, METADATA, SOUND, VIDEO_HEADER, RelayWorld

from rtmplite.amf import amf0
from rtmplite.flv.video import FrameType
from rtmplite.live.slow_consumer import SlowConsumerPolicy
from rtmplite.relay.link import ReconnectBackoff, State
from rtmplite.relay.push import publishing
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message, MessageType

PUSH = ["live/*=rtmp://far/live/{name}"]
AUDIO, VIDEO, DATA = MessageType.AUDIO, MessageType.VIDEO, MessageType.DATA


def test_a_push_carries_everything_in_order():
    """Metadata wrapped for the other server, which unwraps it; headers; all since a key frame."""
    world = RelayWorld(push=PUSH)
    viewer = world.far.client()
    viewer.play("demo")
    live = world.registry.open("live", "demo")
    sent = [(DATA, 0, METADATA), (VIDEO, 0, VIDEO_HEADER), (VIDEO, 20, KEY), (AUDIO, 21, SOUND)]
    for message in sent:
        live.write(*message, now=0.0)
    world.run()
    assert world.states() == ["running"]
    live.write(VIDEO, 40, KEY, now=0.0)
    live.write(VIDEO, 60, FRAME, now=0.0)
    world.run()
    kinds = [(kind, body) for kind, _, body in viewer.media()]
    begin = [(DATA, METADATA), (VIDEO, VIDEO_HEADER), (VIDEO, KEY), (AUDIO, SOUND)]
    assert kinds == [*begin, (VIDEO, KEY), (VIDEO, FRAME)]
    assert [at for _, at, _ in viewer.media()][2:] == [20, 21, 40, 60]
    live.end(0.0)
    world.run()
    assert world.states() == [] and not world.wires
    assert viewer.codes()[-1] == "NetStream.Play.UnpublishNotify"


@pytest.mark.parametrize("groups", [True, False])
@pytest.mark.parametrize("down", [0.0, 0.5])
def test_a_push_has_what_came_before_its_server_was_there(groups, down):
    """Own design: a call's first words, which no key frame leads, and more than one group."""
    world = RelayWorld(push=PUSH, groups=groups)
    world.registry.slow_consumer, world.up = SlowConsumerPolicy(), not down
    viewer = world.far.client()
    viewer.play("demo")
    live = world.registry.open("live", "demo")
    sent = [(AUDIO, 20 * at, SOUND + bytes([at])) for at in range(8)]
    sent += [(VIDEO, 200, VIDEO_HEADER), (VIDEO, 200, KEY), (VIDEO, 240, FRAME), (VIDEO, 280, KEY)]
    for message in sent:
        live.write(*message, now=0.0)
    if down:
        world.wait(down)
        world.up = True
        world.wait(1.0)
    world.run()
    assert world.states() == ["running"]
    live.write(VIDEO, 320, FRAME, now=world.now)
    world.run()
    assert viewer.media() == [*sent, (VIDEO, 320, FRAME)]
    live.end(world.now)
    assert world.registry.budget.used == 0


def test_what_came_before_is_kept_for_a_while_only():
    """Own design: a server that stays away costs no memory."""
    world = RelayWorld(push=PUSH)
    world.registry.slow_consumer, world.up = SlowConsumerPolicy(), False
    live = world.registry.open("live", "demo")
    for at in range(0, 11_000, 20):
        live.write(AUDIO, at, SOUND, now=0.0)
    world.up = True
    world.wait(10.0)
    assert world.states() == ["running"] and world.registry.budget.used == 0


def test_a_push_comes_back_later_each_time():
    """Doubling up to a limit, a quarter shorter at most; a good run begins anew."""
    world = RelayWorld(push=PUSH)
    world.up = False
    world.registry.open("live", "demo").begin(0.0)
    world.wait(40.0)
    gaps = [after - before for before, after in zip(world.dials, world.dials[1:], strict=False)]
    for gap, longest in zip(gaps, [1.0, 2.0, 4.0, 8.0, 8.0], strict=False):
        assert 0.75 * longest <= gap <= longest
    world.up = True
    world.wait(8.0)
    assert world.states() == ["running"] and world.relays.links[0].reason.endswith("refused")
    world.now += BACKOFF.steady
    world.cut()
    count = len(world.dials)
    world.wait(1.0)
    assert len(world.dials) == count + 1 and world.states() == ["running"]


def test_a_server_that_takes_and_ends_at_once_is_not_hammered():
    """Only a link that has run for a while is forgiven its failures."""
    world = RelayWorld(push=PUSH)
    world.registry.open("live", "demo").begin(0.0)
    for _ in range(60):
        world.wait(0.5)
        world.cut()
    assert len(world.dials) < 12


def test_a_server_that_never_answers():
    """Given up after a while, and tried again."""
    world = RelayWorld(push=PUSH)
    world.deaf = True
    world.registry.open("live", "demo").begin(0.0)
    world.wait(3.9)
    assert world.states() == ["connecting"]
    world.wait(0.2)
    assert world.states() == ["waiting"]
    assert world.relays.links[0].reason == "no answer in time"
    world.deaf = False
    world.wait(1.0)
    assert world.states() == ["running"]


def test_what_is_refused_is_told_and_tried_again():
    """The name is taken over there, until it is not."""
    world = RelayWorld(push=PUSH)
    other = world.far.client()
    taken = other.publish("demo")
    world.registry.open("live", "demo").begin(0.0)
    world.run()
    assert world.states() == ["waiting"]
    assert "NetStream.Publish.BadName" in world.relays.links[0].reason
    other.send("deleteStream", float(taken))
    world.wait(1.0)
    assert world.states() == ["running"]


def test_no_such_application():
    """An error to connect is the end of that attempt."""
    world = RelayWorld(push=["live/*=rtmp://far/nothing"])
    world.registry.open("live", "demo").begin(0.0)
    world.run()
    assert world.states() == ["waiting"]
    assert "No such application" in world.relays.links[0].reason


def test_attempts_can_be_counted():
    """Then it is given up, and `start` begins anew."""
    world = RelayWorld(push=PUSH, backoff=ReconnectBackoff(attempts=3))
    world.up = False
    world.registry.open("live", "demo").begin(0.0)
    world.wait(60.0)
    assert len(world.dials) == 3 and world.states() == ["given up"]
    assert world.relays.deadline is None
    world.up = True
    world.relays.links[0].start(world.now)
    world.run()
    assert world.states() == ["running"]


def test_a_target_that_takes_nothing_costs_itself_only():
    """Cut off as any player would be, and back at a key frame."""
    world = RelayWorld(push=PUSH, groups=False)
    live = world.registry.open("live", "demo")
    live.write(VIDEO, 0, VIDEO_HEADER, now=0.0)
    world.run()
    (wire,) = world.wires
    wire.near.transport.output_size = 1  # its socket is full
    for time in range(100):
        world.now = time / 20
        live.write(VIDEO, time, KEY + bytes(100), now=world.now)
    assert wire.near.transport.aborted and world.states() == ["waiting"]
    assert "too slow" in world.relays.links[0].reason
    world.wait(1.0)
    viewer = world.far.client()
    viewer.play("demo")
    live.write(VIDEO, 100, FRAME, now=world.now)
    live.write(VIDEO, 101, KEY, now=world.now)
    world.run()
    assert [body for _, _, body in viewer.media()] == [VIDEO_HEADER, KEY]


def test_pushes_share_their_bytes():
    """However many there are: encoded once."""
    assert publishing(1) is publishing(1) and publishing(1) is not publishing(2)
    world = RelayWorld(push=[f"live/demo=rtmp://far/live/{name}" for name in "ab"])
    live = world.registry.open("live", "demo")
    live.begin(0.0)
    world.run()
    assert world.states() == ["running", "running"]
    live.write(AUDIO, 5, SOUND, now=0.0)
    first, second = [wire.near.transport.output for wire in world.wires]
    assert first[0] is second[0]


def test_a_pull_plays_what_is_there():
    """Tag for tag, metadata and headers first."""
    world = RelayWorld(pull=["live/*=rtmp://far/live/{name}"])
    source = world.far.client()
    stream = source.publish("demo")
    for message in [(DATA, 0, METADATA), (VIDEO, 0, VIDEO_HEADER), (VIDEO, 20, KEY)]:
        source.write(message[0], message[1], stream, message[2])
    viewer = world.home.client()
    viewer.play("demo")
    world.run()
    for message in [(VIDEO, 40, KEY), (AUDIO, 41, SOUND), (VIDEO, 60, FRAME)]:
        source.write(message[0], message[1], stream, message[2])
    world.run()
    bodies = [body for _, _, body in viewer.media()]
    assert bodies == [METADATA, VIDEO_HEADER, KEY, SOUND, FRAME]
    assert [at for _, at, _ in viewer.media()][-3:] == [40, 41, 60]


def test_a_still_picture_is_pulled():
    """Own design: it waits for the rest of itself, and leaves where nothing follows."""
    world = RelayWorld(pull=["live/*=rtmp://far/live/{name}"])
    stream = world.far.client().publish("demo")
    viewer = world.home.client()
    viewer.play("demo")
    world.run()
    (link,) = world.relays.links
    for body in (HEADER, tag_of(FrameType.KEY, [slice_of(5)])):
        link.on_media(link._session, Message(VIDEO, 0, stream, body), world.now)
        world.run()
    assert len(viewer.media()) == 1
    world.wait(1.0)
    assert len(viewer.media()) == 2


def test_what_the_server_says_of_itself_is_not_relayed():
    """Neither |RtmpSampleAccess nor status among the data, and AMF3 data as AMF0."""
    world = RelayWorld(pull=["live/*=rtmp://far/live/{name}"])
    source = world.far.client()
    stream = source.publish("demo")
    viewer = world.home.client()
    viewer.play("demo")
    world.run()
    source.write(DATA, 0, stream, amf0.encode("onStatus", {"code": "x"}))
    world.run()
    assert viewer.media() == [] and not world.registry.get("live", "demo").publishing
    message = Message(MessageType.DATA_AMF3, 7, 1, b"\0" + METADATA)
    (link,) = world.relays.links
    link.on_media(link._session, message, 0.0)
    world.run()
    assert viewer.media() == [(DATA, 7, METADATA)]


@pytest.mark.parametrize("number", [None, "1", float("nan"), -1.0, 2.0**40])
def test_a_stream_must_have_a_number(number):
    """Or that attempt is over."""
    world = RelayWorld(push=PUSH)
    world.deaf = True
    world.registry.open("live", "demo").begin(0.0)
    link = world.relays.links[0]
    session = link._session
    session.on_command(Command("_result", 1.0, None, ()), 0, 0.0)
    session.on_command(Command("_result", session._create, None, (number,)), 0, 0.0)
    assert link.state is State.WAITING and "no stream" in link.reason
