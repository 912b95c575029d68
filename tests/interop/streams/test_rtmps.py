"""RTMP over TLS: ffmpeg (GnuTLS) and our own client; RTMPE, which rtmpdump asks for, refused."""

import re
import signal
import ssl
import sys

import pytest
from support.certificates import Certificate, certificate
from support.gateway.gateway import Gateway
from support.peers.peers import AAC_H264, Ffmpeg
from support.peers.process import Process, require
from support.peers.rtmp_servers import Player, Server, Tool, media


@pytest.fixture
def made(tmp_path) -> Certificate:
    """A certificate for 127.0.0.1."""
    return certificate(tmp_path)


@pytest.fixture
def server(start, made) -> Server:
    """A running server with RTMP and RTMPS."""
    options = ("--rtmps", "127.0.0.1:0", "--tls-cert", made.file, "--tls-key", made.key)
    return start(Server, *options)


def test_ffmpeg_publishes_and_plays(start, server, made, tmp_path):
    """It checks our certificate and speaks GnuTLS; tags out equal tags in."""
    url = server.url("demo", "rtmps")
    ffmpeg = start(
        Ffmpeg, "-tls_verify", "1", "-ca_file", made.file, "-i", url, "-c", "copy", "a.flv"
    )
    secure = start(Player, url, "--ca", made.file)
    plain = start(Player, server.url("demo"))
    server.joined(3)
    publish = start(Ffmpeg.publish, url, seconds=3, codecs=AAC_H264, video=True)
    assert publish.finish() == secure.finish() == plain.finish() == ffmpeg.finish() == 0
    assert media(secure.file) == media(plain.file) and len(media(plain.file)) > 150
    copied = {(kind, body) for kind, _, body in media(ffmpeg.folder / "a.flv")}
    sent = {(kind, body) for kind, _, body in media(plain.file) if len(body) > 5}
    assert sent - copied == set()


def test_who_does_not_trust_goes(start, server, made):
    """ffmpeg with a check and without our certificate; our client by default."""
    url = server.url("demo", "rtmps")
    ffmpeg = start(Ffmpeg, "-tls_verify", "1", "-i", url, "-c", "copy", "a.flv")
    assert ffmpeg.finish() != 0
    ours = start(Player, url)
    assert ours.finish() == 1
    assert "certificate is not trusted" in ours.output
    trusting = start(Player, url, "--insecure", "--seconds", "1")
    server.joined(1)
    publish = start(Ffmpeg.publish, url, seconds=3)
    assert publish.finish() == trusting.finish() == 0


@pytest.mark.parametrize("is_gateway", [False, True])
def test_sighup_reads_the_certificate_again(start, made, tmp_path, is_gateway):
    """As those who renew it tell servers; what cannot be used changes nothing but the log.

    The gateway shows it to phones as well, by TLS and by secure WebSocket.
    """
    doors = ("rtmps", "sips", "ws") if is_gateway else ("rtmps",)
    listen = [word for door in doors for word in (f"--{door}", "127.0.0.1:0")]
    options = (*listen, "--tls-cert", made.file, "--tls-key", made.key)
    server = start(Gateway if is_gateway else Server, *options)
    places = [re.search(rf" {door}=(\S+):(\d+)", server.output).groups() for door in doors]

    def shown() -> set[str]:
        return {ssl.get_server_certificate((host, int(port))) for host, port in places}

    old, new = made.file.read_text(), certificate(tmp_path / "new")
    assert shown() == {old}
    made.file.write_text("no certificate")
    server.child.send_signal(signal.SIGHUP)
    stays = "not-reloaded option=tls-cert" if is_gateway else "the certificate stays as it was"
    server.wait_until(lambda: stays in server.output, what=stays)
    assert shown() == {old}
    made.key.write_bytes(new.key.read_bytes())
    made.file.write_bytes(new.file.read_bytes())
    server.child.send_signal(signal.SIGHUP)
    server.wait_until(lambda: shown() == {new.file.read_text()}, what="the new certificate")
    host, port = places[0]
    url = f"rtmps://{host}:{port}/live/demo"
    assert start(Ffmpeg.publish, url, seconds=1).finish() == 0


def test_without_tls_on_a_tls_port(start, server):
    """A clear line in the log; the others go on."""
    wrong = server.url("demo", "rtmps").replace("rtmps://", "rtmp://")
    assert start(Tool, "play", wrong, "--timeout", "5").finish() == 1
    server.says("is cut off: TLS fails")
    assert start(Ffmpeg.publish, server.url("demo"), seconds=1).finish() == 0


def test_encrypted_rtmp_is_refused(start, server):
    """rtmpdump asks for RTMPE: closed, and the log says why."""
    program = require("rtmpdump", "rtmpdump")
    url = server.url("demo").replace("rtmp://", "rtmpe://")
    dump = start(lambda folder: Process(folder, [program, "--rtmp", url, "-o", "x.flv"]), name="e")
    assert dump.finish() != 0
    server.says("is cut off: NetConnection.Call.Failed: RTMPE is not spoken here")
    own = start(Tool, "play", url)
    assert own.finish() == 2 and "RTMPE is not spoken here" in own.output


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--rtmps", "127.0.0.1:0"], "--rtmps needs --tls-cert"),
        (["--rtmps", "127.0.0.1:0", "--tls-cert", "/no/such/file"], "/no/such/file: no such file"),
        (["--rtmps", "nonsense", "--tls-cert", "/dev/null"], "'nonsense' is not HOST:PORT"),
        (["--ca", "/no/such/file"], "/no/such/file"),
        (["--push", "nonsense"], "nonsense is not APP/NAME=URL"),
        (["--pull", "live/*=http://x/y"], "is not rtmp://"),
        (["--rtmpt", "192.0.2.1:80"], ""),
    ],
)
def test_one_clear_line(start, words, reason):
    """And exit code 2, before anything listens."""
    tool = start(Tool, "serve", "--rtmp", "127.0.0.1:0", *words)
    assert tool.finish() == 2
    assert reason in tool.output and re.match(r"rtmplite( serve)?: ", tool.output)
    assert tool.output.count("\n") == 1


def test_the_gateway_has_it_too(start, gateway, made):
    """One registry, whichever way they come."""
    running = gateway(
        "--rtmps", "127.0.0.1:0", "--tls-cert", str(made.file), "--tls-key", str(made.key)
    )
    secure = f"rtmps://{running.listeners['rtmps']}/live/demo"
    player = start(Player, running.url("live", "demo"))
    running.wait_status({"players": 1})
    publish = start(Ffmpeg.publish, secure, seconds=2)
    assert publish.finish() == player.finish() == 0
    assert len(media(player.file)) > 50
    running.wait_status({"rtmp_connections": 0})


def test_the_gateway_refuses_what_is_no_certificate(start, made):
    """One line, exit code 2."""
    words = [sys.executable, "-m", "siprtmp", "--rtmps", "127.0.0.1:0", "--tls-cert", str(made.key)]
    tool = start(
        lambda folder: Process(folder, [*words, "--rtmp", "off", "--sip", "off"]), name="g"
    )
    assert tool.finish() == 2
    assert tool.output.startswith("siprtmp: --tls-cert") and tool.output.count("\n") == 1
