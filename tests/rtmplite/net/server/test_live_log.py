"""What is written of publishers and players, and of clients that are refused."""

import time
from datetime import datetime

import gevent
import pytest
from support.limits import patience
from support.rtmp.flv_world import KEY, SOUND, studios
from support.rtmp.rtmp_world import World

from rtmplite.auth.credentials import user_lines
from rtmplite.cli.serve import PrintedLive
from rtmplite.errors import RemoteError
from rtmplite.live.streams import Registry
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.server import access
from rtmplite.net.server.live_log import LoggedLiveApplication, UnknownApplication
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.net.server.settings import AccessSettings
from rtmplite.rtmp.server import ServerConnection


class Written(list):
    """The events, in order."""

    def __call__(self, event, values):
        self.append((event, dict(values)))

    def names(self):
        return [event for event, _ in self]

    def of(self, event):
        return next(values for name, values in self if name == event)


@pytest.fixture
def written():
    return Written()


def world_of(written, **options):
    return World(LoggedLiveApplication(written, **options))


def test_beginning_and_end_of_publishing_and_playing(written):
    """Own design: the client, the stream, the time it took, and the codecs that were seen."""
    world = world_of(written)
    source, player = world.client(), world.client()
    source.server.transport.peer_address = ("192.0.2.7", 4711)
    player.play("demo?token=secret")
    stream = source.publish("demo?key=secret")
    source.write(8, 0, stream, b"\x90Opus")
    source.write(9, 0, stream, KEY)
    world.now += 12.34
    source.send("deleteStream", float(stream))
    player.server.transport.connection_lost(world.now, "closed by the peer")
    assert written.names() == ["play-start", "publish-start", "publish-end", "play-end"]
    end = written.of("publish-end")
    assert end == {
        "source": "192.0.2.7",
        "port": 4711,
        "rtmp": source.server.id,
        "app": "live",
        "name": "demo",
        "seconds": 12.3,
        "codecs": "Opus AVC",
        "reason": "ended by the client",
    }
    assert {**written.of("play-end"), "seconds": 0} == {
        "source": "",
        "port": 0,
        "rtmp": player.server.id,
        "app": "live",
        "name": "demo",
        "seconds": 0,
        "codecs": "Opus AVC",
        "reason": "closed by the peer",
    }
    assert "secret" not in str(written)


def test_a_publisher_that_is_replaced_has_an_end_with_its_codecs(written):
    """Own design: also where another client takes the name over."""
    world = world_of(written)
    lost, returned = world.client(), world.client()
    lost.write(8, 0, lost.publish("demo"), SOUND)
    lost.carry = lambda: False
    world.wait(20)
    returned.publish("demo")
    assert written.names() == ["publish-start", "publish-end", "publish-start"]
    assert written.of("publish-end")["codecs"] == "SPEEX"


def test_a_second_publisher_is_refused(written):
    """Own design: a line says which name, and why."""
    world = world_of(written)
    world.client().publish("demo")
    world.client().publish("demo")
    refused = written.of("refused")
    assert (refused["wants"], refused["name"]) == ("publish", "demo")
    assert refused["reason"] == "somebody publishes that already"


def test_an_application_that_is_not_there(written):
    """Own design: the log has the name; the client hears which there are."""
    world = World(UnknownApplication(lambda: ["live", "vod"], written))
    client = world.client("rtmp://host/lives")
    with pytest.raises(RemoteError, match="No such application: lives; there are: live, vod"):
        client.reply(1.0)
    assert written.of("refused")["reason"] == "no application 'lives'"
    assert written.of("refused")["app"] == "lives"


def test_users_are_named(written, tmp_path):
    """Own design: with `--users` the name is proven, without it says nothing."""
    users = tmp_path / "users"
    users.write_text("\n".join(user_lines("ann", "home", "secret")))
    for file, user in (users, "ann"), (None, None):
        doors = access.Access(AccessSettings(users=file))
        written.clear()
        live = LoggedLiveApplication(written, doors.user_of)
        World(doors.guard(live)).client().publish("demo?user=ann&pass=secret")
        assert written.of("publish-start").get("user") == user
        World(doors.guard(live)).client().play("demo?user=bob")
        assert "user" not in written.of("play-start")
        assert "secret" not in str(written)
        doors.stop()


def test_bytes_are_those_of_the_network(written):
    """Own design: the kernel has counted them, both ways."""
    registry, live = Registry(), LoggedLiveApplication(written)

    def connection(address):
        return ServerConnection(lambda name: live, registry, bytes, now())

    server = RtmpListener("127.0.0.1", 0, connection)
    server.start()
    try:
        url = "rtmp://{}:{}/live".format(*server.address)
        player, source = (RtmpClient.connect(url) for _ in range(2))
        playing, publishing = player.create_stream(), source.create_stream()
        playing.play("demo")
        publishing.publish("demo")
        for time in range(10):
            publishing.write(9, time, KEY + bytes(10_000))
        while len(playing.read().payload) < 10_000 or time:
            time -= 1
        source.close()
        player.close()
        with patience(20):
            while "play-end" not in written.names() or "publish-end" not in written.names():
                gevent.sleep(0.001)
    finally:
        server.stop()
    assert 100_000 < written.of("publish-end")["bytes"] < 110_000
    assert 90_000 < written.of("play-end")["bytes"] < 110_000


def test_a_viewer_by_http(written):
    """Own design: as a player by RTMP, without the id of a connection."""
    live = LoggedLiveApplication(written)
    with studios() as make:
        room = make(on_viewer=live.watch)
        room.begin()
        client, _ = room.watch()
        host, port = client.getsockname()
        room.live.write(9, 40, KEY, now())
        while b"key" not in client.recv(4096):
            pass
        room.live.end(now())
        while client.recv(4096):
            pass
    assert written.names() == ["play-start", "play-end"]
    end = written.of("play-end")
    assert end["bytes"] > 0 and end["seconds"] < 60
    del end["bytes"], end["seconds"]
    assert end == {
        "source": host,
        "port": port,
        "app": "live",
        "name": "demo",
        "codecs": "AVC",
    }


def test_a_line_for_people(capsys):
    """Own design: one line each, whatever a client calls its stream."""
    begun, world = time.time(), World(PrintedLive(lambda connection, stream: "ann"))
    source = world.client()
    source.server.transport.peer_address = ("2001:db8::1", 4711)
    stream = source.publish("a\nb")
    source.write(8, 0, stream, SOUND)
    world.now += 2
    source.server.transport.connection_lost(world.now, "closed by the peer")
    who = source.server.id
    lines = [line.partition(" ") for line in capsys.readouterr().out.splitlines()]
    assert [line for _, _, line in lines] == [
        f"publish-start {who} publishing a\\nb, [2001:db8::1]:4711, user ann",
        f"publish-end {who} published a\\nb, [2001:db8::1]:4711, user ann: 2.0 s, SPEEX",
        f"disconnect {who} closed by the peer",
    ]
    times = [datetime.fromisoformat(at).timestamp() for at, _, _ in lines]
    assert begun - 1 <= min(times) <= max(times) <= time.time()
