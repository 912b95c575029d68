"""`python -m p2psip` as its users run it: processes on loopback, judged by exit code and output."""

import math
import signal
import socket
import sys
from array import array
from itertools import pairwise

import pytest
from support.peers.nursery import Overheard

from p2psip import __main__
from p2psip.net.phone.wav import read_wav, write_wav

SECOND = array("h", (int(9000 * math.sin(n * 0.35)) for n in range(8000)))
FEW = SECOND[:2400]


def start(*arguments):
    return Overheard([sys.executable, "-m", "p2psip", *map(str, arguments)])


def run(*arguments):
    """Exit code, standard output, standard error."""
    process = start(*arguments)
    out, err = process.communicate(timeout=60)  # on a busy machine it takes long to begin
    return process.returncode, out, err


@pytest.fixture
def listener():
    """`listener(*options)`: a process that answers calls, and its URI."""
    processes = []

    def run(*options):
        process = start("listen", *options)
        processes.append(process)
        word, _, uri = process.stdout.readline().strip().rpartition(" ")
        assert word == "listening at"
        return process, uri

    yield run
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("started_as", "name"),
    [("/usr/bin/p2psip", "p2psip"), ("/lib/p2psip/__main__.py", "python -m p2psip")],
)
def test_help_names_the_program_as_it_was_started(capsys, monkeypatch, started_as, name):
    monkeypatch.setattr(sys, "argv", [started_as])
    with pytest.raises(SystemExit):
        __main__.main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith(f"usage: {name} [-h]") and f"options: {name} call --help." in told
    with pytest.raises(SystemExit):
        __main__.main(["call", "--help"])
    assert capsys.readouterr().out.startswith(f"usage: {name} call ")


def test_a_call_that_plays_and_records(listener, tmp_path):
    write_wav(tmp_path / "play.wav", FEW)
    phone, uri = listener("--calls", 1, "--record", tmp_path / "heard.wav")
    code, out, err = run("call", uri, "--play", tmp_path / "play.wav")
    assert (code, err) == (0, "")
    assert "180 Ringing" in out and "hung up" in out and "lost 0" in out
    out, err = phone.communicate(timeout=20)
    assert (phone.returncode, err) == (0, "")
    assert "call from sip:anonymous@127.0.0.1" in out
    heard = read_wav(tmp_path / "heard.wav")
    assert len(heard) == len(FEW)
    assert max(abs(a - b) for a, b in zip(heard, FEW, strict=True)) < 300


def test_a_tone_is_played_and_lasts_as_long_as_asked(listener, tmp_path):
    phone, uri = listener("--calls", 1, "--record", tmp_path / "heard.wav")
    code, out, err = run("call", uri, "--tone", 440, "--seconds", "0.6")
    assert (code, err) == (0, "") and "hung up" in out
    assert phone.communicate(timeout=20)[1] == ""
    heard = read_wav(tmp_path / "heard.wav")
    assert len(heard) >= 2400 and max(heard) > 9000
    crossings = sum(a < 0 <= b for a, b in pairwise(heard))
    assert abs(crossings / len(heard) * 8000 - 440) < 8


def test_a_message(listener):
    phone, uri = listener()
    code, out, err = run("message", uri, "Grüße", "--from", "ann@127.0.0.1")
    assert (code, out, err) == (0, "200 OK\n", "")
    assert phone.stdout.readline() == "message from sip:ann@127.0.0.1: 'Grüße'\n"
    code, out, err = run("message", uri, "x" * 2000)
    assert (code, out) == (2, "") and "1300 octets" in err


def test_the_events_of_a_user_and_a_phone_that_is_asked_to_call(listener):
    _, uri = listener()
    code, out, err = run("subscribe", "dialog", uri)
    assert (code, out) == (1, "") and "403" in err
    code, out, err = run("refer", uri, "bob@127.0.0.1")
    assert (code, out) == (1, "") and "603" in err


def test_options(listener):
    _, uri = listener()
    for target in (f"{uri};transport=tcp", uri.partition("@")[2]):  # a user, and a server
        code, out, _ = run("options", target)
        assert code == 0
        assert ("transport=tcp" in out) is (";" in target)
    assert out.startswith("200 OK\n") and "\nAllow: INVITE" in out


def test_an_interrupted_listener_hangs_up_and_keeps_what_it_heard(listener, tmp_path):
    phone, uri = listener("--record", tmp_path / "heard.wav")
    call = start("call", uri)
    while not call.stdout.readline().startswith("talking"):
        pass
    phone.send_signal(signal.SIGINT)
    assert "over after" in phone.communicate(timeout=20)[0]
    assert phone.returncode == 0
    assert "BYE" in call.communicate(timeout=20)[0]
    assert call.returncode == 0
    read_wav(tmp_path / "heard.wav")


def test_refusal_and_silence_are_exit_code_1(listener):
    _, uri = listener()
    code, _, err = run("call", uri.replace("anonymous", "nobody"))
    assert (code, err) == (1, "p2psip: 404 Not Found\n")
    code, _, err = run("register", "bob@" + uri.partition("@")[2])
    assert (code, err) == (1, "p2psip: 405 Method Not Allowed\n")
    code, _, err = run("options", "sip:127.0.0.1:9", "--timeout", "0.2")
    assert (code, err) == (1, "p2psip: 127.0.0.1 does not answer within 0.2 s\n")


def challenge(asked):
    """A 401 to a request, as a registrar gives it."""
    kept = (b"via:", b"from:", b"to:", b"call-id:", b"cseq:")
    lines = [line for line in asked.split(b"\r\n") if line.lower().startswith(kept)]
    digest = b'WWW-Authenticate: Digest realm="home", nonce="n", qop="auth"'
    return b"\r\n".join(
        [b"SIP/2.0 401 Unauthorized", *lines, digest, b"Content-Length: 0", b"", b""]
    )


def test_who_is_asked_for_a_password_and_has_none_is_told_where_to_say_it(monkeypatch):
    monkeypatch.delenv("SIP_PASSWORD", raising=False)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as registrar:
        registrar.bind(("127.0.0.1", 0))
        registrar.settimeout(30)
        phone = start("register", f"bob@127.0.0.1:{registrar.getsockname()[1]}")
        asked, source = registrar.recvfrom(4096)
        registrar.sendto(challenge(asked), source)
        out, err = phone.communicate(timeout=20)
    assert (phone.returncode, out) == (1, "")
    assert err == "p2psip: 401 Unauthorized; the password is missing, say it in SIP_PASSWORD\n"


def test_a_registrar_apart_from_the_address_is_asked_and_given_the_password(monkeypatch):
    """Covers RFC 3261 §8.1.2: the domain of the address is never looked up."""
    monkeypatch.setenv("SIP_PASSWORD", "zanzibar")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as registrar:
        registrar.bind(("127.0.0.1", 0))
        registrar.settimeout(30)
        place = f"127.0.0.1:{registrar.getsockname()[1]}"
        phone = start("listen", "bob@nowhere.example", "--registrar", place)
        asked, source = registrar.recvfrom(4096)
        registrar.sendto(challenge(asked), source)
        while (again := registrar.recv(4096)) == asked:
            continue  # a copy, sent before the challenge came
        phone.kill()
        phone.communicate()
    assert again.startswith(b"REGISTER sip:nowhere.example SIP/2.0\r\n")
    assert f"\r\nRoute: <sip:{place};lr>\r\n".encode() in again
    assert b"\r\nTo: <sip:bob@nowhere.example>\r\n" in again
    assert b'Authorization: Digest username="bob"' in again and b"zanzibar" not in again


def test_calls_go_to_the_registrar_too(listener):
    """Covers RFC 3261 §8.1.2."""
    phone, uri = listener("--codec", "pcma", "--calls", 1)
    place = uri.partition("@")[2]
    code, out, err = run(
        *("call", "anonymous@nowhere.example", "--from", "bob@home.example"),
        *("--registrar", place, "--seconds", "0.1"),
    )
    assert (code, err) == (0, "") and "in PCMA" in out
    assert "call from sip:bob@home.example" in phone.communicate(timeout=20)[0]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["call", "bob@home", "--registrar", "bob@127.0.0.1"],
        ["listen", "bob@home", "--registrar", "127.0.0.1:x"],
        ["fly"],
        ["call"],
        ["call", "tel:+15551234"],
        ["call", "bob@127.0.0.1", "--play", "/absent.wav"],
        ["call", "bob@127.0.0.1", "--listen", "127.0.0.1"],
        ["listen", "--listen", "0.0.0.0:0"],
        ["listen", "--listen", "::1:0"],
        ["listen", "--listen", "192.0.2.1:0"],
        ["listen", "--codec", "MP3"],
        ["listen", "--calls", "0"],
        ["listen", "--record", "/absent/heard.wav"],
        ["call", "bob@127.0.0.1:9", "--seconds", "-1"],
        ["call", "bob@127.0.0.1:9", "--tone", "9000"],
        ["call", "bob@127.0.0.1:9", "--tone", "440", "--play", "x.wav"],
        ["call", "bob@127.0.0.1:9", "--record", "/"],
        ["register", "bob@127.0.0.1:9", "--timeout", "soon"],
    ],
)
def test_what_is_asked_for_wrongly_is_exit_code_2(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/p2psip"])
    monkeypatch.setattr(__main__.gevent, "signal_handler", lambda *_: None)  # ours stay ours
    try:
        code = __main__.main(arguments)
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith(("p2psip: ", f"p2psip {''.join(arguments[:1])}: "))
    assert err.count("\n") == 1 and err.endswith("\n") and "Errno" not in err


def shown(capsys, *words):
    """What the help says."""
    with pytest.raises(SystemExit) as end:
        __main__.main([*words, "--help"])
    assert not end.value.code
    return capsys.readouterr().out


def test_help(capsys):
    out = shown(capsys)
    assert "it registers, calls, answers and asks" in out
    for command in ("register", "call", "listen", "options"):
        [line] = [line for line in out.splitlines() if line.split()[:1] == [command]]
        assert len(line.split()) > 3
        about = shown(capsys, command)
        assert about.count("\nidentity:\n") == about.count("\nnetwork:\n") == 1
        assert about.count("  --timeout S") == about.count("  --registrar HOST[:PORT]") == 1
