"""`python -m p2psip serve` with phones of its own kind."""

import os
import signal
import sys

import pytest
from support.certificates import certificate
from support.peers.nursery import Overheard

from p2psip import Account, Agent, NetworkSettings, TlsContexts, __main__, client_context
from p2psip.sip.auth import ha1


def start(*words):
    return Overheard([sys.executable, "-m", "p2psip", *map(str, words)])


@pytest.fixture
def launch():
    """`launch(*words)`: a process of p2psip, and the first line that it says."""
    processes = []

    def begin(*words):
        processes.append(start(*words))
        return processes[-1], processes[-1].stdout.readline().strip()

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def test_phones_find_each_other(launch, tmp_path, monkeypatch):
    """Covers RFC 3261 §10.3 and §16: with passwords, which strangers lack."""
    users = tmp_path / "users"
    users.write_text("".join(f"{n}:example.com:{ha1(n, 'example.com', 'secret')}\n" for n in "ab"))
    domain = ("--domain", "example.com", "--users", users)
    server, said = launch("serve", "--listen", "127.0.0.1:0", *domain)
    words, _, address = said.rpartition(" ")
    assert words == "serving example.com at"
    monkeypatch.setenv("SIP_PASSWORD", "secret")
    _, said = launch("listen", "a@example.com", "--registrar", address)
    assert said.startswith("listening at sip:a@127.0.0.1:")
    asked = ("message", "a@example.com", "hello", "--registrar", address, "--from")
    bob = start(*asked, "b@example.com")
    assert (*bob.communicate(timeout=20), bob.returncode) == ("200 OK\n", "", 0)
    monkeypatch.setenv("SIP_PASSWORD", "guess")
    stranger = start(*asked, "b@example.com")
    out, err = stranger.communicate(timeout=20)
    assert (out, stranger.returncode) == ("", 1) and "407" in err
    server.terminate()
    assert server.wait(20) == 0


def test_phones_of_both_families_find_each_other(launch):
    """Covers RFC 3261 §18.2.1: one of IPv6 writes to one of IPv4, by an address of each kind."""
    sip = ("--sip", "127.0.0.1:0", "--sip", "[::1]:0", "--domain", "home")
    _, said = launch("serve", *sip, "--ws", "127.0.0.1:0", "[::1]:0")
    assert said.startswith("serving home at ")
    (old, new), web = (each.split()[-2:] for each in said.split(", "))
    assert [each.rpartition(":")[0] for each in web] == ["127.0.0.1", "[::1]"]
    launch("listen", "a@home", "--registrar", old)
    asked = start("message", "a@home", "hello", "--registrar", new, "--from", "b@home")
    assert (*asked.communicate(timeout=20), asked.returncode) == ("200 OK\n", "", 0)


def test_phones_are_known_after_a_crash(launch, tmp_path):
    """Covers RFC 3261 §10.3: the next process calls those that the first one had registered."""
    sip = ("serve", "--listen", "127.0.0.1:0", "--domain", "home")
    first, said = launch(*sip, "--location", tmp_path / "phones")
    launch("listen", "a@home", "--registrar", said.split()[-1])
    first.kill()
    first.wait(20)
    asked = ("message", "a@home", "hello", "--from", "b@home", "--registrar")
    for words, answer in (((), "480"), (("--location", tmp_path / "phones"), "200 OK")):
        _, said = launch(*sip, *words)
        bob = start(*asked, said.split()[-1])
        assert answer in "".join(bob.communicate(timeout=20))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "127.0.0.1:0", "--location", "http://127.0.0.1/"], "--location no URL such"),
        (["--sip", "127.0.0.1:0", "--sip", "192.0.2.1:5060"], "give --users"),
        (["--listen", "192.0.2.1:5060"], "give --users"),
        (["--listen", "0.0.0.0:5060"], "name one address"),
        (["--listen", "5060"], "is not HOST:PORT"),
        (["--users", os.devnull + "/none"], "Not a directory"),
        (["--users", __file__], "line 1 is not user:realm:HA1"),
        (["--sips", "127.0.0.1:0"], "--sips needs --tls-cert"),
        (["--ws", "192.0.2.1:0"], "give --users"),
        (["--sips", "[::]:0", "--tls-cert", __file__], "name one address"),
        (["--sips", "127.0.0.1:0", "--tls-cert", "/absent.pem"], "/absent.pem: no such file"),
        (["--tls-cert", __file__], "no usable certificate"),
    ],
)
def test_what_it_refuses(capsys, words, said):
    """Own design: nobody outside of this machine is served without passwords."""
    if "--listen" not in words and "--sip" not in words:
        words = ["--listen", "127.0.0.1:0", *words]  # a neighbour may have the default port
    assert __main__.main(["serve", *words]) == 2
    assert said in capsys.readouterr().err


def test_phones_by_tls_and_files_that_are_read_again(launch, tmp_path):
    """Covers RFC 3261 §26.2.2: the certificate is checked, and SIGHUP takes its successor."""
    made = certificate(tmp_path / "first", "IP:127.0.0.1,IP:::1")
    (users := tmp_path / "users").write_text(f"a:home:{ha1('a', 'home', 'secret')}\n")
    files = ["--users", users, "--tls-cert", made.file, "--tls-key", made.key]
    listeners = ["--listen", "127.0.0.1:0", "--ws", "127.0.0.1:0"]
    listeners += ["--sips", "127.0.0.1:0", "--sips", "[::1]:0"]
    server, said = launch("serve", "--domain", "home", *listeners, *files)
    udp, tls, ws = said.removeprefix("serving home at ").split(", ")
    assert udp.startswith("127.0.0.1:") and ws.startswith("by WebSocket 127.0.0.1:")
    places = tls.removeprefix("by TLS ").split()
    assert len(places) == 2

    def registered(user, ca, place=places[0]):
        trusted = TlsContexts(client_context(ca))
        at, host = f"sip:{place};transport=tls", place.rpartition(":")[0].strip("[]")
        with Agent(
            Account(user, "home", password="secret", registrar=at),
            NetworkSettings(listen=(host, 0), tls=trusted),
        ) as agent:
            return agent.register(timeout=20) > 0

    assert registered("a", made.file) and registered("a", made.file, places[1])
    renewed = certificate(tmp_path / "second")
    for path in (made.file, made.key):
        path.write_bytes((renewed.file.parent / path.name).read_bytes())
    users.write_text(f"b:home:{ha1('b', 'home', 'secret')}\n")
    server.send_signal(signal.SIGHUP)
    assert "read again" in server.stdout.readline()
    assert registered("b", renewed.file)
    users.write_text("nonsense")
    server.send_signal(signal.SIGHUP)
    assert "not read again: " in server.stdout.readline()
    assert registered("b", renewed.file)
