"""RTMFP of a gateway with two workers: each serves its sessions, and clients find each other."""

import os
import signal
from contextlib import closing, contextmanager

import gevent
import gevent.socket
import pytest
from support.gateway.gateway import Gateway
from support.gateway.richclient import AUDIO, wait_for
from support.gateway.workers import TRIES, lines, one_at, worker_in, workers_of
from support.limits import Clock

from rtmplite.net.addresses import parse
from rtmplite.net.client.rtmfp_client import RtmfpClient
from rtmplite.rtmfp.netconnection.media_flows import LIVE, RELIABLE

WORKERS = ("--sip", "off", "--workers", "2", "--rtmfp", "127.0.0.1:0")


@pytest.fixture
def pair(start) -> Gateway:
    """A gateway with two workers."""
    return start(Gateway, *WORKERS)


class Publisher:
    """A client that publishes 50 sounds a second until it is stopped, and gives up none."""

    def __init__(self, at: str, name: str) -> None:
        self.client = RtmfpClient.connect(f"rtmfp://{at}/live", lifetimes=RELIABLE)
        self.stream = self.client.create_stream()
        self.stream.publish(name)
        self.sent = 0
        self._speaking = gevent.spawn(self._speak)

    def _speak(self) -> None:
        while True:
            self.stream.write(AUDIO, 20 * self.sent, b"\x82" + self.sent.to_bytes(4))
            self.sent += 1
            gevent.sleep(0.02)

    def stop(self) -> None:
        self._speaking.kill()
        self.client.leave()


class Player:
    """A client that plays a stream; `heard()` gives the number of the next sound."""

    def __init__(self, at: str, name: str) -> None:
        self._clock = Clock()
        self.client = RtmfpClient.connect(f"rtmfp://{at}/live")
        self.stream = self.client.create_stream()
        self.stream.play(name)

    def heard(self) -> int | None:
        while (message := self.stream.read(timeout=30)) is not None:
            if message.type_id == AUDIO:
                return int.from_bytes(message.payload[1:])
        return None

    def heard_after(self, last: int) -> int:
        """The number of the next sound, which has to be the next one.

        A gateway gives up sound that is old.  So there may be a gap if somebody has waited for a
        core for as long since the last gap.
        """
        number = self.heard()
        assert number is not None and number > last
        if number > last + 1:
            withheld = self._clock.wall - self._clock.own()
            assert withheld >= LIVE.audio, f"{number} after {last}"
            self._clock = Clock()
        return number

    def stop(self) -> None:
        self.client.leave()


def publisher_at(gateway, worker, name="demo", at=""):
    """A publisher that has reached one worker."""
    at = at or gateway.rtmfp
    return one_at(gateway, worker, "publish-start", lambda: Publisher(at, name))


def player_at(gateway, worker, name="demo"):
    """A player that has reached one worker."""
    return one_at(gateway, worker, "play-start", lambda: Player(gateway.rtmfp, name))


@pytest.mark.parametrize("home", [0, 1])
def test_players_of_either_worker_hear_a_publisher_of_either(pair, home):
    """Each session is in the worker that it has reached, and the figures are those of both."""
    source = publisher_at(pair, home)
    players = [player_at(pair, each) for each in (0, 1)]
    for player in players:
        last = player.heard()
        for _ in range(20):
            last = player.heard_after(last)
    pair.wait_status({"streams": 1, "players": 2, "rtmfp_sessions": 3})
    for each in (source, *players):
        each.stop()
    pair.wait_status({"streams": 0, "players": 0, "rtmfp_sessions": 0, "rtmp_connections": 0})


class Translator:
    """Sends a client's datagrams on from a port of its own, which `move` changes."""

    def __init__(self, server: str) -> None:
        self._server = parse(server)
        self._inner = _bound()
        self._outer, self._client = _bound(), None
        self.at = "{}:{}".format(*self._inner.getsockname())
        self._greenlets = [gevent.spawn(self._out), gevent.spawn(self._back, self._outer)]

    def move(self) -> None:
        """Use another port, as a router that has been started again does."""
        self._greenlets.pop().kill()
        self._outer.close()
        self._outer = _bound()
        self._greenlets.append(gevent.spawn(self._back, self._outer))

    def close(self) -> None:
        gevent.killall(self._greenlets)
        self._inner.close()
        self._outer.close()

    def _out(self) -> None:
        while True:
            data, self._client = self._inner.recvfrom(2048)
            self._outer.sendto(data, self._server)

    def _back(self, outer) -> None:
        while True:
            self._inner.sendto(outer.recv(2048), self._client)


def _bound():
    made = gevent.socket.socket(gevent.socket.AF_INET, gevent.socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    return made


@pytest.mark.parametrize("home", [0, 1])
def test_a_client_stays_in_its_worker_when_its_address_changes(pair, home):
    """Eight new ports in turn, half of which would be the other worker's: nothing is lost."""
    with closing(Translator(pair.rtmfp)) as translator:
        source = one_at(
            *(pair, home, "publish-start"),
            lambda: moved(translator, lambda: Publisher(translator.at, "demo")),
        )
        player = player_at(pair, 1 - home)
        last = player.heard()
        for _ in range(8):
            translator.move()
            until = source.sent + 5
            while last < until:
                last = player.heard_after(last)
        assert pair.status()["rtmfp_sessions"] == 2
        player.stop()
        source.stop()


def moved(translator, begin):
    """Begin at another port, so that another worker may be reached."""
    translator.move()
    return begin()


@contextmanager
def telling(gateway, worker):
    """A client of one worker that others may play from: its peer id."""
    for _ in range(TRIES):
        client = RtmfpClient.connect(f"rtmfp://{gateway.rtmfp}/live")
        known = len(lines(gateway, "play-start"))
        client.create_stream().play("nothing")
        wait_for(lambda: len(lines(gateway, "play-start")) > known, what="its worker")  # noqa: B023
        if worker_in(lines(gateway, "play-start")[known]) == worker:
            yield client
            client.leave()
            return
        client.leave()
    pytest.fail(f"{TRIES} clients, and none has reached worker {worker}")


@pytest.mark.parametrize("home", [0, 1])
def test_clients_of_different_workers_are_introduced(pair, home):
    """One plays from the other, directly."""
    with telling(pair, home) as near, telling(pair, 1 - home) as far:
        publishing = near.publish_direct("tone")
        stream = far.play_from(near.peer_id, "tone", relayed=False)
        publishing.write(AUDIO, 0, b"\x82tone")
        kind, payload = 0, b""
        while kind != AUDIO:
            message = stream.read(timeout=30)
            assert message is not None
            kind, payload = message.type_id, message.payload
        assert payload == b"\x82tone"


def test_a_worker_that_dies_takes_its_own_sessions_only(pair):
    """The stream of the other one is heard on, and the successor serves as before."""
    source, lost = publisher_at(pair, 0), publisher_at(pair, 1, "lost")
    player = player_at(pair, 0)
    last = player.heard()
    os.kill(workers_of(pair)[1], signal.SIGKILL)
    pair.wait_until(lambda: lines(pair, "worker-died"), what="its death")
    pair.wait_until(lambda: len(workers_of(pair)) == 2, what="another one")
    again = player_at(pair, 1)
    assert again.heard() is not None
    until = source.sent
    while last < until:
        last = player.heard_after(last)
    pair.wait_status({"streams": 1, "players": 2, "rtmfp_sessions": 3, "workers_silent": 0})
    for each in (source, player, again):
        each.stop()
    lost.client.leave()


def test_relays_between_clients_leave_all_of_them_in_one_worker(start):
    """Where one stands in for another, both have to be there."""
    gateway = start(Gateway, *WORKERS, "--rtmfp-peers", "relay")
    players = [Player(gateway.rtmfp, "demo") for _ in range(8)]
    gateway.wait_status({"players": 8})
    assert {worker_in(line) for line in lines(gateway, "play-start")} == {0}
    for each in players:
        each.stop()
