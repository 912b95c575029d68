"""NetConnection in a page: Chromium with the gateway's own library, and no plug-in."""

import json
import os
import socket
import subprocess
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlencode

import gevent.socket
import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import Baresip
from support.peers.browser_peer import FOLDER, Chromium, Page, page
from support.peers.process import PATIENCE, Process, free_port
from support.peers.tones import tone_fraction
from support.rtws import PythonPage

from rtmplite.amf import amf0
from rtmplite.net.client.rtmp_client import RtmpClient

HTML = FOLDER / "rtws.html"
# The library of RTWebSocket's author, and where somebody has it beside the tree.
AUTHORS = "amf0.js", "rtws.js", "tcmessage.js", "tcconn.js"
PEER = os.environ.get("PEER_RTWEBSOCKET")
TCSERVER = os.environ.get("PEER_TCSERVER")  # his server, of rtmfp-cpp


class RtwsPage(Page):
    """Serves the page; the library comes from the gateway, or from its author's `folder`."""

    def __init__(self, html=HTML, folder=None):
        super().__init__()
        self.files = {"/": (html.read_bytes(), "text/html")}
        for name in AUTHORS if folder else ():
            self.files[f"/{name}"] = ((folder / name).read_bytes(), "text/javascript")

    def at(self, server, **words):
        query = urlencode({"http": server.listeners["http"], **words}, doseq=True)
        return f"http://127.0.0.1:{self.server_address[1]}/?{query}"

    def events(self, name):
        assert not [each for each in self.last.get("events", ()) if each[0] == "error"], self.last
        return [each[1:] for each in self.last.get("events", ()) if each[0] == name]


def rtws_page(*of):
    return page(lambda: RtwsPage(*of), HTML)


class Streams:
    """An RTMP client that publishes `theirs`, and plays what the page publishes as `ours`."""

    def __init__(self, server, proof=""):
        self.client = RtmpClient.connect(server.url("live"))
        self.player, self.publishing = self.client.create_stream(), self.client.create_stream()
        self.player.play("ours")
        self.publishing.publish(f"theirs{proof}")
        self.publishing.write(18, 0, amf0.encode("onMetaData", {"width": 320.0}))
        self.publishing.write(9, 0, b"\x17\x01\x00\x00\x00" + bytes(100_000) + b"\x01")

    def check(self, browser, shown):
        """The page has got theirs, and we have got ours, whole and to the end."""
        browser.wait_until(lambda: shown.last["played"], what="their stream", timeout=60)
        assert shown.last["played"][0] == [9, 0, 100_006, 0x17, 1]
        assert shown.events("metadata")[0][0]["width"] == 320
        self.publishing.delete()
        ends = lambda: ["NetStream.Play.UnpublishNotify"] in shown.events("play")  # noqa: E731
        browser.wait_until(ends, what="the end of their stream", timeout=60)
        ours = []
        while (message := self.player.read(timeout=PATIENCE)) is not None:
            ours.append(message)
        sound = [(each.timestamp, each.payload) for each in ours if each.type_id == 8]
        assert sound == [(20 * number, bytes([0xB2, number, 7, 7])) for number in range(50)]
        data = [amf0.decode(each.payload) for each in ours if each.type_id == 18]
        assert ["onMetaData", {"audiocodecid": 11, "title": "Ä page"}] in data
        self.client.close()


class Door:
    """Opens connections to the HTTP listener of a gateway."""

    def __init__(self, server):
        self.place = server.listeners["http"].split(":")

    def connect(self, request):
        opened = gevent.socket.create_connection((self.place[0], int(self.place[1])))
        opened.sendall(request.encode())
        return opened


@pytest.mark.parametrize("site", ["https://example.com", "http://127.0.0.1:8000"])
def test_a_page_of_another_site_is_no_program_of_this_machine(gateway, site):
    """Though its browser is: it counts as its site."""
    server = gateway()
    page = PythonPage(Door(server), [(b"Origin", site.encode())]).connected()
    page.publish("demo")
    page.until(lambda: page.codes())
    host = "example.com" if "example" in site else "127.0.0.1"
    server.wait_until(lambda: f"publish-start source={host} " in server.output, what="its place")
    page.socket.close()


@pytest.mark.needs("baresip", "chromium")
def test_a_page_is_a_rich_client_and_plays_and_publishes(start, gateway, tmp_path):
    """The client API with a phone: sound both ways, keys both ways, and the page hangs up.

    At the same time the page plays a stream of an RTMP client, and publishes one for it.
    """
    server = gateway("--users", users_file(tmp_path, "alice"))
    idle = server.status()
    phone, proof = start(Baresip, "bob", hz=900), f"?user=alice&pass={PASSWORD}"
    streams = Streams(server, proof)
    with rtws_page() as shown:
        words = {"identity": "alice@127.0.0.1", "argument": ["alice", PASSWORD], "live": proof}
        browser = start(Chromium, shown.at(server, phone=phone.uri, **words))
        browser.wait_until(lambda: shown.events("accepted"), what="an answer", timeout=60)
        assert shown.events("ringing") == [["180 Ringing"]]
        assert shown.events("accepted") == [["pcmu", None]]
        phone.wait_event("CALL_ESTABLISHED")
        for key in "15#":
            assert phone.wait_event("CALL_DTMF_START")["param"] == key
        hears = lambda: abs(shown.last.get("pitch", 0) - 900) < 10  # noqa: E731
        browser.wait_until(hears, what="the phone's tone", timeout=60)
        phone.command("sndcode", "7*")
        phone.wait_event("CALL_CLOSED")
        ends = lambda: ["NetConnection.Connect.Closed"] in shown.events("status")  # noqa: E731
        browser.wait_until(ends, what="the end", timeout=60)
        assert shown.events("dtmf") == [["7"], ["*"]]
        streams.check(browser, shown)
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 440) > 0.9
    browser.stop()
    server.wait_status({k: v for k, v in idle.items() if not k.startswith("sip_")})


@pytest.mark.needs("chromium")
@pytest.mark.skipif(PEER is None, reason="PEER_RTWEBSOCKET names no checkout of rtwebsocket")
def test_the_library_of_the_protocols_author_plays_and_publishes(start, gateway):
    """Other code for every layer of it: frames, flows, barriers and messages."""
    server = gateway()
    streams = Streams(server)
    with rtws_page(FOLDER / "rtwebsocket.html", Path(PEER)) as shown:
        browser = start(Chromium, shown.at(server))
        browser.wait_until(lambda: shown.last, what="the page", timeout=60)
        streams.check(browser, shown)


class TcServer(Process):
    """The server of RTWebSocket's author."""

    def __init__(self, folder):
        self.port = free_port()
        super().__init__(folder, [TCSERVER, "-v", "-w", f"127.0.0.1:{self.port}"])

    def is_ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True


@pytest.mark.needs("node")
@pytest.mark.skipif(TCSERVER is None, reason="PEER_TCSERVER names no tcserver of rtmfp-cpp")
def test_our_library_at_the_authors_server(start, tmp_path):
    """Publishes to it, and plays from it."""
    server, library = start(TcServer), tmp_path / "rtws.mjs"
    library.write_bytes(files("rtmplite.net.http").joinpath("rtws.js").read_bytes())
    script = FOLDER / "rtws-node.mjs"
    words = ["node", "--experimental-websocket", script, library, f"127.0.0.1:{server.port}"]
    ran = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=PATIENCE)
    told = json.loads(ran.stdout)
    assert sorted(told["played"]) == [
        *([8, 20 * number, 4, 0xB2, 7] for number in range(50)),
        [9, 0, 100_006, 0x17, 0x17],
    ]
    assert ["metadata", {"width": 320}] in told["events"]
    assert told["events"][-1] == ["play", "NetStream.Play.UnpublishNotify"]
