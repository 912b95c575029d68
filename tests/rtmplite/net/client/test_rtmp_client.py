"""The client with a real server: calls wait, errors are exceptions, ends are noticed."""

import os

import gevent
import pytest
from gevent import socket

from rtmplite.errors import LocalError, RemoteError
from rtmplite.live.streams import Registry
from rtmplite.net.client.client import RedirectError, next_target
from rtmplite.net.client.rtmp_client import RtmpClient
from rtmplite.net.clock import now
from rtmplite.net.server.rtmp_listener import RtmpListener
from rtmplite.rtmp.application import LiveApplication
from rtmplite.rtmp.client import Target
from rtmplite.rtmp.server import ServerConnection


class Echo(LiveApplication):
    """Repeats what it is told; the names say how."""

    def on_connect(self, connection, now):
        if connection.connect_args == ("wrong",):
            connection.reject("403 Forbidden", now)
        elif connection.connect_args and connection.connect_args[0] in ("go", "stay"):
            to = str(connection.connect_args[1]).replace("HERE", connection.tc_url)
            if connection.connect_args[0] == "go" or "?there" not in connection.tc_url:
                connection.redirect(to, now, "moved")
            else:
                connection.accept(now, "found")
        elif connection.connect_args != ("silence",):
            connection.accept(now, "hello")

    def on_command(self, connection, command, now):
        if command.name == "back":
            connection.call("again", *command.args)
        elif command.name == "end":
            connection.close(now, "enough")
        elif command.name != "ignore":
            connection.result(command.transaction_id, *command.args)


@pytest.fixture
def url():
    """Where the echo lives."""
    registry, echo = Registry(), Echo()
    server = RtmpListener(
        "127.0.0.1",
        0,
        lambda address: ServerConnection({"live": echo}.get, registry, os.urandom, now()),
    )
    server.start()
    yield "rtmp://{}:{}/live".format(*server.address)
    server.stop()


@pytest.mark.parametrize("handshake", ["simple", "digest"])
def test_connect_call_and_be_called(url, handshake):
    """Both handshakes lead to the same."""
    heard = []
    client = RtmpClient.connect(
        url, handshake=handshake, on_call=lambda name, args: heard.append((name, *args))
    )
    assert client.information["description"] == "hello"
    assert client.call("echo", {"a": 1.0}) == {"a": 1.0}
    client.send("back", "x")
    assert client.call("echo") is None
    assert heard == [("again", "x")]
    client.close()
    client.close()
    assert client.closed


def test_a_refusal_is_an_exception(url):
    """With the server's words."""
    with pytest.raises(RemoteError, match="403 Forbidden") as caught:
        RtmpClient.connect(url, "wrong")
    assert caught.value.code == "NetConnection.Connect.Rejected"
    with pytest.raises(RemoteError) as caught:
        RtmpClient.connect(url.replace("live", "nothing"))
    assert caught.value.code == "NetConnection.Connect.InvalidApp"
    with pytest.raises(LocalError):
        RtmpClient.connect("http://example.com")


def test_silence_is_a_timeout(url):
    """For connect, calls, and statuses."""
    with pytest.raises(TimeoutError):
        RtmpClient.connect(url, "silence", timeout=0.05)
    client = RtmpClient.connect(url)
    with pytest.raises(TimeoutError):
        client.call("ignore", timeout=0.05)
    stream = client.create_stream()
    assert stream.status(timeout=0.01) is None and stream.read(timeout=0.01) is None
    assert not stream.ended


def test_what_is_followed_comes_at_once_and_all_of_it(url):
    """What had come before it was followed comes first."""
    player, source, seen = RtmpClient.connect(url), RtmpClient.connect(url), []
    shown, stream = player.create_stream(), source.create_stream()
    shown.play("demo")
    stream.publish("demo")
    for at in range(3):
        stream.write(8, at, b"\xb2sound")
    assert shown.status(timeout=20) is not None  # behind which some of it has been read
    following = gevent.spawn(shown.follow, seen.append)
    stream.write(8, 3, b"\xb2sound")
    source.close()
    following.join(20)
    assert following.ready() and shown.ended
    assert [each.timestamp for each in seen if each.type_id == 8] == [0, 1, 2, 3]
    player.close()


def test_nobody_there_is_an_os_error():
    """As with any socket."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        port = deaf.getsockname()[1]
        with pytest.raises(ConnectionRefusedError):
            RtmpClient.connect(f"rtmp://127.0.0.1:{port}/live")


def test_the_end_of_the_connection_wakes_everybody(url):
    """Whoever waits for an answer, a status or media."""
    client = RtmpClient.connect(url)
    stream = client.create_stream()
    stream.play("demo")
    stream.read()
    while stream.status(timeout=0.05):
        pass
    waiting = [gevent.spawn(stream.read), gevent.spawn(stream.status)]
    calling = gevent.spawn(client.call, "ignore")
    gevent.sleep(0)
    client.send("end")
    assert [each.get(timeout=20) for each in waiting] == [None, None] and stream.ended
    with pytest.raises(RemoteError):
        calling.get(timeout=20)
    with pytest.raises(RemoteError):
        stream.write(8, 0, b"too late")
    with pytest.raises(RemoteError):
        client.call("too late")


def test_publishing_twice_is_refused(url):
    """The status of a stream becomes an exception as well."""
    client = RtmpClient.connect(Target.parse(url + "/demo"))
    first, second = client.create_stream(), client.create_stream()
    first.publish("demo")
    with pytest.raises(RemoteError, match="already published"):
        second.publish("demo")
    first.delete()
    second.publish("demo")
    second.delete()


def test_the_end_of_a_stream_is_noticed_after_its_last_message(url):
    """None, and `ended`."""
    source = RtmpClient.connect(url).create_stream()
    source.publish("demo")
    stream = RtmpClient.connect(url).create_stream()
    stream.play("demo")
    source.write(8, 5, b"\xb2sound")
    source.delete()
    payloads = []
    while message := stream.read():
        payloads.append(message.payload)
    assert payloads[-1] == b"\xb2sound" and stream.ended and stream.is_drained


def test_garbage_for_an_answer_is_an_error():
    """A server of another kind."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()

    def answer():
        connected, _ = listener.accept()
        connected.sendall(b"220 this is not RTMP\r\n")
        connected.recv(5000)

    answering = gevent.spawn(answer)
    with pytest.raises(RemoteError, match="another version"):
        RtmpClient.connect(f"rtmp://127.0.0.1:{listener.getsockname()[1]}/live")
    answering.kill()
    listener.close()


def test_a_redirect_is_followed(url):
    """Covers Field §"Redirects": with the same words for the next server."""
    client = RtmpClient.connect(url, "stay", "HERE?there")
    assert client.information["description"] == "found"
    client.close()


@pytest.mark.parametrize("to", ["HERE", "http://elsewhere/", "rtmp://", ""])
def test_a_redirect_that_leads_nowhere_is_a_refusal(url, to):
    """Round in circles, for one."""
    with pytest.raises(RemoteError, match="moved"):
        RtmpClient.connect(url, "go", to)


def test_a_redirect_does_not_lead_out_of_tls():
    """Own design: who asked for encryption means it."""
    secure, plain = (Target.parse(f"{scheme}://h/a", stream=False) for scheme in ("rtmps", "rtmp"))
    error = RedirectError("moved", "", "error", "rtmp://h/b")
    assert next_target(plain, error, 1).app == "b"
    for target, hops in ((secure, 1), (plain, 0)):
        with pytest.raises(RedirectError):
            next_target(target, error, hops)


def test_a_stream_is_given_back_on_stream_0(url):
    """Covers RTMP Errata §8.3 [on-stream-0]: the number says which."""
    client = RtmpClient.connect(url)
    stream, sent = client.create_stream(), []
    client._machine.send_command = lambda command, stream_id=0: sent.append((command, stream_id))
    stream.delete()
    ((command, stream_id),) = sent
    assert (command.name, command.args, stream_id) == ("deleteStream", (float(stream.id),), 0)
