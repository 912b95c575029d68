"""Audio of publishers that is read in C: the same as by the annotated Python, and on sockets."""

import gc
import logging
import os
import socket
import weakref
from contextlib import suppress
from types import SimpleNamespace

import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pump.built import built
from support.rtmp.rtmp_world import World
from support.sockets import until

from rtmplite.errors import RemoteError
from rtmplite.net import tcp_connections
from rtmplite.net.tcp_connections import TcpConnections
from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.connection import AT_ONCE, ConnectionLimits
from rtmplite.rtmp.lent_reading import AGAIN
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_writer import ChunkWriter
from rtmplite.rtmp.wire.command import Command
from rtmplite.rtmp.wire.message import Message

pytestmark = pytest.mark.needs("gcc")

AUDIO, VIDEO = 8, 9
IMPATIENT = ConnectionLimits(ping_after=3.0, ping_timeout=2.0, idle=30.0)
SOUND = b"\xb2" + bytes(20)
EMPTY = b"\xaf\x00"
FRAME = b"\x17\x01\0\0\0\0\0\0\4\x65\x88\x84\x21"


def compiled():
    return built("_intake", "rtmplite.net")


class Tape(OpenApplication):
    """Takes what is published, and may do something with the message that comes `after` others."""

    def __init__(self):
        self.heard, self.after, self.act = [], 0, None

    def on_publish(self, connection, stream, name, now):
        self.connection, self.stream = connection, stream
        stream.accept_publish(self, now)

    def write(self, type_id, timestamp, payload, now):
        self.heard.append((type_id, timestamp, payload, now))
        self.after -= 1
        if self.act is not None and self.after < 0:
            act, self.act = self.act, None
            self.do(act, now)

    def end(self, now):
        self.heard.append("end")

    def do(self, act, now):
        match act:
            case "pause":
                self.connection.pause_reading()
            case "close":
                self.connection.close(now, "by the sink")
            case "stop":
                self.stream.stop(now)
            case "refuse":
                raise RemoteError("no memory")
            case "fail":
                raise ValueError("a bug")


class Side:
    """A connection that publishes, and the owner of its socket as `Peer` is."""

    def __init__(self, module=None, limits=IMPATIENT):
        self.tape = Tape()
        self.world = World(self.tape, limits=limits)
        peer = self.world.client()
        self.stream_id, self.server = peer.publish("demo"), peer.server
        self.transport, self.world.peers = peer.server.transport, []
        self.output, self.now, self.inlet = b"", 0.0, None
        if module is not None:
            self.sockets = socket.socketpair()
            self.inlet = module.Intake().open(self.sockets[0].fileno(), self)
            self.transport.lent.inlet = self.inlet

    def feed(self, data):
        """Take octets, by the inlet if some of them may be for it."""
        if self.inlet is not None and self.transport.lent.is_lent:
            self.inlet.feed(data, self.now)
        else:
            self.take(data)

    def take(self, data):
        if not self.transport.closed:
            try:
                self.transport.receive(data, self.now)
            except Exception as error:
                self.sink_failed(error)

    def sink_failed(self, error):
        self.server.abort(str(error) if isinstance(error, RemoteError) else "a bug", self.now)

    def read_failed(self, error):
        raise AssertionError(error)

    def pass_time(self, seconds):
        self.now += seconds
        deadline = self.server.deadline
        if deadline is not None and self.now >= deadline:
            self.server.tick(self.now)

    @property
    def state(self):
        """All that anybody could see, but what is only counted while reading is paused."""
        transport, reader = self.transport, self.transport._reader
        deadline, silent = self.server.deadline, transport.is_silent(self.now)
        self.output += b"".join(transport.take_output())
        seen = self.tape.heard, self.output, transport.closed, transport.reason, deadline, silent
        if not transport.reading or transport.closed:
            return seen[0], *seen[2:4]
        streams = {
            number: (each.timestamp, each.delta, each.length, each.type_id, each.stream_id)
            for number, each in reader._streams.items()
        }
        return *seen, streams, reader.bytes_received, self.server._active

    def close(self):
        if self.inlet is not None:
            self.inlet.close()
            for each in self.sockets:
                each.close()


def chunk(fmt, number, time, body, type_id=AUDIO, stream_id=1, length=None):
    """A chunk as its bytes; `length` is that of the message, if it is not whole."""
    length = len(body) if length is None else length
    fields = (
        time.to_bytes(3, "big"),
        length.to_bytes(3, "big") + bytes([type_id]),
        stream_id.to_bytes(4, "little"),
    )
    basic = bytes([fmt << 6 | number]) if number > 1 else bytes([fmt << 6, number])
    return basic + b"".join(fields[: 3 - fmt]) + body


USUAL = chunk(1, 4, 20, SOUND)
oddities = st.one_of(
    st.builds(
        chunk,
        st.integers(0, 3),
        st.sampled_from((4, 4, 4, 5, 2, 63, 0)),
        st.sampled_from((0, 20, 40, 0xFFFFFE, 0xFFFFFF)),
        st.sampled_from((SOUND, SOUND[:9], SOUND[:8], EMPTY, b"", bytes(127), bytes(128), FRAME))
        | st.binary(max_size=140),
        st.sampled_from((AUDIO, AUDIO, AUDIO, VIDEO, 18, 1, 2, 22)),
        st.sampled_from((1, 1, 1, 0, 2, 1 << 24)),
        st.sampled_from((None, None, None, 0, 5, 21, 200, 0xFFFFFF)),
    ),
    st.binary(max_size=20),
    st.sampled_from((USUAL[:5], USUAL[:1], USUAL[:8], USUAL[:20], chunk(3, 4, 0, SOUND))),
)
messages = st.sampled_from(
    (
        control.SetChunkSize(20).message(),
        control.SetChunkSize(21).message(),
        control.SetChunkSize(4096).message(),
        control.WindowAcknowledgementSize(200).message(),
        control.WindowAcknowledgementSize(3000).message(),
        control.SetPeerBandwidth(100, control.LimitType.HARD).message(),
        Command("closeStream", 0.0, None).message(1),
        Command("deleteStream", 0.0, None, (1.0,)).message(0),
        Message(VIDEO, 7, 1, FRAME),
        Message(AUDIO, 7, 1, SOUND),
    )
)
acts = st.tuples(st.integers(0, 6), st.sampled_from(("close", "stop", "refuse", "fail", "pause")))
events = st.one_of(
    st.tuples(st.just("octets"), oddities),
    st.tuples(st.just("octets"), oddities),
    st.tuples(st.just("message"), messages),
    st.tuples(st.just("wait"), st.sampled_from((0.5, 1.5, 3.0, 31.0))),
    st.tuples(st.just("act"), acts),
    st.tuples(st.just("resume"), st.none()),
    st.tuples(st.just("unsent"), st.sampled_from((0, 100, 9_000_000))),
)
# how many usual messages come first, in pieces of which size, and then what
steps = st.tuples(st.integers(0, 40), st.sampled_from((1, 29, 29, 58, 100, 600, 4096)), events)


class Pair:
    """Both sides."""

    def __init__(self):
        self.sides = Side(), Side(compiled())
        self.writer = ChunkWriter()
        for side in self.sides:
            side.feed(chunk(0, 4, 1000, SOUND))
        self.is_paused = False

    def each(self, do):
        for side in self.sides:
            do(side)
        if not any(side.transport.reading for side in self.sides):
            self.is_paused = True

    def feed(self, data, size=4096):
        for at in range(0, len(data), size):
            self.each(lambda side, at=at: side.pass_time(0.02))
            self.each(lambda side, at=at: side.feed(data[at : at + size]))

    def do(self, what, value):
        match what:
            case "octets":
                self.feed(value)
            case "message":
                self.feed(self.writer.write(value, 3))
            case "wait":
                self.each(lambda side: side.pass_time(value))
            case "act":
                for side in self.sides:
                    side.tape.after, side.tape.act = value
            case "unsent":
                self.each(lambda side: side.transport.unsent(value))
            case "resume":
                self.each(lambda side: side.server.resume_reading())
                self.each(lambda side: side.take(b""))

    def compare(self):
        plain, read = (side.state for side in self.sides)
        if self.is_paused:  # octets that wait are counted later, and acknowledged later
            plain, read = (
                each[:1] + each[2:4] if len(each) > 3 else each for each in (plain, read)
            )
        assert read == plain


@settings(max_examples=300, deadline=None)
@given(st.lists(steps, min_size=1, max_size=8))
def test_both_do_the_same(drawn):
    """Own design: every message, time, count, answer and deadline, however the octets are cut."""
    pair = Pair()
    for count, size, event in drawn:
        pair.feed(USUAL * count, size)
        pair.compare()
        pair.do(*event)
        pair.compare()
    for side in pair.sides:
        side.close()


def test_usual_messages_are_read_by_the_inlet():
    """Own design: after the first one all that come whole, and again behind one that is odd."""
    side = Side(compiled())
    side.feed(chunk(0, 4, 1000, SOUND))
    for turn in range(5):
        side.now = 5.0 + turn
        side.feed(USUAL)
    assert side.inlet.passed == 5 and side.tape.heard[-1] == (AUDIO, 1100, SOUND, 9.0)
    side.feed(USUAL * 3 + chunk(0, 6, 40, FRAME, VIDEO) + USUAL)
    assert side.inlet.passed == 8
    side.feed(USUAL)
    assert side.inlet.passed == 9 and side.tape.heard[-1][1] == 1200
    side.feed(USUAL * (AT_ONCE + 2))
    assert side.inlet.passed == 9 + AT_ONCE and len(side.tape.heard) == 12 + AT_ONCE + 2
    side.close()


def test_few_messages_in_a_row_are_not_worth_it():
    """Own design: lending costs more than it saves beside video, so it is tried less often."""
    side = Side(compiled())
    side.feed(chunk(0, 4, 1000, SOUND))
    for _ in range(2 * AGAIN):
        side.feed(USUAL + chunk(0, 6, 40, FRAME, VIDEO))
        side.feed(USUAL)
    assert side.inlet.passed == 2 and len(side.tape.heard) > 20
    side.close()


def test_what_cannot_be_lent_is_tried_again():
    """Own design: asking costs, so it is not done for each message."""
    side = Side(compiled())
    side.server.transport.output_size = 1
    side.feed(chunk(0, 4, 1000, SOUND))
    side.server.transport.output_size = 0
    for _ in range(AGAIN + 1):
        side.feed(USUAL)
    assert side.inlet.passed == 0
    side.feed(USUAL)
    assert side.inlet.passed == 1
    side.close()


@pytest.mark.parametrize(
    "wrong",
    [{0: 1}, {0: 64}, {1: 1 << 32}, {2: 1 << 32}, {3: 0xFFFFFF}, {4: 1 << 24}],
)
def test_impossible_terms_are_refused(wrong):
    """Own design: a bound that C relies on is checked where it comes from Python."""
    side = Side(compiled())
    terms = [4, 1, 0, 20, 21, 128, 1000, print]
    for at, value in wrong.items():
        terms[at] = value
    with pytest.raises(ValueError, match="terms"):
        side.inlet.lend(*terms)
    side.close()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_octets(data):
    """Own design: under sanitizers too, no octets or terms break it: `make sanitize`."""
    side, small = Side(compiled()), st.integers(0, 1 << 33)
    terms = [data.draw(st.integers(2, 63)), *(data.draw(small) for _ in range(5))]
    rest, side.take = [], lambda octets: rest.append(octets)
    with suppress(ValueError):
        side.inlet.lend(*terms, data.draw(small), lambda *message: None)
    for piece in data.draw(st.lists(st.binary(max_size=60))):
        header = bytes([data.draw(st.integers(0, 3)) << 6 | terms[0]])
        side.inlet.feed(header + piece, 1.0)
    side.close()


# -- on sockets --------------------------------------------------------------------------


@pytest.fixture
def connections(monkeypatch):
    monkeypatch.setattr(tcp_connections, "Intake", compiled().Intake)
    made = TcpConnections()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def publisher(connections):
    """The far end of a connection that publishes, and the end of the server."""
    near, far = socket.socketpair()
    near.setblocking(False)
    side = Side(limits=ConnectionLimits())
    side.transport.peer_address = ("127.0.0.1", 1)
    connections.adopt(near, side.server)
    far.sendall(chunk(0, 4, 1000, SOUND))
    assert until(lambda: side.tape.heard)
    yield far, side
    far.close()


def test_it_reads_the_socket(publisher):
    """Own design: one watcher for all, and what is not usual goes to the connection."""
    far, side = publisher
    inlet = side.transport.lent.inlet
    for number in range(3):
        far.sendall(USUAL)
        assert until(lambda number=number: len(side.tape.heard) == 2 + number)
    assert inlet.passed == 3
    far.sendall(USUAL + USUAL[:9])
    assert until(lambda: len(side.tape.heard) == 5)
    far.sendall(USUAL[9:])
    assert until(lambda: len(side.tape.heard) == 6)
    assert [each[1] for each in side.tape.heard] == list(range(1000, 1120, 20))


@pytest.mark.parametrize("is_lent", [True, False])
def test_the_end_of_a_connection(publisher, connections, is_lent):
    """Own design: who has sent its last word is told apart from one that was reset."""
    far, side = publisher
    if not is_lent:
        side.transport.sinks_changed()
    assert side.transport.lent.is_lent == is_lent
    far.close()
    assert until(lambda: side.server.closed)
    assert side.server.reason == "closed by the peer" and not connections.connections


@pytest.mark.parametrize(
    "act, reason", [("refuse", "no memory"), ("fail", "internal error"), ("close", "by the sink")]
)
def test_a_sink_that_fails_costs_its_connection(publisher, caplog, act, reason):
    """Own design: a rule that the peer breaks and a bug are told apart, as without the intake."""
    far, side = publisher
    side.tape.act = act
    with caplog.at_level(logging.ERROR):
        far.sendall(USUAL * 2)
        assert until(lambda: side.server.closed)
    assert side.server.reason.endswith(reason) and side.tape.heard[1:] == [
        side.tape.heard[1],
        "end",
    ]
    assert ("a bug" in caplog.text) == (act == "fail")


def test_a_pause_stops_reading(publisher):
    """Own design: TCP holds the publisher back, and all comes when it may go on."""
    far, side = publisher
    side.tape.act = "pause"
    far.sendall(USUAL * 3)
    assert until(lambda: len(side.tape.heard) == 2)
    gevent.sleep(0)
    assert len(side.tape.heard) == 2
    side.server.resume_reading()
    assert until(lambda: len(side.tape.heard) == 4)


def test_time_that_is_spent_is_counted(publisher, connections):
    """Own design: what the intake reads counts for the share of a turn, and it has one."""
    far, side = publisher
    connections.turns.spent, inlet = 0.0, side.transport.lent.inlet
    far.sendall(USUAL)
    assert until(lambda: inlet.passed == 1)
    assert connections.turns.spent > 0.0
    far.sendall(USUAL)
    connections.intake.turn(connections.turns, 0.0)
    assert inlet.passed == 1 and len(side.tape.heard) == 3


def test_a_budget_that_cannot_be_noted_is_told():
    """Own design: it is an object of Python, and may be anything."""
    for wrong in (object(), SimpleNamespace(spent="long")):
        with pytest.raises((AttributeError, TypeError)):
            compiled().Intake().turn(wrong, 1.0)


def test_a_cycle_of_an_inlet_is_collected():
    """Own design: the owner knows its inlet, that the owner, and the intake both."""
    near, far = socket.socketpair()
    side = Side()
    side.inlet = compiled().Intake().open(near.fileno(), side)
    side.inlet.start(side.take)
    gone = weakref.ref(side)
    del side
    gc.collect()
    assert gone() is None
    near.close()
    far.close()


def test_a_descriptor_that_is_none_is_refused():
    """Own design: C relies on it."""
    for wrong in (-1, 1 << 20):
        with pytest.raises(ValueError, match="descriptor"):
            compiled().Intake().open(wrong, None)
    with pytest.raises(TypeError):
        compiled().Intake(1)


def test_a_socket_in_use_again(connections):
    """Own design: the number of a socket that was closed is free for the next one."""
    intake, (near, far) = compiled().Intake(), socket.socketpair()
    first, called = intake.open(near.fileno(), None), []
    first.start(lambda: called.append(1))
    second = intake.open(near.fileno(), None)
    first.close()
    second.start(lambda: called.append(2))
    far.send(b"x")
    intake.turn(connections.turns, 1.0)
    assert called == [2] and second.active and not first.active
    second.stop()
    intake.turn(connections.turns, 1.0)
    assert called == [2]
    near.close()
    far.close()


def test_what_is_called_may_close_the_inlet_when_it_is_forgotten():
    """Own design: stopping leaves nothing behind, also if that was the last of the intake."""

    class Last:
        """Closes an inlet at its own end."""

        def __init__(self, inlet):
            self.inlet = inlet

        def __call__(self):
            pytest.fail("nothing has come")

        def __del__(self):
            self.inlet.close()

    here, there = socket.socketpair()
    with here, there:
        intake = compiled().Intake()
        inlet = intake.open(here.fileno(), None)
        inlet.start(Last(inlet))
        left = intake.fileno()
        del intake
        inlet.stop()
        assert not inlet.active
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(left)
