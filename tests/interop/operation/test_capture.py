"""What `--capture` writes of real calls: Wireshark reads it, and `lint` finds no fault."""

import subprocess
from itertools import count

import pytest
from support.certificates import certificate
from support.gateway.accounts import PASSWORD, users_file
from support.gateway.gateway import Gateway
from support.gateway.workers import one_at
from support.peers.baresip import Baresip
from support.peers.browser_peer import Chromium
from support.peers.peers import Ffmpeg
from support.peers.process import require
from support.peers.webrtc_peers import (
    ENOUGH,
    WEBRTC,
    NumberedPublisher,
    endpoint,
    rising,
    webrtc_page,
)

from rtclab.explain.command import explain, key_file
from rtclab.explain.fields.context import Context
from rtclab.explain.render import text_lines
from rtclab.lint.command import lint
from rtclab.lint.packets import read_capture
from rtclab.unwrap.srtp import SrtpSessions
from rtmplite.net.client.rtmfp_client import RtmfpClient
from rtmplite.net.client.rtmp_client import RtmpClient

SECONDS = 3
ERROR = 8 << 20  # of Wireshark's severities


def judged(path):
    """The report of a capture, with the keys beside it."""
    capture = read_capture(path.read_bytes())
    assert not capture.fault and not capture.skipped
    return lint(capture, key_file(f"{path}.keys"))


def labels_of(diagram):
    return [arrow.label for arrow in diagram.arrows]


def labels(report, kind):
    return [text for each in report.diagrams if each.kind == kind for text in labels_of(each)]


def complaints(path, *ports):
    """What tshark calls malformed, or whose checksum is wrong."""
    decoded = [word for each in ports for word in ("-d", each)]
    sums = [word for each in ("ip", "tcp", "udp") for word in ("-o", f"{each}.check_checksum:TRUE")]
    wanted = f"_ws.malformed || _ws.expert.severity >= {ERROR}"
    wanted += " || ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0"
    command = [require("tshark", "tshark"), "-n", "-r", path, *decoded, *sums, "-Y", wanted]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.needs("baresip", "ffmpeg", "tshark")
def test_a_call_is_captured_whole(start, tmp_path):
    path = tmp_path / "call.pcap"
    users = users_file(tmp_path, "bob")
    with Gateway(tmp_path / "g", "--users", users, "--capture", str(path)) as server:
        phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900)
        url = server.url("call", f"bob@{server.sip}")
        publisher = start(Ffmpeg.publish, url, hz=440, seconds=SECONDS)
        phone.wait_event("CALL_ESTABLISHED")
        assert publisher.finish() == 0
        phone.wait_event("CALL_CLOSED")
        sip, rtmp = (each.rpartition(":")[2] for each in (server.sip, server.rtmp))
    assert path.stat().st_mode & 0o777 == 0o600
    assert complaints(path, f"udp.port=={sip},sip", f"tcp.port=={rtmp},rtmpt") == ""
    report = judged(path)
    assert [each for each in report.findings if each.who.endswith((f":{sip}", f":{rtmp}"))] == []
    rows = labels(report, "call")
    for wanted in ("INVITE (SDP)", "180 Ringing", "200 OK (SDP)", "ACK", "BYE"):
        assert any(row.startswith(wanted[:3]) for row in rows), wanted
    assert sum(row.startswith("RTP ") for row in rows) == 2
    assert all(each.packets > 40 * SECONDS and not each.lost for each in report.streams)
    [ends] = {tuple(each.ends) for each in report.diagrams if "ACK" in labels_of(each)}
    assert len(ends) == 2  # RTP is between the ends of the call, whichever ports it takes
    assert {"connect", "onStatus NetStream.Publish.Start"} <= set(labels(report, "rtmp"))


@pytest.mark.sources  # the laboratory reads sources; this process may have what was compiled
@pytest.mark.needs("baresip", "ffmpeg")
def test_a_secure_call_is_opened_by_the_keys_of_its_descriptions(start, tmp_path):
    """Each packet of either end is authentic, and has the sound; one changed octet is found."""
    path = tmp_path / "secure.pcap"
    users = users_file(tmp_path, "bob")
    options = "--users", users, "--srtp", "always", "--capture", str(path)
    with Gateway(tmp_path / "g", *options) as server:
        phone = start(
            Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900, srtp="srtp-mand"
        )
        url = server.url("call", f"bob@{server.sip}")
        publisher = start(Ffmpeg.publish, url, hz=440, seconds=SECONDS)
        phone.wait_event("CALL_ESTABLISHED")
        assert publisher.finish() == 0
        phone.wait_event("CALL_CLOSED")
    data = path.read_bytes()
    field = explain(data, Context())
    told = [packet.children[-1] for packet in field.children]
    opened = [each for each in told if each.name == "SRTP" and each.children[0].octets]
    assert len(opened) > 40 * SECONDS and not any(True for e in opened for _ in e.faults())
    assert {each.children[0].name for each in opened} == {"RTP"}
    payloads = [each.children[0].children[-1] for each in opened]
    assert {each.meaning for each in payloads} == {"PCMU/8000"}
    shown = "\n".join(text_lines(field, data))
    keys = [each.split("|")[0].split()[0] for each in data.decode("latin-1").split("inline:")[1:]]
    assert keys and not any(each[:40] in shown for each in keys)
    report = judged(path)
    broken = {each.rule for each in report.findings if each.rule.startswith("srtp")}
    assert broken <= {"srtp-tag"}  # reports in clear at first
    assert sum(each.is_open for each in report.streams) == 2
    changed = bytearray(data)
    changed[opened[9].end - 1] ^= 1
    found = lint(read_capture(bytes(changed)))
    assert "srtp-tag" in {each.rule for each in found.findings}


@pytest.mark.sources  # the laboratory reads sources; this process may have what was compiled
@pytest.mark.needs("chromium", "ffmpeg")
def test_the_secrets_of_a_browser_open_its_media(start, tmp_path):
    """What Chromium plays is authentic, both ways; without the secrets it stays closed."""
    path = tmp_path / "browser.pcap"
    with Gateway(tmp_path / "g", *WEBRTC, "--capture", str(path)) as server:
        start(NumberedPublisher, server.url("live", "obs"))
        server.wait_status({"streams": 1})
        with webrtc_page() as page:
            browser = start(Chromium, page.at(whep=endpoint(server, "obs", "whep")))
            browser.wait_until(
                lambda: rising(page.last.get("numbers", ())) >= ENOUGH, what="numbers", timeout=60
            )
            browser.stop()
    keys = key_file(f"{path}.keys")
    capture = read_capture(path.read_bytes())
    known, closed = lint(capture, keys), lint(capture)
    assert keys.dtls and not any(each.is_open for each in closed.streams)
    assert {each.is_open for each in known.streams} == {True} and len(known.streams) >= 2
    assert "srtp-tag" not in {each.rule for each in known.findings}
    field = explain(path.read_bytes(), Context(srtp=SrtpSessions(keys.srtp, keys.dtls)))
    names = {(each.name, each.meaning) for each in field.walk() if each.octets}
    assert {("RTP", "decrypted"), ("RTCP", "decrypted")} <= names


def test_each_worker_writes_a_capture_of_its_own(tmp_path):
    """Each has the clients that it has served, and not what workers tell each other."""
    path = tmp_path / "both.pcap"
    options = "--sip", "off", "--workers", "2", "--capture", str(path)
    with Gateway(tmp_path / "g", *options) as server:
        for worker in (0, 1):
            for event, verb in (("publish-start", "publish"), ("play-start", "play")):
                one_at(server, worker, event, lambda: Client(server.rtmp, verb)).stop()  # noqa: B023
        source = one_at(server, 0, "publish-start", lambda: Client(server.rtmp, "publish"))
        again = source.name
        copied = one_at(server, 1, "play-start", lambda: Client(server.rtmp, "play", again))
        server.wait_status({"streams": 1, "players": 1})
        copied.stop()
        source.stop()
    for each in (path, path.with_name("both.pcap.1")):
        report = judged(each)
        assert report.findings == []
        found = set(labels(report, "rtmp"))
        assert {"onStatus NetStream.Publish.Start", "onStatus NetStream.Play.Start"} <= found


class Client:
    """Publishes or plays a stream of its own."""

    numbers = count()

    def __init__(self, at, verb, name=""):
        self.name = name or f"{verb}{next(self.numbers)}"
        self._client = RtmpClient.connect(f"rtmp://{at}/live")
        getattr(self._client.create_stream(), verb)(self.name)

    def stop(self):
        self._client.close()


@pytest.mark.needs("tshark")
def test_the_keys_of_rtmfp_open_its_packets(tmp_path):
    path = tmp_path / "flash.pcap"
    options = "--rtmfp", "127.0.0.1:0", "--capture", str(path)
    with Gateway(tmp_path / "g", *options) as server:
        client = RtmfpClient.connect(f"rtmfp://{server.listeners['rtmfp']}/live")
        client.create_stream().publish("x")
        client.close()
    report = judged(path)
    assert report.findings == []
    rows = labels(report, "rtmfp")
    assert rows[:4] == [
        *("InitiatorHello", "ResponderHello", "InitiatorInitialKeying", "ResponderInitialKeying"),
    ]
    assert {"SessionClose", "SessionCloseAck"} <= {*rows}  # which only the keys can show
    port = server.listeners["rtmfp"].rpartition(":")[2]
    assert complaints(path, f"udp.port=={port},data") == ""  # else it is taken for RTCP
    # With other keys nothing opens, so the keys were of use.
    keys = path.with_name(f"{path.name}.keys")
    keys.write_text("00" * 16 + "\n")
    assert {each.rule for each in judged(path).findings} == {"rtmfp-decrypt"}


@pytest.mark.needs("ffmpeg")
def test_tls_is_captured_in_the_clear(start, tmp_path):
    path = tmp_path / "tls.pcap"
    made = certificate(tmp_path / "tls")
    options = "--rtmps", "127.0.0.1:0", "--tls-cert", made.file, "--tls-key", made.key
    with Gateway(tmp_path / "g", *map(str, options), "--capture", str(path)) as server:
        url = f"rtmps://{server.listeners['rtmps']}/live/x"
        publisher = start(Ffmpeg.publish, url, hz=440, seconds=1)
        assert publisher.finish() == 0
    report = judged(path)
    assert report.findings == [] and not report.notes
    assert "publish x" in labels(report, "rtmp")


@pytest.mark.needs("ffmpeg", "tshark")
def test_a_tunnel_is_captured_as_http(start, tmp_path):
    path = tmp_path / "tunnel.pcap"
    options = "--rtmpt", "127.0.0.1:0", "--capture", str(path)
    with Gateway(tmp_path / "g", *options) as server:
        url = f"rtmpt://{server.listeners['rtmpt']}/live/x"
        publisher = start(Ffmpeg.publish, url, hz=440, seconds=1)
        assert publisher.finish() == 0
        port = server.listeners["rtmpt"].rpartition(":")[2]
    report = judged(path)
    assert report.findings == [] and not report.notes
    rows = labels(report, "rtmp")
    assert rows[:3] == ["C0 C1", "S0 S1 S2", "C2"] and "publish x" in rows
    assert complaints(path, f"tcp.port=={port},http") == ""
