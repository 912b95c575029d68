"""The places of the TCP listener: who gets one, who keeps it, and who makes room."""

import errno
import os
import resource
from contextlib import suppress

import gevent
import pytest
from support.sip.tcp_world import OTHER, clock, closed, greeted, hurry, request, server, works
from support.sockets import LOOPBACK, Echo, TcpClient, until

from p2psip.net import descriptors, host_scheduler, tcp
from p2psip.net.clock import monotonic
from p2psip.server.response_context import TIMER_C
from p2psip.stack.stack import Flow
from p2psip.transaction.invite_client import T1


@pytest.fixture
def make():
    made = []

    def run(**options):
        made.append(Echo(**options))
        return made[-1]

    yield run
    for echo in made:
        echo.driver.close()


@pytest.mark.sources
def test_one_turn_is_not_for_all_that_many_have_to_say(make, monkeypatch):
    """Own design: RTP is heard once a turn; connections are read one after another meanwhile."""
    monkeypatch.setattr(host_scheduler, "SLICE", -1.0)  # reading one takes longer
    echo, read_in, loop = make(), [], gevent.get_hub().loop
    receive = tcp.TcpConnection.receive
    clients = [TcpClient(echo.address) for _ in range(10)]
    assert until(lambda: echo.driver.connections == 10)

    def noted(self):
        read_in.append(loop.now())
        return receive(self)

    monkeypatch.setattr(tcp.TcpConnection, "receive", noted)
    for client in clients:
        client.socket.sendall(request())
    assert until(lambda: len(echo.heard) == 10)
    assert len(set(read_in)) == len(read_in)


def test_connections_are_limited_and_places_become_free(make, monkeypatch):
    """Own design: what bindings need is not closed for anybody."""
    hurry(monkeypatch, SHARE=1)
    echo = make(max_connections=3)
    echo.driver._listening[1].keeps = lambda flow: True
    clients = [greeted(echo, source) for source in (OTHER, LOOPBACK, LOOPBACK)]
    assert closed(TcpClient(echo.address))
    assert all(client.ask(request()).startswith(b"SIP/2.0 200") for client in clients)
    assert not echo.driver._listening[1].send(b"x", Flow("TCP", (LOOPBACK, 9)))
    clients.pop().socket.close()
    assert until(lambda: echo.driver.connections == 2) and works(echo)


def test_a_host_has_a_share_and_others_have_room(make, monkeypatch):
    """Own design: two hosts do not fill the place of all."""
    hurry(monkeypatch, SHARE=4)
    echo = make(max_connections=12)
    greedy = [greeted(echo) for _ in range(3)]
    assert closed(TcpClient(echo.address))
    assert not echo.driver._listening[1].send(b"x", Flow("TCP", server().getsockname()))
    assert greeted(echo, OTHER)
    greedy.pop().socket.close()
    assert until(lambda: echo.driver._listening[1].of_host[LOOPBACK] == 2) and works(echo)


def test_the_oldest_of_the_silent_gives_way_to_another_of_its_host(make, monkeypatch):
    """Own design: who opens connections and says nothing holds few of them."""
    hurry(monkeypatch, SHARE=1)
    echo = make(max_connections=16)
    speaker = greeted(echo)
    silent = [TcpClient(echo.address) for _ in range(12)]
    assert until(lambda: echo.driver.connections == 5)
    assert all(map(closed, silent[:8]))
    assert speaker.ask(request()).startswith(b"SIP/2.0 200")
    assert silent[-1].ask(request()).startswith(b"SIP/2.0 200") and works(echo)
    assert max(map(len, echo.driver._listening[1].silent.values())) <= 3


def test_where_all_is_full_the_host_with_most_makes_room(make, monkeypatch):
    """Own design: of what no binding needs, what was silent for longest."""
    hurry(monkeypatch, SHARE=2)
    echo = make(max_connections=6)
    crowd = [greeted(echo, OTHER) for _ in range(3)]
    bound = crowd[0].socket.getsockname()
    echo.driver._listening[1].keeps = lambda flow: flow.remote == bound
    few = [greeted(echo, f"127.0.0.{number}") for number in (3, 3, 4)]
    newcomer = greeted(echo, "127.0.0.5")
    assert closed(crowd[1])
    for client in (crowd[0], crowd[2], *few, newcomer):
        assert client.ask(request()).startswith(b"SIP/2.0 200")


def test_bound_connections_are_kept_for_as_long_as_a_registration_lasts(make, monkeypatch):
    """Own design: whoever else is silent for long gives the place back."""
    now = clock(monkeypatch)
    echo = make()
    phone, other = greeted(echo), greeted(echo)
    bound = phone.socket.getsockname()
    echo.driver._listening[1].keeps = lambda flow: flow.remote == bound
    now[0] += tcp.IDLE_SECONDS + 1
    assert closed(other) and phone.ask(request()).startswith(b"SIP/2.0 200")
    now[0] += tcp.BOUND_SECONDS + 1
    assert closed(phone) and echo.driver.connections == 0


def test_who_says_nothing_loses_the_place(make, monkeypatch):
    now = clock(monkeypatch)
    echo = make()
    silent, pinging, good = (TcpClient(echo.address) for _ in range(3))
    assert good.ask(request()).startswith(b"SIP/2.0 200")
    with suppress(ConnectionError):
        while pinging.ask(b"\r\n\r\n") == b"\r\n":
            now[0] += tcp.GREETING_SECONDS / 2
            gevent.sleep(2 * tcp.SWEEP_SECONDS)
    assert closed(silent) and closed(pinging)
    assert good.ask(request()).startswith(b"SIP/2.0 200") and echo.driver.connections == 1


def test_who_has_been_quiet_for_long_is_closed_and_a_ping_is_a_word(make, monkeypatch):
    """Covers RFC 5626 §4.4.1: keep-alives keep a connection alive.

    Covers RFC 3261 §18 [kept-open] [outlives-transactions]: any is kept for a while without them.
    """
    assert tcp.IDLE_SECONDS > 64 * T1 and tcp.IDLE_SECONDS > TIMER_C
    now = clock(monkeypatch)
    echo = make()
    quiet, pinging = (TcpClient(echo.address) for _ in range(2))
    for client in (quiet, pinging):
        assert client.ask(request()).startswith(b"SIP/2.0 200")
    now[0] += tcp.IDLE_SECONDS - 1
    gevent.sleep(2 * tcp.SWEEP_SECONDS)
    assert quiet.ask(request()).startswith(b"SIP/2.0 200")
    for _ in range(6):
        assert pinging.ask(b"\r\n\r\n") == b"\r\n"
        now[0] += tcp.IDLE_SECONDS / 4
    assert closed(quiet) and echo.driver.connections == 1


def test_without_descriptors_the_loop_does_not_spin(make, monkeypatch, caplog):
    """Own design: and one line tells of it, whatever comes."""
    hurry(monkeypatch, SWEEP_SECONDS=0.1)
    echo = make()
    listener, calls = echo.driver._listening[1], []

    class Exhausted:
        def accept(self):
            calls.append(1)
            raise OSError(errno.EMFILE, "Too many open files")

    true, listener._socket = listener._socket, Exhausted()
    client, began = TcpClient(echo.address), monotonic()
    assert until(lambda: len(calls) >= 2)
    assert len(calls) <= (monotonic() - began) / 0.1 + 2
    assert caplog.messages == ["sip: cannot accept: Too many open files"]
    listener._socket = true
    assert client.ask(request()).startswith(b"SIP/2.0 200")


def test_the_last_descriptors_are_not_for_who_connects(make, monkeypatch, caplog):
    """Own design: media and files need them; and calls stop before files do."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (40, 40))
    scarce = [fd for fd in range(40) if descriptors.is_scarce(fd, descriptors.MEDIA)]
    assert scarce == [*range(35, 40)]
    assert descriptors.within(100) == 20
    echo = make()
    fillers = [os.dup(0) for _ in range(40)]
    assert closed(TcpClient(echo.address)) and closed(TcpClient(echo.address))
    for filler in fillers:
        os.close(filler)
    assert caplog.messages == ["sip: cannot accept: descriptors are scarce"]


def test_without_a_descriptor_nobody_is_called(make, monkeypatch, caplog):
    """Covers RFC 3261 §18.4: the stack tries another way, or gives up."""
    echo = make()

    def exhausted(*words):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tcp, "plain_socket", exhausted)
    assert not echo.driver._listening[1].send(b"x", Flow("TCP", (LOOPBACK, 9)))
    assert caplog.messages == ["sip: cannot accept: Too many open files"]


def test_a_phone_that_is_to_send_keep_alives_and_does_not_is_given_up(make, monkeypatch):
    """Covers RFC 5626 §5.4 [one-crlf-for-two]."""
    now = clock(monkeypatch)
    echo = make()
    clients = [greeted(echo), greeted(echo)]
    listener = echo.driver._listening[1]
    listener.keeps, listener.is_dead = lambda flow: True, lambda flow, silence: silence > 150
    now[0] += 140
    assert clients[0].ask(b"\r\n\r\n") == b"\r\n"
    now[0] += 11
    assert until(lambda: echo.driver.connections == 1) and closed(clients[1])
    assert clients[0].ask(request()).startswith(b"SIP/2.0 200")
