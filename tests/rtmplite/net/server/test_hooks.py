"""Questions by HTTP: what is posted, what the answers mean, and services that do not answer."""

import logging
from contextlib import suppress
from dataclasses import replace
from urllib.parse import parse_qs

import gevent
import pytest
from gevent import socket
from gevent.pywsgi import WSGIServer
from hypothesis import given
from hypothesis import strategies as st
from support.limits import patience

from rtmplite.auth.guard import Event, Question
from rtmplite.errors import LocalError
from rtmplite.net.server.hooks import MAX_HEAD, HttpGuard, form, verdict_of
from rtmplite.net.server.hooks import service as service_at

QUESTION = Question(
    Event.PUBLISH, "192.0.2.1", 5, "cafe", "live", "rtmp://h/live", "FMLE/3.0", "", "", "a=1", (),
    "demo", "demo", "key=k%20k&name=other&key=2&empty=", "live",
)  # fmt: skip


@pytest.fixture
def service():
    """`service(answer)`: a web service; `answer(form, path)` gives status line and headers."""
    servers = []

    def run(answer):
        def application(environ, begin):
            body = environ["wsgi.input"].read().decode()
            path = environ["PATH_INFO"] + "?" + environ["QUERY_STRING"]
            begin(*answer(parse_qs(body, keep_blank_values=True), path))
            return [b"whatever"]

        server = WSGIServer(("127.0.0.1", 0), application, log=None)
        server.start()
        servers.append(server)
        return f"http://127.0.0.1:{server.socket.getsockname()[1]}/hook?x=1"

    yield run
    for server in servers:
        server.stop()


def ask(guard, question=QUESTION, seconds=20.0):
    """The verdict on a question."""
    verdicts = []
    guard.ask(question, lambda verdict, now: verdicts.append(verdict), 0.0)
    with patience(seconds):
        while not verdicts:
            gevent.sleep(0.002)
    return verdicts[0]


def test_the_form_is_what_nginx_rtmp_posts(service):
    """And a client cannot overwrite what we say of it."""
    heard = []
    url = service(lambda said, path: heard.append((said, path)) or ("200 OK", []))
    assert ask(HttpGuard({Event.PUBLISH: url})).is_allowed
    ((said, path),) = heard
    assert path == "/hook?x=1"
    assert said == {
        "call": ["publish"],
        "addr": ["192.0.2.1"],
        "clientid": ["cafe"],
        "app": ["live"],
        "flashver": ["FMLE/3.0"],
        "swfurl": [""],
        "tcurl": ["rtmp://h/live"],
        "pageurl": [""],
        "name": ["demo"],
        "path": ["demo"],
        "type": ["live"],
        "key": ["k k", "2"],
        "empty": [""],
    }


def test_every_event_has_its_own_words():
    """What only players or the end have."""
    play = parse_qs(form(replace(QUESTION, event=Event.PLAY, start=-2.0, reset=False)))
    assert (play["start"], play["duration"], play["reset"]) == (["-2"], ["0"], ["0"])
    assert "type" not in play
    connect = parse_qs(form(replace(QUESTION, event=Event.CONNECT)))
    assert connect["a"] == ["1"] and "name" not in connect
    done = parse_qs(form(replace(QUESTION, event=Event.DONE, was=Event.PUBLISH)))
    assert (done["call"], done["was"], done["type"]) == (["done"], ["publish"], ["live"])
    many = replace(QUESTION, query="&".join(f"f{n}=1" for n in range(1000)))
    assert "f1" not in parse_qs(form(many)) and "name" in parse_qs(form(many))


@pytest.mark.parametrize(
    ("status", "location", "meaning"),
    [
        (200, "", (True, "", "")),
        (204, "", (True, "", "")),
        (302, "other%20name", (True, "other name", "")),
        (301, "rtmp://b/live", (True, "", "rtmp://b/live")),
        (302, "rtmps://b/live", (True, "", "rtmps://b/live")),
        (302, "rtmfp://b/live", (True, "", "rtmfp://b/live")),
        (302, "", (False, "", "")),
        (403, "", (False, "", "")),
        (500, "", (False, "", "")),
    ],
)
def test_what_an_answer_means(status, location, meaning):
    """As nginx-rtmp's documents say."""
    verdict = verdict_of(status, location)
    assert (verdict.is_allowed, verdict.name, verdict.url) == meaning


def test_a_redirect_is_read_from_the_wire(service):
    """Its Location is a new name."""
    url = service(lambda said, path: ("302 Found", [("Location", said["name"][0] + "-2")]))
    assert ask(HttpGuard({Event.PUBLISH: url})).name == "demo-2"


def test_events_that_nobody_asked_for_cost_nothing():
    """And are allowed at once."""
    verdicts = []
    HttpGuard({}).ask(QUESTION, lambda verdict, now: verdicts.append(verdict), 0.0)
    HttpGuard({}).tell(QUESTION, 0.0)
    assert verdicts[0].is_allowed


def test_the_end_is_told_and_the_answer_ignored(service):
    """Even if it is a no."""
    heard = []
    url = service(lambda said, path: heard.append(said["call"]) or ("500 No", []))
    guard = HttpGuard({Event.PUBLISH: url})
    guard.tell(QUESTION, 0.0)
    with patience(20):
        while guard.under_way:
            gevent.sleep(0.002)
    assert heard == [["publish"]]


@pytest.fixture
def hole():
    """A service that takes connections and says nothing, or garbage."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    yield listener
    listener.close()


def address(listener):
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_the_request_has_a_host_and_a_length(hole, monkeypatch):
    """Covers RFC 9112 §3.2 [client-says-host] [host-of-the-url] and §6.3 [length-is-told]
    [length-or-chunks] [not-chunked] [nothing-behind-the-answer], §4 [reason-is-ignored], §9.6
    [close-is-announced] [one-request-is-all] [closed-behind-the-answer] [close-is-heeded]
    [nothing-is-pipelined], §2.2 [nothing-around-a-request].

    What follows the answer is not read, whatever the words of its first line say.
    """
    place = address(hole).removeprefix("http://")
    said, kept, connect = b"", [], socket.create_connection

    def create_connection(*args):  # which is not closed merely because nobody has it any more
        kept.append(connect(*args))
        return kept[-1]

    monkeypatch.setattr(socket, "create_connection", create_connection)

    def serve():
        nonlocal said
        connected, _ = hole.accept()
        while not said.endswith(b"empty="):  # the last field of the form
            said += connected.recv(65536)
        connected.sendall(b"HTTP/1.1 200 Not Found\r\nConnection: close\r\n\r\n")
        connected.sendall(b"HTTP/1.1 403 OK\r\n\r\n")
        with suppress(ConnectionResetError):  # since it leaves our second answer unread
            connected.settimeout(10)
            assert connected.recv(65536) == b""
        connected.close()

    serving = gevent.spawn(serve)
    assert ask(HttpGuard({Event.PUBLISH: f"http://user:secret@{place}/hook"})).is_allowed
    serving.get(timeout=20)
    head, _, body = said.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /hook HTTP/1.1"
    assert lines.count(b"Host: " + place.encode()) == 1 and b"chunked" not in head
    assert lines.count(b"Content-Length: %d" % len(body)) == 1 and body
    assert lines.count(b"Connection: close") == 1


def test_no_answer_in_time_is_none(hole, caplog):
    """Who cannot be asked has not agreed; others go on meanwhile."""
    guard = HttpGuard({Event.PUBLISH: address(hole)}, timeout=0.05)
    with caplog.at_level(logging.WARNING):
        assert not ask(guard).is_allowed
    assert "192.0.2.1 is denied" in caplog.text and guard.under_way == 0


@pytest.mark.parametrize(
    "said", [b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70000, b""]
)
def test_garbage_is_no_answer(hole, said):
    """Nor is a connection that breaks."""

    def talk():
        connected, _ = hole.accept()
        connected.sendall(said)
        connected.close()

    gevent.spawn(talk)
    assert not ask(HttpGuard({Event.PUBLISH: address(hole)})).is_allowed


def test_nobody_there_is_no_answer(hole):
    """Refused connections deny at once."""
    url = address(hole)
    hole.close()
    assert not ask(HttpGuard({Event.PUBLISH: url})).is_allowed


def test_no_more_questions_than_allowed_are_under_way(hole):
    """A crowd is denied rather than queued; stopping forgets them."""
    guard = HttpGuard({Event.PUBLISH: address(hole)}, requests=2)
    verdicts = []
    for _ in range(5):
        guard.ask(QUESTION, lambda verdict, now: verdicts.append(verdict.is_allowed), 0.0)
        guard.tell(QUESTION, 0.0)
    assert verdicts == [False] * 4 and guard.under_way == 2
    guard.stop()
    with patience(20):
        while guard.under_way:
            gevent.sleep(0.002)
    assert verdicts == [False] * 4


def test_a_bug_behind_an_answer_is_logged(service, caplog):
    """It costs one client: the machine closes it."""
    url = service(lambda said, path: ("200 OK", []))
    guard = HttpGuard({Event.PUBLISH: url})
    guard.ask(QUESTION, lambda verdict, now: 1 / 0, 0.0)
    with patience(20):
        while guard.under_way:
            gevent.sleep(0.002)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/"),
        ("http://h?x=1", "/?x=1"),
        ("https://user:secret@h:8443/a?b=c#d", "/a?b=c"),
    ],
)
def test_a_request_names_path_and_query(url, path):
    """Covers RFC 9112 §3.2.1 [path-and-query-alone] [slash-for-no-path]."""
    assert service_at(url).path == path


def test_what_a_path_may_not_hold_is_escaped():
    """Covers RFC 3986 §2.1 [capital-hex], §2.2 [reserved-is-escaped]."""
    found = service_at("http://h/a b/k\u00e4se;x?y=%2f&z[]|")
    assert found.path == "/a%20b/k%C3%A4se;x?y=%2f&z[]%7C"


@pytest.mark.parametrize("url", ["ftp://x/", "http://", "x", "http://h:99999/", "http://[::/"])
def test_what_is_no_web_address_is_refused_at_the_start(url):
    """Not when the first client comes.  Covers RFC 3986 §3 [scheme-is-required]."""
    with pytest.raises(LocalError):
        HttpGuard({Event.PLAY: url})


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 65000 + b"\r\n"],
    ids=["interim ones", "headers"],
)
def test_an_answer_without_end_stops_nobody(answer, caplog):
    """Own design: it is read up to a limit, and not for as long as there is something to read."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve():
            sender, _ = server.accept()
            with sender:
                sender.recv(4096)
                sent.append(sender.send(answer * (1 + (1 << 20) // len(answer))))  # in one go

        sent = []
        serving = gevent.spawn(serve)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/hook"
        assert ask(HttpGuard({Event.PUBLISH: url})).description == "Nobody could be asked."
        serving.join()
    assert sent[0] > MAX_HEAD and caplog.messages == [
        f"{url}: an answer without end: 192.0.2.1 is denied"
    ]


@pytest.mark.parametrize(
    ("answer", "is_allowed"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.0 204\r\n\r\n", True),
        (b"HTTP/1.1 102 a\r\nlocation: x\r\n\r\nHTTP/1.1 403 No\r\nlocation: y\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n", False),
        (b"200 OK\r\n\r\n", False),
    ],
)
@pytest.mark.parametrize("piece", [1, 1000])
def test_answers_in_pieces(answer, is_allowed, piece):
    """Own design: the last head counts, however it arrives, and only if it is whole."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve():
            sender, _ = server.accept()
            with sender:
                sender.recv(4096)
                for at in range(0, len(answer), piece):
                    sender.sendall(answer[at : at + piece])
                    gevent.sleep(0)

        serving = gevent.spawn(serve)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/hook"
        assert ask(HttpGuard({Event.PUBLISH: url})).is_allowed == is_allowed
        serving.kill()


@given(st.text())
def test_any_text_is_a_service_or_none(text):
    """Own design: and one line, whatever is in it."""
    with suppress(LocalError):
        place = service_at("http://" + text)
        assert f"{place.path}{place.authority}".isprintable()
        assert place.path.isascii() and " " not in place.path


def test_rubbish_is_told_in_one_short_line(caplog):
    """Own design: whoever answers writes no log of ours."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve():
            sender, _ = server.accept()
            with sender:
                sender.recv(4096)
                sender.sendall(b"\x1b[2J\r forged" + b"!" * 9999 + b"\n")

        serving = gevent.spawn(serve)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/hook"
        assert not ask(HttpGuard({Event.PUBLISH: url})).is_allowed
        serving.join()
    (line,) = caplog.messages
    assert line.isprintable() and "forged!" in line and len(line) < 400
