"""The port: many at once, and what goes wrong in one of them."""

import os
import socket

import pytest
from support.sockets import until

from rtmplite.net import read_budget, rtmfp_port
from rtmplite.net.clock import now
from rtmplite.net.rtmfp_port import RtmfpPort
from rtmplite.rtmfp.crypto.epd import Epd
from rtmplite.rtmfp.crypto.flash_profile import FlashProfile
from rtmplite.rtmfp.endpoint.endpoint_listener import EndpointListener
from rtmplite.rtmfp.session.session import SessionListener

URL = Epd(ancillary_data=b"rtmfp://127.0.0.1/live").encode()


class Everybody(EndpointListener):
    """Takes every session."""

    def __init__(self):
        self.sessions = []

    def on_session(self, session, opening, now):
        self.sessions.append(session)
        return SessionListener()


@pytest.fixture
def make():
    """Ports on loopback, closed afterwards."""
    ports = []

    def port(profile):
        ports.append(RtmfpPort("127.0.0.1", 0, profile, Everybody()))
        ports[-1].start()
        return ports[-1]

    yield port
    for each in ports:
        each.close()


def heard(port):
    return port.endpoint.listener.sessions


def client():
    return FlashProfile.client(os.urandom, groups=(2,))


def test_more_handshakes_at_once_than_there_are_threads(make):
    """Own design: none is lost, and none blocks the hub."""
    server = make(FlashProfile.server(os.urandom))
    clients = [make(client()) for _ in range(40)]
    for each in clients:
        each.endpoint.connect(URL, [server.address], now())
    assert until(lambda: len(heard(server)) == 40)
    assert until(lambda: all(map(heard, clients)))
    assert server.endpoint.keyings_in_work == 0


class Due:
    """An endpoint that is due, and notes what it is called for."""

    def __init__(self, order):
        self.deadline, self.order, self.openings, self.sessions = now(), order, [], []
        self.take = self.take_jobs = lambda *moment: []

    def receive_known(self, datagrams, moment):
        self.order += ["input"] * len(datagrams)
        return []

    def tick(self, moment):
        self.deadline = None
        self.order.append("alarm")


class Sorting(Due):
    """An endpoint with one session, whose packets begin with "s", and the order of what comes."""

    def __init__(self, order):
        super().__init__(order)
        self.deadline = None

    def receive_known(self, datagrams, moment):
        others = []
        for datagram, source in datagrams:
            if datagram[:1] == b"s":
                self.receive(datagram, source, moment)
            else:
                others.append((datagram, source))
        return others

    def receive(self, datagram, source, moment):
        self.order.append((source[0], datagram))


@pytest.fixture
def sorting(make, monkeypatch):
    """A port, the order of what its endpoint is given, and `send(host, *datagrams)`."""
    server, order = make(FlashProfile.server(os.urandom)), []
    closing = server.endpoint
    monkeypatch.setattr(read_budget, "SHARE", 0.0)  # one datagram of a host, then the next host
    monkeypatch.setattr(server, "endpoint", Sorting(order))

    def send(host, *datagrams):
        with socket.socket(type=socket.SOCK_DGRAM) as sender:
            sender.bind((host, 0))
            for each in datagrams:
                sender.sendto(each, server.address)

    yield server, order, send
    server.endpoint = closing


def test_sessions_come_before_strangers_and_each_stranger_has_a_turn(sorting):
    """Own design: a flood of hellos delays neither media nor the one hello of another host."""
    _, order, send = sorting
    for host in ("127.0.0.2", "127.0.0.3"):
        send(host, *(b"h%d" % number for number in range(100)))
    send("127.0.0.4", b"h")
    send("127.0.0.1", b"s1", b"s2")
    assert until(lambda: len(order) == 203)
    assert order[:2] == [("127.0.0.1", b"s1"), ("127.0.0.1", b"s2")]
    assert order[4] == ("127.0.0.4", b"h")
    for host in ("127.0.0.2", "127.0.0.3"):
        assert [data for who, data in order if who == host] == [b"h%d" % n for n in range(100)]


def test_of_too_many_strangers_the_one_with_most_loses_its_oldest(sorting, monkeypatch):
    """Own design: memory is bounded."""
    server, order, send = sorting
    monkeypatch.setattr(rtmfp_port, "MAX_WAITING", 20 * rtmfp_port.OVERHEAD)
    send("127.0.0.2", b"h1", b"h2")
    send("127.0.0.3", *(b"h%d" % number for number in range(100)))
    assert until(lambda: ("127.0.0.3", b"h99") in order)
    assert [data for who, data in order if who == "127.0.0.2"] == [b"h1", b"h2"]
    assert 10 < len(order) < 22 and (server._waiting, server._strangers) == (0, {})


def test_what_has_arrived_is_read_before_the_alarm(make, monkeypatch):
    """Own design: an acknowledgement that is here saves what the alarm would send again."""
    server, order = make(FlashProfile.server(os.urandom)), []
    with monkeypatch.context() as patch, socket.socket(type=socket.SOCK_DGRAM) as sender:
        patch.setattr(server, "endpoint", Due(order))
        sender.sendto(b"a packet", server.address)
        server._alarm.set(server.endpoint.deadline, now())
        assert until(lambda: "alarm" in order)
    assert order == ["input", "alarm"]


def test_a_job_that_breaks_is_over(make, monkeypatch, caplog):
    """Own design: its caller may try again."""
    server, broken = make(FlashProfile.server(os.urandom)), []
    respond = FlashProfile.respond

    def breaks(self, *args):
        if not broken:
            broken.append(args)
            raise ZeroDivisionError
        return respond(self, *args)

    monkeypatch.setattr(FlashProfile, "respond", breaks)
    caller = make(client())
    caller.endpoint.connect(URL, [server.address], now())
    assert until(lambda: broken and server.endpoint.keyings_in_work == 0)
    assert "ZeroDivisionError" in caplog.text
    assert until(lambda: heard(caller) and heard(server))
