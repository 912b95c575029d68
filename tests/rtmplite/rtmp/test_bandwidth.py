"""Set Peer Bandwidth, obeyed: never more unacknowledged than the peer allows."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.rtmp.rtmp_world import World

from rtmplite.rtmp.bandwidth import ACK_TIMEOUT, Throttle
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.control import LimitType, SetPeerBandwidth


def windows(*messages):
    """The window after each of these."""
    throttle = Throttle.begun(SetPeerBandwidth(*messages[0]), 0)
    out = [None if throttle is None else throttle.window]
    for message in messages[1:]:
        throttle.limit(SetPeerBandwidth(*message))
        out.append(throttle.window)
    return out


HARD, SOFT, DYNAMIC = LimitType


def test_a_hard_limit_is_taken_as_it_is():
    """Covers RTMP 1.0 §5.4.5 [hard-limit]."""
    assert windows((1000, HARD), (5000, HARD), (10, HARD)) == [1000, 5000, 10]
    assert windows((1000, SOFT), (5000, HARD)) == [1000, 5000]


def test_a_soft_limit_only_tightens():
    """Covers RTMP 1.0 §5.4.5 [soft-limit]."""
    assert windows((1000, SOFT), (5000, SOFT), (10, SOFT)) == [1000, 1000, 10]
    assert windows((1000, HARD), (5000, SOFT), (10, SOFT)) == [1000, 1000, 10]


def test_a_dynamic_limit_is_as_hard_as_the_last():
    """Covers RTMP 1.0 §5.4.5 [dynamic-limit]."""
    assert windows((1000, DYNAMIC)) == [None]
    assert windows((1000, HARD), (5000, DYNAMIC), (7000, DYNAMIC)) == [1000, 5000, 7000]
    assert windows((1000, SOFT), (5000, DYNAMIC)) == [1000, 1000]
    assert windows((1000, HARD), (500, SOFT), (5000, DYNAMIC)) == [1000, 500, 500]
    assert windows((1000, SOFT), (2000, HARD), (5000, DYNAMIC)) == [1000, 2000, 5000]


def test_a_full_window_is_full():
    """Covers RTMP 1.0 §5.4.5 [window-limits]: to the byte."""
    throttle = Throttle(1000, 0)
    for size in (999, 1, 1):
        throttle.push(bytes(size))
    assert [len(data) for data in throttle.ready()] == [999, 1] and throttle.ready() == []
    throttle.acknowledged(1)
    assert [len(data) for data in throttle.ready()] == [1]


class Sending(RuleBasedStateMachine):
    """A throttle between a sender and a peer that acknowledges when it likes, from any number on.

    Covers RTMP 1.0 §5.4.5 [window-limits].
    """

    def __init__(self):
        super().__init__()
        self.throttle = Throttle(2000, 2**32 - 3000)
        self.pushed, self.sent, self.arrived, self.largest = 0, 0, 0, 0

    def take(self):
        for data in self.throttle.ready():
            self.sent += len(data)
            self.largest = max(self.largest, len(data))

    @rule(sizes=st.lists(st.integers(1, 900), min_size=1, max_size=5))
    def send(self, sizes):
        for size in sizes:
            self.throttle.push(bytes(size))
            self.pushed += size
        self.take()

    @rule(part=st.floats(0, 1))
    def acknowledge(self, part):
        self.arrived += int(part * (self.sent - self.arrived))
        self.throttle.acknowledged((2**32 - 3000 + self.arrived) % 2**32)
        self.take()

    @invariant()
    def holds(self):
        assert self.sent - self.arrived < 2000 + self.largest
        assert self.throttle.size == self.pushed - self.sent
        assert not self.throttle.size or self.sent - self.arrived >= 2000


TestSending = Sending.TestCase


def limited(window=1000):
    """A player whose client limits it and acknowledges nothing by itself, and a publisher."""
    world = World()
    peer, source = world.client(), world.client()
    peer.client.transport._acknowledge = lambda: None
    peer.play("demo")
    number = source.publish("demo")
    peer.client.transport.send_control(SetPeerBandwidth(window, HARD))
    world.run()
    return world, peer, source, number


def test_a_limited_player_gets_as_much_as_it_acknowledges():
    """Covers RTMP 1.0 §5.4.5 [window-limits] and §5.4.3."""
    world, peer, source, number = limited(3000)
    before = len(peer.media())
    for time in range(20):
        source.write(8, time, number, bytes(500))
    waiting = peer.server.output_size
    assert len(peer.media()) - before == 6 and waiting > 14 * 500
    peer.client.transport.send_control(
        control.Acknowledgement(peer.client.transport._reader.bytes_received)
    )
    world.run()
    assert len(peer.media()) - before == 12 and peer.server.output_size < waiting
    del peer.client.transport._acknowledge
    peer.client.transport._ack_every = 1000
    peer.client.transport.send_control(
        control.Acknowledgement(peer.client.transport._reader.bytes_received)
    )
    world.run()
    assert len(peer.media()) - before == 20 and peer.server.output_size == 0
    assert [time for _, time, _ in peer.media()[before:]] == list(range(20))


def test_acknowledgements_pass_what_waits():
    """Own design: two ends that limit each other would wait for ever."""
    world, peer, source, number = limited(100)
    for time in range(5):
        source.write(8, time, number, bytes(500))
    peer.server.transport.receive(
        peer.client.transport._writer.write(control.WindowAcknowledgementSize(1).message(), 2),
        world.now,
    )
    data = b"".join(peer.server.transport.take_output())
    assert peer.server.output_size
    kinds = [control.parse_control(message) for message in peer.client.transport._reader.feed(data)]
    assert [type(each) for each in kinds] == [control.Acknowledgement]


def test_who_limits_but_never_acknowledges_is_obeyed_for_some_seconds():
    """Own design: else it would hear nothing more, and find us at fault."""
    world, peer, source, number = limited(1000)
    before = len(peer.media())
    for time in range(10):
        source.write(8, time, number, bytes(500))
    assert len(peer.media()) - before < 10
    world.wait(ACK_TIMEOUT + 0.1)
    assert len(peer.media()) - before == 10 and peer.server.output_size == 0
    peer.client.transport.send_control(SetPeerBandwidth(500, HARD))
    for time in range(10):
        source.write(8, time, number, bytes(500))
    assert len(peer.media()) - before == 20


def test_last_words_do_not_wait():
    """Own design: the end explains itself to a peer that limits us, too."""
    world, peer, source, number = limited(100)
    for time in range(5):
        source.write(8, time, number, bytes(500))
    before = len(peer.media())
    peer.server.close(world.now, "enough", "NetConnection.Connect.Closed")
    world.run()
    assert len(peer.media()) > before and peer.codes()[-1] == "NetConnection.Connect.Closed"


def test_a_busy_socket_and_a_limit_add_up():
    """Own design: `output_size` is what the player has not got, for either reason."""
    throttled = World().client()
    server, writer = throttled.server, throttled.client.transport._writer
    server.transport.receive(writer.write(SetPeerBandwidth(1000, HARD).message(), 2), 0.0)
    server.transport.take_output()
    for _ in range(4):
        server.transport.put(bytes(600))
    assert [len(data) for data in server.transport.output] == [
        600,
        600,
    ] and server.output_size == 1200
    server.transport.unsent(700)
    assert server.output_size == 1900
    server.transport.receive(writer.write(control.Acknowledgement(5000).message(), 2), 0.0)
    assert len(server.transport.output) == 4 and server.output_size == 1900
    server.transport.unsent(0)
    assert server.output_size == 0


def test_messages_read_the_same_with_and_without_a_limit():
    """Covers RTMP 1.0 §5.3: control messages that pass others do not disturb their headers."""
    world, peer, source, number = limited(700)
    world.peers.remove(peer)
    for time in range(6):
        source.write(8, time, number, bytes(300))
        peer.server.transport.receive(b"", world.now)
        peer.server.transport.send_control(control.Acknowledgement(time))
        peer.server.transport.send_control(control.PingRequest(time))
    out = [peer.server.transport.take_output()]
    peer.server.transport._obey_no_longer(peer.server.transport._throttle)
    out.append(peer.server.transport.take_output())
    messages = peer.client.transport._reader.feed(b"".join(out[0] + out[1]))
    found = [each for each in map(control.parse_control, messages) if each is not None]
    pings = [each.timestamp for each in found if isinstance(each, control.PingRequest)]
    assert pings == list(range(6))
    assert [message.timestamp for message in messages if message.type_id == 8] == list(range(6))
