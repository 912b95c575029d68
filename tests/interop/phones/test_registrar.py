"""The gateway's registrar among phones that come back, die, or name places that are not theirs."""

import itertools
import re
import select
import socket
import sqlite3
import sys

import pytest
from support.gateway.gateway import Gateway
from support.limits import Clock
from support.peers import baresip
from support.peers.baresip import Baresip
from support.peers.process import free_port

VICTIM, CALLER = "127.0.0.3", "127.0.0.4"
DEVICE = '+sip.instance="<urn:uuid:00000000-0000-1000-8000-000a95a0e128>"'
numbers = itertools.count(1)


class Place:
    """A socket of somebody who speaks SIP: by UDP at `host`, or a connection from there."""

    def __init__(self, server, host="127.0.0.1", kind=socket.SOCK_DGRAM):
        name, _, port = server.sip.rpartition(":")
        self.gateway, self.kind = (name, int(port)), kind
        self.transport = "TCP" if kind == socket.SOCK_STREAM else "UDP"
        self.socket = socket.socket(socket.AF_INET, kind)
        self.socket.bind((host, 0))
        self.socket.connect(self.gateway)
        self.address = "{}:{}".format(*self.socket.getsockname())
        self.sent = self.heard = b""
        self.packets = [0, 0]  # out, in

    def say(self, data):
        """Send one message."""
        self.socket.send(data)
        self.sent += data
        self.packets[0] += 1

    def listen(self, seconds=5.0):
        """The next message or piece of a stream; empty after so much silence."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return b""
        data = self.socket.recv(65536)
        self.heard += data
        self.packets[1] += 1
        return data

    def await_(self, pattern):
        """The match of a pattern in what is heard, sooner or later."""
        clock = Clock()
        while not (found := re.search(pattern, self.heard, re.DOTALL)):
            assert not clock.over(20), self.heard
            self.listen(0.1)
        return found

    def ask(self, method, uri, **fields):
        """Send a request; the status and the whole of its final response."""
        number = next(numbers)
        headers = {
            "Via": f"SIP/2.0/{self.transport} {self.address};branch=z9hG4bKr{number};rport",
            "Max-Forwards": "70",
            "From": f"<sip:somebody@elsewhere.invalid>;tag={number}",
            "To": f"<{uri}>",
            "Call-ID": f"call-{number}",
            "CSeq": f"{number} {method}",
        } | fields
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.say(f"{method} {uri} SIP/2.0\r\n{lines}Content-Length: 0\r\n\r\n".encode())
        pattern = rf"SIP/2.0 ([2-6]\d\d) (?:(?!\r\n\r\n).)*branch=z9hG4bKr{number}\b.*?\r\n\r\n"
        answer = self.await_(pattern.encode())
        return int(answer[1]), answer[0].decode()

    def register(self, contact, user="bob"):
        """Bind a contact; the status and the response."""
        me = f"<sip:{user}@127.0.0.1>"
        fields = {"From": f"{me};tag=r", "To": me, "Contact": contact, "Expires": "600"}
        return self.ask("REGISTER", "sip:127.0.0.1", **fields)

    def answer(self, request, status="200 OK"):
        """Answer the first request in `request`."""
        head = request.decode().partition("\r\n\r\n")[0].split("\r\n")[1:]
        kept = [line for line in head if line.startswith(("Via", "From", "To", "Call-ID", "CSeq"))]
        lines = [line + (";tag=t" if line.startswith("To") else "") for line in kept]
        self.say("\r\n".join([f"SIP/2.0 {status}", *lines, "Content-Length: 0", "", ""]).encode())

    def is_rung(self, caller, user="bob"):
        """Whether a call of `caller` comes in here; it is declined then."""
        number = next(numbers)
        uri = f"sip:{user}@127.0.0.1"
        caller.say(
            f"INVITE {uri} SIP/2.0\r\n"
            f"Via: SIP/2.0/{caller.transport} {caller.address};branch=z9hG4bKi{number};rport\r\n"
            f"From: <sip:x@elsewhere.invalid>;tag={number}\r\nTo: <{uri}>\r\n"
            f"Call-ID: invite-{number}\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\n"
            f"Contact: <sip:x@{caller.address}>\r\nContent-Length: 0\r\n\r\n".encode()
        )
        found = self.await_(
            rf"INVITE [^\r]*\r\n(?:(?!\r\n\r\n).)*invite-{number}\b.*?\r\n\r\n".encode()
        )
        self.answer(found[0], "603 Decline")
        caller.await_(rf"SIP/2.0 603(?:(?!\r\n\r\n).)*invite-{number}\b".encode())
        return True


def connection(server, host="127.0.0.1"):
    return Place(server, host, socket.SOCK_STREAM)


def test_a_phone_that_reconnects_eleven_times_is_rung_once(gateway):
    """By TCP, with connections that it leaves open: RFC 5626 §6 and §7."""
    server = gateway()
    phones = []
    for _ in range(11):
        phones.append(connection(server))
        assert phones[-1].register(f"<sip:bob@192.168.0.7:{next(numbers)}>;{DEVICE}")[0] == 200
    assert server.status()["registrations"] == 1
    caller = Place(server, CALLER)
    assert phones[-1].is_rung(caller)
    for phone in phones[:-1]:  # each connection is open, and nothing has come
        assert not phone.listen(0) or b"INVITE" not in phone.heard
    for number in range(11):  # without an instance, and hung up each time
        with connection(server).socket:
            phone = connection(server)
            assert phone.register(f"<sip:ann@192.168.0.7:{number + 1}>", "ann")[0] == 200
            phone.socket.close()
    server.wait_status({"registrations": 1})
    assert "contact-lost user=sip:ann@" in server.output
    phones[-1].socket.close()
    server.wait_status({"registrations": 0})
    status, _ = caller.ask("INVITE", "sip:bob@127.0.0.1", Contact=f"<sip:x@{caller.address}>")
    assert status == 480


@pytest.mark.needs("baresip")
def test_a_real_phone_that_died_and_is_started_again(gateway, start, monkeypatch, tmp_path):
    """baresip with its uuid module: another port, another user part, the same instance."""
    monkeypatch.setattr(baresip, "MODULES", (*baresip.MODULES, "uuid"))
    server = gateway()
    for _ in range(2):
        phone = start(Baresip, "bob", registrar=server.sip, name="bob")
        phone.child.kill()
        server.wait_status({"registrations": 1})
    contacts = re.findall(r" registered .*contact=(\S+)", server.output)
    assert len(set(contacts)) == 2
    assert "unregistered source=UDP:127.0.0.1 user=sip:bob@127.0.0.1" in server.output


def test_bindings_survive_kill_9(start, tmp_path):
    """What was confirmed is there again: by UDP at once, by TCP once the phone has answered."""
    options = ("--sip", f"127.0.0.1:{free_port()}", "--state", str(tmp_path / "state"))
    server = Gateway(tmp_path / "first", *options).start()
    bob, ann = Place(server), connection(server)
    listener = Place(server)  # where ann listens as well
    assert bob.register(f"<sip:bob@{bob.address}>")[0] == 200
    assert ann.register(f"<sip:ann@{listener.address}>", "ann")[0] == 200
    assert connection(server).register("<sip:tom@192.168.0.7>", "tom")[0] == 200
    server.child.kill()
    server.stop()
    server = start(Gateway, *options)
    caller = Place(server, CALLER)
    assert bob.is_rung(caller)
    listener.answer(listener.await_(rb"OPTIONS .*?\r\n\r\n")[0])
    server.wait_status({"registrations": 2})  # tom had a connection and nothing else
    assert listener.is_rung(caller, "ann")


def test_third_party_contacts_draw_less_than_they_cost(gateway):
    """Every packet and octet at a silent third party, beside what the attacker has sent."""
    server = gateway("--sip-t1", "10")  # so that 64*T1, all that a call may repeat, is 0.64 s
    attacker, caller = Place(server, "127.0.0.2"), Place(server, CALLER)
    victims = [Place(server, VICTIM) for _ in range(10)]
    for _ in range(5):
        contacts = ", ".join(f"<sip:v@{victim.address}>" for victim in victims)
        assert attacker.register(contacts)[0] == 200
        status, _ = caller.ask("INVITE", "sip:bob@127.0.0.1", Contact=f"<sip:x@{caller.address}>")
        assert status == 480
        server.wait_until(
            lambda: server.output.count("contact-silent") == attacker.packets[0], what="silence"
        )
    for victim in victims:
        while victim.listen(0):
            pass
    drawn = sum(victim.packets[1] for victim in victims)
    octets = sum(len(victim.heard) for victim in victims)
    assert drawn <= attacker.packets[0] and octets <= len(attacker.sent)
    assert b"INVITE" not in b"".join(victim.heard for victim in victims)


def test_nobody_claims_the_gateways_own_place(gateway):
    """The attack of `Contact: sip:+15551234@gateway:port`, by TCP with one's own name."""
    server = gateway()
    eve, bob = connection(server), Place(server)
    status, _ = eve.register(f"<sip:+15551234@{server.sip}>", "eve")
    assert status == 403 and server.status()["registrations"] == 0
    bob.register(f"<sip:bob@{bob.address}>")
    eve.register(f"<sip:bob@{bob.address}>", "eve")  # his contact
    assert bob.is_rung(Place(server, CALLER)) and b"INVITE" not in eve.heard


def test_a_full_disk_is_said_once_and_costs_no_registration(start, tmp_path):
    """No file may grow beyond 64 KiB: the log of the bindings is full after some of them."""
    limited = ("prlimit", "--fsize=65536", sys.executable, "-m", "siprtmp")
    server = start(
        Gateway, "--state", str(tmp_path / "state"), "--log-level", "info", program=limited
    )
    phone = Place(server)
    for number in range(30):
        assert phone.register(f"<sip:u@{phone.address}>", f"u{number}")[0] == 200
    server.wait_status({"registrations": 30})
    assert server.output.count("state-unwritable") == 1
    assert phone.is_rung(Place(server, CALLER), "u29")


def test_a_file_of_a_later_version_is_one_line_and_exit_code_2(tmp_path):
    (folder := tmp_path / "state").mkdir(mode=0o700)
    with sqlite3.connect(folder / "location.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    server = Gateway(tmp_path / "gateway", "--state", str(folder))
    with pytest.raises(pytest.fail.Exception):
        server.start()
    assert server.finish() == 2
    [line] = server.output.splitlines()
    assert "location.sqlite: schema 99" in line
