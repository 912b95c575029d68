"""A stream becomes a phone call and a phone call a stream, with real tools at both ends."""

import re
from itertools import pairwise

import dpkt
import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import PHONE_PORTS, Baresip
from support.peers.peers import G711_ALAW, LASTING, Ffmpeg, RtmpDump, decode_audio
from support.peers.process import Process, require
from support.peers.tones import tone_fraction, trimmed

SECONDS = 6
PTIME = 0.02


class Capture(Process):
    """tshark on loopback: the RTP of phones, and the SIP of one of them."""

    def __init__(self, folder, phone):
        """Needs the right to capture, which CI's root has."""
        program = require("tshark", "tshark")
        self.file = folder / "udp.pcap"
        wanted = f"udp portrange {PHONE_PORTS[0]}-{PHONE_PORTS[-1]} or udp port {phone.port}"
        words = ["-i", "lo", "-f", wanted, "-F", "pcap", "-q", "-w", str(self.file)]
        super().__init__(folder, [program, *words])

    def is_ready(self):
        """Truthy once it captures."""
        return "Capturing on" in self.output

    def rtp_to(self, port):
        """(time, RTP packet) of each datagram to a port, in order of capture."""
        found = []
        with self.file.open("rb") as file:
            for at, frame in dpkt.pcap.Reader(file):
                udp = dpkt.ethernet.Ethernet(frame).data.data
                if isinstance(udp, dpkt.udp.UDP) and udp.dport == port:
                    found.append((at, dpkt.rtp.RTP(udp.data)))
        return found


def settled(idle):
    """The figures that must come back; a phone's registration outlives it."""
    return {k: v for k, v in idle.items() if k not in ("registrations", "sip_repeated")}


@pytest.mark.needs("baresip", "ffmpeg", "rtmpdump")
def test_ffmpeg_calls_a_registered_phone(start, gateway, tmp_path):
    server = gateway("--users", users_file(tmp_path, "bob"), "--sip-t1", "50")
    idle = server.status()
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900)
    name = f"bob@{server.sip}"
    player = start(RtmpDump, server.url("call", name))
    publisher = start(Ffmpeg.publish, server.url("call", name), hz=440, seconds=SECONDS)
    phone.wait_event("CALL_ESTABLISHED")
    assert server.status()["calls"] == 1
    assert publisher.finish() == 0
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 440) > 0.95
    assert len(trimmed(samples, rate)) / rate > 0.95 * SECONDS
    player.finish()
    heard = decode_audio(player.file)
    assert tone_fraction(heard, 8000, 900) > 0.95
    assert len(heard) / 8000 > 0.9 * SECONDS
    server.wait_status(settled(idle))


@pytest.mark.needs("baresip", "ffmpeg")
def test_a_phone_calls_a_waiting_name(start, gateway, tmp_path):
    """Covers RFC 5761 §5.1.1, since this phone offers one port for RTP and RTCP."""
    server = gateway("--users", users_file(tmp_path, "bob"), "--sip-t1", "50")
    idle = server.status()
    url = server.url("call", "studio")
    publisher = start(Ffmpeg.publish, url, hz=600, seconds=LASTING, codecs=G711_ALAW)
    heard = tmp_path / "heard.flv"
    player = start(Ffmpeg.play, url, to=heard)
    phone = start(
        Baresip,
        "bob",
        registrar=server.sip,
        password=PASSWORD,
        hz=900,
        codecs="PCMA/8000/1",
        rtcp_mux=True,
    )
    server.wait_status({"names": 1, "players": 1})
    phone.dial(f"sip:studio@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    phone.wait_until(
        lambda: "a=rtcp-mux" in phone.output.rpartition("SIP/2.0 200 OK")[2],
        what="an answer with one port",
    )
    publisher.wait_until(lambda: server.status()["calls"] == 1, what="the call")
    phone.wait_until(lambda: f"[0:00:{SECONDS:02}]" in phone.output, what="some seconds of call")
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    player.finish()
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 600) > 0.95
    assert tone_fraction(decode_audio(heard), 8000, 900) > 0.95
    assert publisher.child.poll() is None  # a waiting publisher waits for the next call
    publisher.stop()
    server.wait_status(settled(idle))


@pytest.mark.needs("baresip", "ffmpeg", "tshark")
def test_a_file_sent_at_once_is_heard_whole_and_leaves_without_a_burst(start, gateway, tmp_path):
    """Covers RFC 3551 §4.2."""
    server = gateway("--users", users_file(tmp_path, "bob"))
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD)
    capture = start(Capture, phone)
    name = f"bob@{server.sip}"
    start(Ffmpeg.publish, server.url("call", name), hz=440, seconds=SECONDS, realtime=False)
    phone.wait_event("CALL_ESTABLISHED")
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 440) > 0.95
    bye = re.compile(rb"BYE sip:[^ ]*:%d" % phone.port)  # not that of some other call
    capture.wait_until(lambda: bye.search(capture.file.read_bytes()), what="the last packets")
    capture.stop()
    lines = [line for line in phone.output.splitlines() if line.startswith("m=audio")]
    ports = {int(line.split()[1]) for line in lines}
    [to_phone] = ports.intersection(PHONE_PORTS)  # the other is the gateway's
    packets = capture.rtp_to(to_phone)
    sent = [packet for _, packet in packets]
    assert {(b.seq - a.seq) & 0xFFFF for a, b in pairwise(sent)} == {1}
    assert {(b.ts - a.ts) & 0xFFFFFFFF for a, b in pairwise(sent)} == {160}
    assert {len(packet.data) for packet in sent} == {160}
    assert [packet.m for packet in sent] == [1] + [0] * (len(sent) - 1)
    assert len(sent) == SECONDS / PTIME  # nothing lost, nothing twice
    first = packets[0][0]
    ahead = max(i * PTIME - (at - first) for i, (at, _) in enumerate(packets))
    assert ahead < 5 * PTIME  # none before its time, but for what a busy machine adds; not 5.7 s


@pytest.mark.parametrize("answer", ["decline", "nobody"])
@pytest.mark.needs("baresip", "ffmpeg")
def test_a_failed_call_ends_the_publish_with_the_sip_status(start, gateway, answer):
    server = gateway("--sip-t1", "50")
    idle = server.status()
    phone = start(Baresip, "bob", registrar=server.sip, answer="manual")
    user = "bob" if answer == "decline" else "carol"
    url = server.url("call", f"{user}@{server.sip}")
    publisher = start(Ffmpeg.publish, url, seconds=LASTING)
    if answer == "decline":
        phone.wait_event("CALL_INCOMING")
        phone.hangup()
    assert publisher.finish() != 0
    assert ("486 " if answer == "decline" else "480 ") in publisher.output
    if answer == "decline":
        idle.pop("transactions")  # timer D lasts 32 s over UDP, whatever T1 is: RFC 3261 §17.1.1.2
    server.wait_status(settled(idle))


@pytest.mark.needs("baresip", "ffmpeg")
def test_a_stream_calls_as_the_user_it_is_told_to_be(start, gateway, tmp_path):
    users = users_file(tmp_path, "bob", "radio")
    server = gateway("--users", users, "--call-from", '"The Radio" <sip:radio@127.0.0.1>')
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD)
    start(Ffmpeg.publish, server.url("call", f"bob@{server.sip}"), seconds=2)
    assert phone.wait_event("CALL_ESTABLISHED")["peeruri"] == "sip:radio@127.0.0.1"
    phone.wait_event("CALL_CLOSED")


@pytest.mark.needs("baresip", "ffmpeg")
def test_a_publisher_that_dies_hangs_up(start, gateway):
    server = gateway()
    phone = start(Baresip, "bob", registrar=server.sip)
    publisher = start(Ffmpeg.publish, server.url("call", f"bob@{server.sip}"), seconds=LASTING)
    phone.wait_event("CALL_ESTABLISHED")
    publisher.child.kill()
    phone.wait_event("CALL_CLOSED")
    server.wait_status({"calls": 0, "names": 0, "media_legs": 0})


@pytest.mark.needs("baresip", "ffmpeg")
def test_the_gateway_ends_calls_when_it_is_stopped(start, gateway):
    server = gateway()
    phone = start(Baresip, "bob", registrar=server.sip)
    publisher = start(Ffmpeg.publish, server.url("call", f"bob@{server.sip}"), seconds=LASTING)
    phone.wait_event("CALL_ESTABLISHED")
    assert server.stop() == 0
    phone.wait_event("CALL_CLOSED")
    publisher.finish()
