"""RTMPT without HTTP: requests in order, twice, too late and not at all, in virtual time."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.mutations import mutations
from support.rtmp.rtmp_world import Peer, World, counting

from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import ClientConnection, Target
from rtmplite.rtmp.tunnel import AHEAD, EMPTY_ANSWERS, IDLE_LIMIT, INTERVALS, TunnelAnswer, Tunnels

PEER = ("192.0.2.1", 4711)
SOUND = b"\xb2sound"


class Application(LiveApplication):
    """`live` that can be asked to read no further."""

    def on_command(self, connection, command, now):
        if command.name == "pause":
            connection.pause_reading()
        else:
            connection.result(command.transaction_id, command.name)


class Tunnelled(World):
    """A server that is reached through tunnels."""

    def __init__(self, **options):
        super().__init__(Application())
        self.told = []
        self.tunnels = Tunnels(
            lambda address: self.server(), counting(), cut_off=self.told.append, **options
        )

    def ask(self, path, body=b"\0"):
        """One request."""
        return self.tunnels.request(path, body, PEER, self.now)

    def open(self):
        """The name of a new tunnel."""
        answer = self.ask("/open/1")
        assert answer.status == 200 and answer.body.endswith(b"\n")
        return answer.body.decode().strip()

    def through(self):
        """A client, connected through a tunnel of its own."""
        target = Target.parse("rtmp://host/live", stream=False)
        client = ClientConnection(target, self.random, self.now)
        peer = Through(self, client)
        self.peers.append(peer)
        self.run()
        return peer


class Through(Peer):
    """A client and its tunnel: the client's half of RTMPT as ffmpeg does it."""

    def __init__(self, world, client):
        self.name, self.number, self.interval = world.open(), 0, 0
        self.refused = None
        super().__init__(world, client, world.tunnels.connections[-1])

    def carry(self):
        """One request; whether anything went up or down."""
        up = b"".join(self.client.transport.take_output())
        if self.refused or self.client.closed:
            return False
        command, body = ("send", up) if up else ("idle", b"\0")
        answer = self.ask(command, body)
        if answer is None or answer.status != 200:
            self.refused = answer
            return False
        down = answer.body[1:]
        self.interval = answer.body[0]
        if down:
            self.client.transport.receive(down, self.world.now)
        self.events += self.client.events()
        return bool(up or down)

    def ask(self, command, body):
        """The next request by its number."""
        path = f"/{command}/{self.name}/{self.number}"
        self.number += 1
        return self.world.ask(path, body)


def test_publish_and_play_through_tunnels():
    """As without them.  Covers Field §"HTTP tunnel"."""
    world = Tunnelled()
    viewer, source = world.through(), world.through()
    viewer.play("demo")
    stream = source.publish("demo")
    for time in range(5):
        source.write(8, time, stream, SOUND)
    assert viewer.media() == [(8, time, SOUND) for time in range(5)]
    assert viewer.server.peer_address == PEER


def test_the_interval_grows_and_falls():
    """Ten empty answers are one step; anything to say begins anew.  Covers Field §"HTTP tunnel"."""
    world = Tunnelled()
    peer = world.through()
    seen = []
    for _ in range(80):
        peer.carry()
        seen.append(peer.interval)
    assert list(dict.fromkeys(seen)) == list(INTERVALS)
    assert seen.count(INTERVALS[1]) == EMPTY_ANSWERS
    assert peer.call("anything")[1] == "anything"
    peer.client.call("more")
    peer.carry()
    assert peer.interval == INTERVALS[0]


def test_a_question_twice_is_the_same_answer_twice():
    """A proxy may repeat what it got no answer to; the bytes are used once."""
    world = Tunnelled()
    peer = world.through()
    peer.client.call("hello")
    up = b"".join(peer.client.transport.take_output())
    first = peer.ask("send", up)
    peer.number -= 1
    assert peer.ask("send", up) == first
    peer.client.transport.receive(first.body[1:], 0.0)
    assert peer.call("again")[1] == "again"


def test_a_question_out_of_turn_waits():
    """Two HTTP connections may overtake each other."""
    world = Tunnelled()
    name = world.open()
    assert world.ask(f"/idle/{name}/7") == TunnelAnswer(200, b"\x01")
    assert world.ask(f"/idle/{name}/9") is None
    assert world.ask(f"/idle/{name}/8").status == 200
    assert world.ask(f"/idle/{name}/9").status == 200


@pytest.mark.parametrize("number", [4, 6 + AHEAD])
def test_a_number_that_cannot_be(number):
    """Bytes are missing or old: that tunnel is over, and the operator hears why."""
    world = Tunnelled()
    name = world.open()
    world.ask(f"/idle/{name}/5")
    world.ask(f"/idle/{name}/6")
    assert world.ask(f"/idle/{name}/{number + 1}").status == 400
    assert world.ask(f"/idle/{name}/7").status == 404
    assert [machine.reason for machine in world.told] == [f"request {number + 1} instead of 7"]


def test_a_request_that_nothing_comes_before():
    """The edge gives up; so does the tunnel."""
    world = Tunnelled()
    name = world.open()
    path = f"/idle/{name}/3"
    assert world.ask(f"/idle/{name}/1") and world.ask(path) is None
    world.tunnels.give_up(path, "a request is missing", world.now)
    world.tunnels.give_up("/", "nothing", world.now)
    assert world.ask(path).status == 404 and not world.tunnels.connections


@pytest.mark.parametrize(
    "path",
    [
        *("/", "", "/fcs/ident2", "/open/1/2", "/idle", "/idle/x", "/idle/x/1", "/nothing/x/1"),
        "/idle/{name}/x",
        "/idle/{name}/-1",
        "/idle/{name}/99999999999",
    ],
)
def test_what_is_no_request(path):
    """Not found.  Covers Field §"HTTP tunnel"."""
    world = Tunnelled()
    assert world.ask(path.format(name=world.open())).status == 404


def test_close_ends_it():
    """The publisher has gone at once.  Covers Field §"HTTP tunnel"."""
    world = Tunnelled()
    source = world.through()
    source.publish("demo")
    assert world.registry.get("live", "demo").publishing
    assert source.ask("close", b"\0") == TunnelAnswer(200, b"\0")
    assert not world.tunnels.connections and not list(world.registry)
    assert source.ask("idle", b"\0").status == 404 and not world.told


def test_who_asks_no_more_has_gone():
    """However it left; time alone tells."""
    world = Tunnelled()
    peer = world.through()
    world.tunnels.tick(IDLE_LIMIT - 1)
    assert world.tunnels.connections
    assert world.tunnels.deadline == IDLE_LIMIT
    world.tunnels.tick(IDLE_LIMIT)
    assert not world.tunnels.connections and world.tunnels.deadline is None
    assert peer.server.reason == "asks no more" and not world.told


def test_a_client_that_asks_nothing_of_rtmp_goes():
    """The connection's own limits hold in a tunnel."""
    world = Tunnelled()
    name = world.open()
    for at in range(0, 12, 2):
        world.now = float(at)
        world.tunnels.tick(world.now)
        world.ask(f"/idle/{name}/{at // 2}")
    assert not world.tunnels.connections
    assert [machine.reason for machine in world.told] == ["nothing came in time"]


def test_encrypted_rtmp_in_a_tunnel():
    """RTMPTE is refused as RTMPE is.  Covers Field §"RTMPE version byte"."""
    world = Tunnelled()
    name = world.open()
    assert world.ask(f"/send/{name}/0", b"\x06" + bytes(1536)).status == 404
    assert "RTMPE is not spoken here" in world.told[0].reason


def test_last_words_are_read():
    """A refusal comes with the last answer; after that there is nothing."""
    world = Tunnelled()
    peer = world.through()
    peer.server.close(0.0, "server stopped", "NetConnection.Connect.Closed")
    peer.carry()
    assert ("NetConnection.Connect.Closed") in str(peer.events[-1])
    assert not world.tunnels.connections
    peer.carry()
    assert peer.refused.status == 404


def test_a_connection_that_must_not_be_read():
    """Requests with bytes wait, those without do not."""
    world = Tunnelled()
    peer = world.through()
    peer.send("pause")
    assert not peer.server.transport.reading
    peer.client.call("later")
    up = b"".join(peer.client.transport.take_output())
    assert peer.ask("send", up) is None
    peer.server.resume_reading()
    peer.number -= 1
    answer = peer.ask("send", up)
    peer.client.transport.receive(answer.body[1:], 0.0)
    peer.events += peer.client.events()
    assert peer.reply(peer.client._next_call - 1)[1] == "later"


def test_a_player_that_stops_asking_is_skipped_then_closed():
    """What waits for it is bounded as for any player."""
    world = Tunnelled()
    viewer, source = world.through(), world.through()
    viewer.play("demo")
    stream = source.publish("demo")
    world.peers.remove(viewer)
    for time in range(100):
        world.now = time / 4
        source.write(9, time, stream, b"\x17\x01\0\0\0" + bytes(50_000))
    assert viewer.server.transport.aborted and "too slow" in viewer.server.reason
    assert viewer.carry() is False and viewer.refused.status == 404


def test_not_too_many():
    """Those who are in stay."""
    world = Tunnelled(max_sessions=2)
    first, _ = world.open(), world.open()
    assert world.ask("/open/1").status == 503
    assert world.ask(f"/close/{first}/0").status == 200
    assert world.open() != first


def test_stopping_ends_them_all():
    """Streams, too."""
    world = Tunnelled()
    source = world.through()
    source.publish("demo")
    world.tunnels.stop(0.0)
    assert source.server.closed and not list(world.registry)
    assert source.ask("idle", b"\0").status == 404


PATHS = st.builds(
    "/{}/{}/{}".format,
    st.sampled_from(["send", "idle", "close", "open"]),
    st.sampled_from(["NAME", "NAME", "x", ""]),
    st.integers(0, 3) | st.integers(),
)


@given(st.lists(st.tuples(PATHS | mutations(PATHS.map(str.encode)), st.binary(max_size=50))))
def test_no_request_raises_anything(requests):
    """Any path, any body, in any order."""
    world = Tunnelled()
    name = world.open()
    for path, body in requests:
        text = path if isinstance(path, str) else path.decode("latin-1")
        answer = world.ask(text.replace("NAME", name), body)
        event(str(answer and answer.status))


class AnyClient(RuleBasedStateMachine):
    """Requests that are lost, doubled or late; what is played is what was published."""

    def __init__(self):
        super().__init__()
        self.world = Tunnelled()
        self.viewer, self.source = self.world.through(), self.world.through()
        self.viewer.play("demo")
        self.stream = self.source.publish("demo")
        self.sent = []

    @rule(size=st.integers(0, 5000))
    def write(self, size):
        payload = b"\xb2" + bytes(size)
        self.sent.append((8, len(self.sent), payload))
        self.source.client.send_media(8, len(self.sent) - 1, self.stream, payload)

    @rule(who=st.sampled_from(["viewer", "source"]))
    def poll(self, who):
        getattr(self, who).carry()

    @rule(who=st.sampled_from(["viewer", "source"]))
    def answer_is_lost(self, who):
        """The client asks again, with the same number and the same bytes."""
        peer = getattr(self, who)
        up = b"".join(peer.client.transport.take_output())
        first = peer.ask("send", up)
        peer.number -= 1
        again = peer.ask("send", up)
        assert first == again
        peer.client.transport.receive(again.body[1:], self.world.now)
        peer.events += peer.client.events()

    @rule(who=st.sampled_from(["viewer", "source"]))
    def overtaken(self, who):
        """An idle request comes before the one that was sent before it."""
        peer = getattr(self, who)
        up = b"".join(peer.client.transport.take_output())
        late = f"/send/{peer.name}/{peer.number}"
        early = f"/idle/{peer.name}/{peer.number + 1}"
        assert self.world.ask(early) is None
        for answer in (self.world.ask(late, up), self.world.ask(early)):
            peer.client.transport.receive(answer.body[1:], self.world.now)
        peer.events += peer.client.events()
        peer.number += 2

    @precondition(lambda self: self.world.now < 1000)
    @rule(seconds=st.floats(0, IDLE_LIMIT / 2 - 1))
    def wait(self, seconds):
        self.world.now += seconds
        self.world.tunnels.tick(self.world.now)
        self.viewer.carry()
        self.source.carry()

    @invariant()
    def nothing_is_lost_or_changed(self):
        media = self.viewer.media()
        assert media == self.sent[: len(media)]

    def teardown(self):
        self.world.run()
        assert self.viewer.media() == self.sent and not self.world.told


TestAnyClient = AnyClient.TestCase
