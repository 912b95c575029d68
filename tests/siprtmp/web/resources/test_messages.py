"""Messages of WebSocket and requests of HTTP: what is read, and what is answered."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.json_schema import accepts
from support.resources.trees import new_tree

from p2psip.errors import RemoteError
from siprtmp.web.resources import http
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.messages import MEMBERS, METHODS, Request, schema
from siprtmp.web.resources.session import BURST, MAX_ID, QUEUE, ResourceSession


class Client:
    """A session, and the messages that it sends."""

    def __init__(self, tree, user=None, name="c1", now=0.0):
        self.session = ResourceSession(tree, Asker(user, frozenset(), name, "192.0.2.7"), now)

    def ask(self, method, resource, now=0.0, **more):
        text = json.dumps({"method": method, "resource": resource} | more)
        self.session.receive(text, now)
        return self.take()[-1]

    def take(self):
        return [json.loads(text) for text in self.session.take()]


def test_the_messages_of_the_article_are_understood():
    """Covers Resources §2.1 [data-is-the-entity], §2.2 [id-is-repeated]
    and Resources §4.3 [post-tells-the-identifier]."""
    tree = new_tree()
    bob, ann = Client(tree, "bob", "b"), Client(tree, "ann", "a")
    said = {"name": "Bob Smith", "has-video": True}
    assert bob.ask("PUT", "/login", entity={})["status"] == 201
    first = bob.ask("PUT", "/login/bob@home.com", type="application/json", entity=said, id=7)
    assert (first["status"], first["id"], first["resource"]) == (201, 7, "/login/bob@home.com")
    got = ann.ask("GET", "/login/bob@home.com", id="x")
    assert (got["entity"], got["etag"], got["id"]) == (said, first["etag"], "x")
    assert bob.ask("PUT", "/call", entity={})["status"] == 201
    made = bob.ask("POST", "/call", entity={"subject": "lunch"})
    name = made["entity"]["id"]
    assert made["resource"] == f"/call/{name}" and made["status"] == 201
    assert ann.ask("GET", "/call", view="children")["entity"] == [name]
    assert bob.ask("SUBSCRIBE", "/login/bob@home.com")["status"] == 200
    data = {"invite-to": f"/call/{name}", "invite-id": "6253"}
    assert ann.ask("NOTIFY", "/login/bob@home.com", data=data)["status"] == 204
    (told,) = bob.take()
    assert (told["notify"], told["resource"], told["data"]) == (
        "NOTIFY",
        "/login/bob@home.com",
        data,
    )


def test_what_a_client_missed_follows_the_answer():
    """Covers Resources §6.3 [events-follow-the-answer] [missed-is-told]."""
    tree = new_tree()
    bob, ann = Client(tree, "bob", "b"), Client(tree, "ann", "a")
    bob.ask("PUT", "/room", entity=0)
    last = ann.ask("SUBSCRIBE", "/room")
    ann.session.end()
    bob.ask("PUT", "/room", entity=1)
    again = Client(tree, "ann", "again")
    text = {"method": "SUBSCRIBE", "resource": "/room", "since": last["seq"], "id": 1}
    again.session.receive(json.dumps(text | {"epoch": last["epoch"]}), 0.0)
    answer, event = again.take()
    assert answer["id"] == 1 and event["entity"] == 1 and event["seq"] > last["seq"]
    assert again.ask("SUBSCRIBE", "/room", since=1, epoch="another")["missed"] is True


def test_a_slow_subscriber_is_told_that_it_missed_something():
    """Covers Resources §6.4 [missed-is-said]."""
    tree = new_tree()
    bob, slow = Client(tree, "bob", "b"), Client(tree, "ann", "a")
    bob.ask("PUT", "/room", entity=0)
    slow.ask("SUBSCRIBE", "/room")
    sent = 0
    while slow.session.waiting + 11_000 < QUEUE:
        assert bob.ask("NOTIFY", "/room", data="x" * 10_000, now=sent)["status"] == 204
        sent += 1
    for each in range(100):
        assert bob.ask("NOTIFY", "/room", data="y" * 10_000, now=sent + each)["status"] == 204
    assert slow.session.waiting <= QUEUE
    *heard, last = slow.take()
    assert [each["notify"] for each in heard][:sent] == ["NOTIFY"] * sent and len(heard) < sent + 9
    assert last == {"notify": "MISSED", "seq": tree.sequence, "epoch": tree.epoch}
    bob.ask("NOTIFY", "/room", data=1, now=1000)
    assert [each["notify"] for each in slow.take()] == ["NOTIFY"]


def test_a_flood_of_requests_is_refused():
    """Covers Resources §8 [too-fast-is-429]."""
    client = Client(new_tree(), "bob")
    statuses = [client.ask("GET", "/")["status"] for _ in range(BURST + 3)]
    assert statuses == [200] * BURST + [429] * 3
    assert client.ask("GET", "/", now=1.0)["status"] == 200


def test_a_client_that_reads_no_answers_is_read_no_more():
    client = Client(new_tree(), "bob")
    client.ask("PUT", "/a", entity="x" * 60_000)
    asked = 0
    while client.session.is_reading:
        client.session.receive('{"method": "GET", "resource": "/a"}', 0.0)
        asked += 1
        assert asked < 100
    client.take()
    assert client.session.is_reading


@pytest.mark.parametrize(
    "text, status",
    [
        ("", 400),
        ("[]", 400),
        ("NaN", 400),
        ('"\ud800"', 400),
        ("[" * 100_000, 400),
        ('{"method": "GET"}', 400),
        ('{"method": "COPY", "resource": "/"}', 405),
        ('{"method": ["GET"], "resource": "/"}', 405),
        ('{"method": "GET", "resource": "/", "veiw": "access"}', 400),
        ('{"method": "GET", "resource": "/", "view": {}}', 400),
        ('{"method": "GET", "resource": "/..", "id": 1}', 400),
        ('{"method": "PUT", "resource": "/a"}', 400),
        ('{"method": "PUT", "resource": "/a", "data": 1}', 400),
        ('{"method": "PUT", "resource": "/a", "entity": 1, "type": "x"}', 415),
        ('{"method": "PUT", "resource": "/a", "entity": 1, "type": "text/plain"}', 400),
        ('{"method": "PUT", "resource": "/a", "entity": 1, "persistent": 1}', 400),
        ('{"method": "PUT", "resource": "/a", "entity": 1, "mode": "rwxr-xr-x"}', 400),
        ('{"method": "SUBSCRIBE", "resource": "/", "since": -1}', 400),
        ('{"method": "SUBSCRIBE", "resource": "/", "since": true}', 400),
        ('{"method": "GET", "resource": "/", "id": 1e3}', 400),
        ('{"method": "GET", "resource": "/", "id": ' + "9" * 60 + "}", 400),
        ('{"method": "GET", "resource": "/", "id": "' + "x" * 100 + '"}', 400),
    ],
)
def test_a_message_that_is_no_request_is_answered_with_an_error(text, status):
    """Covers Resources §2.1 [unknown-members-are-refused]."""
    client = Client(new_tree(), "bob")
    client.session.receive(text, 0.0)
    (answer,) = client.take()
    assert answer["status"] == status and answer["reason"]
    assert len(str(answer.get("id", ""))) <= MAX_ID
    assert client.ask("GET", "/")["status"] == 200


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10),
    st.sampled_from(["", "/", "/a", "GET", "PUT", "entity", "cruws" * 4, "x/y", "-" * 20]),
    st.just({}),
)
REQUESTS = st.fixed_dictionaries(
    {"method": st.sampled_from([*METHODS, "COPY"]), "resource": st.sampled_from(["/", "/a", "a"])},
    optional={
        name: VALUES if member else st.integers()
        for name, member in MEMBERS.items()
        if name not in ("method", "resource")
    },
)


def test_the_schema_beside_the_page_is_made_of_the_table_of_members():
    page = Path(__file__).parents[4] / "docs" / "4-protocols" / "resources.schema.json"
    assert json.loads(page.read_text()) == schema()


@given(REQUESTS)
def test_what_the_schema_refuses_is_no_request(said):
    assume(not accepts(schema(), said))
    with pytest.raises(RemoteError):
        Request.read(said)


@given(REQUESTS)
def test_a_request_is_answered_once_whatever_it_says(said):
    client = Client(new_tree(), "bob")
    client.session.receive(json.dumps(said), 0.0)
    (answer,) = client.take()
    assert 200 <= answer["status"] < 600


def ask(tree, method, path, body=b"", user="bob", **more):
    """The status, the headers and the body of an answer of HTTP."""
    target, _, query = path.partition("?")
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": target,
        "QUERY_STRING": query,
        "wsgi.input": io.BytesIO(body),
    }
    got = []

    def start(status, headers):
        got.extend((int(status[:3]), dict(headers)))

    asker = Asker(user, frozenset(), "", "192.0.2.7")
    said = b"".join(http.respond(tree, asker, environ | more, start, []))
    return (*got, said)


def test_the_same_requests_are_answered_by_http():
    """Covers Resources §10 [location-of-the-new] [patch-is-a-merge-patch] [persistent-by-http]
    and Resources §4.2 [put-makes-or-replaces]."""
    tree = new_tree()
    assert ask(tree, "PUT", "/tree/login", b"{}")[0] == 409
    status, headers, _ = ask(tree, "PUT", "/tree/login?persistent=true", b"{}")
    assert (status, headers["Location"]) == (201, "/tree/login")
    status, headers, body = ask(tree, "POST", "/tree/login?persistent=true", b'{"name":"Bob"}')
    name = json.loads(body)["id"]
    where = headers["Location"]
    assert (status, where) == (201, f"/tree/login/{name}")
    assert json.loads(ask(tree, "GET", "/tree/login?view=children")[2]) == [name]
    status, headers, body = ask(tree, "GET", where)
    assert (status, json.loads(body), headers["Content-Type"]) == (
        200,
        {"name": "Bob"},
        "application/json",
    )
    tag = headers["ETag"]
    assert ask(tree, "HEAD", where)[2] == b""
    assert ask(tree, "PATCH", where, b'{"away":true}', CONTENT_TYPE="text/plain")[0] == 415
    merge = {"CONTENT_TYPE": http.MERGE_PATCH}
    assert ask(tree, "PATCH", where, b'{"away":true}', HTTP_IF_MATCH='"x"', **merge)[0] == 412
    status, headers, body = ask(tree, "PATCH", where, b'{"away":true}', HTTP_IF_MATCH=tag, **merge)
    assert (status, json.loads(body)) == (200, {"name": "Bob", "away": True})
    assert headers["ETag"] != tag
    listener = Client(tree, "ann")
    assert listener.ask("SUBSCRIBE", f"/login/{name}")["status"] == 200
    assert ask(tree, "NOTIFY", where, b"5")[0] == 204
    assert listener.take()[0]["data"] == 5
    assert ask(tree, "SUBSCRIBE", where)[0] == 405
    assert ask(tree, "BREW", where)[0] == 405
    assert ask(tree, "DELETE", where)[0] == 204
    assert ask(tree, "GET", where)[0] == 404


@pytest.mark.parametrize(
    "path, status",
    [
        ("/tree/..", 400),
        ("/tree/a/../../status", 400),
        ("/tree//", 400),
        ("/tree/a%2fb", 404),  # which is unescaped before, and never twice
        ("/tree/" + "x" * 5000, 414),
        ("/tree/\xff", 400),
        ("/tree?view=secrets", 400),
    ],
)
def test_tricks_with_paths_find_nothing(path, status):
    assert ask(new_tree(), "GET", path)[0] == status


def test_what_others_have_stored_is_nothing_that_a_page_runs():
    tree = new_tree()
    html = {"CONTENT_TYPE": "text/html"}
    script = b"<script>alert(1)</script>"
    assert ask(tree, "PUT", "/tree/a?persistent=true", script, **html)[0] == 201
    _, headers, body = ask(tree, "GET", "/tree/a")
    assert body == script
    assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_too_much_is_refused_unread():
    status, _, _ = ask(new_tree(), "PUT", "/tree/a?persistent=true", b"1" * (http.MAX_CONTENT + 9))
    assert status == 413
    status, headers, _ = ask(new_tree("-" * 20), "GET", "/tree/a", user=None)
    assert (status, "WWW-Authenticate" in headers) == (401, True)
