"""The short way of output, in Python and in C: the same traffic through both."""

import gc
import socket
import weakref
from contextlib import suppress

import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pump.built import built
from support.sockets import until

from rtmplite.live.duration_limit import DurationLimit
from rtmplite.live.streams import Registry
from rtmplite.net import pipe as python
from rtmplite.net import tcp_connections
from rtmplite.net.clock import now as clock
from rtmplite.net.tcp_connections import TcpConnections
from rtmplite.rtmp.application import OpenApplication
from rtmplite.rtmp.connection import ChunkTransport, ConnectionLimits
from rtmplite.rtmp.server import ServerConnection
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_writer import ChunkFraming

pytestmark = pytest.mark.needs("gcc")


def compiled():
    return built("_pipe", "rtmplite.net")


class Owner:
    """A connection that keeps what its socket won't take, as `Peer` does, and says what it did."""

    def __init__(self, module, dirty, told, wake=None):
        self.near, self.far = socket.socketpair()
        for each in (self.near, self.far):
            each.setblocking(False)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        self.output, self.kept, self.read, self.told = [], b"", b"", told
        self.pipe = module.Pipe(self, self.output, dirty, wake, self.near)

    def guard(self, call, *arguments):
        self.told.append((call.__name__, *arguments[1:2]))
        call(*arguments)

    def keep(self, output, sent):
        self.kept += b"".join(output)[sent:]
        self.pipe.is_plain = False

    def send_failed(self, error, output):
        self.told.append(type(error))
        if isinstance(error, BlockingIOError):
            self.keep(output, 0)
        else:
            self.pipe.close()

    def flush(self):
        self.kept += b"".join(self.output)
        self.output.clear()
        if self.kept:
            try:
                self.kept = self.kept[self.near.send(self.kept) :]
            except BlockingIOError:
                return
            except OSError:
                self.pipe.close()
                return
        self.pipe.is_plain = not self.kept

    def drain(self):
        try:
            self.read += self.far.recv(1 << 20)
        except BlockingIOError:
            return

    def shut(self):
        self.pipe.close()
        self.near.close()
        self.far.close()


class Side:
    """Some connections that are flushed together."""

    def __init__(self, module, wakes):
        self.flush, self.dirty, self.told = module.flush, [], []
        wake = (lambda: self.told.append("wake")) if wakes else None
        self.owners = [Owner(module, self.dirty, self.told, wake) for _ in range(3)]

    def do(self, what, number, size):
        owner = self.owners[number]
        match what:
            case "put":
                owner.pipe.put(bytes([number]) * size)
            case "all":
                for each in self.owners:
                    each.pipe.put(b"x" * size)
            case "drain":
                owner.drain()
            case "special":
                owner.pipe.is_plain = False
                self.dirty.append(owner.pipe)
            case "leave":
                owner.far.close()
            case "close":
                owner.pipe.close()
            case "flush":
                self.flush(self.dirty)

    def state(self):
        owners = self.owners
        sent = [(each.output, each.kept, each.read, each.pipe.is_plain) for each in owners]
        return sent, self.told, [owners.index(each) for each in self._owners_of_dirty()]

    def _owners_of_dirty(self):
        return [each for pipe in self.dirty for each in self.owners if each.pipe is pipe]


actions = st.sampled_from(("put", "put", "all", "all", "drain", "flush", "flush", "special"))
ends = st.sampled_from(("leave", "close"))
steps = st.tuples(actions | ends, st.integers(0, 2), st.sampled_from((1, 40, 900, 5000, 60_000)))


@settings(max_examples=150, deadline=None)
@given(st.booleans(), st.lists(steps, max_size=40))
def test_both_do_the_same(wakes, drawn):
    """Own design: full sockets, ends, and owners that have more to do than to send."""
    plain, pumped = sides = Side(python, wakes), Side(compiled(), wakes)
    for step in (*drawn, ("flush", 0, 0), ("drain", 0, 0), ("drain", 1, 0), ("drain", 2, 0)):
        for side in sides:
            if step[0] != "drain" or side.owners[step[1]].far.fileno() >= 0:
                side.do(*step)
        assert pumped.state() == plain.state()
    for side in sides:
        for owner in side.owners:
            owner.shut()


pieces = st.tuples(st.integers(0, 2), st.sampled_from((1, 700, 5000, 40_000)), st.integers(1, 3))


def connected(connections):
    """The pipe and the far end of a connection whose socket takes little."""
    near, far = socket.socketpair()
    for each in (near, far):
        each.setblocking(False)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    machine = ServerConnection(lambda app: OpenApplication(), Registry(), bytes, clock())
    machine.transport.peer_address = ("127.0.0.1", 1)
    connections.adopt(near, machine)
    return machine.transport.short_way, far


@pytest.mark.parametrize("module", [python, "compiled"])
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.just("turn") | pieces | st.tuples(st.just(0), st.just(1), st.just(1500))),
    st.sampled_from((0.0, 2.0)),
)
def test_a_short_write_leaves_the_rest_in_order(module, drawn, merge_ms):
    """Own design: with the real owner, over sockets that take little, and beyond IOV_MAX."""
    module = compiled() if module == "compiled" else module
    with pytest.MonkeyPatch.context() as patch:
        for name in ("Pipe", "flush"):
            patch.setattr(tcp_connections, name, getattr(module, name))
        connections = TcpConnections(merge_ms)
        connections.start()
        ends = [connected(connections) for _ in range(3)]
        put, read = [bytearray() for _ in ends], [bytearray() for _ in ends]

        def drain():
            for (_, far), seen in zip(ends, read, strict=True):
                with suppress(BlockingIOError):
                    seen.extend(far.recv(1 << 16))
            return read == put

        for number, each in enumerate(drawn):
            if each == "turn":
                gevent.sleep(0)
                continue
            first, size, times = each
            for (way, _), said in [*zip(ends, put, strict=True)][first:]:
                for _ in range(times):
                    way(bytes([number]) * size)
                    said.extend(bytes([number]) * size)
        assert until(drain)
        connections.stop()
        for _, far in ends:
            far.close()


@pytest.mark.parametrize("module", [python, "compiled"])
def test_one_buffer_reaches_all_in_one_call(module):
    """Own design: the owner is not asked, and the list is empty for the next turn."""
    side = Side(compiled() if module == "compiled" else module, wakes=False)
    side.do("all", 0, 40)
    assert len(side.dirty) == 3
    side.do("flush", 0, 0)
    assert not side.dirty and not side.told
    for owner in side.owners:
        assert owner.far.recv(999) == b"x" * 40 and not owner.output
        owner.shut()


@pytest.mark.parametrize("module", [python, "compiled"])
def test_an_owner_may_close_all_meanwhile(module):
    """Own design: pipes behind it in the same turn send nothing any more."""
    side = Side(compiled() if module == "compiled" else module, wakes=False)
    first, *others = side.owners

    def flush():
        for each in side.owners:
            each.shut()

    first.flush, first.pipe.is_plain = flush, False
    side.do("all", 0, 40)
    side.do("flush", 0, 0)
    assert [each.output for each in others] == [[b"x" * 40]] * 2 and len(side.told) == 1


def test_what_is_no_output_is_refused():
    """Own design: C relies on bytes, on lists and on a descriptor."""
    module, dirty = compiled(), []
    owner = Owner(module, dirty, [])
    with pytest.raises(TypeError):
        owner.pipe.put("text")
    for wrong in ((owner, (), dirty, None, owner.near), (owner, [], (), None, owner.near)):
        with pytest.raises(TypeError):
            module.Pipe(*wrong)
    with pytest.raises(TypeError):
        module.flush(())
    owner.output.append(bytearray(b"no bytes"))
    module.flush([owner.pipe, 7])
    assert owner.told == [("flush",)]
    owner.shut()
    with pytest.raises(ValueError):
        module.Pipe(owner, [], dirty, None, owner.near)


def test_an_error_of_an_owner_is_told(monkeypatch):
    """Own design: the other connections are served all the same."""
    seen = []
    monkeypatch.setattr("sys.unraisablehook", lambda error: seen.append(error.exc_type))
    side = Side(compiled(), wakes=False)
    side.owners[0].pipe.is_plain = False
    side.owners[0].guard = None
    side.do("all", 0, 40)
    side.do("flush", 0, 0)
    assert seen == [TypeError] and side.owners[2].far.recv(99)
    for owner in side.owners:
        owner.shut()


def test_a_cycle_of_a_pipe_is_collected():
    """Own design: an owner knows its pipe, and that the owner."""
    owner = Owner(compiled(), [], [])
    owner.near.close()
    owner.far.close()
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


class Shaken:
    """A handshake that is over."""

    done, rest = True, b""

    def receive(self, data, now):
        return b""


class TestShortWay:
    """Which way the media of a live stream go to a connection."""

    @pytest.fixture
    def transport(self):
        made = ChunkTransport(Shaken(), 0.0, ConnectionLimits())
        made.short, made.long = [], made.output
        made.short_way = made.short.append
        return made

    @pytest.fixture
    def live(self):
        return Registry().open("live", "demo")

    def write(self, live):
        live.write(8, 0, b"\xb2sound", 0.0)

    def test_nothing_special_goes_the_short_way(self, transport, live):
        """Own design: the same bytes, and nothing else."""
        player = transport.join(live, 1, None, 0.0)
        player.waiting = False
        self.write(live)
        assert transport.short == [ChunkFraming(1)(8, 0, b"\xb2sound")] and not transport.long
        transport.send_window(7)  # which is none of a stream's
        assert len(transport.long) == 1

    @pytest.mark.parametrize("stop", ["busy", "limited", "closed", "shut"])
    def test_what_has_to_wait_goes_the_long_way(self, transport, live, stop):
        """Own design: a full socket, a limit of the peer (RTMP 1.0 §5.4.5), an end."""
        transport.join(live, 1, None, 0.0).waiting = False
        match stop:
            case "busy":
                transport.unsent(5)
            case "limited":
                transport._on_control(control.SetPeerBandwidth(1, 0), 0.0)
            case "closed":
                transport.closed = True
                transport._shut(0.0)
            case "shut":
                transport.short_way = None
                transport.choose_way()
        self.write(live)
        assert not transport.short
        if stop == "busy":
            transport.unsent(0)
            self.write(live)
            assert len(transport.short) == 1

    def test_one_player_that_waits_costs_the_others_nothing(self, transport, live):
        """Own design: each of a group gets each message once, by whichever way."""
        other = ChunkTransport(Shaken(), 0.0, ConnectionLimits())
        for each in (transport, other):
            each.join(live, 1, None, 0.0).waiting = False
        self.write(live)
        assert not transport.short and len(transport.long) == len(other.output) == 1

    def test_a_duration_ends_what_is_played(self, transport, live):
        """RTMP 1.0 §7.2.2.1: the limit replaces the outlet, so nothing may go beside it."""
        player = transport.join(live, 1, None, 0.0)
        player.waiting = False
        player.limit_by(DurationLimit(player, 20.0))
        transport.choose_way()
        for at in (0, 20, 40, 60):
            live.write(8, at, b"\xb2sound", 0.0)
        assert len(transport.long) == 2 and not transport.short

    def test_players_that_have_left_are_forgotten(self, transport, live):
        """Own design: a client may play and stop for ever."""
        for _ in range(100):
            transport.join(live, 1, None, 0.0).leave(0.0)
        assert len(transport._players) == 1
