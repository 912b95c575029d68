"""Two sessions on a bad network: loss, duplicates, disorder, silence, a change of address."""

from math import inf
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.mutations import mutations, peak
from support.rtmfp.link import calm, storm
from support.rtmfp.pair import FAR, NEAR, Pair, Sender

from rtmplite.rtmfp.crypto.cipher import FlashCipher, Protection
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.send_flow import Priority
from rtmplite.rtmfp.session.session import State


def flash_ciphers():
    """A pair of ciphers of the Flash profile, with numbers and HMACs."""
    one = Protection(bytes(16), b"one" * 11, 10, numbered=True)
    two = Protection(bytes(range(16)), b"two" * 11, 10, numbered=True)
    return FlashCipher(one, two), FlashCipher(two, one)


def messages(seed, count, most=3000):
    random = Random(seed)
    return [b"%6d" % at + random.randbytes(random.randrange(most)) for at in range(count)]


@pytest.mark.parametrize("loss", [0.0, 0.05, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("cipher", ["plain", "flash"])
def test_every_message_arrives_once_and_in_order(loss, cipher):
    """Covers RFC 7016 §3.6.3.3 [in-order] [whole-only], §3.6.3.4 [all-acknowledged], §3.6.2.5
    [three-naks], §3.6.2.6 [lost-after-erto]."""
    ciphers = flash_ciphers() if cipher == "flash" else None
    pair = Pair(storm(Random(7), loss=loss, duplicates=0.1, spread=0.1), ciphers=ciphers)
    user = Sender()
    there, back = messages(1, 60), messages(2, 60)
    flow = pair.flow(b"there", sender=user)
    reply = pair.far.open_flow(b"back", 0.0)
    for out, home in zip(there, back, strict=True):
        flow.send(out, pair.now)
        reply.send(home, pair.now)
        pair.run(0.05)
    flow.close(pair.now)
    reply.close(pair.now)
    pair.run(300.0)
    assert pair.heard(b"there").messages == there
    assert pair.near_listener.receivers[b"back"].messages == back
    assert pair.heard(b"there").gaps == []
    assert (pair.heard(b"there").complete, user.complete) == (1, 1)
    assert (pair.near.queued, pair.near.outstanding, pair.far.buffered) == (0, 0, 0)
    assert dict(pair.near.send_flows) == dict(pair.far.recv_flows) == {}


def test_unordered_messages_arrive_once_too():
    """RFC 7016 §3.6.3.3: in any order."""
    pair = Pair(storm(Random(3), loss=0.2))
    pair.far_listener.setup = lambda flow: setattr(flow, "ordered", False)
    sent = messages(4, 100)
    flow = pair.flow()
    for message in sent:
        flow.send(message, pair.now)
    flow.close(0.0)
    pair.run(300.0)
    assert pair.heard().messages != sent
    assert sorted(pair.heard().messages) == sorted(sent)
    assert (pair.heard().gaps, pair.far.buffered) == ([], 0)


@pytest.mark.parametrize("seed", range(4))
def test_partial_reliability_drops_only_what_is_late(seed):
    """Covers RFC 7016 §3.6.1.2 [gap-told], §3.6.2.7 [whole-message]."""
    pair = Pair(storm(Random(seed), loss=0.3, spread=0.05))
    media = pair.flow(b"media", time_critical=True, priority=Priority.AUDIO)
    bulk = pair.flow(b"bulk")
    sent = {}
    for at in range(300):
        message = b"%d" % at + bytes(400)
        sent[message] = pair.now
        media.send(message, pair.now, lifetime=1.0)
        if at % 10 == 0:
            bulk.send(b"%d" % at, pair.now)
        pair.run(0.02)
    media.close(pair.now)
    pair.run(100.0)
    heard = pair.heard(b"media")
    order = list(sent)
    positions = [order.index(message) for message in heard.messages]
    assert positions == sorted(set(positions))
    assert len(positions) > 150
    assert sum(missing for _, missing in heard.gaps) >= 300 - len(positions) - 1
    assert pair.heard(b"bulk").messages == [b"%d" % at for at in range(0, 300, 10)]
    assert (heard.complete, pair.near.queued, pair.far.buffered) == (1, 0, 0)


def test_in_good_weather_nothing_is_late():
    """RFC 7016 §3.6.2.7: partial reliability costs nothing where nothing is lost."""
    pair = Pair(calm(0.05))
    media = pair.flow(time_critical=True)
    for _ in range(200):
        media.send(bytes(800), pair.now, lifetime=0.5, start_by=0.3)
        pair.run(0.02)
    pair.run(1.0)
    assert (len(pair.heard().messages), pair.heard().gaps) == (200, [])
    assert max(late for late in latenesses(pair)) < 0.06


def latenesses(pair):
    return [heard - 0.02 * at for at, heard in enumerate(pair.heard().times)]


def test_a_silence_of_32_seconds():
    """Covers RFC 7016 §3.6.2.6 [lost-after-erto], §3.5.2.2 [erto-backoff]."""
    pair = Pair()
    pair.link.weather = lambda *_: () if 5.0 <= pair.now < 37.0 else (0.02,)
    reliable, media = pair.flow(b"reliable"), pair.flow(b"media")
    sent = [b"%d" % at for at in range(500)]
    for message in sent:
        reliable.send(message, pair.now)
        media.send(message, pair.now, lifetime=2.0)
        pair.run(0.1)
    silent = [at for at, source, _, _ in pair.link.sent if source == NEAR and 10.0 < at < 37.0]
    assert len(silent) < 45  # of 270 that a sender would make who did not mind
    pair.run(30.0)
    assert pair.heard(b"reliable").messages == sent
    assert pair.heard(b"media").messages[:45] == sent[:45]
    assert 100 <= len(pair.heard(b"media").messages) < 180
    assert (pair.near.state, pair.far.state) == (State.OPEN, State.OPEN)
    assert (pair.near.queued, pair.far.buffered) == (0, 0)


def test_a_client_that_moves():
    """Covers RFC 7016 §3.5.3 [verify-before-moving], §3.5.4.2 [answer-moves]."""
    pair = Pair(storm(Random(5), loss=0.1, spread=0.02))
    flow, reply = pair.flow(b"up"), pair.far.open_flow(b"down", 0.0)
    sent = messages(8, 100, 500)
    moved = ("203.0.113.77", 4242)
    for at, message in enumerate(sent):
        if at == 50:
            pair.link.join(moved, pair.near_node)
            del pair.link.nodes[NEAR]
        flow.send(message, pair.now)
        reply.send(message, pair.now)
        pair.run(0.05)
    pair.run(60.0)
    assert pair.far.address == moved
    assert pair.far_listener.moves == [(NEAR, moved)]
    assert pair.heard(b"up").messages == sent
    assert pair.near_listener.receivers[b"down"].messages == sent


def test_the_window_grows_and_shrinks():
    """Covers RFC 7016 §A.2 [normal-increase] [loss] [full-window-grows], §3.5.2
    [tcp-compatible]."""
    pair = Pair(calm(0.1))
    flow = pair.flow()
    for _ in range(10):
        flow.send(bytes(400_000), 0.0)
    seen = []
    while pair.now < 2.0:
        pair.run(0.05)
        seen.append(pair.near.congestion.cwnd)
        assert pair.near.outstanding < pair.near.congestion.cwnd + 1200
    assert seen == sorted(seen)
    assert seen[-1] > 20_000
    dropped = []

    def lossy(data, source, destination):
        if not dropped and len(data) > 1000:
            dropped.append(pair.near.outstanding)
            return ()
        return (0.1,)

    pair.link.weather = lossy
    before = seen[-1]
    while pair.near.congestion.ssthresh == inf:
        before = pair.near.congestion.cwnd
        pair.run(0.001)
    after = pair.near.congestion.cwnd
    assert 0.7 * before < after < 0.9 * before  # a large window: an eighth of what was out
    pair.run(60.0)
    assert pair.heard().messages == [bytes(400_000)] * 10


class Weather(RuleBasedStateMachine):
    """A user, a network and a peer do anything in any order: messages arrive in theirs."""

    def __init__(self):
        super().__init__()
        self.random = Random(0)
        limits = SessionLimits(buffer_bytes=40_000, keepalive=5.0)
        self.pair = Pair(limits=limits)
        self.flows, self.sent, self.count = [], {}, 0

    @rule(loss=st.sampled_from([0.0, 0.1, 0.3, 1.0]), spread=st.sampled_from([0.0, 0.1, 0.5]))
    def weather(self, loss, spread):
        self.pair.link.weather = storm(self.random, loss=loss, duplicates=loss / 3, spread=spread)

    @rule(ordered=st.booleans(), critical=st.booleans())
    def open(self, ordered, critical):
        if len(self.flows) < 8:
            name = b"%d" % len(self.flows)
            self.pair.far_listener.setup = lambda flow: None
            priority = Priority(critical)
            self.flows.append(self.pair.flow(name, time_critical=critical, priority=priority))
            self.sent[name] = []

    @rule(
        data=st.data(),
        size=st.sampled_from([0, 10, 1000, 5000]),
        lifetime=st.sampled_from([None, None, 0.1, 3.0]),
    )
    def send(self, data, size, lifetime):
        if self.flows:
            flow = data.draw(st.sampled_from(self.flows))
            if flow.state == "F_OPEN":
                self.count += 1
                message = b"%d " % self.count + bytes(size)
                self.sent[flow.metadata].append((message, lifetime))
                outgoing = flow.send(message, self.pair.now, lifetime=lifetime)
                if lifetime == 0.1 and size == 10:
                    flow.abandon(outgoing, self.pair.now)

    @rule(data=st.data())
    def close(self, data):
        if self.flows:
            data.draw(st.sampled_from(self.flows)).close(self.pair.now)

    @rule(data=st.data())
    def hold(self, data):
        flows = list(self.pair.far_listener.flows.values())
        if flows:
            flow = data.draw(st.sampled_from(flows))
            if flow.is_suspended:
                flow.resume(self.pair.now)
            else:
                flow.suspend()

    @rule(seconds=st.sampled_from([0.01, 0.3, 4.0]))
    def wait(self, seconds):
        self.pair.run(seconds)

    @invariant()
    def bounded(self):
        far, near = self.pair.far, self.pair.near
        assert 0 <= far.buffered <= 8 * (40_000 + 70_000)
        assert 0 <= near.outstanding <= near.congestion.cwnd + 65_536
        assert sum(flow.outstanding for flow in near.send_flows.values()) == near.outstanding

    def teardown(self):
        pair = self.pair
        pair.link.weather = calm(0.02)
        for flow in pair.far_listener.flows.values():
            if flow.is_suspended:
                flow.resume(pair.now)
        pair.run(100.0)
        if pair.near.state is not State.OPEN:
            return
        for flow in self.flows:
            receiver = pair.far_listener.receivers.get(flow.metadata)
            heard = receiver.messages if receiver else []
            sent = [message for message, _ in self.sent[flow.metadata]]
            assert [message for message in sent if message in heard] == heard
            must = [message for message, limit in self.sent[flow.metadata] if limit is None]
            assert [message for message in must if message in heard] == must
        assert (pair.near.queued, pair.near.outstanding) == (0, 0)


TestWeather = Weather.TestCase
TestWeather.settings = settings(max_examples=30, stateful_step_count=30)


chunk_like = st.builds(
    lambda kind, payload: bytes((kind, 0, len(payload))) + payload,
    st.sampled_from([0x10, 0x10, 0x11, 0x50, 0x51, 0x5E, 0x18, 0x01, 0x41, 0x0C, 0x7F, 0x0F]),
    st.binary(max_size=24),
)


@given(st.lists(mutations(st.lists(chunk_like, max_size=6).map(b"".join)), max_size=12))
def test_no_packet_of_the_far_end_breaks_a_session(packets):
    """RFC 7016 §5: a peer that has the keys may put anything into a packet."""
    pair = Pair(limits=SessionLimits(session_buffer_bytes=50_000, buffer_bytes=20_000))
    near = pair.near
    flow = near.open_flow(b"m", 0.0)
    for at, chunks in enumerate(packets):
        now = 0.1 * at
        if near.state is State.OPEN and flow.state == "F_OPEN":
            flow.send(bytes(2000), now)
        near.receive(b"ours\x0e\x00\x00\x00\x00" + chunks, FAR, now)
        near.receive(b"ours" + chunks, FAR, now)
        near.take(now)
        near.tick(now)
        assert near.buffered <= 50_000 + 10_000
        assert near.outstanding >= 0
    event(f"{near.state}, {min(len(near.recv_flows), 3)} flows")


def test_a_hostile_far_end_costs_little_memory():
    """RFC 7016 §5: after ten thousand packets that are made to be kept."""
    pair = Pair()
    far = pair.far

    def attack():
        opening = b"\x10\x00\x06\x80%c\x01\x01\x01\x00"  # a flow with empty metadata
        for number in range(2, 5000):
            kind = number % 5
            flow = 1 + number % 100
            chunk = opening % flow
            vlu = bytes((0x80 | number >> 7, number & 0x7F))
            body = [
                b"\x00%c%b\x01" % (flow, vlu) + bytes(1000),  # whole, behind a gap
                b"\x10%c%b\x01" % (flow, vlu) + bytes(1000),  # begun
                b"\x30%c%b\x01" % (flow, vlu),  # middles
                b"\x02%c%b\x00" % (flow, vlu),  # given up
                b"\x01%c%b\x01" % (flow, vlu),  # last
            ][kind]
            chunk += b"\x10%c%c" % (len(body) >> 8, len(body) & 0xFF) + body
            far.receive(b"ours\x01" + chunk, NEAR, number / 100)
            far.take(number / 100)

    assert peak(attack) < 12 << 20
    assert far.buffered <= SessionLimits().session_buffer_bytes
    assert len(far.recv_flows) <= 100
