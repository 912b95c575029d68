"""The bus: what a worker may hear and say, and whoever else has found the socket."""

import json
import socket

import gevent
import pytest
from support.limits import patience
from support.sockets import is_closed, until

from rtmplite.net.clock import now
from siprtmp.edge.workers import bus as module
from siprtmp.edge.workers.bus import Bus
from siprtmp.edge.workers.place import close_places, open_places
from siprtmp.settings.table import ListenerSettings

NOTHING = ListenerSettings(rtmp=None, rtmfp=None, sip=(), http=None)


@pytest.fixture
def places():
    made = open_places(NOTHING, 2)
    yield made
    close_places(made)


@pytest.fixture
def heard():
    return []


@pytest.fixture
def first(places, heard):
    """The bus of worker 0, whose greeting is one message."""

    def lost(worker):
        heard.append(("lost", worker))

    made = Bus(places[0], {"say": lambda *what: heard.append(what)}, lambda: [{"do": "hi"}], lost)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def other(places, first):
    """A connection to worker 0."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
        connected.connect(places[0].bus_path(0))
        connected.setblocking(False)
        yield connected


@pytest.mark.parametrize(
    "said",
    [
        *(b"\xff\xfe\n", b"{\n", b"{}\n", b"[1]\n", b"null\n", b"[" * 20_000 + b"\n"),
        *(b'{"worker":[]}\n', b'{"worker":[1]}\n', b'{"worker":0}\n', b'{"worker":7}\n'),
        *(b'{"worker":1}\nnull\n', b'{"worker":1}\n[]\n', b'{"worker":1}\n{"answer":[]}\n'),
        b'{"worker":1}\n{"do":[]}\n',
    ],
)
def test_who_is_no_worker_is_disconnected(first, other, heard, said, capfd):
    """In one line of the log at most, and what a worker says next is heard."""
    other.sendall(said)
    assert until(lambda: is_closed(other))
    assert "Traceback" not in capfd.readouterr().err
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as worker:
        worker.connect(first._place.bus_path(0))
        worker.sendall(b'{"worker":1}\n{"do":"say"}\n')
        assert until(lambda: (1, {"do": "say"}) in heard)


def test_a_line_without_end_is_cut_off(first, other, monkeypatch):
    """A worker holds so much of a message and no more."""
    monkeypatch.setattr(module, "MAX_LINE", 100_000)
    with patience(60):
        while not is_closed(other):
            try:
                other.send(b"x" * 5000)
            except BlockingIOError:
                gevent.sleep(0)
            except OSError:
                break


def test_what_it_cannot_serve_costs_one_message(first, other, heard, caplog):
    """A handler that fails is a mistake of ours, and logged."""
    first._handlers["fail"] = lambda *what: 1 / 0
    other.sendall(b'{"worker":1}\n{"do":"fail"}\n{"do":"none"}\n{"do":"say"}\n')
    assert until(lambda: heard) and "ZeroDivisionError" in caplog.text
    other.close()
    assert until(lambda: heard[1:] == [("lost", 1)])


def test_a_request_that_nobody_waits_for_any_more_is_not_served(first, other, heard):
    """A worker that was stopped would give up a name long after its claimant was refused."""
    other.sendall(b'{"worker":1}\n')
    for number, until_ in ((5, now() - 1), (6, now() + 60)):
        other.sendall(json.dumps({"do": "say", "ask": number, "until": until_}).encode() + b"\n")
    assert until(lambda: heard)
    assert [message["ask"] for _, message in heard] == [6]


def test_a_worker_that_does_not_read_is_left_and_greeted_again(places, first, monkeypatch):
    """It is owed no more than a limit; when it reads again, it learns all from the beginning."""
    monkeypatch.setattr(module, "MAX_WAITING", 50_000)
    listener = places[1].bus
    listener.setblocking(False)
    accepted = []

    def accept():
        try:
            accepted.append(listener.accept()[0])
        except BlockingIOError:
            return False
        return True

    assert until(accept)
    way = first._ways[1]
    for _ in range(2000):
        first.tell({"do": "say", "text": "x" * 1000}, 1)
        if way._connected is None:
            break
        gevent.sleep(0)
    assert way._connected is None and until(accept)
    assert until(lambda: way._connected is not None)
    first.tell({"do": "last"}, 1)
    data = bytearray()

    def read():
        try:
            data.extend(accepted[1].recv(9999))
        except BlockingIOError:
            return False
        return b"last" in data

    accepted[1].setblocking(False)
    assert until(read)
    assert [*map(json.loads, data.splitlines())] == [{"worker": 0}, {"do": "hi"}, {"do": "last"}]
    for each in accepted:
        each.close()


def test_a_greeting_is_sent_however_long_it_is(places, heard, monkeypatch):
    """What is told while it is under way comes behind it, and is all that may wait."""
    monkeypatch.setattr(module, "MAX_WAITING", 50_000)
    text = "x" * 1000
    names = [{"do": "name", "name": f"{number} {text}"} for number in range(2000)]
    handlers = {"name": lambda *what: heard.append(what)}
    greetings = [lambda: names, lambda: []]
    buses = [
        Bus(place, handlers, greeting, lambda worker: None)
        for place, greeting in zip(places, greetings, strict=True)
    ]
    buses[0].start()
    way = buses[0]._ways[1]
    assert until(lambda: way._connected is not None)
    last = {"do": "name", "name": "last"}
    buses[0].tell(last)
    buses[1].start()
    assert until(lambda: len(heard) > len(names))
    assert heard == [(0, each) for each in (*names, last)]
    for each in buses:
        each.stop()


def test_what_is_offered_to_a_worker_that_does_not_read_is_lost(places, first, monkeypatch):
    """The connection stays, with room for what must be told, and nothing more is kept."""
    monkeypatch.setattr(module, "MAX_WAITING", 2_000_000)
    monkeypatch.setattr(module, "MAX_OFFERED", 50_000)
    listener, way = places[1].bus, first._ways[1]
    assert until(lambda: way._connected is not None)
    connected = way._connected
    for _ in range(3000):
        first.offer({"do": "say", "text": "x" * 1000}, 1)
        if not way.has_room:
            break
        gevent.sleep(0)
    waiting = way._size
    assert 50_000 <= waiting < 52_000
    for _ in range(2000):
        first.offer({"do": "say", "text": "x" * 1000}, 1)
    assert way._connected is connected and way._size == waiting
    first.offer({"do": "say"}, 7)
    first.tell({"do": "last"}, 1)
    with listener.accept()[0] as accepted:
        accepted.setblocking(False)
        data = bytearray()

        def read():
            try:
                data.extend(accepted.recv(1 << 16))
            except BlockingIOError:
                return False
            return b"last" in data

        assert until(read)
    assert way._size < waiting
