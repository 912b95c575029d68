"""What the commands say when nobody is there: whom they tried, and no more of the URL."""

import socket
import struct
from threading import Thread

import pytest

from rtmplite.cli.tool import main
from rtmplite.net.client.client import RedirectError, established
from rtmplite.rtmp.client import Target

PLAY, PROBE = ("play", "-o", "/dev/null"), ("probe",)


@pytest.fixture
def listener():
    """A TCP socket where nobody accepts yet."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def said(capsys, url, words, seconds="0.2"):
    """The line of a command that fails."""
    assert main([*words, url, "--timeout", seconds]) == 1
    line = capsys.readouterr().err
    assert line.startswith("rtmplite: ") and line.count("\n") == 1
    assert "s3cret" not in line and "Errno" not in line
    return line.strip()


@pytest.mark.parametrize("words", [PLAY, PROBE])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_nobody_listens(words, host, capsys):
    """By the name that was given."""
    line = said(capsys, f"rtmp://ann:s3cret@{host}:1/live/x?key=s3cret", words)
    assert line.startswith(f"rtmplite: {host}:1: ")


@pytest.mark.parametrize("words", [PLAY, PROBE])
@pytest.mark.parametrize("scheme", ["rtmp", "rtmfp"])
def test_nobody_answers(words, scheme, listener, capsys):
    """The port that is somebody's, or a default one."""
    port = listener.getsockname()[1]
    url = f"{scheme}://127.0.0.1:{port}/live/x?key=s3cret"
    assert said(capsys, url, words) == f"rtmplite: 127.0.0.1:{port}: no answer within 0.2 s"


@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("scheme", ["rtmp", "rtmps"])
def test_somebody_hangs_up(scheme, resets, listener, capsys):
    """Whatever listens there, it is none of ours."""

    def hang_up():
        with listener.accept()[0] as accepted:
            accepted.recv(1)
            linger = struct.pack("ii", resets, 0)  # for no time, and then a reset
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    thread = Thread(target=hang_up)
    thread.start()
    port = listener.getsockname()[1]
    line = said(capsys, f"{scheme}://127.0.0.1:{port}/live/x", PLAY, "5")
    thread.join()
    assert f" 127.0.0.1:{port}: " in line


def test_the_last_one_tried_is_named():
    """Who was sent elsewhere is told of that server, and can still tell errors apart."""
    tried = []

    def open_to(target):
        tried.append(target.host)
        if target.host == "far":
            raise ConnectionRefusedError(111, "Connection refused")
        raise RedirectError("", "", "", "rtmp://far:1936/live")

    class Sending:
        closed = False

        def __init__(self, target):
            self.target = target

        def establish(self, timeout):
            open_to(self.target)

        def close(self):
            self.closed = True

    def reach(target):
        return Sending(target) if target.host == "near" else open_to(target)

    with pytest.raises(ConnectionRefusedError) as caught:
        established(reach, Target.parse("rtmp://near/live/x"), 1.0, None)
    assert tried == ["near", "far"] and caught.value.strerror == "far:1936: Connection refused"
    assert caught.value.errno == 111
