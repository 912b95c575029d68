"""The SIP programs of examples/, as somebody would run them, against phones that are not ours."""

import re
import sys
from pathlib import Path

import dpkt
import pytest
from gevent.queue import Queue
from support.peers.baresip import Baresip
from support.peers.process import Process, free_port
from support.peers.tones import read_wav, tone_fraction

import p2psip

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SECOND = 16_000  # octets of a WAV file of 8000 samples a second


class Example(Process):
    """One of the programs; it says "ready" when it is."""

    def __init__(self, folder, program, *words, ready="ready"):
        super().__init__(folder, [sys.executable, EXAMPLES / program, *map(str, words)])
        self.ready = ready

    def is_ready(self):
        return self.ready in self.output

    def ends_well(self):
        assert self.finish() == 0, self.tail()
        return self.output


def recorded(phone, which):
    """Wait until a phone has kept two seconds of what it hears (dec) or says (enc)."""

    def enough():
        return any(
            file.stat().st_size > 2 * SECOND for file in phone.folder.glob(f"dump-*-{which}.wav")
        )

    phone.wait_until(enough, what=f"two seconds at {phone.user}'s phone")


def heard(phone, hz):
    """Judge the end of a call that is over by its tone."""
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert tone_fraction(samples[-rate:], rate, hz) > 0.7


@pytest.fixture
def phone(start):
    return lambda user, **options: start(Baresip, user, name=user, **options)


def test_all_programs_of_the_folder_are_here():
    tested = set(re.findall(r'"(sip_\w+\.py)"', Path(__file__).read_text()))
    assert {path.name for path in EXAMPLES.glob("sip_*.py")} == tested
    for path in EXAMPLES.glob("sip_*.py"):
        assert len(path.read_text().splitlines()) <= 45, path.name


@pytest.mark.interop
@pytest.mark.needs("baresip")
def test_a_phone_hears_its_own_echo(start, phone):
    echo = start(Example, "sip_echo.py", "127.0.0.1", port := free_port())
    bob = phone("bob", hz=620)
    bob.dial(f"sip:echo@127.0.0.1:{port}")
    bob.wait_event("CALL_ESTABLISHED")
    recorded(bob, "dec")
    bob.hangup()
    heard(bob, 620)
    echo.wait_until(lambda: "BYE" in echo.output, what="the end of the call")
    assert "sip:bob@127.0.0.1 is listening to itself" in echo.output
    echo.child.terminate()
    echo.ends_well()


@pytest.mark.interop
@pytest.mark.needs("baresip")
def test_what_a_phone_says_is_recorded(start, phone):
    machine = start(Example, "sip_record.py", "127.0.0.1", port := free_port())
    bob = phone("bob", hz=620)
    bob.dial(f"sip:messages@127.0.0.1:{port}")
    bob.wait_event("CALL_ESTABLISHED")
    recorded(bob, "enc")
    bob.hangup()
    machine.wait_until(lambda: "from sip:bob@" in machine.output, what="the file")
    samples, rate = read_wav(machine.folder / "message-1.wav")
    assert len(samples) > rate and tone_fraction(samples[-rate:], rate, 620) > 0.7


@pytest.mark.interop
def test_two_phones_are_connected(start, phone):
    alice, bob = phone("alice", hz=440), phone("bob", hz=620)
    words = "127.0.0.1", alice.uri, bob.uri
    dialer = start(Example, "sip_click_to_dial.py", *words, ready="talks to")
    recorded(alice, "dec")
    recorded(bob, "dec")
    alice.hangup()
    assert "over" in dialer.ends_well()
    heard(alice, 620)
    heard(bob, 440)


def test_two_phones_are_introduced_to_each_other(start):
    """Covers RFC 3891 §3: the program is out of the call at the end."""
    with p2psip.Agent(p2psip.Account("alice")) as alice, p2psip.Agent(p2psip.Account("bob")) as bob:
        taken = {agent: Queue() for agent in (alice, bob)}
        for agent in taken:

            def on_call(call, agent=agent):
                call.on_transfer = lambda target: True
                call.on_transferred = taken[agent].put
                call.answer(20)

            agent.on_call, agent.on_replace = on_call, lambda call, sender: True
        words = ("127.0.0.1", str(alice.contact), str(bob.contact))
        program = start(Example, "sip_introduce.py", *words, ready="is put through")
        assert "they talk to each other" in program.ends_well()
        new = taken[alice].get(timeout=20)
        assert new.is_up and new.remote.uri.user == "bob"
        assert taken[bob].get(timeout=20).remote.uri.user == "alice"
        new.hangup()


def test_a_hook_lets_calls_pass_or_not(start):
    proxy = start(Example, "sip_proxy.py", "127.0.0.1", port := free_port())
    domain = f"127.0.0.1:{port}"
    with (
        p2psip.Agent(p2psip.Account("alice", domain)) as alice,
        p2psip.Agent(p2psip.Account("bob", domain)) as bob,
    ):
        bob.on_call = lambda call: call.answer()
        assert bob.register() > 0
        call = alice.call("bob", timeout=20)
        assert call.is_up
        call.hangup()
        with pytest.raises(p2psip.RemoteError, match="403 Premium Numbers Are Barred"):
            alice.call("900123", timeout=20)
    assert "INVITE from sip:alice@" in proxy.output


def frame(source, target, data):
    """An Ethernet frame with a datagram in it, between two ports of two hosts."""
    udp = dpkt.udp.UDP(sport=source, dport=target, data=data)
    udp.ulen = len(udp)
    ip = dpkt.ip.IP(src=b"\xc0\x00\x02\x01", dst=b"\xc0\x00\x02\x02", p=17, data=udp)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(data=ip))


def test_a_capture_is_read(start, tmp_path):
    invite = p2psip.Request(
        "INVITE", p2psip.Uri.parse("sip:bob@example.com"), p2psip.Headers([("Call-ID", "7@a")])
    )
    with (tmp_path / "calls.pcap").open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        writer.writepkt(frame(5060, 5062, bytes(invite)), 1.0)
        writer.writepkt(frame(5062, 5060, b"SIP/2.0 100 Trying\r\nCall-ID: 7@a\r\n\r\n"), 1.1)
        for number in range(3):
            packet = p2psip.RtpPacket(0, number, 160 * number, 0xABCD, bytes(160))
            writer.writepkt(frame(4000, 4002, bytes(packet)), 1.2)
        writer.writepkt(frame(4000, 4002, b"\x00\x01"), 1.3)
    reader = start(Example, "sip_capture.py", tmp_path / "calls.pcap", ready="")
    lines = reader.ends_well().splitlines()
    assert lines[0] == "1.000 192.0.2.1:5060 > 192.0.2.2:5062 INVITE sip:bob@example.com (7@a)"
    assert lines[1] == "1.100 192.0.2.1:5062 > 192.0.2.2:5060 100 Trying (7@a)"
    assert "neither SIP nor RTP" in lines[2]
    assert lines[3] == "3 packets 192.0.2.1:4000 > 192.0.2.2:4002 0000abcd type 0"
