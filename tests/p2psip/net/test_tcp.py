"""The TCP listener on real sockets."""

import socket as plain
import struct
from contextlib import suppress
from itertools import count

import gevent
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.mutations import mutations
from support.sip.cores import TakesAll
from support.sip.tcp_world import OTHER, clock, closed, greeted, hurry, request, server, works
from support.sockets import LOOPBACK, Echo, TcpClient, readable, until

from p2psip.net import host_scheduler, tcp
from p2psip.stack.stack import Flow


@pytest.fixture
def echo():
    echo = Echo()
    yield echo
    echo.driver.close()


@pytest.fixture
def make():
    made = []

    def run(**options):
        made.append(Echo(**options))
        return made[-1]

    yield run
    for echo in made:
        echo.driver.close()


# Framing


def test_a_stream_is_cut_into_messages(echo):
    """Covers RFC 3261 §18.3: whatever pieces it comes in."""
    client = TcpClient(echo.address)
    data = request("a") + b"\r\n" + request("b") + request("c")
    for start in range(0, len(data), 50):
        client.socket.sendall(data[start : start + 50])
        gevent.sleep(0.001)
    assert until(lambda: len(echo.heard) == 3)
    assert until(lambda: client.read(0.1).count(b"SIP/2.0 200") > 0)


def test_a_ping_is_answered(echo):
    """Covers RFC 5626 §4.4.1."""
    client = TcpClient(echo.address)
    assert client.ask(b"\r\n\r\n") == b"\r\n"
    client.socket.send(b"\r\n")
    assert works(echo)  # so the half of a ping has been read
    assert client.ask(b"\r\n") == b"\r\n"
    assert client.ask(request("a")).startswith(b"SIP/2.0 200")  # no more than one pong before it


def test_a_malformed_message_is_answered_and_the_next_one_read(echo):
    """Covers RFC 3261 §18.3: the frame held, so the stream goes on."""
    client = TcpClient(echo.address)
    bad = request("bad").replace(b"CSeq: 1 OPTIONS", b"CSeq: one OPTIONS")
    assert client.ask(bad).startswith(b"SIP/2.0 400")
    assert client.ask(request("good")).startswith(b"SIP/2.0 200")


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 999999999", b"Content-Length: -1", b"Content-Length: x", b"X: y"],
)
def test_a_length_that_cannot_be_trusted_ends_the_connection(echo, head):
    """Covers RFC 3261 §18.3: with an answer, if the head tells whom to answer."""
    client = TcpClient(echo.address)
    answer = client.ask(request().replace(b"Content-Length: 0", head))
    assert answer[:11] in (b"SIP/2.0 400", b"SIP/2.0 513") and closed(client)
    assert works(echo)


# Ill treatment


@pytest.mark.parametrize("cut", [1, 30, len(request("1234")) - 1])
def test_half_a_message_and_then_silence_for_ever(echo, cut):
    client = TcpClient(echo.address)
    client.socket.sendall(request("1234")[:cut])
    client.socket.close()
    assert until(lambda: echo.driver.connections == 0) and works(echo)


def test_a_reset_in_the_middle(echo):
    client = TcpClient(echo.address)
    client.socket.sendall(request())
    client.socket.setsockopt(plain.SOL_SOCKET, plain.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()
    assert until(lambda: echo.driver.connections == 0) and works(echo)


@pytest.mark.parametrize(
    "data",
    [b"\0" * 100, b"\x03" + bytes(1536), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00" * 200],
    ids=["zeros", "rtmp", "http", "tls"],
)
def test_another_protocol_disturbs_nobody(echo, data):
    client = TcpClient(echo.address)
    client.socket.sendall(data)
    assert works(echo)


def test_a_head_without_end_is_cut_off(echo):
    """Covers RFC 3261 §18.3: memory is bounded."""
    client = TcpClient(echo.address)
    try:
        for _ in range(100):
            client.socket.sendall(b"X-Filler: " + b"y" * 10_000 + b"\r\n")
    except ConnectionError:
        pass
    assert closed(client) and works(echo)


def test_who_never_reads_is_given_up(echo, monkeypatch):
    monkeypatch.setattr(tcp, "MAX_QUEUED", 20_000)
    echo.driver._listening[1]._socket.setsockopt(plain.SOL_SOCKET, plain.SO_SNDBUF, 4096)
    client = TcpClient(echo.address, room=4096)
    assert until(lambda: echo.driver.connections == 1)
    with suppress(ConnectionError):
        for number in count():  # what the kernel takes for a peer that is gone differs
            client.socket.sendall(request(str(number)))
            gevent.sleep(0)
            if not echo.driver.connections:
                break
    assert echo.driver.connections == 0 and works(echo)
    with suppress(ConnectionError):
        while client.socket.recv(65536):
            pass


def test_one_connection_that_says_much_keeps_nobody_waiting(echo):
    """Own design: a request of another host is heard before the third of the first one."""
    talker, other = greeted(echo, OTHER), greeted(echo)
    del echo.flows[:]
    plain.socket.sendall(talker.socket._sock, b"".join(map(request, map(str, range(100)))))
    plain.socket.sendall(other.socket._sock, request("other"))
    assert until(lambda: len(echo.flows) == 101)
    assert [flow.remote[0] for flow in echo.flows].index(LOOPBACK) <= 2


@pytest.mark.parametrize("said", [b"\r\n", request("1")], ids=["keep-alives", "requests"])
@pytest.mark.sources
def test_each_item_of_a_read_may_end_a_slice(echo, monkeypatch, said):
    """Own design: RTP is heard once a turn, and one read holds thousands of keep-alives."""
    monkeypatch.setattr(host_scheduler, "SLICE", -1.0)  # everything takes longer
    taken, loop, listener = [], gevent.get_hub().loop, echo.driver._listening[1]
    listener.on_pong = lambda flow: taken.append(loop.now()) or True
    listener.on_message = lambda data, flow: taken.append(loop.now())
    client = TcpClient(echo.address)
    client.socket.sendall(said * 20)
    assert until(lambda: len(taken) == 20)
    assert len(set(taken)) == 20


def test_a_flow_of_nothing_but_keep_alives_is_closed(echo, monkeypatch):
    """RFC 5626 §4.4.1: one or two in a minute are enough; requests in between show a phone."""
    monkeypatch.setattr(tcp, "MAX_KEEP_ALIVES", 20)
    phone = TcpClient(echo.address)
    for number in range(5):
        assert phone.ask(b"\r\n\r\n" * 8 + request(f"{number}"))
        assert until(lambda number=number: len(echo.heard) == number + 1)
    assert echo.driver.connections == 1 and phone.ask(request("last"))
    stranger = TcpClient(echo.address)
    stranger.socket.sendall(b"\r\n" * 20)
    assert stranger.read() and until(lambda: echo.driver.connections == 2)
    stranger.socket.sendall(b"\r\n")
    assert until(lambda: echo.driver.connections == 1) and works(echo)


def test_keep_alives_of_long_ago_do_not_count(monkeypatch):
    monkeypatch.setattr(tcp, "MAX_KEEP_ALIVES", 20)
    now, echo = clock(monkeypatch), Echo()
    phone = greeted(echo)
    for _ in range(3):
        for _ in range(9):
            assert phone.ask(b"\r\n\r\n") == b"\r\n"
        now[0] += tcp.KEEP_ALIVE_SECONDS + 1
    assert echo.driver.connections == 1
    echo.driver.close()


def test_what_tls_itself_says_counts_as_well(echo, monkeypatch):
    """Own design: whatever fills the queue of a peer that does not read, it has an end."""
    monkeypatch.setattr(tcp, "MAX_QUEUED", 100_000)
    client = greeted(echo)
    [connection] = echo.driver._listening[1].connections.values()

    class Full:
        def __init__(self, real):
            self.real, self.close = real, real.close

        def send(self, data):
            raise BlockingIOError

    class Talkative:
        ended = False
        take_output = staticmethod(lambda: bytes(10_000))
        receive = staticmethod(lambda data: b"")

    connection._socket, connection._tls = Full(connection._socket), Talkative()
    for _ in range(10):
        connection._decrypt(connection._tls, b"x")
        assert len(connection._queued) <= 100_000 and not connection._closed
    connection._decrypt(connection._tls, b"x")
    assert connection._closed and closed(client)


SHARED = {}


@given(mutations(st.just(request("1") + b"\r\n\r\n" + request("2"))))
@settings(max_examples=25)
def test_spoiled_streams_disturb_nobody(data):
    echo = SHARED.get("echo") or SHARED.setdefault("echo", Echo())
    client = TcpClient(echo.address)
    client.socket.sendall(data)
    before = echo.stack.counters.malformed
    assert works(echo)
    event(f"malformed: {echo.stack.counters.malformed > before}")
    client.socket.close()


def teardown_module():
    if SHARED:
        SHARED.pop("echo").driver.close()


# Outward


def test_a_connection_is_opened_and_used_again(echo):
    """Covers RFC 3261 §18.1.1 [connection-used-again].

    Covers RFC 5626 §4.3 [is-used-again] [else-a-new-one].
    """
    listening = server()
    flow = Flow("TCP", listening.getsockname())
    for text in (b"one ", b"two "):
        assert echo.driver._listening[1].send(text, flow)
    assert readable(listening)
    accepted, _ = listening.accept()
    assert readable(accepted) and until(lambda: len(accepted.recv(100, plain.MSG_PEEK)) == 8)
    assert accepted.recv(100) == b"one two " and echo.driver.connections == 1
    assert echo.driver._listening[1].send(b"three", flow)
    assert readable(accepted) and accepted.recv(100) == b"three"


def test_a_refused_connection_is_told(echo):
    """Covers RFC 3261 §18.4 [failed-connection-told]."""
    lost = []
    echo.driver._listening[1].on_failure = lost.append
    closing = server()
    flow = Flow("TCP", closing.getsockname())
    closing.close()
    echo.driver._listening[1].send(b"x", flow)
    assert until(lambda: lost == [flow]) and echo.driver.connections == 0


def test_a_far_end_that_does_not_answer_is_given_up(make, monkeypatch):
    hurry(monkeypatch, CONNECT_SECONDS=0.1)
    echo, lost = make(), []
    full = plain.socket()
    full.bind((LOOPBACK, 0))
    full.listen(0)
    filling = [plain.socket() for _ in range(3)]
    for each in filling:  # more than the backlog: the next SYN is dropped
        each.setblocking(False)
        each.connect_ex(full.getsockname())
    flow = Flow("TCP", full.getsockname())
    echo.driver._listening[1].on_failure = lost.append
    assert echo.driver._listening[1].send(b"x", flow)
    assert until(lambda: lost == [flow])


@pytest.mark.parametrize("remote", [(LOOPBACK, 0), (LOOPBACK, 70000)])
def test_what_cannot_be_reached_is_told(echo, remote):
    """Covers RFC 3261 §18.4."""
    sent = echo.driver._listening[1].send(b"x", Flow("TCP", remote))
    assert not sent or until(lambda: echo.driver.connections == 0)
    assert works(echo)


def test_a_response_whose_connection_is_gone_takes_another(echo):
    """Covers RFC 3261 §18.2.2."""
    asked, listening = [], server()

    class Slow(TakesAll):
        def on_request(self, handle, request, now):
            asked.append(handle)

    echo.stack.core = Slow()
    client = TcpClient(echo.address)
    host, port = listening.getsockname()
    client.socket.send(request().replace(f"TCP {host}".encode(), f"TCP {host}:{port}".encode()))
    assert until(lambda: asked)
    client.socket.close()
    assert until(lambda: echo.driver.connections == 0)
    echo.driver.run(asked[0].reply, 200, 0.0)
    assert readable(listening)
    accepted, _ = listening.accept()
    assert readable(accepted) and accepted.recv(1000).startswith(b"SIP/2.0 200")


def test_a_phone_that_went_away_is_not_called_back_on_its_old_port(echo):
    """What came in on a connection is answered on it or not at all."""
    listening = server()
    flow = Flow("TCP", listening.getsockname(), echo.address)
    assert echo.driver._listening[1].send(b"x", flow) is False
    with pytest.raises(BlockingIOError):
        listening.accept()


def test_a_second_connection_from_the_same_place_replaces_the_first(echo):
    """A phone that was restarted may come from its old port before we know that it went."""
    listener = echo.driver._listening[1]
    flow, lost = Flow("TCP", (LOOPBACK, 40000), echo.address), []
    listener.on_failure = lost.append
    real = server()
    ends = [plain.create_connection(real.getsockname()) for _ in range(2)]
    made = []
    for end in ends:
        made.append(tcp.TcpConnection(listener, end, flow, connected=True))
        made[-1].send(b"x")
    assert lost == [flow] and listener.connections == {(flow.remote, ""): made[1]}
    theirs = [real.accept()[0] for _ in ends]
    made[0].send(b"y")
    assert [end.recv(10) for end in theirs] == [b"x", b"x"]
    assert theirs[0].recv(10) == b""


def test_the_stack_is_not_told_of_a_connection_that_carried_nothing(echo):
    """Covers RFC 3261 §18.4: who only connects, ever so often, costs the transactions nothing."""
    listener, lost = echo.driver._listening[1], []
    listener.on_failure = lost.append
    silent, speaker = TcpClient(echo.address), TcpClient(echo.address)
    assert speaker.ask(request()) and until(lambda: len(listener.connections) == 2)
    known = speaker.socket.getsockname()
    for client in (silent, speaker):
        client.socket.close()
    assert until(lambda: not listener.connections)
    assert [flow.remote for flow in lost] == [known]


def test_what_is_left_to_say_goes_by_the_connection_that_replaces_the_first(echo):
    """Covers RFC 3261 §18.2.2: and by no third one, which nobody would count."""
    listener, real = echo.driver._listening[1], server()
    remote = real.getsockname()
    flow, made = Flow("TCP", remote, echo.address), []
    listener.on_failure = lambda lost: listener.send(b"x", Flow("TCP", remote))
    for _ in range(2):
        end = plain.create_connection(remote)
        made.append((tcp.TcpConnection(listener, end, flow, connected=True), real.accept()[0]))
        made[-1][0].send(b"y")
    assert made[1][1].recv(1) == b"x" and listener.connections == {(remote, ""): made[1][0]}
    with pytest.raises(BlockingIOError):
        real.accept()
    made[1][0].close()
    assert not listener.connections and not listener.of_host
