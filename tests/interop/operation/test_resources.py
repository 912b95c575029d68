"""Resources of a running gateway: clients that are killed, and a gateway that is."""

import signal
import subprocess
import sys

import pytest
from gevent.queue import Queue
from support.gateway.gateway import Gateway

from p2psip.errors import RemoteError
from siprtmp.edge.web.tree_client import TreeClient
from siprtmp.web.resources.client import Notification

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
