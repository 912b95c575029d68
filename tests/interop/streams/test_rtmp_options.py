"""The `rtmp_*` options of ffmpeg and those of librtmp: the server sees what they ask for."""

import os

import gevent
import pytest
from support.limits import patience
from support.peers.rtmp_peers import FfmpegPlayer, FfmpegPublisher, LibrtmpPublisher, RtmpdumpPlayer
from support.peers.rtmp_servers import media

from rtmplite.live.streams import Registry
from rtmplite.net.clock import now
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.netstream import PlayRequest
from rtmplite.rtmp.server import ServerConnection

CONN = "B:1 S:token O:1 NN:code:1.5 NS:who:me NB:on:1 O:0 N:7 Z:"
CONNECTED = (True, "token", {"code": 1.5, "who": "me", "on": True}, 7.0, None)
SWF, PAGE = "http://example.net/player.swf", "http://example.net/page"


class Remembering(LiveApplication):
    """`live` under any name, keeping all that clients say."""

    def __init__(self):
        self.connections, self.streams = [], []

    def on_connect(self, connection, now):
        self.connections.append(connection)
        super().on_connect(connection, now)

    def on_publish(self, connection, stream, name, now):
        self.streams.append(("publish", name, stream))
        super().on_publish(connection, stream, name, now)

    def on_play(self, connection, stream, name, now):
        self.streams.append(("play", name, stream))
        super().on_play(connection, stream, name, now)


class Desk:
    """A server in this process."""

    def __init__(self):
        self.live, registry = Remembering(), Registry()
        self.server = RtmpListener(
            "127.0.0.1",
            0,
            lambda peer: ServerConnection(lambda name: self.live, registry, os.urandom, now()),
        )
        self.server.start()

    def url(self, path):
        return "rtmp://{}:{}/{}".format(*self.server.address, path)

    def wait(self, condition):
        """Until it is true; the server runs meanwhile."""
        with patience(30):
            while not condition():
                gevent.sleep(0.01)

    def finish(self, process):
        self.wait(lambda: process.child.poll() is not None)
        return process.finish()

    def asked(self, kind, process):
        """The connection and the stream of who published or played, once it does."""
        self.wait(lambda: kind in [each[0] for each in self.live.streams] or process.child.poll())
        ((_, name, stream),) = [each for each in self.live.streams if each[0] == kind]
        return stream.connection, name, stream


@pytest.fixture
def desk():
    """It runs while this test waits for something."""
    made = Desk()
    yield made
    made.server.stop()


@pytest.fixture
def source(corpus):
    """Something short."""
    return corpus / "flv" / "ruffle_aac_mono_44100hz.flv"


def said(connection, *names):
    """These properties of connect."""
    return [connection.properties.get(name) for name in names]


def test_ffmpeg_publishes_as_it_is_told(start, desk, source):
    """Application, stream and tcUrl are not those of the URL, and the rest is said too."""
    tc_url = desk.url("app/instance")
    options = {
        **{"rtmp_app": "app/instance", "rtmp_playpath": "name?key=1", "rtmp_tcurl": tc_url},
        **{"rtmp_flashver": "FMLE/3.0 (test)", "rtmp_swfurl": SWF, "rtmp_conn": CONN},
    }
    words = [word for name, value in options.items() for word in (f"-{name}", value)]
    publisher = start(FfmpegPublisher, source, desk.url("x/y"), *words)
    connection, name, stream = desk.asked("publish", publisher)
    assert desk.finish(publisher) == 0
    assert (connection.app, connection.instance) == ("app/instance", "instance")
    assert (name, stream.path, stream.query) == ("name", "instance/name", "key=1")
    wanted = [tc_url, "FMLE/3.0 (test)", SWF]
    assert said(connection, "tcUrl", "flashVer", "swfUrl") == wanted
    assert connection.connect_args == CONNECTED


@pytest.mark.parametrize(("live", "start_at"), [("any", -2.0), ("live", -1.0), ("recorded", 0.0)])
def test_ffmpeg_plays_as_it_is_told(start, desk, source, live, start_at):
    """Live, recorded or whatever there is; its buffer; and it subscribes first."""
    options = {
        **{"rtmp_app": "app", "rtmp_playpath": "name", "rtmp_live": live, "rtmp_buffer": "1234"},
        **{"rtmp_subscribe": "name", "rtmp_pageurl": PAGE, "rtmp_swfurl": SWF, "rtmp_conn": CONN},
    }
    words = [word for name, value in options.items() for word in (f"-{name}", value)]
    player = start(FfmpegPlayer, desk.url("x/y"), *words)
    connection, name, stream = desk.asked("play", player)
    publisher = start(LibrtmpPublisher, source, desk.url("app/name"))
    assert desk.finish(publisher) == desk.finish(player) == 0
    assert media(player.file) == media(source)
    assert (connection.app, name, stream.buffer) == ("app", "name", 1234)
    assert stream.request == PlayRequest(start=start_at)
    assert said(connection, "pageUrl", "swfUrl") == [PAGE, SWF]
    assert connection.connect_args == CONNECTED


def test_librtmp_publishes_as_it_is_told(start, desk, source):
    """Its options follow the URL."""
    options = (
        "app=app playpath=name flashVer=FMLE/3.0 swfUrl=http://example.net/player.swf "
        "pageUrl=http://example.net/page conn=B:1 conn=S:token conn=N:7"
    )
    location = f'"{desk.url("x/y")} {options}"'
    publisher = start(LibrtmpPublisher, source, location)
    connection, name, _ = desk.asked("publish", publisher)
    assert desk.finish(publisher) == 0
    assert (connection.app, name) == ("app", "name")
    assert said(connection, "flashVer", "swfUrl") == ["FMLE/3.0", SWF]
    assert connection.connect_args == (True, "token", 7.0)


def test_rtmpdump_plays_as_it_is_told(start, desk, source):
    """Every option of its connect and play."""
    conn = [word for each in CONN.split() for word in ("--conn", each)]
    player = start(
        *(RtmpdumpPlayer, desk.url("x/y"), "--app", "app", "--playpath", "name"),
        *("--tcUrl", desk.url("app"), "--flashVer", "WIN 9,9,9,9", "--swfUrl", SWF),
        *("--pageUrl", PAGE, "--subscribe", "name", "--buffer", "4321", *conn),
    )
    connection, name, stream = desk.asked("play", player)
    publisher = start(LibrtmpPublisher, source, desk.url("app/name"))
    assert desk.finish(publisher) == 0 and desk.finish(player) in (0, 2)
    assert media(player.file) == media(source)
    assert (connection.app, name, stream.buffer) == ("app", "name", 4321)
    wanted = [desk.url("app"), "WIN 9,9,9,9", SWF, PAGE]
    assert said(connection, "tcUrl", "flashVer", "swfUrl", "pageUrl") == wanted
    assert connection.connect_args == CONNECTED
    assert stream.request.start == -1.0
