"""Who attacks the port of browsers, or their sessions, while an honest viewer watches."""

import http.client
import os
import socket
import time
from contextlib import ExitStack, closing, suppress

import pytest
from interop.web.test_webrtc import WEBRTC, endpoint, rising, wait
from support.peers.webrtc_peers import NumberedPublisher, WebRtcPeer

from p2psip.nat.ice_credentials import IceType
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType
from p2psip.sdp.session import SessionDescription

SETUP_SECONDS = 15  # for which the gateway waits for a browser that it has answered
OFFERS, HOSTS = 10_000, 100
OFFER = (
    b"v=0\no=evil 3 4 IN IP4 192.0.2.6\ns=x\nt=0 0\na=group:BUNDLE a\n"
    b"m=audio 9 UDP/TLS/RTP/SAVPF 111\nc=IN IP4 127.0.0.1\na=mid:a\na=ice-ufrag:evil\n"
    b"a=recvonly\na=rtpmap:111 opus/48000/2\n"
    b"a=setup:actpass\na=ice-pwd:secret\na=rtcp-mux\na=fingerprint:sha-256 AB:CD\n"
)


@pytest.fixture
def watched(start, gateway):
    """A gateway with a stream, and an honest viewer of it."""
    running = gateway(*WEBRTC)
    start(NumberedPublisher, running.url("live", "obs"))
    running.wait_status({"streams": 1})
    viewer = start(WebRtcPeer, "whep", endpoint(running, "obs", "whep"))
    wait(viewer, lambda: rising(viewer.told("number")) >= 10, "rising numbers")
    running.viewer = viewer
    return running


def goes_on(viewer):
    """Whether the honest viewer sees twenty pictures more, and has missed none so far."""
    seen = sees_more(viewer)
    assert rising(viewer.told("number")) >= seen - 10


def sees_more(viewer):
    """Wait until the honest viewer has seen twenty pictures more; how many it had seen before."""
    seen = len(viewer.told("number"))
    wait(viewer, lambda: len(viewer.told("number")) >= seen + 20, "twenty pictures more")
    assert viewer.told("state")[-1] == "connected"
    return seen


def offered(running, name="obs"):
    """An offer of an attacker, who is a client as good as any: the answer and its place."""
    host, _, port = running.listeners["http"].rpartition(":")
    with closing(http.client.HTTPConnection(host, int(port))) as web:
        web.request("POST", f"/live/{name}/whep", OFFER, {"Content-Type": "application/sdp"})
        answer = web.getresponse()
        return SessionDescription.parse(answer.read()), answer.headers["Location"]


def check(line, **more):
    """A check with the credentials of an answer."""
    name = f"{line.attribute('ice-ufrag')}:evil".encode()
    return StunMessage.write(
        StunClass.REQUEST, BINDING, os.urandom(12),
        [(StunType.USERNAME, name), (IceType.USE_CANDIDATE, b"")],
        key=line.attribute("ice-pwd").encode(), fingerprint=True, **more,
    )  # fmt: skip


def answered(running, stranger):
    """The first answer there is, and the check that was sent last.

    It is sent again each second, as a full port loses what comes; and of a new session when the
    gateway may have given up the one before, with which nobody connects.
    """
    stranger.settimeout(1)
    for number in range(100):
        if number % (SETUP_SECONDS // 2) == 0:
            (line,) = offered(running)[0].media
            asked = check(line)
        stranger.send(asked.data)
        with suppress(TimeoutError):
            return StunMessage.parse(stranger.recv(2048)), asked
    raise AssertionError("no answer")


def test_the_port_of_browsers_answers_no_stranger(watched):
    """STUN without a name that was given out, DTLS, RTP and noise: the next answer is for another.

    And a guessed password gets one that is shorter than what asked for it.
    """
    host, _, port = watched.listeners["webrtc"].rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.connect((host, int(port)))
        for number in range(2000):
            noise = os.urandom(100)
            bare = StunMessage.write(StunClass.REQUEST, BINDING, noise[:12], fingerprint=True)
            named = [(StunType.USERNAME, b"guess%d:x" % number)]
            guess = StunMessage.write(
                StunClass.REQUEST, BINDING, noise[:12], named, key=noise, fingerprint=True
            )
            for data in (bare.data, guess.data, b"\x16\xfe\xfd" + noise, b"\x80" + noise, noise):
                stranger.send(data)
        first, asked = answered(watched, stranger)
        assert first.transaction_id == asked.transaction_id and first.kind is StunClass.SUCCESS
    goes_on(watched.viewer)


def test_ten_thousand_offers_keep_nobody_out(watched):
    """From a hundred hosts, none of whose browsers ever connects, each as fast as it can."""
    host, _, port = watched.listeners["http"].rpartition(":")
    head = f"POST /live/obs/whep HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sdp\r\n"
    request = f"{head}Content-Length: {len(OFFER)}\r\n\r\n".encode() + OFFER
    refused = 0
    for number in range(HOSTS):
        source = f"127.0.1.{number + 1}", 0
        with socket.create_connection((host, int(port)), 30, source) as web:
            web.sendall(request * (OFFERS // HOSTS))
            got = b""
            while got.count(b"HTTP/1.1 ") < OFFERS // HOSTS or not got.endswith(b"\n"):
                got += web.recv(1 << 16)
            refused += got.count(b"HTTP/1.1 503 ")
    assert refused == OFFERS - 32 * HOSTS
    assert watched.status()["browsers"] <= 1 + 256
    # The hosts take cores from the viewer too, which then misses pictures by its own fault.
    sees_more(watched.viewer)
    assert rising(watched.viewer.told("number")) >= 10


def test_nobody_ends_or_changes_the_session_of_another(watched):
    """Knowing the stream and one's own session is not enough."""
    _, own = offered(watched)
    host, _, port = watched.listeners["http"].rpartition(":")
    secret = own.rpartition("/")[2]
    for method in ("DELETE", "PATCH"):
        for guess in ("A" * 24, secret[::-1], secret[:-1], f"{secret}A"):
            with closing(http.client.HTTPConnection(host, int(port))) as web:
                web.request(method, f"/live/obs/whep/{guess}")
                assert web.getresponse().status == 404
    goes_on(watched.viewer)


def test_connections_of_strangers_keep_no_browser_out(watched):
    """Slow octets, silence, noise, frames that are too long, and more than there are places.

    They are closed one after the other, while a browser that has TCP alone connects and plays.
    """
    host, _, port = watched.listeners["webrtc"].rpartition(":")
    with ExitStack() as opened:

        def stranger(said):
            made = opened.enter_context(socket.create_connection((host, int(port)), 30))
            with suppress(OSError):  # closed already
                made.sendall(said)
            return made

        noise = b"\0\x64" + os.urandom(100)
        kinds = (b"", b"\0", noise * 20, b"\xff\xff" + bytes(1000), os.urandom(300))
        is_seen = False
        while not is_seen:
            made = [stranger(kinds[number % len(kinds)]) for number in range(400)]
            is_seen = outlasts(watched, (host, int(port)), made)
    sees_more(watched.viewer)


def outlasts(running, address, strangers):
    """Whether a browser is answered beside their connections, and again when these are closed.

    It is, unless all that takes so long that its session is given up.
    """
    began = time.monotonic()
    (line,) = offered(running)[0].media
    asked = check(line).data
    with socket.create_connection(address, 30) as browser:
        browser.sendall(len(asked).to_bytes(2, "big") + asked)
        head = browser.recv(2, socket.MSG_WAITALL)
        got = StunMessage.parse(browser.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
        assert got.kind is StunClass.SUCCESS
        for each in strangers:  # nobody stays, and nobody is answered
            with suppress(ConnectionResetError):
                assert each.recv(1) == b""
        with suppress(OSError):
            browser.sendall(len(asked).to_bytes(2, "big") + asked)
            if browser.recv(2, socket.MSG_WAITALL) == head:
                return True
    assert time.monotonic() - began > SETUP_SECONDS
    return False
