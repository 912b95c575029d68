"""The publisher's side of a call as a stream: what was published, from the answer to the end."""

import pytest
from support.gateway.gateway_world import AUDIO, BOB, PCMU, Desk, GatewayWorld, sdp
from support.gateway.video_rig import HEADER, idr, inter, tag

from siprtmp.calls.mixed.published_side import APP, PublishedSides

VIDEO = 9
AAC_HEADER, AAC = bytes.fromhex("af001208"), bytes.fromhex("af0121004900")


class Film:
    """The messages of all streams of publishers' sides, one list for each publication."""

    def __init__(self, world):
        self.films, self.ends = [], 0
        world.registry.on_begin.append(self._begun)
        self.sides = PublishedSides(world.registry)
        context = world.gateway.context
        context.on_up, context.on_end = self.sides.follow, self._ended

    def _begun(self, live, now):
        if live.app == APP:
            self.films.append([])
            live.tap(self)

    def _ended(self, call, reason, now):
        self.sides.stop(call, now)

    def write(self, type_id, at, payload, now):
        self.films[-1].append((type_id, at, payload))

    def end(self, now):
        self.ends += 1


@pytest.fixture
def world():
    return GatewayWorld()


@pytest.fixture
def film(world):
    return Film(world)


def test_each_tag_is_there_as_it_was_published(world, film):
    """Covers RTMP 1.0 §7.1.4: also the pictures, of which the phone has none."""
    Desk(world.link)
    tool = world.tool()
    stream = tool.publish(BOB)
    world.wait()
    tags = [(AUDIO, 0, AAC_HEADER), (VIDEO, 0, HEADER), (VIDEO, 5, tag(idr(), key=True))]
    tags += [(AUDIO, at, AAC) for at in (7, 30)]
    for type_id, at, body in tags:
        tool.write(type_id, at, stream, body)
    world.wait(0.1)
    assert film.films == [tags] and world.registry.get(APP, BOB).publishing
    [call] = world.gateway.context.calls
    call.hang_up(world.now)
    world.wait()
    assert film.ends == 1 and not world.registry.get(APP, BOB)
    assert call.media._recorder is None and world.is_clean()


def test_what_came_before_the_call_is_there_as_far_as_it_is_needed(world, film):
    """Covers FLV 10.1 §E.4.2.1 and §E.4.3.1: headers, and the pictures since a key frame."""
    desk, tool = Desk(world.link), world.tool()
    stream = tool.publish("show")
    key, next_ = tag(idr(), key=True), tag(inter())
    before = [(AUDIO, 9000, AAC_HEADER), (AUDIO, 9000, AAC), (VIDEO, 9000, HEADER)]
    for type_id, at, body in (*before, (VIDEO, 9010, key), (VIDEO, 9050, next_)):
        tool.write(type_id, at, stream, body)
    desk.ring("show", world.now)
    world.wait()
    assert film.films == [[]]
    tool.write(AUDIO, 9100, stream, AAC)
    world.wait()
    headers = [(AUDIO, 9010, AAC_HEADER), (VIDEO, 9010, HEADER)]  # at the time of the key frame
    pictures = [(VIDEO, 9010, key), (VIDEO, 9050, next_)]
    assert film.films == [[*headers, *pictures, (AUDIO, 9100, AAC)]]


def test_a_second_publisher_is_another_file(world, film):
    """Covers RTMP 1.0 §7.2.2.3: as in every recording; the call goes on."""
    Desk(world.link)
    alice = world.rich("alice@home")
    stream = alice.peer.publish("local")
    alice.call("invite", BOB, "pcmu")
    world.wait()
    alice.peer.write(AUDIO, 20, stream, b"\x82one")
    stream = alice.peer.publish("local")
    alice.peer.write(AUDIO, 20, stream, b"\x82two")
    world.wait()
    assert film.films == [[(AUDIO, 20, b"\x82one")], [(AUDIO, 20, b"\x82two")]]
    assert film.ends == 1 and world.registry.get(APP, alice.peer.server.id).publishing
    world.drop(alice.peer)
    assert film.ends == 2 and world.is_clean()


def test_a_client_that_holds_the_phone_is_not_recorded(world, film):
    """Covers RFC 3264 §8.4."""
    Desk(world.link)
    alice = world.rich("alice@home")
    stream = alice.peer.publish("local")
    alice.call("invite", BOB, "pcmu")
    world.wait()
    alice.call("hold")
    world.wait()
    alice.peer.write(AUDIO, 20, stream, b"\x82private")
    world.wait()
    assert film.films == [[]]


def test_a_phone_that_holds_the_call_changes_nothing(world, film):
    """Own design: the file has what was published, not what was heard."""
    desk, tool = Desk(world.link), world.tool()
    stream = tool.publish("show")
    call = desk.ring("show", world.now)
    world.wait()
    call.reinvite(sdp(PCMU, more=("sendonly",)), world.now)
    world.wait()
    tool.write(AUDIO, 20, stream, b"\x82one")
    world.wait()
    assert film.films == [[(AUDIO, 20, b"\x82one")]]


def test_a_name_that_is_taken_stays_with_its_call(world, film):
    """Own design: two calls never share a file."""
    Desk(world.link)
    live = world.registry.open(APP, BOB)
    live.begin(world.now)
    tool = world.tool()
    stream = tool.publish(BOB)
    world.wait()
    tool.write(AUDIO, 20, stream, b"\x82one")
    world.wait()
    assert film.films == [[]]
