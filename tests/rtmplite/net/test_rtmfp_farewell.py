"""Who publishes by RTMFP ends when all has arrived, or says that it has not."""

import os
import signal
import subprocess
import sys
from collections import deque

import gevent
import pytest
from gevent import socket
from support.limits import patience
from support.peers.process import Process

from rtmplite.cli import tool
from rtmplite.errors import RemoteError
from rtmplite.flv import file
from rtmplite.flv.tag import Tag, TagType
from rtmplite.live.streams import Registry
from rtmplite.net.client.dialer import Dialer
from rtmplite.net.client.rtmfp_client import RtmfpClient
from rtmplite.net.clock import now
from rtmplite.net.server import rtmfp_listener
from rtmplite.net.server.rtmfp_listener import RtmfpListener
from rtmplite.rtmfp.netconnection.client import ClientFlowTransport, RtmfpClientConnection
from rtmplite.rtmfp.netconnection.media_flows import RELIABLE
from rtmplite.rtmfp.netconnection.server import RtmfpServerConnection
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Reply, Target

PICTURES, SIZE = 60, 5000
RATE, BUFFER = 100_000, 64_000  # bytes a second of the slow link, and bytes that wait for it
KEY = b"\x17\x01\0\0\0"


class SlowLink:
    """A UDP relay for one client of a server, slow on the way there, in greenlets of its own."""

    def __init__(self, server):
        self._server, self._client = server, None
        self._near, self._far = self._socket(), self._socket()
        self.address = self._near.getsockname()
        self.broken, self.passed, self._waiting = False, 0, deque()
        self.heard_at = 0.0  # of the client, the last time
        self._greenlets = [gevent.spawn(each) for each in (self._take, self._pass, self._return)]

    def stop(self):
        gevent.killall(self._greenlets)
        self._near.close()
        self._far.close()

    def _socket(self):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind(("127.0.0.1", 0))
        return made

    def _take(self):
        while True:
            data, self._client = self._near.recvfrom(2048)
            self.heard_at = now()
            if sum(map(len, self._waiting)) + len(data) <= BUFFER:
                self._waiting.append(data)

    def _pass(self):
        due = now()
        while True:
            due = max(due, now() - 0.1)
            while self._waiting and due <= now():
                data = self._waiting.popleft()
                due += len(data) / RATE
                if not self.broken:
                    self.passed += len(data)
                    self._far.sendto(data, self._server)
            gevent.sleep(0.01)

    def _return(self):
        while True:
            data, _ = self._far.recvfrom(2048)
            if not self.broken:
                self._near.sendto(data, self._client)


class World:
    """A server, a slow way to it, and what it has heard."""

    def __init__(self):
        self.registry, self.heard = Registry(), []
        application = LiveApplication()
        self.server = RtmfpListener(
            "127.0.0.1",
            0,
            lambda peer: RtmfpServerConnection(
                lambda name: application, self.registry, os.urandom, now()
            ),
        )
        self.server.start()
        self.registry.on_begin.append(lambda live, moment: live.tap(self))
        self.link = SlowLink(self.server.address)
        self.url = "rtmfp://{}:{}/live".format(*self.link.address)

    def write(self, type_id, timestamp, payload, now):
        self.heard.append(timestamp)

    def end(self, now):
        self.heard.append("end")

    def stop(self):
        self.link.stop()
        self.server.stop()


@pytest.fixture
def world():
    made = World()
    yield made
    made.stop()


@pytest.fixture
def film(tmp_path):
    """A file of 300 kB, more than the backlog of a writer that does not wait."""
    tags = [Tag(TagType.VIDEO, 40 * n, KEY + bytes(SIZE)) for n in range(PICTURES)]
    path = tmp_path / "film.flv"
    path.write_bytes(file.write_flv(tags))
    return path


EVERY = [*range(0, 40 * PICTURES, 40), "end"]


def until(condition, timeout=20.0):
    with patience(timeout):
        while not condition():
            gevent.sleep(0.01)


def test_a_fast_publisher_loses_nothing_on_a_slow_link(world, film, capfd):
    assert tool.main(["publish", "--fast", str(film), f"{world.url}/demo"]) == 0
    assert world.heard == EVERY
    assert "not all" not in capfd.readouterr().err


def test_a_client_for_scripts_closes_when_all_has_arrived(world):
    client = RtmfpClient.connect(world.url, lifetimes=RELIABLE)
    stream = client.create_stream()
    stream.publish("demo")
    for number in range(PICTURES):
        stream.write(TagType.VIDEO, 40 * number, KEY + bytes(SIZE))
    stream.delete()
    client.close()
    assert world.heard == EVERY
    client.close()


@pytest.fixture
def impatient(monkeypatch):
    """A client that gives a server up after a second in which nothing gets on."""
    monkeypatch.setattr(ClientFlowTransport, "linger_timeout", 1.0)


def test_a_server_that_is_gone_is_one_line_and_exit_code_1(world, film, impatient, capfd):
    publishing = gevent.spawn(tool.main, ["publish", "--fast", str(film), f"{world.url}/demo"])
    until(lambda: world.link.passed > 100_000)
    world.link.broken = True
    assert publishing.get(timeout=20) == 1
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith("rtmplite: ") and "not all has arrived" in last
    assert "end" not in world.heard


def test_a_script_is_told_by_an_error(world, impatient):
    client = RtmfpClient.connect(world.url, lifetimes=RELIABLE)
    stream = client.create_stream()
    stream.publish("demo")
    stream.write(TagType.VIDEO, 0, KEY + bytes(100_000))
    world.link.broken = True
    with pytest.raises(RemoteError, match="not all has arrived"):
        client.close()
    client.close()  # a second time does nothing


def test_who_leaves_does_not_wait(world, monkeypatch):
    """As one does that was interrupted."""
    client = RtmfpClient.connect(world.url, lifetimes=RELIABLE)
    stream = client.create_stream()
    stream.publish("demo")
    world.link.broken = True
    stream.write(TagType.VIDEO, 0, KEY + bytes(100_000))
    monkeypatch.setattr(ClientFlowTransport, "linger_timeout", 60.0)
    with patience(20.0):
        client.leave()


def test_a_server_that_is_killed_and_a_user_who_has_enough(tmp_path, film):
    """kill -9 of a server in the middle, then Ctrl-C while nobody acknowledges anything."""
    words = [sys.executable, "-m", "rtmplite"]
    serve = Process(tmp_path, [*words, "serve", "--rtmp", "off", "--rtmfp", "127.0.0.1:0"])
    with serve:
        serve.wait_until(lambda: "ready rtmfp=" in serve.output, what="it")
        host, port = serve.output.split("rtmfp=")[1].split()[0].split(":")
        link = SlowLink((host, int(port)))
        url = "rtmfp://{}:{}/live/demo".format(*link.address)
        publish = subprocess.Popen(
            [*words, "publish", "--fast", str(film), url], stderr=subprocess.PIPE
        )
        try:
            until(lambda: link.passed > 100_000)
            serve.child.send_signal(signal.SIGKILL)
            killed_at = now()
            until(lambda: link.heard_at > killed_at + 2.0)  # what it sends again, again unanswered
            assert publish.poll() is None
            publish.send_signal(signal.SIGINT)
            until(lambda: publish.poll() is not None)
            assert publish.returncode == 0
            assert b"Traceback" not in publish.stderr.read()
        finally:
            publish.kill()
            publish.wait()
            link.stop()


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_dialer_waits_for_what_its_machines_have_published(world, impatient, is_broken):
    """As `push` has it: until all has arrived, or never will, which is told."""
    dialer, cut = Dialer(), []
    dialer.on_cut_short = cut.append
    dialer.start()
    client = RtmfpClientConnection(Target.parse(world.url, stream=False), now())
    client.transport.lifetimes = RELIABLE
    dialer.dial(client)
    answers = {}

    def answered(number):
        replies = [event for event in client.events() if isinstance(event, Reply)]
        answers.update((each.transaction_id, each.values) for each in replies)
        return number in answers

    until(lambda: answered(1.0))
    number = client.call("createStream")
    until(lambda: answered(number))
    stream = int(answers[number][1])
    client.send("publish", "demo", "live", stream_id=stream)
    for at in range(PICTURES):
        client.send_media(TagType.VIDEO, 40 * at, stream, KEY + bytes(SIZE))
    client.send("deleteStream", float(stream))
    until(lambda: world.link.passed > 50_000)
    client.close(now())
    world.link.broken = is_broken
    dialer.farewell(is_patient=True)
    dialer.stop()
    assert cut == ([client] if is_broken else [])
    assert (world.heard == EVERY) is not is_broken


def test_push_ends_with_an_error_when_its_target_is_gone(world, impatient, capfd):
    """And not before it knows."""
    source = World()
    address = "rtmfp://{}:{}/live".format(*source.server.address)  # for more than one client
    client = RtmfpClient.connect(address, lifetimes=RELIABLE)
    stream = client.create_stream()
    stream.publish("demo")
    stream.write(TagType.VIDEO, 0, KEY)
    pushing = gevent.spawn(tool.main, ["push", f"{address}/demo", f"{world.url}/demo"])

    def arrives():
        stream.write(TagType.VIDEO, 20, KEY)
        return world.heard

    until(arrives)
    world.link.broken = True
    stream.write(TagType.VIDEO, 40, KEY + bytes(20_000))
    stream.delete()
    assert pushing.get(timeout=20) == 1
    assert "not all has arrived" in capfd.readouterr().err.splitlines()[-1]
    client.close()
    source.stop()


@pytest.mark.parametrize(("seconds", "is_told"), [(5.0, True), (0.0, False)])
def test_a_server_that_stops_tells_its_clients_for_a_moment(world, monkeypatch, seconds, is_told):
    """Own design: thousands could take longer; the end of their sessions all of them hear."""
    monkeypatch.setattr(rtmfp_listener, "FAREWELL", seconds)
    client = RtmfpClient.connect("rtmfp://{}:{}/live".format(*world.server.address))
    [connection] = world.server.connections
    world.server.stop()
    assert (connection.reason == "server stopped") is is_told
    until(lambda: client.closed)
    client.close()
