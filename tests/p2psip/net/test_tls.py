"""TLS in memory, and the stream listener that speaks it on real sockets."""

import os
import socket as plain
import ssl
import subprocess
from pathlib import Path

import pytest
from support.certificates import certificate
from support.sip.tcp_world import closed, hurry
from support.sockets import LOOPBACK, Echo, TcpClient, options_request, until

from p2psip.errors import LocalError
from p2psip.net.clock import monotonic
from p2psip.net.driver import SipPorts
from p2psip.net.tls import (
    Tls,
    TlsContexts,
    client_context,
    is_good_for,
    names_in,
    server_context,
)
from p2psip.sip.headers import Headers
from p2psip.sip.message import Request
from p2psip.sip.uri import Uri
from p2psip.stack.stack import Flow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return certificate(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def contexts(made):
    return TlsContexts(client_context(made.file), server_context(made.file, made.key))


@pytest.fixture
def make(contexts):
    elements = []

    def run(tls=contexts, **options):
        elements.append(Echo(tls=tls, **options))
        return elements[-1]

    yield run
    for each in elements:
        each.driver.close()


class Asked:
    def __init__(self):
        self.statuses = []

    def on_response(self, handle, response, now):
        self.statuses.append(response.status)

    def on_failure(self, handle, status, now):
        self.statuses.append(-status)


def ask(echo, uri):
    """Send an OPTIONS as a machine does; its answers, negative where none came."""
    asked = Asked()
    fields = [("Max-Forwards", 70), ("From", "<sip:a@b>;tag=1"), ("To", "<sip:x@y>")]
    fields += [("Call-ID", os.urandom(4).hex()), ("CSeq", "1 OPTIONS")]
    request = Request("OPTIONS", Uri.parse(uri), Headers(fields), b"")
    echo.driver.run(echo.stack.request, request, asked, monotonic())
    assert until(lambda: asked.statuses, 20)
    return asked.statuses


def uri(echo):
    return f"sips:x@{echo.secure[0]}:{echo.secure[1]}"


class TlsClient(TcpClient):
    """The same by TLS, without a look at the certificate."""

    def __init__(self, address, port=0):
        self.socket = plain.socket()
        self.socket.bind((LOOPBACK, port))
        self.socket.settimeout(20)
        context = client_context(insecure=True)
        self.socket.connect(address)
        self.socket.setblocking(False)
        self.tls = Tls(context, LOOPBACK)
        self.heard = b""

    def say(self, data):
        self.tls.send(data)

    def turn(self):
        """Carry what is there in both directions; what the server has said so far."""
        if output := self.tls.take_output():
            self.socket.sendall(output)
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return self.heard
        self.heard += self.tls.receive(data)
        return self.heard


# In memory


def joined(one, two, size):
    """Pass bytes to and fro in pieces of `size`; what each has read."""
    read = {one: b"", two: b""}
    while True:
        moved = False
        for here, there in ((one, two), (two, one)):
            data = here.take_output()
            for start in range(0, len(data), size):
                read[there] += there.receive(data[start : start + size])
                moved = True
        if not moved:
            return read


@pytest.mark.parametrize("size", [1, 100, 100_000])
def test_what_waits_for_the_handshake_arrives(contexts, size):
    client, server = Tls(contexts.client, "localhost"), Tls(contexts.server)
    client.send(b"before ")
    assert client.waiting == 7
    joined(client, server, 10)
    assert client.is_ready and server.is_ready and not client.waiting
    client.send(b"x" * 40_000)
    server.send(b"back")
    read = joined(client, server, size)
    assert read == {client: b"back", server: b"x" * 40_000}


def test_a_certificate_of_another_name_ends_the_handshake(contexts):
    """Covers RFC 3261 §26.2.2 [certificate-is-validated]."""
    client, server = Tls(contexts.client, "example.com"), Tls(contexts.server)
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        joined(client, server, 1000)
    assert "example.com" in refused.value.verify_message and not client.is_ready
    client = Tls(contexts.client, "localhost")
    joined(client, Tls(contexts.server), 1000)
    assert client.is_ready


NAMES = {
    "dns": (("DNS", "Example.com"), ("DNS", "other.org")),
    "uri": (("DNS", "example.com"), ("URI", "sip:proxy.org"), ("URI", "https://example.com")),
    "user": (("URI", "sip:bob@example.com"),),
    "wild": (("DNS", "*.example.com"),),
    "address": (("IP Address", "0:0:0:0:0:0:0:1"), ("DNS", "192.0.2.1")),
    "none": (),
}


@pytest.mark.parametrize(
    ("names", "domain", "good"),
    [
        ("dns", "example.com", True),
        ("dns", "EXAMPLE.com.", True),
        ("dns", "sub.example.com", False),
        ("uri", "proxy.org", True),
        ("uri", "example.com", False),  # the SIP URIs are the whole truth where there are some
        ("user", "example.com", False),
        ("wild", "a.example.com", False),
        ("address", "::1", True),
        ("address", "192.0.2.1", False),
        ("none", "example.com", False),
    ],
)
def test_the_names_of_a_certificate(names, domain, good):
    assert is_good_for({"subjectAltName": NAMES[names]}, domain) is good


def test_files_that_are_no_certificates(tmp_path, made):
    (bad := tmp_path / "bad").write_text("x")
    for make in (lambda: server_context(bad), lambda: server_context(tmp_path / "none"),
                 lambda: client_context(bad), lambda: server_context(made.file, bad)):  # fmt: skip
        with pytest.raises(LocalError):
            make()


def test_what_is_wrong_with_a_certificate_or_its_key_is_named(tmp_path, made, monkeypatch):
    """The file, and what it lacks; nobody is asked for a passphrase."""
    other = certificate(tmp_path / "other")
    empty, locked, torn = (tmp_path / name for name in ("empty.pem", "locked.pem", "torn.pem"))
    empty.write_text("nothing")
    words = ["openssl", "pkcs8", "-topk8", "-in", str(made.key), "-out", str(locked)]
    subprocess.run([*words, "-passout", "pass:secret"], check=True, capture_output=True)
    torn.write_bytes(made.key.read_bytes()[:-60])
    for file, key, said in (
        (made.file, tmp_path / "absent.pem", "absent.pem: no such file"),
        (made.file, tmp_path, f"{tmp_path}: Is a directory"),
        (empty, made.key, "empty.pem: no usable certificate: nothing in it begins with BEGIN CERT"),
        (made.file, empty, "empty.pem: no usable key: what begins with BEGIN PRIVATE KEY is not"),
        (made.file, None, f"{made.file}: no usable key: what begins with BEGIN PRIVATE KEY is in"),
        (made.file, locked, "locked.pem: no usable key: a passphrase protects it"),
        (made.file, other.key, f"{other.key}: no usable key: it is not that of the certificate"),
        (made.file, torn, "torn.pem: no usable certificate and key, cut short or damaged"),
    ):
        with pytest.raises(LocalError) as refused:
            server_context(file, key)
        assert said in str(refused.value) and "PEM lib" not in str(refused.value).partition(":")[0]

    def refuse(path):
        if path == made.key:  # as the system does that runs tests for another user than root
            raise PermissionError(13, "Permission denied")
        return content(path)

    content = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(LocalError, match=f"{made.key}: Permission denied"):
        server_context(made.file, made.key)


# On sockets


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("IP:127.0.0.1,DNS:localhost", {"localhost"}),
        ("DNS:SIP.example.org,DNS:example.org,URI:sip:x", {"sip.example.org", "example.org"}),
        ("IP:127.0.0.1", set()),
    ],
)
def test_the_names_in_a_file(tmp_path, names, found):
    """Covers RFC 3261 §26.3.1: those by which a client may call us."""
    made = certificate(tmp_path / "one", names)
    assert names_in(made.file) == found
    both = tmp_path / "both.pem"  # the key first, as some write them
    both.write_text(made.key.read_text() + made.file.read_text())
    assert names_in(both) == found


@pytest.mark.parametrize("spoil", [lambda text: "", lambda text: text[:80], lambda text: "x" * 99])
def test_a_file_without_a_certificate_has_no_names(tmp_path, made, spoil):
    file = tmp_path / "bad.pem"
    file.write_text(spoil(made.file.read_text()))
    with pytest.raises(LocalError, match="no usable certificate"):
        names_in(file)


@pytest.mark.parametrize(
    ("asked", "called"), [("localhost", "localhost"), ("example.org", ""), (LOOPBACK, "")]
)
def test_the_name_by_which_a_client_calls_us(make, made, asked, called):
    """Own design: one that our certificate has, and no other that a stranger may write."""
    contexts = TlsContexts(
        client_context(made.file), server_context(made.file, made.key), names_in(made.file)
    )
    echo = make(contexts)
    client = TlsClient(echo.secure)
    client.tls = Tls(client_context(insecure=True), asked)
    client.say(options_request())
    assert until(lambda: b"200 OK" in client.turn(), 20)
    [listener] = [each for each in echo.driver._streams if each.transport == "TLS"]
    [connection] = listener.connections.values()
    assert connection.flow.called == called
    contact = echo.stack.contact("bob", "TLS", LOOPBACK)
    assert contact.host == (called or LOOPBACK)
    client.socket.close()


def test_a_sips_uri_goes_by_tls(make):
    """Covers RFC 3261 §26.2.2, §26.3.1 [servers-have-tls] [sips-by-tls]."""
    one, two = make(), make()
    assert ask(one, uri(two)) == [200] == ask(one, uri(two))
    assert {flow.transport for flow in two.flows} == {"TLS"}
    assert one.driver.connections == two.driver.connections == 1  # the second took the same one


@pytest.mark.parametrize("wrong", ["name", "authority", "time"])
def test_who_proves_nothing_is_not_told_anything(make, tmp_path, contexts, caplog, wrong):
    """Covers RFC 3261 §26.2.2 [certificate-is-validated], §26.3.1 [validates-with-roots]."""
    names = "DNS:example.com" if wrong == "name" else "IP:127.0.0.1"
    other = certificate(tmp_path / "other", names, expired=wrong == "time")
    trust = client_context(None if wrong == "authority" else other.file)
    one = make(TlsContexts(trust, contexts.server))
    two = make(TlsContexts(contexts.client, server_context(other.file, other.key)))
    assert ask(one, uri(two)) == [-503]
    assert two.heard == [] and "TLS with 127.0.0.1 fails" in caplog.text
    assert until(lambda: not one.driver.connections)


def test_one_that_was_trusted_for_one_name_is_not_for_another(make):
    """Covers RFC 5626 §4.3 [same-name-by-tls].

    Both names lead to one address, and each has a connection of its own.
    """
    two = make()
    flows = {
        name: Flow("TLS", two.secure, domain=name) for name in ("127.0.0.1", "localhost", "a.org")
    }
    one = make(locate=lambda target: [flows[target.host]])
    assert ask(one, "sips:x@localhost") == [200] and ask(one, uri(two)) == [200]
    assert one.driver.connections == 2
    assert ask(one, "sips:x@a.org") == [-503] and len(two.heard) == 2


def test_a_client_cannot_pass_for_a_server(make):
    """Covers RFC 5923 §9.2 [no-alias-unproven]: a request to its port opens a connection."""
    echo = make()
    with plain.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    client = TlsClient(echo.secure, port)
    client.say(options_request(transport="TLS"))
    assert until(lambda: client.turn().startswith(b"SIP/2.0 200"), 20)
    assert ask(echo, f"sips:x@{LOOPBACK}:{port}") == [-503]  # nobody listens there
    assert b"OPTIONS sips" not in client.turn()


def test_a_listener_without_a_certificate_only_opens_connections(make, contexts):
    one, two = make(TlsContexts(contexts.client)), make()
    assert ask(one, uri(two)) == [200]
    with pytest.raises(ConnectionError):
        TcpClient(one.secure)


def test_a_renewed_certificate_is_shown_to_the_next_client(make, tmp_path, made, contexts):
    other = certificate(tmp_path / "other")
    changing = TlsContexts(contexts.client, contexts.server)
    echo = make(changing)
    changing.server = server_context(other.file, other.key)
    assert ask(make(), uri(echo)) == [-503]
    trusting = make(TlsContexts(client_context(other.file), contexts.server))
    assert ask(trusting, uri(echo)) == [200]


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01\x02\x00", options_request(), b"\x16\x03\x01"])
def test_half_a_handshake_has_its_place_for_some_seconds(make, monkeypatch, data):
    hurry(monkeypatch, GREETING_SECONDS=0.2)
    echo = make()
    client = TcpClient(echo.secure)
    client.socket.sendall(data)
    client.socket.settimeout(20)
    while client.socket.recv(100):  # an alert, maybe
        pass
    assert not echo.driver.connections and not echo.heard
    hurry(monkeypatch, GREETING_SECONDS=60)  # which a starved machine may take for an honest one
    assert ask(make(), uri(echo)) == [200]


def test_a_server_that_never_shakes_hands_is_given_up(make, monkeypatch):
    """The request has another server to go to: RFC 3263 §4.3."""
    hurry(monkeypatch, CONNECT_SECONDS=2.0)  # in which the other one shakes hands
    with plain.create_server((LOOPBACK, 0)) as silent:
        flow = Flow("TLS", silent.getsockname(), domain=LOOPBACK)
        two = make()
        one = make(locate=lambda target: [flow, Flow("TLS", two.secure, domain=LOOPBACK)])
        assert ask(one, "sips:x@example.com") == [200]


def test_both_families_beside_each_other(contexts):
    """Each answers from its own socket, and names itself by its own address."""
    echo = Echo(also=[("::1", 0)])
    six = next(each for each in echo.driver.ports.listeners if ":" in each.host)
    client = TcpClient((six.host, six.port))
    assert client.ask(options_request(transport="TCP"), 20).startswith(b"SIP/2.0 200")
    assert echo.stack.contact("x", "TCP", "::1").host == "::1"
    assert echo.stack.contact("x", "TCP", LOOPBACK).host == LOOPBACK
    other = Echo("::1")
    assert ask(echo, f"sip:x@[::1]:{other.address[1]}") == [200]
    assert other.flows[0].remote == (six.host, six.port)
    for each in (echo, other):
        each.driver.close()
    assert closed(client)


def test_a_taken_port_is_named():
    """The ports for UDP and TCP were free, so an error has to say that it is about another one."""
    with plain.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"TLS at 127.0.0.1:{port}: "):
            SipPorts(LOOPBACK, 0, sips=[(LOOPBACK, port)])
