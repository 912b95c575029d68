"""The packet pump on real sockets: what it reads, whom it tells, and what cannot break it."""

import gc
import socket
import struct
import sys
import weakref
from contextlib import suppress
from ipaddress import IPv6Address
from itertools import product
from pathlib import Path

import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.gateway.audio_rig import ULAW
from support.pump.built import built
from support.pump.side import Outlet
from support.sockets import until

from p2psip.net.media.port_pool import PortPool
from p2psip.net.media.rtp_ports import MediaPort
from p2psip.rtp.payload import opus, speex
from siprtmp.pump.packet_pump import packet_pump

pytestmark = pytest.mark.needs("gcc")

HEADER = b"\x04" + bytes(6) + b"\x08\x01" + bytes(3)
CLOCK = (0, 0, 1000, 1000, 8000, 40_000)


def terms(*outlets, head=b"\x82", check=0, sequence=0, clock=CLOCK, wake=lambda: None):
    """Terms for PCMU of source 7, which has sent packet `sequence` at 0."""
    heard = sequence, 8000, 0.0, 0, 0.0
    ways = tuple(each.put for each in outlets)
    return ways, HEADER, 4096, head, check, 0, 7, heard, clock, (10, 0.06), wake


def packet(number, payload=ULAW[1:]):
    return struct.pack("!BBHII", 0x80, 0, number, 160 * number, 7) + payload


@pytest.fixture
def pump(monkeypatch):
    monkeypatch.setitem(sys.modules, "siprtmp.pump._pump", built())
    monkeypatch.setitem(sys.modules, "siprtmp.pump._to_phone", built("_to_phone"))
    monkeypatch.delenv("SIPRTMP_PURE", raising=False)
    made = packet_pump()
    yield made
    made.close()


@pytest.fixture
def port(pump):
    made = MediaPort("127.0.0.1", PortPool(), None, None, pump=pump)
    made.heard = []
    made.on_rtp = made.on_rtcp = lambda data, now: made.heard.append(data)
    yield made
    made.close()


@pytest.fixture
def phone(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.connect(("127.0.0.1", port.rtp_port))
        port.remote = made.getsockname()
        yield made


def test_a_port_that_is_watched_is_read_by_python_alone(port, phone):
    """Own design: a pump tells nothing of what it reads and sends."""
    told, taken = [], []
    outlet = port.outlet(lambda *message: taken.append(message))
    phone.send(packet(0))
    assert until(lambda: port.heard)
    assert port.offload(*terms(Outlet())) is not None
    port.watch(lambda *each: told.append(each[2]))
    for number in (1, 2):
        phone.send(packet(number))
    assert until(lambda: len(port.heard) == 3)
    assert told == [packet(1), packet(2)] and port.offload(*terms(Outlet())) is None
    outlet.publish(8, 0, ULAW, 1.0)
    assert len(taken) == 1 and port.received == 3
    port.watch(None)
    phone.send(packet(3))
    assert until(lambda: len(port.heard) == 4)
    assert len(told) == 2


def test_it_reads_the_socket_and_passes_usual_packets_on(pump, port, phone):
    """Own design: the first is for Python, and when that has offloaded the flow, no more are."""
    phone.send(packet(0))
    assert until(lambda: port.heard)
    outlet = Outlet()
    flow = port.offload(*terms(outlet))
    for number in (1, 2, 3):
        phone.send(packet(number))
    assert until(lambda: len(outlet.output) == 3)
    assert port.heard == [packet(0)] and port.received == 4 and pump.figures[:2] == (3, 1)
    assert outlet.output[2] == b"\x04\0\x04\x24\0\0\xa1\x08\x01\0\0\0" + ULAW  # 1060 ms
    assert flow.reclaim()[0] == 3
    phone.send(packet(4))
    assert until(lambda: len(port.heard) == 2) and not flow.reclaim()


def test_a_stranger_is_none_of_its_business(port, phone):
    """Own design: Python counts it, and the flow stays where it is."""
    phone.send(packet(0))
    assert until(lambda: port.heard)
    flow = port.offload(*terms(Outlet()))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(packet(1), ("127.0.0.1", port.rtp_port))
        assert until(lambda: port.strangers == 1)
    phone.send(packet(1))
    assert until(lambda: port.received == 2) and flow.reclaim()[0] == 1


def test_all_that_waits_is_read(pump, port, phone):
    """Own design: also if the loop was busy, and many have come meanwhile."""
    for number in range(100):
        phone.send(packet(number))
    assert until(lambda: port.received == 100) and port.heard == [packet(n) for n in range(100)]


def test_ipv6(pump):
    """Own design: addresses are compared whole."""
    port = MediaPort("::1", PortPool(), None, None, pump=pump)
    heard = []
    port.on_rtp = lambda data, now: heard.append(data)
    outlet = Outlet()
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as phone:
        phone.bind(("::1", 0))
        port.remote = phone.getsockname()[:2]
        phone.sendto(packet(0), ("::1", port.rtp_port))
        assert until(lambda: heard)
        assert port.offload(*terms(outlet))
        phone.sendto(packet(1), ("::1", port.rtp_port))
        assert until(lambda: outlet.output) and len(heard) == 1
    port.close()


def link_local():
    """An address of this machine that needs a zone, and the number of its interface."""
    with suppress(FileNotFoundError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            digits, index, *_ = line.split()
            if digits.startswith("fe80"):
                return str(IPv6Address(int(digits, 16))), int(index, 16)
    pytest.skip("no link-local address")


def test_a_link_local_address_is_told_as_recvfrom_does(pump):
    """Own design: the zone is a member of the tuple only, else no source would equal `remote`."""
    host, scope = link_local()
    told = []
    with (
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as near,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as phone,
    ):
        for each in (near, phone):
            each.setblocking(False)
            each.bind((host, 0, 0, scope))
        flow = pump.open(near.fileno(), lambda *datagram: told.append(datagram), print)
        phone.sendto(b"one", near.getsockname())
        assert until(lambda: told)
        flow.close()
        phone.sendto(b"one", near.getsockname())
        assert told[0][:2] == near.recvfrom(9)


@pytest.mark.parametrize("end", [(1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("member", [1, 2])
def test_a_clock_that_is_far_away_is_for_python(end, member):
    """Own design: under sanitizers nothing overflows; see `make sanitize`."""
    taken, outlet, source = [], Outlet(), ("127.0.0.1", 5)
    clock = [*CLOCK]
    clock[member] = end
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        flow = built().Pump().open(opened.fileno(), lambda *what: taken.append(what), print)
        assert flow.offload(source, *terms(outlet, clock=tuple(clock)))
        for number in (1, 1):
            flow.feed(packet(number), source, 1.0)
        assert len(taken) == 2 and not outlet.output


def test_an_outlet_may_close_the_port(port, phone):
    """Own design: whatever it does, the rest of the turn goes on without that socket."""

    class Closing(Outlet):
        def put(self, data):
            super().put(data)
            port.close()

    phone.send(packet(0))
    assert until(lambda: port.heard)
    closing, other = Closing(), Outlet()
    flow = port.offload(*terms(closing, other))
    phone.send(packet(1))
    phone.send(packet(2))
    assert until(lambda: closing.output)
    gevent.sleep(0)
    assert len(closing.output) == len(other.output) == 1
    assert flow.reclaim()[0] == 1 and not flow.offload(("127.0.0.1", 1), *terms(other))


def test_an_error_of_an_outlet_is_told(port, phone, caplog):
    """Own design: as in Python, it costs that message alone."""

    class Broken(Outlet):
        def put(self, data):
            raise ValueError(data[:1])

    phone.send(packet(0))
    assert until(lambda: port.heard)
    port.offload(*terms(Broken()))
    phone.send(packet(1))
    assert until(lambda: port.failures == 1) and "ValueError" in caplog.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"head": b""},
        {"head": b"123456789"},
        {"check": 3},
        {"check": -1},
        {"clock": (0, 0, 0, 0, 0, 1)},
        {"clock": (0, 0, 0, 0, 1, -1)},
    ],
)
def test_impossible_terms_are_refused(port, wrong):
    """Own design: a bound that C relies on is checked where it comes from Python."""
    with pytest.raises(ValueError, match="terms"):
        port.offload(*terms(Outlet(), **wrong))


def test_a_socket_is_read_once():
    """Own design: of two flows of one descriptor one would never be closed."""
    pump = built().Pump()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        flow = pump.open(opened.fileno(), print, print)
        with pytest.raises(ValueError, match="open here already"):
            pump.open(opened.fileno(), print, print)
        flow.close()
        flow.close()
        pump.open(opened.fileno(), print, print)
    with pytest.raises(ValueError, match="descriptor"):
        pump.open(-1, print, print)
    with pytest.raises(OSError):
        pump.open(opened.fileno() + 1000, print, print)


def test_without_it_python_handles_all(monkeypatch):
    """Own design: SIPRTMP_PURE, and a machine without a compiler."""
    monkeypatch.setitem(sys.modules, "siprtmp.pump._pump", built())
    monkeypatch.setitem(sys.modules, "siprtmp.pump._to_phone", built("_to_phone"))
    monkeypatch.setenv("SIPRTMP_PURE", "1")
    assert packet_pump() is None
    monkeypatch.delenv("SIPRTMP_PURE")
    monkeypatch.setitem(sys.modules, "siprtmp.pump._pump", None)  # as if it were not there
    assert packet_pump() is None


@pytest.mark.parametrize(
    ("check", "is_sound"),
    [
        (1, lambda payload: bool(speex.one_frame(payload)[0])),
        (2, lambda payload: bool(opus.total_ticks(payload))),
    ],
)
def test_a_payload_is_judged_as_in_python(check, is_sound):
    """Covers RFC 5574 §3.3 and RFC 7587 §4.2: every mode, lengths about those of frames."""
    outlet, source = Outlet(), ("127.0.0.1", 5)
    sizes = (1, 2, 5, 6, 7, 10, 15, 16, 20, 21, 28, 29, 38, 42, 46, 52, 62, 66)
    middles, ends = (0, 1, 6, 13, 63, 0x5B, 0xB9, 255), (0, 1, 3, 7, 8, 15, 16, 31)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        pump = built().Pump()
        flow = pump.open(opened.fileno(), lambda *datagram: None, print)
        for first, middle, size, end in product(range(256), middles, sizes, ends):
            payload = (bytes([first]) + bytes([middle]) * size)[: size - 1] + bytes([end])
            flow.offload(source, *terms(outlet, check=check))
            flow.feed(packet(1, payload), source, 1.0)
            assert bool(flow.reclaim()[0]) == is_sound(payload), payload.hex()
            outlet.output.clear()


addresses = st.one_of(
    st.just(("127.0.0.1", 5)),
    st.tuples(st.text(max_size=5), st.integers(-1, 70_000)),
    st.tuples(st.just("::1"), st.just(5), st.integers(-1, 1 << 33), st.integers(0, 9)),
    st.none(),
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_bytes_from_anywhere(data):
    """Own design: under sanitizers too, no datagram, address or terms break it: `make sanitize`."""
    taken, failed, outlet = [], [], Outlet()
    pump = built().Pump()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        flow = pump.open(opened.fileno(), lambda *what: taken.append(what), failed.append)
        clock = data.draw(
            st.tuples(
                st.integers(0, 0xFFFFFFFF),
                *[st.integers(-(1 << 63), (1 << 63) - 1) for _ in range(3)],
                st.integers(1, 1 << 40),
                st.integers(0, 1 << 40),
            )
        )
        check, head = data.draw(st.integers(0, 2)), data.draw(st.binary(min_size=1, max_size=8))
        source = data.draw(addresses)
        flow.offload(source, *terms(outlet, head=head, check=check, clock=clock))
        body = data.draw(st.binary(max_size=80))
        header = struct.pack("!BBHII", 0x80, 0, 1, data.draw(st.integers(0, 0xFFFFFFFF)), 7)
        for each in (body, header + body, header[: len(body)], header + bytes(5000)):
            flow.feed(each, data.draw(st.sampled_from((source, data.draw(addresses)))), 1e300)
        assert len(taken) + len(outlet.output) == 4 and not failed
        flow.close()


def test_a_cycle_of_a_pump_is_collected():
    """Own design: a port knows its flow, that its pump, and that the port's callbacks."""

    class Owner:
        def take(self, *what):
            pass

    owner, pump = Owner(), built().Pump()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        owner.flow = pump.open(opened.fileno(), owner.take, owner.take)
        gone = weakref.ref(owner)
        del owner, pump
        gc.collect()
        assert gone() is None


def spoken(
    *, head=b"\x82", kind=0, octets=0, ticks=160, clock=(0, 0, 0, 8000, 7), pace=(0.0, 0.0, 1.0)
):
    """Terms for PCMU of our source 9, packet 1 of which is the next."""
    return head, kind, octets, True, ticks, (0, 0, 9), clock, pace


class TestToPhone:
    """What a publisher says, on its way to a phone's socket."""

    @pytest.fixture
    def handed(self):
        return []

    @pytest.fixture
    def outlet(self, port, handed, phone):
        return port.outlet(lambda *message: handed.append(message))

    def test_it_sends_where_the_port_does(self, pump, port, phone, outlet, handed):
        """Own design: a new address holds for the next packet."""
        before = pump.figures.sent
        assert outlet.offload(*spoken())
        outlet.publish(8, 0, ULAW, 1.0)
        assert phone.recv(999) == packet(0, b"")[:2] + b"\0\1\0\0\0\7\0\0\0\x09" + ULAW[1:]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", 0))
            other.settimeout(10)
            port.remote = other.getsockname()
            outlet.publish(8, 20, ULAW, 1.02)
            assert other.recv(999)[2:8] == b"\0\2\0\0\0\xa7"
        assert not handed and port.unsent == 0 and outlet.passed == 2
        assert pump.figures.sent == before + 2
        port.remote = None
        outlet.publish(8, 40, ULAW, 1.04)
        assert handed == [(8, 40, ULAW, 1.04)]

    def test_what_cannot_be_sent_is_counted(self, port, outlet):
        """Own design: media never waits, nor fails."""
        assert outlet.offload(*spoken())
        outlet.publish(8, 0, b"\x82" + bytes(65_530), 1.0)
        assert port.unsent == 1
        port.close()
        outlet.publish(8, 20, ULAW, 1.02)
        assert port.unsent == 1 and outlet.reclaim()[0] == 1 and not outlet.offload(*spoken())

    def test_ipv6(self, pump):
        """Own design: as the address of the answer is."""
        port = MediaPort("::1", PortPool(), None, None, pump=pump)
        outlet = port.outlet(print)
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as phone:
            phone.bind(("::1", 0))
            phone.settimeout(10)
            port.remote = phone.getsockname()[:2]
            assert outlet.offload(*spoken())
            outlet.publish(8, 0, ULAW, 1.0)
            assert phone.recv(999)[12:] == ULAW[1:]
        port.close()

    def test_an_error_of_the_stream_is_its_callers(self, port):
        """Own design: as without a pump."""
        with pytest.raises(TypeError):
            port.outlet(lambda: None).publish(8, 0, ULAW, 1.0)

    @pytest.mark.parametrize(
        "wrong",
        [
            {"head": b""},
            {"head": b"123456789"},
            {"kind": 3},
            {"kind": -1},
            {"ticks": 0},
            {"ticks": 1 << 31},
            {"clock": (0, 0, 0, 0, 7)},
            {"clock": (0, 0, 1, 8000, 7)},
            {"clock": (1 << 62, 0, 0, 8000, 7)},
            {"clock": (0, -1, 0, 8000, 7)},
            {"clock": (0, 0, 0, 8000, -1)},
        ],
    )
    def test_impossible_terms_are_refused(self, outlet, wrong):
        """Own design: a bound that C relies on is checked where it comes from Python."""
        with pytest.raises(ValueError, match="terms"):
            outlet.offload(*spoken(**wrong))

    @settings(max_examples=300, deadline=None)
    @given(st.data())
    def test_any_message(self, data):
        """Own design: under sanitizers too, no message or terms break it: `make sanitize`."""
        taken, far = [], st.integers(-(1 << 66), 1 << 66)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
            outlet = built("_to_phone").ToPhone(opened.fileno(), lambda *all: taken.append(all))
            outlet.aim(data.draw(addresses))
            clock = data.draw(st.tuples(*[st.integers(0, 1 << 60)] * 5))
            pace = data.draw(st.tuples(*[st.floats()] * 3))
            head = data.draw(st.binary(min_size=1, max_size=8))
            terms = spoken(head=head, kind=data.draw(st.integers(0, 2)), clock=clock, pace=pace)
            try:
                outlet.offload(*terms)
            except ValueError:
                return
            body = data.draw(st.binary(max_size=80))
            for each in (
                body,
                head + body,
                head[: len(body)],
                head + bytes(70_000),
                bytearray(body),
            ):
                number, at = data.draw(st.sampled_from((8, 9)) | far), data.draw(far)
                outlet.publish(number, at, each, data.draw(st.floats()))
            assert len(taken) + outlet.passed == 5


def test_a_pump_that_cannot_read_costs_no_sockets(pump, monkeypatch):
    """Own design: the pair is closed, and its ports are free, at once and not when collected."""
    pool, kept = PortPool(20_000, 20_200), []
    opened = pool.open

    def open_and_keep(ip):
        kept.append(opened(ip))
        return kept[-1]

    def refuse(*of):
        raise OSError(28, "No space left on device")

    free = pool.free
    monkeypatch.setattr(pool, "open", open_and_keep)
    monkeypatch.setattr(pump, "open", refuse)
    with pytest.raises(OSError, match="No space"):
        MediaPort("127.0.0.1", pool, None, None, pump=pump)
    assert kept[0].rtp.fileno() == kept[0].rtcp.fileno() == -1 and pool.free == free


def test_a_picture_is_read_at_once(pump):
    """Own design: the packets of an access unit, however many sockets are read in between."""
    port = MediaPort("127.0.0.1", PortPool(), None, None, pump=pump)
    port.on_rtp = lambda data, now: None
    seen = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
        phone.bind(("127.0.0.1", 0))
        phone.connect(("127.0.0.1", port.rtp_port))
        port.remote = phone.getsockname()
        reception = 0, 90_000, 0.0, 0, 0.0
        assert port.gather(lambda *whole: seen.append(whole), 0, 7, reception)
        for number, marker in ((1, 0), (2, 0), (3, 1)):
            header = struct.pack("!BBHII", 0x80, marker << 7, number, 3600, 7)
            phone.send(header + b"\x41\x9a" + bytes([number]))
        pump._pump.turn()
        assert [each[:2] for each in seen] == [
            (3600, (b"\x41\x9a\1", b"\x41\x9a\2", b"\x41\x9a\3"))
        ]
        assert port.received == 3 and pump.figures.passed == 3
    port.close()
