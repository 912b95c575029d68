"""The bandwidth check with rtmpdump and ffmpeg, who ask when they are told onBWDone."""

import os
import subprocess
from typing import ClassVar

import gevent
import pytest
from support.limits import patience
from support.peers.process import require

from rtmplite.live.streams import Registry
from rtmplite.net.clock import now
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.server import ServerConnection


class Told(ServerConnection):
    """Remembers what it heard and said."""

    heard: ClassVar[list[str]] = []
    said: ClassVar[list[str]] = []

    def on_command(self, command, stream_id, now):
        self.heard.append(command.name)
        super().on_command(command, stream_id, now)

    def __init__(self, *args):
        super().__init__(*args)
        send = self.send_command

        def send_command(command, stream_id=0):
            self.said.append(command.name)
            send(command, stream_id)

        self.send_command = send_command


class Asking(LiveApplication):
    """Makes clients ask."""

    def on_connect(self, connection, now):
        super().on_connect(connection, now)
        connection.call("onBWDone")


@pytest.fixture
def url():
    """Where it is."""
    registry, app = Registry(), Asking()
    server = RtmpListener(
        "127.0.0.1", 0, lambda peer: Told({"live": app}.get, registry, os.urandom, now())
    )
    server.start()
    Told.heard, Told.said = [], []
    yield "rtmp://{}:{}/live/demo".format(*server.address)
    server.stop()


def until(condition, process):
    with patience(30):
        while not condition() and process.poll() is None:
            gevent.sleep(0.01)
    process.kill()
    process.wait()
    assert condition(), (Told.heard, Told.said)


def test_rtmpdump_goes_through_with_it(url):
    """Covers Field §"Bandwidth check"."""
    program = require("rtmpdump", "rtmpdump")
    process = subprocess.Popen([program, "-q", "-v", "-r", url, "-o", os.devnull])
    until(lambda: "_onbwdone" in Told.said, process)
    assert "_checkbw" in Told.heard and Told.said.count("_onbwcheck") == 3


def test_ffmpeg_asks_and_does_not_mind(url):
    """Covers Field §"Bandwidth check"."""
    program = require("ffmpeg", "ffmpeg")
    words = [
        "-nostdin",
        "-loglevel",
        "error",
        "-re",
        "-f",
        "lavfi",
        "-i",
        "sine",
        "-c:a",
        "aac",
        "-f",
        "flv",
    ]
    process = subprocess.Popen([program, *words, url])
    until(lambda: "_checkbw" in Told.heard and "publish" in Told.heard, process)
    assert Told.said.count("_onbwcheck") == 1
