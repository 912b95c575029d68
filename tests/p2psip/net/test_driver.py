"""What joins a stack, its sockets and its clock."""

import logging
import os
import socket as plain

import gevent
import gevent.socket
import pytest
from gevent.event import Event
from support.sockets import LOOPBACK, Echo, TcpClient, UdpClient, options_request, until

from p2psip.nat import stun_server
from p2psip.nat.stun import BINDING, StunClass, StunMessage
from p2psip.net import driver as module
from p2psip.net.clock import monotonic, wallclock
from p2psip.net.driver import SipDriver, SipPorts
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.locate import Locator, Srv
from p2psip.stack.stack import Flow, Stack


@pytest.fixture
def make():
    made = []

    def run(**options):
        made.append(Echo(**options))
        return made[-1]

    yield run
    for echo in made:
        echo.driver.close()


class Heard:
    def __init__(self):
        self.statuses = []

    def on_response(self, handle, response, now):
        self.statuses.append(response.status)

    def on_failure(self, handle, status, now):
        self.statuses.append(-status)


def ask(echo, uri, body=b""):
    """Send an OPTIONS to `uri` as a machine does; who hears of it."""
    heard = Heard()
    headers = Headers(
        [
            ("Max-Forwards", 70),
            ("From", "<sip:a@b>;tag=1"),
            ("To", "<sip:x@y>"),
            ("Call-ID", str(id(heard))),
            ("CSeq", "1 OPTIONS"),
        ]
    )
    request = Request("OPTIONS", Uri.parse(uri), headers, body)
    echo.driver.run(echo.stack.request, request, heard, monotonic())
    return heard


def uri(echo, more=""):
    return f"sip:x@{echo.address[0]}:{echo.address[1]}{more}"


# Ports


def test_one_port_for_both_transports():
    """Covers RFC 3261 §18 [udp-and-tcp], §18.2.1 [tcp-beside-udp]."""
    ports = SipPorts(LOOPBACK, 0)
    assert ports.udp.getsockname() == ports.tcp.getsockname()
    assert [(each.transport, each.port) for each in ports.listeners] == [
        ("UDP", ports.address[1]),
        ("TCP", ports.address[1]),
    ]
    with pytest.raises(OSError):
        SipPorts(*ports.address)
    ports.udp.close()
    ports.tcp.listen()
    with pytest.raises(OSError):
        SipPorts(*ports.address)  # one of the two is not enough
    ports.tcp.close()


def test_each_transport_has_addresses_of_both_families():
    """Covers RFC 3261 §18.2.1: each socket of IPv6 leaves the port to IPv4 beside it."""
    both = [(LOOPBACK, 0), ("::1", 0)]
    ports = SipPorts(*both[0], also=both[1:], sips=both, ws=both)
    heard = [(transport, at.getsockname()[0], at.family) for transport, at in ports.bound]
    assert sorted((transport, host) for transport, host, _ in heard) == [
        (transport, host) for transport in ("TCP", "TLS", "UDP", "WS") for host, _ in both
    ]
    for _, at in ports.bound:
        if at.family == plain.AF_INET6:
            assert at.getsockopt(plain.IPPROTO_IPV6, plain.IPV6_V6ONLY)
    ports.close()


@pytest.mark.sources
def test_a_port_that_is_free_for_one_transport_only_is_passed_over(monkeypatch):
    true, tries = module._bound, []

    def bound(kind, host, port, **options):
        if kind is plain.SOCK_STREAM:
            tries.append(port)
            if len(tries) < 3:
                raise OSError("taken")
        return true(kind, host, port, **options)

    monkeypatch.setattr(module, "_bound", bound)
    ports = SipPorts(LOOPBACK, 0)
    # more than three, if another program has one of the ports
    assert len(tries) >= 3 and ports.address[1] == tries[-1]
    ports.udp.close()
    ports.tcp.close()
    tries[:] = [0] * -module.BIND_TRIES
    monkeypatch.setattr(module, "_bound", lambda *args, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        SipPorts(LOOPBACK, 0)


def test_an_address_that_is_not_here():
    with pytest.raises(OSError):
        SipPorts("192.0.2.1", 0)


# Between two


@pytest.mark.parametrize("more", ["", ";transport=tcp"])
def test_a_question_is_answered(make, more):
    """Covers RFC 3261 §18.1.1 [hears-on-its-connection] [accepts-at-sent-by]."""
    one, two = make(), make()
    heard = ask(one, uri(two, more))
    assert until(lambda: heard.statuses == [200])
    assert two.heard == ["OPTIONS"] and two.driver.connections == (1 if more else 0)


def test_a_large_request_goes_by_tcp_and_back_to_udp_where_nobody_listens(make):
    """Covers RFC 3261 §18.1.1."""
    one, two = make(), make()
    heard = ask(one, uri(two), b"x" * 2000)
    assert until(lambda: heard.statuses == [200]) and one.driver.connections == 1
    two.driver._listening[1].close()
    assert until(lambda: one.driver.connections == 0)
    heard = ask(one, uri(two), b"x" * 2000)
    assert until(lambda: heard.statuses == [200]) and one.driver.connections == 0


def test_silence_is_a_408_in_time(make):
    """Covers RFC 3261 §17.1.2.2: the one timer serves every deadline."""
    one = make(t1=0.01)
    silent = plain.socket(plain.AF_INET, plain.SOCK_DGRAM)
    silent.bind((LOOPBACK, 0))
    began = monotonic()
    heard = ask(one, f"sip:x@{LOOPBACK}:{silent.getsockname()[1]}")
    assert until(lambda: heard.statuses == [-408])
    assert monotonic() - began >= 64 * one.stack.t1
    silent.close()


@pytest.mark.sources
def test_what_is_addressed_to_ourselves_uses_no_socket(make):
    one = make()
    one.driver.udp.send = one.driver._listening[1].send = None  # would fail
    heard = ask(one, uri(one))
    assert until(lambda: heard.statuses == [200])


# Names


def test_a_name_is_looked_up_without_stopping_the_others(make):
    asked, answered = [], Event()

    def locate(target):
        asked.append(target.host)
        answered.wait()
        return [Flow("UDP", two.address)]

    one, two = make(locate=locate), make()
    heard = ask(one, "sip:x@example.com")
    assert UdpClient(one.address).ask(options_request()).startswith(b"SIP/2.0 200")
    assert heard.statuses == [] and asked == ["example.com"]
    answered.set()
    assert until(lambda: heard.statuses == [200])


def test_a_look_up_that_fails_is_no_route(make, caplog):
    def locate(target):
        raise RuntimeError("the resolver is broken")

    one = make(locate=locate)
    with caplog.at_level(logging.ERROR):
        heard = ask(one, "sip:x@example.com")
        assert until(lambda: heard.statuses == [-503])
    assert "locating example.com" in caplog.text


@pytest.mark.parametrize("transport", ["TCP", "UDP"])
def test_of_the_servers_that_dns_names_the_first_that_serves_is_used(make, transport):
    """Covers RFC 3263 §4.2 [first-first] [then-the-next]: after a refusal, after a 503, in order.

    Nobody listens at the first one; by UDP that is silence.
    """
    one, busy, good, spare = make(t1=0.02), make(), make(), make()
    busy.on_request = lambda server, request, now: (busy.heard.append("x"), server.reply(503, now))
    closed = plain.socket(
        plain.AF_INET, {"TCP": plain.SOCK_STREAM}.get(transport, plain.SOCK_DGRAM)
    )
    closed.bind((LOOPBACK, 0))
    ports = [closed.getsockname()[1], *(each.address[1] for each in (busy, good, spare))]
    label = f"_sip._{transport.lower()}.example.com SRV"
    records = {label: [Srv(rank, 1, port, "a.example.com") for rank, port in enumerate(ports)]}
    records["a.example.com A"] = [LOOPBACK]

    def locate(target):
        locator = Locator.of_uri(target, random=os.urandom, transports=[transport])
        while locator.hops is None:
            locator.answer([records.get(str(each), ()) for each in locator.questions])
        return [hop.flow for hop in locator.hops]

    one.driver._locate = locate
    heard = ask(one, "sip:x@example.com")
    assert until(lambda: heard.statuses == [200])
    assert (busy.heard, good.heard, spare.heard) == (["x"], ["OPTIONS"], [])
    closed.close()


@pytest.mark.parametrize("transport", ["TLS", "SCTP"])
def test_a_transport_that_is_not_here_is_no_route(make, transport):
    one = make(locate=lambda target: [Flow(transport, (LOOPBACK, 5061))])
    heard = ask(one, "sip:x@example.com")
    assert until(lambda: heard.statuses == [-503])


# When something goes wrong


class Broken:
    """A machine whose tick fails, once."""

    def __init__(self):
        self.deadline = monotonic()

    def tick(self, now):
        self.deadline = None
        raise RuntimeError("a bug")


def test_an_error_of_ours_stops_nobody_else(make, caplog):
    one = make()
    true = one.on_request
    calls = []

    def on_request(server, request, now):
        calls.append(request)
        if len(calls) == 1:
            raise RuntimeError("a bug")
        true(server, request, now)

    one.on_request = on_request
    one.driver.machines.append(Broken())
    with caplog.at_level(logging.ERROR):
        assert UdpClient(one.address).ask(options_request("1")).startswith(b"SIP/2.0 500")
        for client in (UdpClient(one.address), TcpClient(one.address)):
            assert client.ask(options_request(type(client).__name__)).startswith(b"SIP/2.0 200")
        assert until(lambda: "Broken.tick" in caplog.text)
    assert "a bug" in caplog.text


def test_an_error_for_who_called_is_told_and_orders_go_out_all_the_same(make):
    one, two = make(), make()
    heard = Heard()

    def act():
        heard.statuses += ask(one, uri(two)).statuses
        raise RuntimeError("afterwards")

    with pytest.raises(RuntimeError):
        one.driver.run(act)
    assert until(lambda: two.heard == ["OPTIONS"])


# The end


@pytest.mark.sources
def test_a_message_is_answered_by_one_look_at_the_orders(make, monkeypatch):
    """Own design: the loop is asked for another turn only by what happens outside of an event."""
    echo, turns = make(), []
    monkeypatch.setattr(echo.driver, "wake", lambda: turns.append(SipDriver.wake(echo.driver)))
    assert UdpClient(echo.address).ask(options_request()).startswith(b"SIP/2.0 200")
    gevent.idle()  # until the loop has nothing else to do
    assert len(turns) == 1


def test_closing_twice_and_everything_after_it_is_harmless(make):
    one = make()
    client = TcpClient(one.address)
    assert client.ask(options_request()).startswith(b"SIP/2.0 200")
    one.driver.close()
    one.driver.close()
    assert client.read() == b"" and one.driver.connections == 0
    ask(one, f"sip:x@{LOOPBACK}:9")
    one.driver.wake()
    assert UdpClient(one.address).socket is not None


def test_one_clock_runs_and_the_other_is_told():
    """Covers RFC 3550 §4: wall-clock time is monotonic time and an offset."""
    import time

    before, now, after = time.time(), wallclock() + monotonic(), time.time()
    assert before - 0.1 < now < after + 0.1


class Late:
    """A machine that is due at once, and notes what had been heard by then."""

    def __init__(self, heard):
        self.deadline, self.heard, self.seen = None, heard, None

    def tick(self, now):
        self.deadline, self.seen = None, list(self.heard)


def test_what_waits_in_the_socket_is_read_before_the_timers_are_seen_to(make):
    one = make()
    late = Late(one.heard)
    one.driver.machines.append(late)
    sender = plain.socket(plain.AF_INET, plain.SOCK_DGRAM)
    sender.sendto(options_request(), one.address)
    late.deadline = monotonic()
    one.driver.wake()
    assert until(lambda: late.seen is not None)
    assert late.seen == ["OPTIONS"]
    sender.close()


@pytest.mark.parametrize("host", [LOOPBACK, "::1"])
def test_a_keep_alive_by_udp_leaves_by_the_family_of_its_flow(host):
    """Covers RFC 5626 §4.4.2: and its answer comes back, with the flow."""
    request, heard = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12)).data, []
    driver = SipDriver(Stack(random=os.urandom), SipPorts(LOOPBACK, 0, also=[("::1", 0)]))
    driver.on_pong = lambda flow, data, now: not heard.append((flow, data))
    family = plain.AF_INET6 if ":" in host else plain.AF_INET
    with gevent.socket.socket(family, plain.SOCK_DGRAM) as udp:
        udp.settimeout(20)
        udp.bind((host, 0))
        flow = Flow("UDP", udp.getsockname()[:2])
        driver.ping(flow, request)
        data, source = udp.recvfrom(100)
        assert (data, source[0]) == (request, host)
        said = stun_server.answer(data, source[:2])
        udp.sendto(said, source)
        assert until(lambda: heard) and heard == [(flow, said)]
    driver.close()


def test_a_keep_alive_by_tcp_has_its_answer_and_may_end_the_connection(make):
    """Covers RFC 5626 §4.4.1: and §5.4 [one-crlf-for-two] for questions of the peer."""
    echo, heard = make(), []
    # of two answers in a row the second one looks like one half of a question
    echo.driver.on_pong = lambda flow, data, now: not heard.append(data) and len(heard) <= 2
    with gevent.socket.socket() as tcp:  # `create_server` would block the loop
        tcp.settimeout(20)
        tcp.bind((LOOPBACK, 0))
        tcp.listen()
        flow = Flow("TCP", tcp.getsockname())
        echo.driver.ping(flow, b"\r\n\r\n")
        accepted, _ = tcp.accept()
        with accepted:
            accepted.settimeout(20)
            assert accepted.recv(100) == b"\r\n\r\n"
            for count in (1, 2):
                accepted.send(b"\r\n")
                assert until(lambda count=count: len(heard) == count)
            accepted.send(b"\r\n\r\n")
            assert accepted.recv(100) == b"\r\n" and heard == [b""] * 4
            echo.driver.lose(flow)
            assert accepted.recv(100) == b"" and not echo.driver.connections
            echo.driver.lose(flow)  # changes nothing
            echo.driver.lose(Flow("UDP", flow.remote))
