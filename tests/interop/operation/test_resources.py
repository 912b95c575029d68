"""Resources of a running gateway: clients that are killed, and a gateway that is."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gevent.queue import Queue
from support.gateway.gateway import Gateway
from support.peers.process import Process

from p2psip.errors import LocalError, RemoteError
from siprtmp.edge.web.tree_asyncio import AsyncTreeClient
from siprtmp.edge.web.tree_client import TreeClient
from siprtmp.web.resources.client import Notification

FOLLOW = Path(__file__).resolve().parents[3] / "examples/tree_follow.py"
PROGRAM = """
import sys, gevent
from siprtmp.edge.web.tree_client import TreeClient
tree = TreeClient(sys.argv[1])
print(tree.post("/lobby", {"name": "Bob"}), flush=True)
gevent.sleep(600)
"""


def url(running):
    return f"ws://{running.listeners['http']}/tree"


def test_what_a_killed_client_made_is_gone_and_its_neighbours_are_told(gateway):
    running, heard = gateway(), Queue()
    with TreeClient(url(running)) as tree:
        tree.put("/lobby", {})
        tree.subscribe("/lobby", heard.put)
        words = [sys.executable, "-c", PROGRAM, url(running)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
            bob = {"name": "Bob"}
            notification = heard.get(timeout=60)
            name = notification.child
            assert notification == Notification("create", "/lobby", name, bob)
            running.wait_status({"resources": 2, "resource_connections": 2, "subscriptions": 1})
            program.send_signal(signal.SIGKILL)
        assert heard.get(timeout=60) == Notification("delete", "/lobby", name, bob)
        assert tree.get("/lobby", view="children") == []
    running.wait_status({"resources": 0, "resource_connections": 0, "subscriptions": 0})


def test_persistent_resources_outlive_a_killed_gateway(gateway, tmp_path):
    options = ("--state", str(tmp_path / "state"))
    running = Gateway(tmp_path / "first", *options).__enter__()
    with TreeClient(url(running)) as tree:
        tree.put("/note", "hello", persistent=True)
        tree.put("/other", 1)
        running.child.kill()
        running.child.wait(60)
    with TreeClient(url(gateway(*options))) as tree:
        assert tree.get("/note") == "hello"
        names = tree.get("/", view="children")
        assert "note" in names and "other" not in names


def test_resources_can_be_off(gateway):
    with pytest.raises(RemoteError) as caught:
        TreeClient(url(gateway("--tree-mode", "off")))
    assert caught.value.status == 404


class Follow(Process):
    """The example, ready when it has subscribed."""

    def __init__(self, folder, *words):
        super().__init__(folder, [sys.executable, FOLLOW, *words])

    def is_ready(self):
        return "has 0 below it" in self.output


def test_an_asyncio_client_does_all_that_the_other_does(gateway, start):
    at = url(gateway())
    asyncio.run(_talk(at, start))
    with pytest.raises(RemoteError) as caught:
        asyncio.run(AsyncTreeClient(f"{at}/nowhere").connect())
    assert caught.value.status == 404
    with pytest.raises(LocalError):
        AsyncTreeClient(at.replace("ws:", "wss:"))


async def _talk(at, start):
    heard, back = asyncio.Queue(), asyncio.Queue()

    async def connected():
        back.put_nowait(True)

    async def hears():
        return await asyncio.wait_for(heard.get(), 60)

    def falls_over(notification):
        raise ValueError(notification)

    faults = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, about: faults.append(about))
    other = AsyncTreeClient(at, on_connected=connected)
    async with AsyncTreeClient(at) as tree, other:
        await tree.put("/lobby", {"subject": "lunch"})
        follower = start(Follow, at, "/lobby")
        await other.subscribe("/lobby", heard.put_nowait)
        name = await tree.post("/lobby", {"name": "Bob"})
        assert await hears() == Notification("create", "/lobby", name, {"name": "Bob"})
        assert await other.get("/lobby", view="children") == [name]
        assert await tree.patch("/lobby", {"subject": None}) == {}
        assert await hears() == Notification("PUT", "/lobby", "", {})
        await other.subscribe(f"/lobby/{name}", falls_over)
        await tree.notify(f"/lobby/{name}", 1)
        await back.get()
        other._writer.transport.abort()  # lost, with a reset
        await tree.notify("/lobby", 7)
        await back.get()
        await other.get("/lobby")  # its answer comes behind those to the subscriptions
        assert await hears() == Notification("NOTIFY", "/lobby", "", 7)
        await tree.delete(f"/lobby/{name}")
        assert await hears() == Notification("delete", "/lobby", name, {"name": "Bob"})
        assert [type(each["exception"]) for each in faults] == 2 * [ValueError]
        await other.unsubscribe("/lobby")
        with pytest.raises(RemoteError) as caught:
            await other.get("/none")
        assert caught.value.status == 404
        follower.wait_until(lambda: f"delete /lobby/{name}" in follower.output, what="the news")
        assert follower.output.splitlines()[1:4] == [
            f'create /lobby/{name} {{"name": "Bob"}}',
            "PUT /lobby {}",
            "NOTIFY /lobby 7",
        ]
    with pytest.raises(ConnectionError):
        await tree.get("/lobby")
