"""Browsers publish by WHIP and play by WHEP, judged by the numbers seen and the tones heard."""

import urllib.error
import urllib.request

import pytest
from support.gateway.whip_world import offer
from support.nat.lossy_relay import lossy_relay
from support.peers.browser_peer import Chromium
from support.peers.webrtc_peers import (
    ENOUGH,
    WEBRTC,
    NumberedPublisher,
    WebRtcPeer,
    endpoint,
    hears,
    rising,
    webrtc_page,
)


def wait(peer, condition, what):
    peer.wait_until(condition, what=what, timeout=60)


def test_what_aiortc_publishes_is_played_by_rtmp_and_by_aiortc(start, gateway):
    """H.264 or VP8 with Opus, as a browser sends it, to ffmpeg 8 and to another browser."""
    running = gateway(*WEBRTC)
    assert running.listeners["webrtc"].startswith("127.0.0.1:")
    publisher = start(WebRtcPeer, "whip", endpoint(running, "cam", "whip"))
    wait(publisher, lambda: "connected" in publisher.told("state"), "connecting")
    running.wait_status({"browsers": 1, "browsers_opening": 0, "streams": 1})
    player = start(WebRtcPeer, "rtmp", running.url("live", "cam"))
    wait(player, lambda: rising(player.told("number")) >= ENOUGH, "rising numbers")
    wait(player, lambda: hears(player.told("pitch"), 440), "a tone of 440 Hz")
    viewer = start(WebRtcPeer, "whep", endpoint(running, "cam", "whep"))
    wait(viewer, lambda: rising(viewer.told("number")) >= ENOUGH, "rising numbers")
    wait(viewer, lambda: hears(viewer.told("pitch"), 440), "a tone of 440 Hz")
    publisher.stop()
    running.wait_status({"browsers": 0})
    assert 'reason="ended by the browser"' in running.output


def test_a_bad_link_and_a_changed_address_are_survived(start, gateway):
    """Nearly all pictures are seen by two links that lose 5 % and take 100 ms there and back.

    Publisher and viewer are asked for what is missing, and answer.  Covers RFC 4585 §6.2.1.
    Then both links get another port at the gateway, as by a NAT that has forgotten them.
    """
    running = gateway(*WEBRTC)
    host, _, port = running.listeners["webrtc"].rpartition(":")
    target = host, int(port)
    with lossy_relay(target) as up, lossy_relay(target) as down:
        publisher = start(WebRtcPeer, "whip", endpoint(running, "cam", "whip"), "", str(up.port))
        wait(publisher, lambda: "connected" in publisher.told("state"), "connecting")
        running.wait_status({"streams": 1})
        viewer = start(WebRtcPeer, "whep", endpoint(running, "cam", "whep"), "", str(down.port))
        wait(viewer, lambda: rising(viewer.told("number")) >= ENOUGH, "rising numbers")
        begun = len(viewer.told("number"))
        wait(viewer, lambda: len(viewer.told("number")) >= begun + 200, "200 pictures more")
        seen = viewer.told("number")[begun:]
        assert len(seen) / (seen[-1] - seen[0] + 1) > 0.9
        wait(viewer, lambda: hears(viewer.told("pitch"), 440), "a tone of 440 Hz")
        assert up.lost > 20 and down.lost > 20
        up.move()
        down.move()
        begun = len(viewer.told("number"))
        wait(viewer, lambda: len(viewer.told("number")) >= begun + 100, "100 pictures more")
        assert viewer.told("state")[-1] == publisher.told("state")[-1] == "connected"


def test_what_ffmpeg_publishes_is_played_by_chromium(start, gateway):
    """H.264 as it is, AAC made into Opus, on a page of another origin."""
    running = gateway(*WEBRTC)
    start(NumberedPublisher, running.url("live", "obs"))
    running.wait_status({"streams": 1})
    with webrtc_page() as page:
        browser = start(Chromium, page.at(whep=endpoint(running, "obs", "whep")))
        wait(browser, lambda: rising(page.last.get("numbers", ())) >= ENOUGH, "rising numbers")
        wait(browser, lambda: hears([page.last.get("pitch", 0)], 660), "a tone of 660 Hz")
        assert page.last["width"] == 320 and page.last["state"] == "connected"


def test_b_frames_of_ffmpeg_are_refused_by_name(start, gateway):
    """As OBS sends them by default; in place of a browser's offer one that is as long as needed."""
    running = gateway(*WEBRTC)
    start(NumberedPublisher, running.url("live", "obs"), b_frames=2)
    running.wait_status({"streams": 1})
    offered = offer("audio", "h264", flow="recvonly")
    kind = {"Content-Type": "application/sdp"}

    def is_refused():
        """Ask; the first time may be before anything is known."""
        request = urllib.request.Request(endpoint(running, "obs", "whep"), offered, kind)
        try:
            urllib.request.urlopen(request).close()
        except urllib.error.HTTPError as refused:
            return refused.code == 422 and b"B-frames" in refused.read()
        return False

    wait(running, is_refused, "a refusal")
    running.wait_status({"browsers": 0})
    assert running.output.count(" b-frames ") == 1


@pytest.mark.parametrize("codec", ["H264", "VP8"])
def test_what_chromium_publishes_is_played_by_chromium_and_by_rtmp(start, gateway, codec):
    """ffmpeg 8 has no VP8 in FLV, so by RTMP it is H.264 alone."""
    running = gateway(*WEBRTC)
    with webrtc_page() as camera, webrtc_page() as screen:
        browser = start(Chromium, camera.at(whip=endpoint(running, "cam", "whip"), codec=codec))
        wait(browser, lambda: camera.last.get("state") == "connected", "connecting")
        viewer = start(Chromium, screen.at(whep=endpoint(running, "cam", "whep")))
        wait(viewer, lambda: rising(screen.last.get("numbers", ())) >= ENOUGH, "rising numbers")
        wait(viewer, lambda: hears([screen.last.get("pitch", 0)], 440), "a tone of 440 Hz")
        if codec == "H264":
            player = start(WebRtcPeer, "rtmp", running.url("live", "cam"))
            wait(player, lambda: rising(player.told("number")) >= ENOUGH, "rising numbers")
            wait(player, lambda: hears(player.told("pitch"), 440), "a tone of 440 Hz")
            assert sorted(player.told("codecs")[0]) == ["h264", "opus"]


def test_chromium_publishes_and_plays_where_no_udp_gets_through(start, gateway):
    """RFC 6544 §3: one port of TCP for both, found by their answers."""
    running = gateway(*WEBRTC)
    with webrtc_page() as camera, webrtc_page() as screen:
        whip, whep = (endpoint(running, "cam", kind) for kind in ("whip", "whep"))
        browser = start(Chromium, camera.at(whip=whip, codec="VP8", tcp="only"))
        wait(browser, lambda: camera.last.get("state") == "connected", "connecting")
        viewer = start(Chromium, screen.at(whep=whep, tcp="only"))
        wait(viewer, lambda: rising(screen.last.get("numbers", ())) >= ENOUGH, "rising numbers")
        wait(viewer, lambda: hears([screen.last.get("pitch", 0)], 440), "a tone of 440 Hz")
        assert camera.last["pair"] == screen.last["pair"] == "tcp"


def test_a_page_without_the_key_may_not_publish(gateway):
    """The key of --publish-key is the bearer token."""
    running = gateway(*WEBRTC, "--publish-key", "cam=secret-of-cam")
    for token, status in (("guess", 401), ("secret-of-cam", 400)):  # 400: it may, with an offer
        request = urllib.request.Request(
            endpoint(running, "cam", "whip"), b"no offer",
            {"Content-Type": "application/sdp", "Authorization": f"Bearer {token}"},
        )  # fmt: skip
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        assert refused.value.code == status
    assert "login-refused" in running.output or "refused" in running.output
    assert "secret-of-cam" not in running.output and "guess" not in running.output
