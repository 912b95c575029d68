"""The HTTP server on real sockets: many who ask nothing, and one who does."""

import errno
import resource

import gevent
import pytest
from gevent import socket
from support.limits import patience

from rtmplite.net import descriptors
from rtmplite.net.clock import now
from rtmplite.net.http import wsgi
from rtmplite.net.http.wsgi import Handler, Server

HERE, OTHER = "127.0.0.1", "127.0.0.2"
ASK = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


@pytest.fixture
def serve(monkeypatch):
    """`serve(most=..., most_of_one=...)`: a server that says `yes` to everything."""
    monkeypatch.setattr(wsgi, "TICK", 0.02)
    servers = []

    def answer(environ, begin):
        begin("200 OK", [("Content-Length", "3")])
        return [b"yes"]

    def run(most=8, most_of_one=4):
        server = Server((HERE, 0), answer, Handler, most=most, most_of_one=most_of_one)
        server.start()
        servers.append(server)
        return server

    yield run
    for server in servers:
        server.stop(timeout=0.2)


def client(server, source=HERE, data=b""):
    connected = socket.create_connection(server.address, 20, source_address=(source, 0))
    connected.settimeout(20)
    connected.sendall(data)
    return connected


def asks(server, source=HERE):
    """What one who asks gets."""
    with client(server, source, ASK) as asking:
        return b"".join(iter(lambda: asking.recv(4096), b""))


def count(server, expected):
    with patience(20):
        while server.clients != expected:
            gevent.sleep(0.005)
    return True


def answer_to(server, data):
    """What a request gets before the connection is closed."""
    with client(server, data=data) as asking:
        return b"".join(iter(lambda: asking.recv(4096), b""))


LONG = b"/" + b"x" * 7980


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: a:80\r\nConnection: close", b"200"),
        (b"GET / HTTP/1.1\r\nHost: [::1]\r\nConnection: close", b"200"),
        (b"GET / HTTP/1.0", b"200"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nx: \xff \t\x80", b"200"),
        (b"GET / HTTP/1.1\nHost: a\nConnection: close", b"200"),
        (b"\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close", b"200"),
        (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close", b"400"),
        (b"GET / HTTP/1.1\r\n x: y\r\nHost: a", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx: y\r\n z", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx: y\rz: w", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx : y", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx", b"400"),
        (b"GET / HTTP/1.1", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a", b"400"),
        (b"GET / HTTP/1.0\r\nHost: a\r\nHost: a", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a/b", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a, b", b"400"),
        (b"GET /a b HTTP/1.1\r\nHost: a", b"400"),
        (b"GET\r\nHost: a", b"400"),
        (b"GET " + LONG + b" HTTP/1.1\r\nHost: a\r\nConnection: close", b"200"),
        (b"GET " + LONG + b"x" * 300 + b" HTTP/1.1\r\nHost: a", b"414"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nContent-Length: 3", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, x", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;x=y", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 4", b"400"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4", b"400"),
    ],
)
def test_a_head_that_may_be_read_in_two_ways_is_refused(serve, head, status):
    """Covers RFC 9112 §3 [too-long-a-target] [lines-of-8000], §3.2 [bad-line-is-400]
    [not-corrected] [host-is-required] and §6.3 [other-codings-are-refused]
    [bad-length-is-an-error] [bad-length-is-400].

    Covers RFC 9112 §2.2 [octets-are-read] [lf-ends-a-line] [empty-line-before] [no-bare-cr]
    [fields-begin-the-line] [400-for-no-grammar], §5.1 [no-space-before-the-colon], §5.2
    [folded-is-refused] and §7.1 [no-parameters-of-chunked].
    """
    answer = answer_to(serve(), head + b"\r\n\r\n")
    assert answer.split(b" ", 2)[1] == status and answer.count(b"HTTP/1.1") == 1


def echo(server):
    """Have the server answer with what it took for the target, the host and the body."""

    def application(environ, begin):
        said = environ["PATH_INFO"], environ["QUERY_STRING"], environ["HTTP_HOST"]
        body = environ["wsgi.input"].read()
        said = " ".join((*said, body.decode(), environ.get("HTTP_TRAILER", "")))
        begin("200 OK", [("Content-Length", str(len(said)))])
        return [said.encode()]

    server.application = application
    return server


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (b"http://b.example/p?q", b"/p q b.example"),
        (b"HTTP://b.example:80", b"/  b.example:80"),
        (b"https://[::1]?q", b"/ q [::1]"),
        (b"/http://b.example", b"/http://b.example  a"),
    ],
)
def test_a_target_may_be_a_whole_url(serve, target, said):
    """Covers RFC 9112 §3.2.2 [absolute-form-is-taken] [its-host-counts]."""
    head = b"GET " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    assert answer_to(echo(serve()), head).endswith(b"\r\n\r\n" + said + b"  ")


CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"


def test_a_body_in_chunks_is_read(serve):
    """Covers RFC 9112 §6.1 [chunked-is-read], §7.1 [chunks-are-decoded], §7.1.1
    [extensions-are-ignored], §7.1.2 [no-field-from-a-trailer].
    """
    body = b"3;x=y\r\nabc\r\n0002\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
    assert answer_to(echo(serve()), CHUNKED + b"\r\n" + body).endswith(b"\r\n\r\n/  a abcde ")


@pytest.mark.parametrize("size", [b"f" * 20, b"f" * 4000, b"-1", b"x"])
def test_a_chunk_of_no_possible_size_is_an_error(serve, size):
    """Covers RFC 9112 §7.1 [large-sizes-do-no-harm]."""
    answer = answer_to(echo(serve()), CHUNKED + b"\r\n" + size + b"\r\nabc\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    "head",
    [
        CHUNKED + b"Content-Length: 3\r\n\r\n",
        CHUNKED.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\n\r\n",
    ],
)
def test_nothing_is_read_behind_a_body_with_two_ends(serve, head):
    """Covers RFC 9112 §6.1 [closed-behind-both] [closed-behind-an-old-one]."""
    answer = answer_to(serve(), head + b"3\r\nabc\r\n0\r\n\r\n" + ASK)
    assert answer.count(b"HTTP/1.1 200") == answer.count(b"HTTP/1.1") == 1
    assert b"\r\nConnection: close\r\n" in answer and answer.endswith(b"yes")


def test_requests_that_come_together_leave_time_for_others(serve, monkeypatch):
    """Own design: RTP is heard once a turn, and one read of a connection holds many requests."""
    monkeypatch.setattr(wsgi, "SLICE", -1.0)  # everything takes longer
    server = serve()
    turns, answer = [], server.application
    server.application = lambda *given: turns.append(server.loop.now()) or answer(*given)
    ask = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    said = [answer_to(server, ask * 20 + ASK) for _ in range(2)]
    assert [each.count(b"HTTP/1.1 200") for each in said] == [21, 21]
    assert len(set(turns)) == len(turns) == 42


def test_close_among_other_options_ends_the_connection_with_one_answer(serve):
    """Covers RFC 9112 §9.6 [close-ends-it] [answer-says-close] [nothing-behind-close]
    [nothing-behind-our-close] [said-and-done].
    """
    head = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: %s\r\n\r\n"
    answer = answer_to(serve(), head % b"x\r\nConnection: Y, Close" + head % b"keep-alive")
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.endswith(b"\r\n\r\nyes")
    assert b"\r\nConnection: close\r\n" in answer


@pytest.mark.parametrize("source", [HERE, OTHER])
def test_the_oldest_who_asks_nothing_gives_way(serve, source):
    """From the same host, and from another: nobody waits for the silent."""
    server = serve()
    crowd = [client(server, HERE, b"GET / HTTP/1.1\r\nHo") for _ in range(20)]
    assert asks(server, source).endswith(b"yes") and count(server, 4 if source == OTHER else 3)
    assert crowd[0].recv(10) == b""
    crowd[-1].sendall(b"st: a\r\nConnection: close\r\n\r\n")
    assert crowd[-1].recv(100).startswith(b"HTTP/1.1 200")


def test_many_hosts_have_all_places_and_another_one_comes(serve):
    server = serve(most=6, most_of_one=2)
    crowd = [client(server, f"127.0.0.{10 + number // 2}") for number in range(6)]
    assert count(server, 6) and asks(server, OTHER).endswith(b"yes")
    assert crowd[0].recv(10) == b""


def test_who_has_asked_does_not_give_way(serve):
    """Else the silent would end what others get."""
    server = serve(most_of_one=2)
    busy = [client(server, HERE, ASK.replace(b"close", b"keep-alive")) for _ in range(2)]
    for each in busy:
        assert each.recv(1000).endswith(b"yes")
    with client(server) as late:
        assert late.recv(10) == b""
    busy[0].sendall(ASK)
    assert busy[0].recv(1000).endswith(b"yes")


def test_a_head_is_not_waited_for_for_long(serve, monkeypatch):
    monkeypatch.setattr(wsgi, "HEAD_LIMIT", 0.1)
    server = serve()
    slow = client(server, HERE, b"GET / HTTP/1.1\r\n")
    with patience(20), pytest.raises(OSError):
        while True:
            slow.sendall(b"a: b\r\n")
            gevent.sleep(0.01)
    assert count(server, 0)


def test_without_descriptors_there_is_a_line_and_no_trace(serve, caplog, capfd):
    server = serve()
    real, calls = server.socket, []

    class Exhausted:
        fileno, timeout = real.fileno, 0.0

        def _accept(self):
            calls.append(1)
            raise OSError(errno.EMFILE, "Too many open files")

    server.socket = Exhausted()
    waiting, began = client(server, HERE, ASK), now()
    with patience(20):
        while len(calls) < 12:
            gevent.sleep(0.005)
    assert len(calls) <= 24 * (now() - began)
    server.socket = real
    assert waiting.recv(1000).endswith(b"yes") and capfd.readouterr().err == ""
    assert caplog.messages == ["http: cannot accept: Too many open files"]


def test_without_descriptors_the_newest_client_may_still_ask(serve, monkeypatch):
    """Who has just come is between its connection and its question."""
    server = serve(most=8, most_of_one=8)
    connected = [client(server) for _ in range(4)]
    assert count(server, 4)
    real = server.socket

    class ExhaustedOnce:
        fileno, timeout = real.fileno, 0.0

        def _accept(self):
            server.socket = real
            raise OSError(errno.EMFILE, "Too many open files")

    server.socket = ExhaustedOnce()
    with client(server, OTHER, ASK) as another:
        assert another.recv(1000).endswith(b"yes")
    assert count(server, 2)
    connected[-1].sendall(ASK)
    assert connected[-1].recv(1000).endswith(b"yes")


def test_the_last_descriptors_are_not_for_strangers(monkeypatch, caplog):
    """By number: the system gives the lowest that is free."""
    limits = {"soft": 100}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limits["soft"], 1000))
    scarce = [
        [fd for fd in (74, 75, 87, 88, 93, 94, 99) if descriptors.is_scarce(fd, part)]
        for part in (descriptors.STRANGERS, descriptors.FILES, descriptors.ASKING)
    ]
    assert scarce == [[75, 87, 88, 93, 94, 99], [88, 93, 94, 99], [94, 99]]
    door = descriptors.Door("rtmp")
    assert [door.is_shut(fd) for fd in (74, 75, 76)] == [False, True, True]
    assert caplog.messages == ["rtmp: cannot accept: descriptors are scarce"]
    limits["soft"] = resource.RLIM_INFINITY
    assert not door.is_shut(10**6)


def test_as_many_as_an_ordinary_process_may_have(monkeypatch):
    asked = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    for soft, hard in ((1024, 4096), (1024, resource.RLIM_INFINITY), (4096, 4096), (10**6, 10**6)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, s=soft, h=hard: (s, h))
        descriptors.raise_limit()
    assert asked == [(4096, 4096), (descriptors.MOST, resource.RLIM_INFINITY)]
