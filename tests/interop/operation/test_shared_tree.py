"""Gateways that are one tree through a real Redis, which is stopped, killed and emptied."""

import os
import signal

import gevent
import pytest
from gevent.queue import Queue
from support.limits import patience
from support.peers.redis_server import RedisServer
from support.resources.control import Control
from support.resources.trees import client, value

from p2psip.errors import RemoteError
from p2psip.net import location_redis
from siprtmp import __main__
from siprtmp.edge.web import tree_redis
from siprtmp.edge.web.tree_client import TreeClient
from siprtmp.edge.web.tree_redis import HEAD, LOG, ROWS, RedisLog
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.client import Notification
from siprtmp.web.resources.messages import Request, answer
from siprtmp.web.resources.tree import Tree

ANYBODY = Asker(None, frozenset(), "", "192.0.2.7")
OPEN = 4 * "cruws"  # the mode of the top: anybody may


class Place:
    """One gateway in this process: a tree, and its log in Redis."""

    def __init__(self, port):
        self.told, self.loaded = [], []
        self.log = RedisLog(
            f"redis://127.0.0.1:{port}/0", lambda what, reason: self.told.append(what)
        )
        self.tree = Tree(os.urandom, OPEN, shared=self.log)
        self.log.follow(self.tree, lambda: self.loaded.append(True))

    def ask(self, method, path, entity=None, **more):
        """The status of a request of a client by plain HTTP."""
        said = {"method": method, "resource": path} | more
        if method in ("PUT", "PATCH", "POST"):
            said |= {"entity": entity} | ({} if method == "PATCH" else {"persistent": True})
        try:
            return answer(self.tree, Request.read(said), ANYBODY).status
        except RemoteError as error:
            return error.status

    def has(self, *path):
        try:
            return self.tree.get(path, ANYBODY).data
        except RemoteError as error:
            return error.status


@pytest.fixture
def place(monkeypatch):
    monkeypatch.setattr(location_redis, "PATIENCE", 60.0)  # a starved Redis has not gone
    places = []

    def make(port):
        places.append(Place(port))
        return places[-1]

    yield make
    for each in places:
        each.log.stop()


def eventually(condition):
    with patience():
        while not condition():
            gevent.sleep(0.01)


def in_turn(works):
    """Do all at once, each in a greenlet; their results."""
    greenlets = [gevent.spawn(each) for each in works]
    gevent.joinall(greenlets)
    return [each.get() for each in greenlets]


def test_two_gateways_that_write_at_once_overwrite_nothing(start, place):
    """Covers Resources §15.2 [judged-by-all-before]: each counts in one resource, by its tag."""
    port = start(RedisServer).port
    both = [place(port), place(port)]
    eventually(lambda: all(each.loaded for each in both))
    assert both[0].ask("PUT", "/count", 0) == 201
    eventually(lambda: both[1].has("count") == 0)
    heard = client(both[1].tree, "bob")
    both[1].tree.subscribe(("count",), heard[0])
    refused = []

    def counts(here):
        for _ in range(25):
            while True:
                before = here.tree.get(("count",), ANYBODY)
                after = before.data + 1
                status = here.ask("PUT", "/count", after, **{"if-match": before.tag})
                if status == 200:
                    break
                refused.append(status)

    in_turn([lambda each=each: counts(each) for each in (*both, *both)])  # two clients at each
    assert set(refused) == {412}
    eventually(lambda: [each.has("count") for each in both] == [100, 100])
    told = [each["entity"] for each in heard[1].take()]
    assert told == list(range(1, 101))
    made = in_turn(
        [
            lambda each=each: each.ask("PUT", "/once", 1, **{"if-none-match": "*"})
            for each in 3 * both
        ]
    )
    assert sorted(made) == [201, 412, 412, 412, 412, 412]
    assert [each.told for each in both] == [[], []]


def test_redis_hangs_and_is_killed_and_comes_back_with_nothing(start, place, monkeypatch):
    """Covers Resources §15.3 [changes-are-503] [given-what-is-known]."""
    monkeypatch.setattr(location_redis, "PATIENCE", 2.0)
    redis = start(RedisServer)
    here, there = place(redis.port), place(redis.port)
    eventually(lambda: here.loaded and there.loaded)
    for path in ("/a", "/a/b", "/c"):
        eventually(lambda path=path: here.ask("PUT", path, 1) in (200, 201))
    eventually(lambda: there.has("c") == 1)
    redis.child.send_signal(signal.SIGSTOP)
    assert here.ask("PUT", "/a", 2) == 503  # after a while; the next one at once
    assert here.ask("PUT", "/a", 2) == 503 and here.has("a") == 1
    redis.child.send_signal(signal.SIGCONT)
    eventually(lambda: here.told[-1:] == ["tree-back"])
    eventually(lambda: here.has("a") == there.has("a"))  # it may have been done, or not
    redis.child.kill()
    redis.child.wait()
    eventually(lambda: here.told[-1:] == there.told[-1:] == ["tree-away"])
    assert [here.ask(each, "/c") for each in ("DELETE", "GET")] == [503, 200]
    late = place(redis.port)
    eventually(lambda: late.told[-1:] == ["tree-away"])
    assert [late.ask(each, "/c") for each in ("PUT", "GET")] == [503, 503]
    monkeypatch.setattr(tree_redis, "BATCH", 2)
    start(RedisServer, redis.port)
    eventually(lambda: {each.told[-1] for each in (here, there, late)} == {"tree-back"})
    eventually(lambda: [late.has("a", "b"), late.has("c")] == [1, 1])
    eventually(lambda: there.ask("DELETE", "/c") in (204, 404))
    eventually(lambda: here.has("c") == late.has("c") == 404)
    assert here.loaded == [True]


def test_a_gateway_that_missed_more_than_the_log_has_reads_everything(start, place, monkeypatch):
    """Covers Resources §15.2 [judged-by-all-before]: its clients are told what is different."""
    monkeypatch.setattr(tree_redis, "MAX_LOG", 2)
    here, there = (place(port) for port in 2 * [start(RedisServer).port])
    eventually(lambda: here.loaded and there.loaded)
    here.ask("PUT", "/a", 0)
    eventually(lambda: there.has("a") == 0)
    bob, heard = client(there.tree, "bob")
    there.tree.subscribe(("a",), bob)
    there.log._greenlet.kill()
    for number in range(1, 300):  # a stream forgets by the hundred
        here.ask("PUT", "/a", number)
    assert here.log._writer.xlen(LOG) < 299
    assert there.has("a") == 0
    tag = there.tree.get(("a",), bob).tag
    assert there.ask("PUT", "/a", "new", **{"if-match": tag}) == 412
    assert [each["entity"] for each in heard.take()] == [299]
    assert there.ask("PUT", "/a", "new", **{"if-match": value(299).tag}) == 200
    eventually(lambda: here.has("a") == "new")


def test_what_others_have_written_there_does_no_harm(start, place):
    """Own design: a row that no gateway has made is left alone, and an entry is read over."""
    port = start(RedisServer).port
    here = place(port)
    eventually(lambda: here.loaded)
    here.ask("PUT", "/a", 1)
    writer = here.log._writer
    writer.hset(ROWS, mapping={b"\xff": b"{}", b"/x": b"[1]", b"nonsense": b"", b"/call/x": b"7"})
    late = place(port)
    eventually(lambda: late.has("a") == 1)
    number = writer.hincrby(HEAD, "last", 1)
    writer.xadd(LOG, {"edits": "nonsense"}, id=f"{number}-0")
    eventually(lambda: late.told == ["tree-away", "tree-back"])
    assert late.ask("PUT", "/a", 2) == 200
    eventually(lambda: here.has("a") == 2)


def test_a_log_that_lost_entries_or_is_ahead_stops_nobody(start, place):
    """Covers Resources §15.2 [judged-by-all-before]: what is kept is read anew."""
    here, there = (place(port) for port in 2 * [start(RedisServer).port])
    eventually(lambda: here.loaded and there.loaded)
    writer = here.log._writer
    writer.hset(ROWS, "/lost", '["application/json", 7, null, null, null]')
    number = writer.hincrby(HEAD, "last", 1)  # and no entry of it
    eventually(lambda: [each.has("lost") for each in (here, there)] == [7, 7])
    assert there.ask("PUT", "/lost", 8) == 200
    writer.xadd(LOG, {"edits": "[]"}, id=f"{number + 1000}-0")
    eventually(lambda: there.ask("PUT", "/lost", 9) == 200)
    eventually(lambda: here.has("lost") == 9)
    number = writer.hincrby(HEAD, "last", 1)
    writer.xadd(LOG, {"other": "[]"}, id=f"{number}-0")
    eventually(lambda: here.ask("PUT", "/lost", 10) == 200)
    eventually(lambda: there.has("lost") == 10)


def test_two_gateways_are_one_tree(start, gateway):
    """A page at one hears of what a program does at the other, also after one has ended."""
    redis = start(RedisServer)
    options = ("--tree-redis", f"redis://127.0.0.1:{redis.port}/0", "--tree-mode", OPEN)
    one, two = gateway(*options), gateway(*options)
    program, heard = Control(two), Queue()
    with TreeClient(f"ws://{one.listeners['http']}/tree") as tree:
        tree.put("/lobby", {"subject": "lunch"}, persistent=True)
        tree.put("/mine", 1)
        tree.subscribe("/lobby", heard.put)
        eventually(lambda: program.ask("GET", "lobby")[0] == 200)
        assert program.ask("GET", "mine")[0] == 404
        assert program.ask("PATCH", "lobby", {"subject": "tea"})[0] == 200
        assert heard.get(timeout=60) == Notification("PUT", "/lobby", "", {"subject": "tea"})
        assert tree.get("/lobby") == {"subject": "tea"}
        status, said = program.ask("POST", "lobby?persistent=true", {"name": "Bob"})
        assert status == 201
        made = Notification("create", "/lobby", said["id"], {"name": "Bob"})
        assert heard.get(timeout=60) == made
        answers = [tree.request("PUT", "/mine", entity=n) for n in range(20)]
        assert [each.status for each in answers] == 20 * [200]
        redis.child.kill()
        redis.child.wait()
        with pytest.raises(RemoteError) as caught:
            tree.put("/lobby", {})
        assert caught.value.status == 503
        assert program.ask("DELETE", "lobby")[0] == 503
        tree.put("/mine", "still here")
        start(RedisServer, redis.port)
        eventually(lambda: program.ask("PATCH", "lobby", {"subject": None})[0] == 200)
        assert heard.get(timeout=60) == Notification("PUT", "/lobby", "", {})
    three = Control(gateway(*options))
    eventually(lambda: three.ask("GET", f"lobby/{said['id']}") == (200, {"name": "Bob"}))
    assert "tree-back" in one.output


def test_without_a_url_the_gateway_does_not_start(capsys):
    words = ["serve", "--rtmfp", "off", "--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    more = ["--sip", "off", "--tree-redis", "rediss://localhost"]
    assert __main__.main([*words, *more]) == 2
    assert "redis://" in capsys.readouterr().err
