"""The clients of a tree: the core alone, in Python on gevent, and in JavaScript."""

import json
import shutil
from pathlib import Path

import pytest
from gevent.queue import Queue
from support.gateway.richclient import wait_for
from support.peers.process import Process
from support.resources.services import Service
from support.resources.sites import BASIC, Site

from p2psip.errors import RemoteError
from siprtmp.edge.web.tree_client import TreeClient
from siprtmp.web.resources import client as core
from siprtmp.web.resources.client import Answer, Notification, ResourceClient
from siprtmp.web.resources.deliveries import signature

SCRIPT = Path(core.__file__).with_name("resources.js")


@pytest.fixture
def site():
    site = Site()
    yield site
    site.stop()


def url(site, user=""):
    host, port = site.server.address
    return f"ws://{user}{host}:{port}/tree"


class Wire:
    """Both ends of a core: what it sent, and what it was told."""

    def __init__(self):
        self.sent, self.answers, self.heard = [], [], []
        self.core = ResourceClient(lambda text: self.sent.append(json.loads(text)))

    def say(self, **message):
        self.core.receive(json.dumps(message))


def test_a_client_that_comes_back_asks_for_what_it_has_missed():
    wire = Wire()
    wire.core.subscribe("/a", wire.heard.append, wire.answers.append)
    wire.say(id=1, status=200, resource="/a", seq=5, epoch="e")
    wire.say(notify="UPDATE", resource="/a", create="b", entity=1, seq=9)
    wire.say(notify="NOTIFY", resource="/a", data=2, seq=10)
    wire.core.request("GET", "/a", wire.answers.append, if_match="x")
    wire.core.disconnected()
    wire.core.connected()
    assert wire.sent[1:] == [
        {"method": "GET", "resource": "/a", "id": 2, "if-match": "x"},
        {"method": "SUBSCRIBE", "resource": "/a", "id": 3, "since": 10, "epoch": "e"},
    ]
    wire.say(id=3, status=200, resource="/a", seq=20, epoch="f", missed=True)
    wire.say(notify="MISSED", seq=30, epoch="f")
    assert wire.heard == [
        Notification("create", "/a", "b", 1),
        Notification("NOTIFY", "/a", "", 2),
        Notification("MISSED", "/a", "", None),
        Notification("MISSED", "/a", "", None),
    ]
    first, lost = wire.answers
    assert isinstance(first, Answer) and first.status == 200
    assert isinstance(lost, RemoteError) and lost.status == 503


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_client_that_comes_back_hears_of_what_has_ended_meanwhile(status):
    wire = Wire()
    for number, resource in enumerate(("/a", "/b", "/c"), 1):
        wire.core.subscribe(resource, wire.heard.append, wire.answers.append)
        wire.say(id=number, status=200, resource=resource, seq=5, epoch="e")
    wire.say(notify="DELETE", resource="/c", seq=6)
    wire.core.disconnected()
    wire.core.connected()
    assert [each["resource"] for each in wire.sent[3:]] == ["/a", "/b"]
    wire.say(id=4, status=status, resource="/a", reason="That has gone")
    wire.say(id=5, status=429, resource="/b", reason="Too fast")
    assert wire.heard == [Notification("DELETE", each, "", None) for each in ("/c", "/a")]
    wire.core.connected()
    assert [each["resource"] for each in wire.sent[5:]] == ["/b"]


@pytest.mark.parametrize("text", ["", "[]", "1", "[" * 100_000])
def test_a_text_that_is_no_message_is_refused(text):
    with pytest.raises(RemoteError):
        Wire().core.receive(text)


def test_an_answer_that_nobody_waits_for_is_left_alone():
    wire = Wire()
    wire.core.request("GET", "/a", wire.answers.append)
    wire.say(id=7, status=200)
    wire.say(id=[], status=200)
    assert wire.answers == []


def test_a_python_client_reads_changes_and_listens(site):
    heard = Queue()
    with TreeClient(url(site, "ann:se%3Acret@")) as ann, TreeClient(url(site)) as other:
        assert ann.put("/room", {"subject": "lunch"}).status == 201
        ann.subscribe("/room", heard.put)
        name = other.post("/room", {"name": "Bob"})
        assert heard.get(timeout=20) == Notification("create", "/room", name, {"name": "Bob"})
        assert other.get("/room", view="children") == [name]
        assert ann.get("/room", view="access")["owner"] == "ann@example.org"
        assert ann.patch("/room", {"subject": None}) == {}
        other.notify("/room", 7)
        assert heard.get(timeout=20) == Notification("NOTIFY", "/room", "", 7)
        with pytest.raises(RemoteError) as caught:
            other.delete("/room")
        assert caught.value.status == 401
        ann.unsubscribe("/room")


def test_a_python_client_connects_again_and_hears_what_it_has_missed(site):
    heard, back = Queue(), Queue()
    keeper = TreeClient(url(site))
    client = TreeClient(url(site), on_connected=lambda: back.put(True))
    try:
        back.get(timeout=20)
        keeper.put("/room", 0)
        client.subscribe("/room", heard.put)
        *_, connected = site.side._sockets
        connected.shut()
        keeper.put("/room", 1)
        back.get(timeout=20)
        assert heard.get(timeout=20) == Notification("PUT", "/room", "", 1)
    finally:
        client.close()
        keeper.close()


def test_a_client_that_is_refused_is_told(site):
    with pytest.raises(RemoteError) as caught:
        TreeClient(url(site, "ann:guess@"))
    assert caught.value.status == 401


PROGRAM = """
import { Resources, ResourceError } from "./resources.mjs";
const [url] = process.argv.slice(2);
const said = (text) => console.log(JSON.stringify(text));
const tree = new Resources(url);
const other = new Resources(url);
await tree.put("/room", { subject: "lunch" });
const told = [];
let heard = () => {};
const next = () => new Promise((done) => (heard = done));
await tree.subscribe("/room", (each) => (told.push(each), heard()));
let coming = next();
const name = await other.post("/room", { name: "Bob" });
await coming;
said([told.pop(), name, await tree.children("/room"), await other.get("/room")]);
said(await other.delete("/room").catch((error) => [error instanceof ResourceError, error.status]));
const ended = []; // what other made, which ends with its connection
await other.subscribe(`/room/${name}`, (each) => ended.push(each.kind));
coming = next();
other._wire.close(); // which is lost, and connects again
await coming;
said(told.pop());
await new Promise((done) => other.addEventListener("open", done, { once: true }));
said([await other.get("/room"), ended]);
coming = next();
await other.notify("/room", 7);
await coming;
said(told.pop());
tree.close();
other.close();
said(await tree.get("/room").catch((error) => error.status));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs the Debian package nodejs")
def test_the_module_for_pages_does_the_same(site, tmp_path):
    (tmp_path / "resources.mjs").write_text(SCRIPT.read_text())
    (tmp_path / "program.mjs").write_text(PROGRAM)
    command = ["node", "--experimental-websocket", "--no-warnings", "program.mjs", url(site)]
    with Process(tmp_path, command) as node:
        assert node.finish() == 0, node.output
    first, refused, gone, again, event, closed = map(json.loads, node.output.splitlines())
    notification, name, names, entity = first
    bob = {"name": "Bob"}
    assert notification == {"kind": "create", "resource": "/room", "child": name, "entity": bob}
    assert (names, entity) == ([name], {"subject": "lunch"})
    assert refused == [True, 401]
    assert (gone["kind"], gone["child"]) == ("delete", name)
    assert again == [{"subject": "lunch"}, ["DELETE"]]
    assert event == {"kind": "NOTIFY", "resource": "/room", "child": "", "entity": 7}
    assert closed == 503


def test_the_gateway_serves_the_module(site):
    status, headers, body = site.http("GET", "/tree.js")
    assert (status, body) == (200, SCRIPT.read_bytes())
    assert headers["Content-Type"].startswith("text/javascript")
    assert site.http("HEAD", "/tree.js")[2] == b""
    assert site.http("PUT", "/tree.js", b"1", Authorization=BASIC)[0] == 405


@pytest.fixture
def posted():
    service = Service()
    site = Site(told=[f"127.0.0.1:{service.port}"])
    yield site, service
    site.stop()
    service.stop()


def test_a_python_client_has_notifications_posted_to_a_url(posted):
    site, service = posted
    with TreeClient(url(site, "ann:se%3Acret@")) as ann:
        ann.put("/room", 0)
        made = ann.subscribe_url("/room", service.url, persistent=False)
        ann.notify("/room", 7)
        wait_for(lambda: service.heard, "a post")
        body = service.heard[0][2]
        said = service.heard[0][1]["X-Siprtmp-Signature"]
        assert said == signature(made["secret"].encode(), int(said[2:].split(",")[0]), body)
        assert json.loads(body)["data"] == 7 and made["persistent"] is False
        assert ann.get("/subscription", view="children") == [made["id"]]
        ann.unsubscribe_url("/room", service.url)
        assert ann.get("/subscription", view="children") == []


def test_a_client_chooses_no_host_that_is_not_listed(posted):
    """Covers Resources §13.2 [listed-hosts-alone]."""
    site, service = posted
    with TreeClient(url(site, "ann:se%3Acret@")) as ann:
        ann.put("/room", 0)
        for other in ("http://127.0.0.1/", "http://10.0.0.1/", f"http://[::1]:{service.port}/"):
            with pytest.raises(RemoteError) as caught:
                ann.subscribe_url("/room", other)
            assert caught.value.status == 403
        assert ann.get("/subscription", view="children") == []


POSTING = """
import { Resources } from "./resources.mjs";
const [url, service] = process.argv.slice(2);
const tree = new Resources(url);
await tree.put("/room", 0);
const { id, secret } = await tree.subscribeUrl("/room", service, { persistent: false });
const own = await tree.children("/subscription");
await tree.unsubscribeUrl("/room", service);
console.log(JSON.stringify([own, id, secret.length, await tree.children("/subscription")]));
tree.close();
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs the Debian package nodejs")
def test_a_page_has_notifications_posted_to_a_url(posted, tmp_path):
    site, service = posted
    (tmp_path / "resources.mjs").write_text(SCRIPT.read_text())
    (tmp_path / "program.mjs").write_text(POSTING)
    ann = f"{url(site)}?user=ann&pass=se%3Acret"
    command = ["node", "--experimental-websocket", "--no-warnings", "program.mjs", ann]
    with Process(tmp_path, [*command, service.url]) as node:
        assert node.finish() == 0, node.output
    own, name, letters, left = json.loads(node.output)
    assert own == [name] and letters > 20 and left == []


def test_a_url_is_told_by_plain_http(posted):
    """Covers Resources §13.1 [url-in-the-content]."""
    site, service = posted

    def ask(method, path, said=None, **headers):
        body = b"" if said is None else json.dumps(said).encode()
        status, fields, body = site.http(method, f"/tree{path}", body, **headers)
        return status, fields, body

    ann = {"Authorization": BASIC}
    assert ask("PUT", "/room?persistent=true", 0, **ann)[0] == 201
    said = {"url": service.url}
    assert ask("SUBSCRIBE", "/room?persistent=true", said)[0] == 401
    assert ask("SUBSCRIBE", "/room", said, **ann)[0] == 409
    secret = {"secret": "s" * 16}
    status, headers, body = ask("SUBSCRIBE", "/room?persistent=true", said | secret, **ann)
    made = json.loads(body)
    assert status == 201 and "secret" not in made
    assert headers["Location"] == f"/tree/subscription/{made['id']}"
    assert "SUBSCRIBE" in site.http("BREW", "/tree/room", **ann)[1].get("Allow", "SUBSCRIBE")
    for wrong in ([], {}, {"url": 1}, {"url": service.url, "secrets": "x"}, {"url": "ftp://x/"}):
        assert ask("SUBSCRIBE", "/room", wrong, **ann)[0] == 400
    for wrong in ("http://ann@127.0.0.1/", f"{service.url}#x", "http://[::1/"):
        assert ask("SUBSCRIBE", "/room?persistent=true", {"url": wrong}, **ann)[0] == 400
    assert ask("SUBSCRIBE", "/room", **ann)[0] == 405
    assert ask("PATCH", "/room", 1, **ann)[0] == 200
    wait_for(lambda: service.heard, "a post")
    assert json.loads(service.heard[0][2])["notify"] == "PUT"
    at = f"/subscription/{made['id']}"
    assert ask("GET", at)[0] == 401 and ask("GET", at, **ann)[0] == 200
    assert ask("DELETE", at, **ann)[0] == 204 and ask("DELETE", at, **ann)[0] in (403, 404)
    assert ask("UNSUBSCRIBE", "/room", said, **ann)[0] == 404
