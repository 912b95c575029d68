"""Remote shared objects between real clients of a real server."""

import os

import gevent
import pytest

from rtmplite.errors import RemoteError
from rtmplite.live.streams import Registry
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.net.server.shared_files import SharedFiles
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.server import ServerConnection
from rtmplite.shared_objects.replica import Heard, Sync


@pytest.fixture
def serve(tmp_path):
    """`serve()`: the address of a new server; all of them keep objects in one folder."""
    running = []

    def run():
        registry, files = Registry(), SharedFiles(tmp_path / "so", delay=0.01)
        registry.shared.store = files
        server = RtmpListener(
            "127.0.0.1",
            0,
            lambda address: ServerConnection(
                {"live": LiveApplication()}.get, registry, os.urandom, now()
            ),
        )
        server.start()
        running.append((server, files))
        return "rtmp://{}:{}/live".format(*server.address)

    def stop():
        while running:
            server, files = running.pop()
            server.stop()
            files.stop()

    run.stop = stop
    yield run
    stop()


def test_what_one_changes_all_have(serve):
    """Covers RTMP 1.0 §7.1.3 with sockets: changes, removals and calls."""
    url = serve()
    clients = [RtmpClient.connect(url) for _ in range(2)]
    ann, bob = (client.shared_object("o") for client in clients)
    news = []
    bob.on_news = news.append
    ann["x"], ann["y"] = {"a": 1.0}, "z"
    bob.wait_until(lambda: len(bob) == 2)
    assert dict(bob) == {"x": {"a": 1.0}, "y": "z"} == dict(ann) and bob.version == 2
    del bob["x"]
    ann.wait_until(lambda: "x" not in ann)
    ann.send("hello", 1.0)
    bob.wait_until(lambda: Heard("hello", (1.0,)) in news)
    assert news[:2] == [Sync("change", "x"), Sync("change", "y")]
    ann.close()
    clients[0].create_stream()  # by when the server has heard it
    bob["w"] = 1.0
    bob.wait_until(lambda: Sync("success", "w") in news)
    assert "w" not in ann


def test_what_is_persistent_outlives_the_server(serve):
    """Down to the disk and back."""
    thing = RtmpClient.connect(serve()).shared_object("o", persistent=True)
    thing["x"] = ["kept", None]
    thing.wait_until(lambda: thing.version)
    serve.stop()
    again = RtmpClient.connect(serve()).shared_object("o", persistent=True)
    again.wait_until(lambda: "x" in again)
    assert dict(again) == {"x": ["kept", None]}


def test_a_refusal_is_an_exception(serve):
    """With the server's code; and the end of the connection is one."""
    url = serve()
    RtmpClient.connect(url).shared_object("o")
    client = RtmpClient.connect(url)
    with pytest.raises(RemoteError) as caught:
        client.shared_object("o", persistent=True)
    assert caught.value.code == "SharedObject.BadPersistence"
    thing = client.shared_object("o")
    with pytest.raises(TimeoutError):
        thing.wait_until(lambda: False, timeout=0.05)
    gevent.spawn_later(0.05, client.close)
    with pytest.raises(RemoteError):
        thing.wait_until(lambda: False)
