"""The UDP listener on a real socket."""

import os
import random
import socket as plain

import gevent
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from support.mutations import mutations
from support.sockets import LOOPBACK, Echo, UdpClient, options_request, until

from p2psip.nat.stun import BINDING, StunClass, StunMessage
from p2psip.net import host_queues, host_scheduler, udp
from p2psip.net.udp import BURST, UdpListener
from p2psip.stack.stack import Flow


@pytest.fixture
def echo():
    echo = Echo()
    yield echo
    echo.driver.close()


def works(echo):
    """Whether somebody with good manners is served."""
    return (
        UdpClient(echo.address).ask(options_request(os.urandom(4).hex())).startswith(b"SIP/2.0 200")
    )


def test_a_datagram_is_a_message(echo):
    """Covers RFC 3261 §18.2.1: the answer goes to the port the request came from."""
    client = UdpClient(echo.address)
    answer = client.ask(options_request("a"))
    assert answer.startswith(b"SIP/2.0 200 OK\r\n")
    assert f"rport={client.socket.getsockname()[1]}".encode() in answer


def test_a_phone_behind_a_translator_learns_its_address(echo):
    """Covers RFC 5626 §8 [stun-server] [xor-mapped]: by STUN on the same port; SIP goes on."""
    client = UdpClient(echo.address)
    request = StunMessage.write(StunClass.REQUEST, BINDING, os.urandom(12))
    response = StunMessage.parse(client.ask(request.data))
    assert response.kind is StunClass.SUCCESS
    assert response.transaction_id == request.transaction_id
    assert response.mapped_address() == client.socket.getsockname()[:2]
    assert works(echo)


def test_ipv6_is_served():
    echo = Echo("::1")
    try:
        answer = UdpClient(echo.address).ask(options_request("a", host="[::1]"))
        assert answer.startswith(b"SIP/2.0 200 OK\r\n")
    finally:
        echo.driver.close()


def test_a_burst_is_read_without_loss(echo):
    client = UdpClient(echo.address)
    for number in range(5 * BURST):
        client.socket.send(options_request(str(number)))
    assert until(lambda: len(echo.heard) == 5 * BURST)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n\r\n",
        b"\0" * 65507,
        b"\x80\0" * 600,
        options_request(via=False),
        options_request()[:40],
        options_request(body=b"x" * 60000),
        b"SIP/2.0 200 OK\r\n\r\n",
    ],
    ids=["empty", "ping", "zeros", "rtp", "no Via", "cut", "huge body", "stray response"],
)
def test_garbage_disturbs_nobody(echo, data):
    UdpClient(echo.address).socket.send(data)
    assert works(echo)


def test_without_a_via_nobody_is_answered(echo):
    """Covers RFC 3261 §18.2.1."""
    client = UdpClient(echo.address)
    client.socket.send(options_request(via=False))
    assert b"branch=z9hG4bKnext" in client.ask(options_request("next"))  # the first answer there is
    assert echo.heard == ["OPTIONS"]


def test_random_octets_disturb_nobody(echo):
    client, chaos = UdpClient(echo.address), random.Random(1)
    for _ in range(200):
        client.socket.send(chaos.randbytes(chaos.randrange(1400)))
    assert works(echo)


SHARED = {}


@given(st.lists(mutations(st.just(options_request())), max_size=5))
@settings(max_examples=25)
def test_spoiled_messages_disturb_nobody(datagrams):
    echo = SHARED.get("echo") or SHARED.setdefault("echo", Echo())
    client = UdpClient(echo.address)
    for data in datagrams:
        client.socket.send(data[:60000])
    before = echo.stack.counters.malformed
    assert works(echo)
    event(f"malformed: {echo.stack.counters.malformed > before}")


def teardown_module():
    if SHARED:
        SHARED.pop("echo").driver.close()


@pytest.mark.parametrize(
    "remote",
    [
        (LOOPBACK, 0),
        (LOOPBACK, 70000),
        ("::1", 5060),
        ("255.255.255.255", 5060),
    ],
)
def test_what_cannot_be_sent_is_told(echo, remote):
    """Covers RFC 3261 §18.4 [unreachable-is-told]."""
    assert echo.driver.udp.send(b"x", Flow("UDP", remote)) is False
    assert works(echo)


@pytest.mark.sources
def test_a_full_socket_loses_datagrams_as_udp_may():
    class Full:
        def sendto(self, data, remote):
            raise BlockingIOError

    listener = UdpListener.__new__(UdpListener)
    listener._socket = Full()
    assert listener.send(b"x", Flow("UDP", (LOOPBACK, 5060))) is True


def test_a_datagram_is_read_however_large_it_is():
    """Covers RFC 3261 §18.1.1 [whole-datagrams]."""
    bound = udp.plain_socket(plain.AF_INET, plain.SOCK_DGRAM)
    bound.bind((LOOPBACK, 0))
    bound.setblocking(False)
    heard = []
    listener = UdpListener(bound, lambda data, flow: heard.append(len(data)))
    client = UdpClient(listener.address)
    try:
        client.socket.send(b"x" * 65_507)  # 65,535 with the headers of IP and UDP
        assert until(lambda: heard == [65_507])
    finally:
        listener.close()


@pytest.mark.sources
def test_laborious_datagrams_leave_time_for_others(monkeypatch):
    """Own design: RTP is heard once a turn, so one sender's work must not fill it."""
    monkeypatch.setattr(host_scheduler, "SLICE", -1.0)  # everything takes longer
    heard_in, loop = [], gevent.get_hub().loop
    bound = plain.socket(plain.AF_INET, plain.SOCK_DGRAM)
    bound.bind((LOOPBACK, 0))
    bound.setblocking(False)
    listener = UdpListener(bound, lambda data, flow: heard_in.append(loop.now()))
    sender = plain.socket(plain.AF_INET, plain.SOCK_DGRAM)
    for _ in range(10):
        sender.sendto(b"x", listener.address)
    assert until(lambda: len(heard_in) == 10)
    assert len(set(heard_in)) == 10
    listener.close()
    sender.close()


@pytest.fixture
def listening():
    """A listener and the datagrams that it has given, each with the host it came from."""
    bound = udp.plain_socket(plain.AF_INET, plain.SOCK_DGRAM)
    bound.bind((LOOPBACK, 0))
    bound.setblocking(False)
    heard = []
    listener = UdpListener(bound, lambda data, flow: heard.append((flow.remote[0], data)))
    yield listener, heard
    listener.close()


def send_from(host, listener, *datagrams):
    """Send them, before the loop has a turn."""
    with plain.socket(plain.AF_INET, plain.SOCK_DGRAM) as sender:
        sender.bind((host, 0))
        for data in datagrams:
            sender.sendto(data, listener.address)


def test_a_host_that_sends_much_keeps_nobody_waiting(listening):
    """Own design: the one datagram of a host is heard among the first of the others."""
    listener, heard = listening
    for host in ("127.0.0.2", "127.0.0.3"):
        send_from(host, listener, *(b"%d" % number for number in range(100)))
    send_from("127.0.0.4", listener, b"alone")
    assert until(lambda: len(heard) == 201)
    assert heard.index(("127.0.0.4", b"alone")) <= 4
    for host in ("127.0.0.2", "127.0.0.3"):  # each in the order in which it was sent
        assert [data for who, data in heard if who == host] == [b"%d" % n for n in range(100)]


@pytest.mark.sources
def test_where_there_is_too_much_the_host_with_most_loses_its_oldest(listening, monkeypatch):
    """Own design: memory is bounded, and a flood is at the cost of the host that sends it."""
    listener, heard = listening
    monkeypatch.setattr(host_queues, "MAX_WAITING", 20 * host_queues.OVERHEAD)
    send_from("127.0.0.2", listener, b"little", b"more")
    send_from("127.0.0.3", listener, *(b"%d" % number for number in range(100)))
    send_from("127.0.0.2", listener, b"last")
    assert until(lambda: ("127.0.0.3", b"99") in heard)
    assert [data for who, data in heard if who == "127.0.0.2"] == [b"little", b"more", b"last"]
    kept = [int(data) for who, data in heard if who == "127.0.0.3"]
    assert kept == list(range(100))[-len(kept) :] and 10 < len(kept) < 20
    queues = listener._queues
    assert (queues._waiting, queues._of_host) == (0, {})
    send_from("127.0.0.3", listener, b"later")
    assert until(lambda: heard[-1] == ("127.0.0.3", b"later"))


def test_what_waits_is_forgotten_on_closing(listening):
    listener, heard = listening
    listener._on_message = lambda data, flow: [heard.append(data), listener.close()]
    send_from("127.0.0.2", listener, b"1", b"2")
    send_from("127.0.0.3", listener, b"3")
    assert until(lambda: heard)
    gevent.sleep(0)
    assert heard == [b"1"]


def test_a_request_leaves_from_where_its_answer_is_heard():
    """Covers RFC 3581 §3 [answers-where-it-sent] and §4 [answers-from-there].

    Covers RFC 3261 §18.1.1 [hears-by-udp].
    """
    bound = udp.plain_socket(plain.AF_INET, plain.SOCK_DGRAM)
    bound.bind((LOOPBACK, 0))
    bound.setblocking(False)
    heard = []
    listener = UdpListener(bound, lambda data, flow: heard.append((data, flow)))
    client = UdpClient(listener.address)
    try:
        there = client.socket.getsockname()
        assert listener.send(b"ask", Flow("UDP", there, listener.address))
        assert client.socket.recv(9) == b"ask"  # from the address it is connected to, or not at all
        client.socket.send(b"answer")
        assert until(lambda: heard == [(b"answer", Flow("UDP", there, listener.address))])
    finally:
        listener.close()


def test_nothing_is_heard_after_closing(listening):
    bound = plain.socket(plain.AF_INET, plain.SOCK_DGRAM)
    bound.setblocking(False)
    bound.bind((LOOPBACK, 0))
    heard, (other, heard_by_other) = [], listening
    listener = UdpListener(bound, lambda data, flow: heard.append(data))
    send_from(LOOPBACK, listener, b"1")
    assert until(lambda: heard == [b"1"])
    send_from(LOOPBACK, listener, b"2")  # it is in the socket when that is closed
    listener.close()
    send_from(LOOPBACK, other, b"3")
    assert until(lambda: heard_by_other)
    assert heard == [b"1"]
