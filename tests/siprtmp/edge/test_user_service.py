"""A web service that tells who clients of the tree are, and one that hangs, lies or floods."""

import json
import logging
from base64 import b64encode

import gevent
import jwt
import pytest
from gevent.event import Event
from gevent.server import StreamServer
from support.resources.sites import BASIC, USERS, Site

from p2psip.server.users import UserStore
from siprtmp.calls.access.admission import Admission
from siprtmp.edge.web import tree_side, user_service
from siprtmp.edge.web.tree_access import load_tokens
from siprtmp.edge.web.user_service import UserService
from siprtmp.operation.logs import Log

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
BOB = {"user": "bob", "groups": ["friends"], "seconds": 60}


def said(value):
    text = json.dumps(value).encode()
    return OK % (len(text), text)


class Who:
    """The service: `answer` is what it sends, in pieces; without any it hangs."""

    def __init__(self):
        self.asked, self.answer, self.sent, self.go = [], [said(BOB)], 0, Event()
        self.server = StreamServer(("127.0.0.1", 0), self._serve)
        self.server.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/who?key=of-the-gateway"

    def _serve(self, connected, address):
        text = b""
        while not text.endswith(b"}"):
            text += connected.recv(65536)
        head, _, body = text.partition(b"\r\n\r\n")
        assert head.startswith(b"POST /who?key=of-the-gateway HTTP/1.1\r\n")
        self.asked.append(json.loads(body))
        if not self.answer:
            self.go.wait()
        for piece in self.answer:
            try:
                connected.sendall(piece)
            except OSError:  # the gateway has had enough
                return
            self.sent += len(piece)
            gevent.sleep(0)


@pytest.fixture
def who(monkeypatch):
    monkeypatch.setattr(user_service, "TIMEOUT", 60.0)
    monkeypatch.setattr(tree_side, "WRONG_SECONDS", 0.01)
    service = Who()
    yield service
    service.go.set()
    service.server.stop()


@pytest.fixture
def site(who):
    users = UserStore.parse("ann:example.org:" + "0" * 32)
    made = Site(
        is_open=False,
        admission=Admission(False, users, USERS),
        service=UserService(who.url, lambda size: b"k" * size, Log("t")).identity,
    )
    yield made
    made.stop()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def basic(name, password):
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


def owner(site, name, proof):
    assert site.http("PUT", f"/tree/{name}?persistent=true", b"1", **proof)[0] == 201
    return json.loads(site.http("GET", f"/tree/{name}?view=access", **proof)[2])["owner"]


def test_the_service_names_the_user_of_a_token_and_of_a_password(site, who):
    """Covers Resources §14.1 [proof-is-posted] [own-users-are-judged-here]; each is asked once."""
    assert owner(site, "a", bearer("t1")) == "bob"
    assert owner(site, "b", basic("eve", "se:cret")) == "bob"
    of_bob = {"address": "127.0.0.1"}
    asked = [of_bob | {"token": "t1"}, of_bob | {"user": "eve", "password": "se:cret"}]
    assert who.asked == asked
    assert owner(site, "c", {"Authorization": BASIC}) == "ann@example.org"
    assert site.http("GET", "/tree/a", **basic("ann", "wrong"))[0] == 401
    assert who.asked == asked  # none of these passwords has gone there
    who.answer = [said({"user": "eve"})]
    assert site.http("GET", "/tree/a", **bearer("t2"))[0] == 200
    assert site.http("GET", "/tree/a", **bearer("t2"))[0] == 200
    assert [each["token"] for each in who.asked[2:]] == ["t2", "t2"]  # nothing is to be kept


def test_a_key_decides_about_tokens_alone(who, tmp_path):
    """Covers Resources §14.1 [key-comes-first]."""
    path, secret = tmp_path / "key", "a secret of tokens that is long enough"
    path.write_text(secret)
    service = UserService(who.url, lambda size: b"k" * size, Log("t"))
    site = Site(load_tokens(path), is_open=False, service=service.identity)
    token = jwt.encode({"sub": "ann", "exp": 1 << 40}, secret)
    assert site.http("GET", "/tree/?view=children", **bearer(token))[0] == 200
    assert site.http("GET", "/tree/?view=children", **bearer("other"))[0] == 401
    assert who.asked == []
    site.stop()


def test_a_refusal_is_kept_for_a_while_and_guesses_are_limited(site, who):
    """Covers Resources §14.2 [unknown-is-401]."""
    who.answer = [b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"]
    for _ in range(3):
        status, headers, body = site.http("GET", "/tree/", **bearer("t1"))
        assert status == 401 and "WWW-Authenticate" in headers and b"Nobody" in body
    assert len(who.asked) == 1
    statuses = [site.http("GET", "/tree/", **basic("eve", f"{n}"))[0] for n in range(12)]
    assert statuses == 10 * [401] + 2 * [503] and len(who.asked) == 11


BAD = {
    "redirects": [b"HTTP/1.1 302 Found\r\nLocation: /who\r\nContent-Length: 0\r\n\r\n"],
    "fails": [b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"],
    "garbage": [b"\x00\xff garbage\r\n\r\n"],
    "no JSON": [OK % (5, b"hello")],
    "no user": [said({"groups": ["admin"]})],
    "cut": [said(BOB)[:-3]],
    "less than it says": [OK % (500, said(BOB).partition(b"\r\n\r\n")[2])],
    "nothing": [b""],
    "a long head": [b"HTTP/1.1 200 OK\r\n"] + [b"X: " + b"y" * 8000 + b"\r\n"] * 2000,
    "10 MB": [OK % (10 << 20, b"")] + [b" " * 65536] * 160,
    "an impossible length": [OK % (1 << 60, b"{}")],
    "10 MB in chunks": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]
    + [b"10000\r\n" + b" " * 65536 + b"\r\n"] * 160,
    "only begins": [b"HTTP/1.1 100 Continue\r\n\r\n" * 1000] * 400,
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_a_service_that_decides_nothing_lets_nobody_in(site, who, answer, caplog):
    """Covers Resources §14.2 [else-503], §14.4 [answers-are-bounded]: and it is asked again."""
    caplog.set_level(logging.INFO)
    who.answer = answer
    for _ in range(2):
        status, _, body = site.http("GET", "/tree/", **bearer("a-secret-token"))
        assert status == 503 and b"does not answer" in body
    assert len(who.asked) == 2 and who.sent < 20 << 20
    who.answer = [said(BOB)]
    assert site.http("GET", "/tree/?view=children", **bearer("a-secret-token"))[0] == 200
    events = [each.getMessage() for each in caplog.records if each.name == "t"]
    assert [each for each in events if each.startswith("user-service")] == [
        "user-service-failed",
        "user-service-back",
    ]
    written = " ".join(str(each.__dict__) for each in caplog.records)
    assert "a-secret-token" not in written and "of-the-gateway" not in written


def test_a_service_that_hangs_holds_up_nobody_else(site, who, monkeypatch):
    """Covers Resources §14.2 [else-503], §14.4 [questions-are-bounded]: the same is asked once."""
    who.answer = []
    tokens = [f"t{n}" for n in range(8)] * 2
    waiting = [gevent.spawn(site.http, "GET", "/tree/", **bearer(each)) for each in tokens]
    while len(who.asked) < 8:
        gevent.sleep(0.01)
    assert site.http("GET", "/tree/", **bearer("t9"))[0] == 503  # the ninth of this host
    assert site.http("PUT", "/tree/a?persistent=true", b"1", Authorization=BASIC)[0] == 201
    who.answer = [said(BOB)]
    who.go.set()
    gevent.joinall(waiting)
    assert all(each.value[0] not in (401, 503) for each in waiting) and len(who.asked) == 8
    who.answer = []
    who.go.clear()
    monkeypatch.setattr(user_service, "TIMEOUT", 0.05)
    assert site.http("GET", "/tree/", **bearer("late"))[0] == 503
    who.server.stop()
    assert site.http("GET", "/tree/", **bearer("nobody-listens"))[0] == 503
