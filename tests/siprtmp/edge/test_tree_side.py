"""The tree by its listener: WebSockets, plain HTTP, proofs, pages of other sites, and the file."""

import json
import sqlite3
from base64 import b64encode

import gevent
import jwt
import pytest
from gevent import socket
from support.resources.sites import BASIC, Site
from support.resources.trees import client, new_tree, refusal, value
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    Pong,
    Request,
    TextMessage,
)

from p2psip.errors import LocalError
from p2psip.net.sqlite_file import RETRY_SECONDS
from siprtmp.edge.web import tree_side, tree_socket
from siprtmp.edge.web.tree_access import load_tokens
from siprtmp.edge.web.tree_store import SqliteStore
from siprtmp.operation.arguments import ConfigError
from siprtmp.web.resources.session import MAX_MESSAGE
from siprtmp.web.resources.tree import Wishes

SECRET = b"a secret of tokens that is long enough"


class Page:
    """A client by WebSocket; `refused` is the status of HTTP if it got none."""

    def __init__(self, site, target="/tree", protocols=("resource.v1",), headers=()):
        self.socket = socket.create_connection(site.server.address, 20)
        self.web = WSConnection(ConnectionType.CLIENT)
        request = Request(
            host="localhost",
            target=target,
            subprotocols=list(protocols),
            extra_headers=[(name.encode(), text.encode()) for name, text in headers],
        )
        self.socket.sendall(self.web.send(request))
        self.events = []
        event = self.next()
        self.refused = getattr(event, "status_code", None)
        self.protocol = event.subprotocol if isinstance(event, AcceptConnection) else None

    def next(self):
        while not self.events:
            data = self.socket.recv(65536)
            self.web.receive_data(data or None)
            self.events.extend(self.web.events())
        return self.events.pop(0)

    def send(self, event):
        self.socket.sendall(self.web.send(event))

    def hear(self):
        text, is_whole = "", False
        while not is_whole:
            event = self.next()
            if isinstance(event, TextMessage):  # and no Ping, which comes to slow machines
                text, is_whole = text + event.data, event.message_finished
        return json.loads(text)

    def ask(self, method, resource, **more):
        said = {"method": method, "resource": resource} | more
        self.send(TextMessage(data=json.dumps(said)))
        return self.hear()

    def kill(self):
        self.socket.close()


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(tree_side, "WRONG_SECONDS", 0.01)
    site = Site()
    yield site
    site.stop()


def test_two_pages_see_each_other_come_and_go(site):
    one, other = Page(site), Page(site)
    assert one.protocol == "resource.v1"
    assert one.ask("PUT", "/room", entity={}, id=1) == {
        "status": 201,
        "resource": "/room",
        "etag": value({}).tag,
        "id": 1,
    }
    assert one.ask("SUBSCRIBE", "/room")["status"] == 200
    name = other.ask("POST", "/room", entity={"name": "Bob"})["entity"]["id"]
    assert one.hear()["create"] == name
    other.kill()
    gone = one.hear()
    assert (gone["delete"], gone["entity"]) == (name, {"name": "Bob"})
    assert one.ask("GET", "/room", view="children")["entity"] == []


def test_plain_http_and_websocket_show_one_tree(site):
    page = Page(site)
    page.ask("SUBSCRIBE", "/")
    status, headers, _ = site.http("PUT", "/tree/note?persistent=true", b'"hello"')
    assert (status, headers["Location"]) == (201, "/tree/note")
    assert page.hear()["create"] == "note"
    assert page.ask("GET", "/note")["entity"] == "hello"
    assert site.http("NOTIFY", "/tree/note", b"1")[0] == 204
    assert site.http("GET", "/tree/note")[2] == b'"hello"'
    assert site.http("SUBSCRIBE", "/tree/note")[0] == 405


def test_a_user_owns_what_it_makes_by_any_way(site):
    ways = [
        Page(site, headers=[("Authorization", BASIC)]),
        Page(site, "/tree?user=ann&pass=se%3Acret"),
    ]
    assert ways[0].ask("PUT", "/mine", entity=0, persistent=True)["status"] == 201
    for page in ways:
        assert page.ask("GET", "/mine", view="access")["entity"]["owner"] == "ann@example.org"
    assert Page(site).ask("PUT", "/mine", entity=1)["status"] == 401
    assert site.http("PUT", "/tree/mine", b"2", Authorization=BASIC)[0] == 200


@pytest.mark.parametrize(
    "proof",
    [
        {"Authorization": "Basic " + b64encode(b"ann:guess").decode()},
        {"Authorization": "Basic !"},
        {"Authorization": "Bearer x.y.z"},
    ],
)
def test_a_wrong_proof_is_refused_and_not_taken_for_none(site, proof):
    assert site.http("GET", "/tree", **proof)[0] == 401
    assert Page(site, headers=list(proof.items())).refused == 401


def test_guesses_are_limited(site):
    wrong = {"Authorization": "Basic " + b64encode(b"ann:guess").decode()}
    statuses = {site.http("GET", "/tree", **wrong)[0] for _ in range(12)}
    assert statuses == {401, 503}


def test_where_strangers_reach_the_listener_a_user_is_needed(monkeypatch):
    monkeypatch.setattr(tree_side, "WRONG_SECONDS", 0.01)
    site = Site(is_open=False)
    try:
        assert site.http("GET", "/tree")[0] == 401
        assert Page(site).refused == 401
        assert site.http("GET", "/tree", Authorization=BASIC)[0] == 200
    finally:
        site.stop()


def test_a_proxy_passes_on_strangers(site):
    assert site.http("GET", "/tree", X_Forwarded_For="192.0.2.7")[0] == 401
    assert site.http("GET", "/tree", X_Forwarded_For="127.0.0.1")[0] == 200


def test_a_user_behind_a_proxy_is_no_program_of_this_machine(site):
    """So a branch gives it no right that only such programs have."""
    environ = {"REMOTE_ADDR": "127.0.0.1", "HTTP_AUTHORIZATION": BASIC}
    proxied = {**environ, "HTTP_X_FORWARDED_FOR": "192.0.2.7"}
    judge = site.side._access.judge
    assert [judge(each, "", 0.0).host for each in (environ, proxied)] == ["127.0.0.1", "192.0.2.7"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "x://["])
def test_a_page_of_another_site_gets_nothing(site, origin):
    """Covers Resources §9 [other-sites-are-refused]."""
    page = Page(site, headers=[("Origin", origin), ("Authorization", BASIC)])
    assert page.refused == 403
    proof = {"Origin": origin, "Authorization": BASIC}
    status, headers, _ = site.http("PUT", "/tree/a?persistent=true", b"1", **proof)
    assert status == 403 and "Access-Control-Allow-Origin" not in headers
    assert site.http("GET", "/tree/a")[0] == 404
    assert site.http("OPTIONS", "/tree/a", Origin=origin)[0] == 403


def test_pages_of_the_gateway_and_of_named_sites_may_ask(site):
    """Covers Resources §9 [other-sites-are-refused], and no others are."""
    for origin in "http://localhost", "https://friends.example":
        assert Page(site, headers=[("Origin", origin), ("Authorization", BASIC)]).refused is None
    status, headers, _ = site.http(
        "GET", "/tree", Origin="https://friends.example", Authorization=BASIC
    )
    assert (status, headers["Access-Control-Allow-Origin"]) == (200, "https://friends.example")
    status, headers, _ = site.http("OPTIONS", "/tree/a", Origin="https://friends.example")
    assert status == 204 and "PATCH" in headers["Access-Control-Allow-Methods"]
    # which is no program of this machine, so without a proof it is nobody
    assert site.http("GET", "/tree", Origin="https://friends.example")[0] == 401


def test_a_name_that_is_pointed_at_this_machine_is_refused(site):
    assert site.http("GET", "/tree", Host="evil.example", Origin="http://evil.example")[0] == 421


def token(key=SECRET, algorithm="HS256", **claims):
    return jwt.encode({"sub": "eve", "exp": 1 << 33, "groups": ["team"]} | claims, key, algorithm)


@pytest.fixture
def with_tokens(tmp_path, monkeypatch):
    monkeypatch.setattr(tree_side, "WRONG_SECONDS", 0.01)
    path = tmp_path / "token.key"
    path.write_bytes(SECRET + b"\n")
    site = Site(load_tokens(path), is_open=False)
    yield site
    site.stop()


def test_a_token_names_a_user_and_its_groups(with_tokens):
    site = with_tokens
    page = Page(site, protocols=["resource.v1", f"bearer.{token()}"])
    assert page.protocol == "resource.v1"
    mode = "------r-------------"
    made = page.ask("PUT", "/team", entity=1, persistent=True, mode=mode, group="team")
    assert made["status"] == 201
    of_ann, of_eve = f"Bearer {token(sub='ann')}", f"Bearer {token(groups=[])}"
    assert site.http("GET", "/tree/team", Authorization=of_ann)[0] == 200
    assert site.http("GET", "/tree/team", Authorization=of_eve)[0] == 403  # the owner has no right
    assert site.http("GET", f"/tree/team?token={token(sub='bob', groups=[])}")[0] == 403


@pytest.mark.parametrize(
    "wrong",
    [
        token(exp=1),
        token(key=b"another secret that is long enough too"),
        token(key="", algorithm="none"),
        token(groups="team"),
        token(sub=None),
        jwt.encode({"sub": "eve"}, SECRET, "HS256"),
        token().rpartition(".")[0] + ".",
        "x" * 5000,
    ],
)
def test_a_token_that_is_not_valid_is_refused(with_tokens, wrong):
    assert with_tokens.http("GET", f"/tree?token={wrong}")[0] == 401


def test_a_key_is_a_secret_that_is_long_enough_or_a_public_key(tmp_path):
    path = tmp_path / "token.key"
    for text in b"short", b"-----BEGIN RSA PRIVATE KEY-----\n" + b"x" * 100:
        path.write_bytes(text)
        with pytest.raises(ConfigError):
            load_tokens(path)
    with pytest.raises(ConfigError):
        load_tokens(tmp_path / "missing")


def test_a_public_key_is_never_taken_for_a_secret(tmp_path):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    private = ed25519.Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    path = tmp_path / "token.pem"
    path.write_bytes(public)
    prove = load_tokens(path)
    assert prove(token(private, "EdDSA")) == ("eve", frozenset({"team"}))
    import base64
    import hashlib
    import hmac

    head, claims, _ = token().split(".")
    forged = hmac.new(public.strip(), f"{head}.{claims}".encode(), hashlib.sha256).digest()
    mark = base64.urlsafe_b64encode(forged).decode().rstrip("=")
    assert refusal(prove, f"{head}.{claims}.{mark}") == 401


def test_a_websocket_without_the_subprotocol_is_refused(site):
    assert Page(site, protocols=["sip"]).refused == 400
    assert Page(site, "/tree/a").refused == 404  # which is a resource


def test_a_message_that_is_too_long_or_no_text_ends_the_connection(site):
    page = Page(site)
    page.send(BytesMessage(data=b"{}"))
    assert page.next().code == 1003
    page = Page(site)
    page.send(TextMessage(data="x" * (MAX_MESSAGE + 1)))
    assert page.next().code == 1009
    page = Page(site)
    page.send(TextMessage(data='{"method": "GET", ', message_finished=False))
    page.send(TextMessage(data='"resource": "/"}'))
    assert page.hear()["status"] == 200
    page.send(Ping(payload=b"x"))
    assert isinstance(page.next(), Pong)
    page.send(CloseConnection(code=1000))
    assert page.next().code == 1000


def test_a_client_that_is_silent_is_asked_and_then_given_up(site, monkeypatch):
    one, other = Page(site), Page(site)
    one.ask("PUT", "/a", entity=0)
    other.ask("SUBSCRIBE", "/a")
    for connected in list(site.side._sockets):
        connected.look(connected.heard + tree_socket.PING_SECONDS + 1)
    assert isinstance(one.next(), Ping)
    first = next(iter(site.side._sockets))
    first.look(first.heard + tree_socket.GONE_SECONDS + 1)
    assert isinstance(other.next(), Ping)
    assert other.hear()["notify"] == "DELETE"


def test_a_subscriber_that_reads_nothing_holds_nobody_up(site):
    slow, page = Page(site), Page(site)
    page.ask("PUT", "/a", entity=0)
    slow.ask("SUBSCRIBE", "/a")
    for _ in range(300):  # more than the sockets and the queue hold
        assert page.ask("NOTIFY", "/a", data="x" * 60_000)["status"] == 204
    words = []
    while not words or words[-1] != "MISSED":
        words.append(slow.hear()["notify"])
    assert 0 < len(words) < 300


def test_each_message_to_many_becomes_a_frame_once(site, monkeypatch):
    made = []
    as_frame = tree_side.WebSocket.text_frame
    monkeypatch.setattr(
        tree_side.WebSocket, "text_frame", lambda text: made.append(text) or as_frame(text)
    )
    author, pages = Page(site), [Page(site) for _ in range(3)]
    author.ask("PUT", "/a", entity=0)
    for page in pages:
        page.ask("SUBSCRIBE", "/a")
        page.ask("SUBSCRIBE", "/")
    made.clear()
    asks = [{"method": "NOTIFY", "resource": "/a", "data": n} for n in (1, 2)]
    author.socket.sendall(
        b"".join(author.web.send(TextMessage(data=json.dumps(ask))) for ask in asks)
    )
    for page in pages:
        assert [page.hear()["data"] for _ in asks] == [1, 2]
    assert len([text for text in made if "NOTIFY" in text]) == len(asks)


def test_a_client_that_asked_too_much_is_read_again_once_it_has_its_answers(site):
    page = Page(site)
    page.ask("PUT", "/a", entity="x" * 60_000)
    asks = page.web.send(TextMessage(data='{"method": "GET", "resource": "/a"}')) * 40
    page.socket.sendall(asks)
    for _ in range(40):
        assert page.hear()["status"] == 200
    assert page.ask("GET", "/")["status"] == 200


def test_all_connections_are_counted_until_they_end(site):
    pages = [Page(site) for _ in range(3)]
    assert site.tree.figures()["resource_connections"] == 3
    for page in pages:
        page.kill()
    while site.tree.figures()["resource_connections"]:
        gevent.sleep(0.01)
    assert len(site.side._limit) == 0


def store(path, **options):
    told = []
    return SqliteStore(path, lambda *what: told.append(what), **options), told


def test_persistent_resources_outlive_the_process(tmp_path):
    path = tmp_path / "resources.sqlite"
    kept, _ = store(path)
    tree = new_tree(store=kept)
    bob, _ = client(tree, "bob")
    stays = Wishes(persistent=True)
    private = "cruws" + "-" * 15
    tree.put(("a",), value({"é": 1}), bob, stays)
    tree.put(("a", "b"), value(2), bob, Wishes(persistent=True, mode=private, group="team"))
    tree.put(("a", "c"), value(3), bob)
    tree.put(("a", "d"), value(4), bob, stays)
    tree.delete(("a", "d"), bob)
    tree.patch(("a", "b"), 5, bob)
    kept.close()
    assert path.stat().st_mode & 0o777 == 0o600
    again = new_tree(store=store(path)[0])
    bob, _ = client(again, "bob")
    assert again.get(("a",), bob) == value({"é": 1})
    assert again.children(("a",), bob) == ["b"]
    assert again.get(("a", "b"), bob) == value(5)
    said = {"owner": "bob", "group": "team", "mode": private, "persistent": True}
    assert again.access(("a", "b"), bob).data == said


def test_a_resource_that_becomes_transient_is_kept_no_more(tmp_path):
    path = tmp_path / "resources.sqlite"
    kept, _ = store(path)
    tree = new_tree(store=kept)
    bob, _ = client(tree, "bob")
    tree.put(("a",), value(1), bob, Wishes(persistent=True))
    tree.put(("a",), value(2), bob, Wishes(persistent=False))
    kept.close()
    assert list(store(path)[0].load()) == []


def test_a_damaged_file_is_set_aside_and_another_programs_is_left(tmp_path):
    path = tmp_path / "resources.sqlite"
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    _, told = store(path)
    assert told[0][0] == "state-set-aside" and path.with_suffix(".damaged").exists()
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (x)")
    with pytest.raises(LocalError):
        store(other)


def test_what_could_not_be_written_is_written_later(tmp_path):
    """Not at once: to open a large file and to check it takes a while."""
    path, now = tmp_path / "resources.sqlite", [0.0]
    kept, told = store(path, clock=lambda: now[0])
    tree = new_tree(store=kept)
    bob, _ = client(tree, "bob")
    with sqlite3.connect(path, isolation_level=None) as blocker:
        blocker.execute("BEGIN EXCLUSIVE")
        tree.put(("a",), value(1), bob, Wishes(persistent=True))
        tree.put(("a",), value(2), bob)
        blocker.execute("ROLLBACK")
    now[0] = RETRY_SECONDS - 1
    tree.put(("a",), value(4), bob)
    assert [what for what, _ in told] == ["state-unwritable"]
    now[0] += 1
    tree.put(("b",), value(3), bob, Wishes(persistent=True))
    assert [what for what, _ in told] == ["state-unwritable", "state-written"]
    kept.close()
    entities = {path: held.entity.data for path, held in store(path)[0].load()}
    assert entities == {("a",): 4, ("b",): 3}
