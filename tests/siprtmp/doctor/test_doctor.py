"""The doctor names faults that are there, and nothing where none is."""

import json
import resource
from contextlib import closing

import gevent
import pytest
from gevent import socket
from support.certificates import certificate

from siprtmp.__main__ import main
from siprtmp.doctor import machine, peer

OFF = ["--rtmp", "off", "--rtmfp", "off", "--http", "off", "--sip", "127.0.0.1:0"]


def faults(capsys, *words):
    """The names of what is wrong, as a program reads them; the code agrees."""
    code = main(["doctor", "--json", *words])
    found = json.loads(capsys.readouterr().out)
    wrong = [each for each in found if each["verdict"] == "FAULT"]
    assert code == (1 if wrong else 0) and all(each["cure"] for each in wrong)
    return {each["fault"] for each in wrong}


@pytest.fixture(autouse=True)
def files(monkeypatch):
    """As many descriptors as it takes, whatever the machine has."""
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (20_000, 20_000))


def listening(kind):
    found = socket.socket(socket.AF_INET, kind)
    found.bind(("127.0.0.1", 0))
    return found


def test_a_machine_in_order(capsys):
    assert faults(capsys, *OFF) == set()
    assert main(["doctor", *OFF]) == 0
    assert "ok    settings: they can be served" in capsys.readouterr().out


def test_a_port_that_another_program_has(capsys):
    with closing(listening(socket.SOCK_STREAM)) as other:
        other.listen()
        at = f"127.0.0.1:{other.getsockname()[1]}"
        assert faults(capsys, *OFF, "--rtmp", at) == {"port-busy"}


def test_an_address_of_another_machine(capsys):
    words = ["--rtmp", "192.0.2.1:1935", "--publish-key", "*=a"]
    assert faults(capsys, *OFF, *words, "--play-key", "*=b") == {"address-absent"}


def test_settings_that_cannot_be_served(capsys):
    """Such as phones of strangers without any users."""
    assert faults(capsys, *OFF[:-1], "0.0.0.0:0") == {"settings"}


def test_a_missing_extra(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert faults(capsys, *OFF, "--transcode-video", "on") == {"extra-missing"}


def test_certificates(capsys, tmp_path):
    """One in order, an expired one, and one whose key is another's."""
    made, old = certificate(tmp_path / "a"), certificate(tmp_path / "b", expired=True)
    words = [*OFF, "--rtmps", "127.0.0.1:0"]
    assert faults(capsys, *words, "--tls-cert", str(made.file), "--tls-key", str(made.key)) == set()
    assert faults(capsys, *words, "--tls-cert", str(old.file), "--tls-key", str(old.key)) == {
        "certificate-expired"
    }
    assert faults(capsys, *words, "--tls-cert", str(made.file), "--tls-key", str(old.key)) == {
        "certificate"
    }


def test_a_proxy_that_dns_does_not_know(capsys, monkeypatch):
    monkeypatch.setattr(machine.ServerLocator, "flows", lambda *_: [])
    assert faults(capsys, *OFF, "--outbound-proxy", "sip:nowhere.invalid") == {"dns"}


def test_a_clock_that_is_wrong(capsys, monkeypatch):
    monkeypatch.setattr(machine.time, "time", lambda: 0.0)
    assert faults(capsys, *OFF) == {"clock"}


def test_few_descriptors(capsys, monkeypatch):
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (64, 64))
    assert faults(capsys, *OFF) == {"descriptors"}
    assert resource.RLIM_INFINITY == -1  # which is no small number
    assert machine._files(-1).verdict == "ok"


def test_what_is_no_fault_but_may_be_one(tmp_path):
    (tmp_path / "small").write_text("212992\n")
    (found,) = machine._buffers(tmp_path / "small")
    assert (found.verdict, found.fault) == ("note", "udp-buffers")
    assert list(machine._buffers(tmp_path / "none")) == []


@pytest.mark.parametrize("target", ["sip:127.0.0.1:{}", "rtmp://127.0.0.1:{}/live"])
def test_a_closed_port_of_a_peer(capsys, target):
    with closing(listening(socket.SOCK_STREAM)) as one:
        port = one.getsockname()[1]
    assert faults(capsys, target.format(port)) == {"port-closed"}


def test_a_peer_that_is_silent(capsys, monkeypatch):
    monkeypatch.setattr(peer, "PATIENCE", 0.2)
    with closing(listening(socket.SOCK_STREAM)) as server:
        server.listen()
        target = f"rtmp://127.0.0.1:{server.getsockname()[1]}/live"
        assert faults(capsys, target) == {"silent"}


def test_a_peer_that_speaks_something_else(capsys):
    with closing(listening(socket.SOCK_STREAM)) as server:
        server.listen()

        def answer():
            client, _ = server.accept()
            while len(client.recv(1537, socket.MSG_PEEK)) < 1537:
                gevent.sleep(0)
            client.recv(1537)
            client.sendall(b"HTTP/1.0 400 no\r\n\r\n")
            client.close()

        gevent.spawn(answer)
        target = f"rtmp://127.0.0.1:{server.getsockname()[1]}/live"
        assert faults(capsys, target) == {"no-rtmp"}


def test_names_that_dns_does_not_know(capsys, monkeypatch):
    monkeypatch.setattr(peer.ServerLocator, "flows", lambda *_: [])
    assert faults(capsys, "sip:nowhere.invalid") == {"dns"}
    assert faults(capsys, "rtmp://nowhere.invalid/live") == {"dns"}


def test_a_peer_that_answers(capsys):
    with closing(listening(socket.SOCK_DGRAM)) as phone:

        def answer():
            data, source = phone.recvfrom(4096)
            head, _, rest = data.partition(b"\r\n")
            assert head.startswith(b"OPTIONS sip:")
            kept = [
                line for line in rest.split(b"\r\n") if not line.startswith((b"Max", b"Contact"))
            ]
            phone.sendto(b"\r\n".join([b"SIP/2.0 200 OK", *kept]), source)

        gevent.spawn(answer)
        target = f"sip:127.0.0.1:{phone.getsockname()[1]};transport=udp"
        assert faults(capsys, target) == set()


@pytest.mark.parametrize("words", [["http://127.0.0.1/"], ["sip:127.0.0.1", "more"]])
def test_what_is_no_peer(words, capsys):
    assert main(["doctor", *words]) == 2
    assert capsys.readouterr().err.startswith("siprtmp: ")
