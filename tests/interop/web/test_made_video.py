"""OBS's defaults play in browsers: video is made anew, once, where --transcode-video allows it."""

from support.peers.browser_peer import Chromium, Firefox
from support.peers.numbered_frames import film
from support.peers.obs_peer import Obs, Xvfb
from support.peers.webrtc_peers import (
    ENOUGH,
    WEBRTC,
    WebRtcPeer,
    endpoint,
    rising,
    webrtc_page,
)

HAS_STARTED = 60.0  # s, for a browser or OBS, whose first start takes long


def plays(browser, page, tone):
    what = "rising numbers and a tone"
    browser.wait_until(lambda: page.plays(tone), what=what, timeout=HAS_STARTED)


def test_obs_as_it_is_installed_plays_in_firefox_and_in_chromium(start, gateway, tmp_path):
    """B-frames and AAC: VP8 for one, H.264 for the other, each once, also for a viewer more."""
    running = gateway(*WEBRTC, "--transcode-video")
    numbered = film(tmp_path / "film.mkv", 0, tone=550)
    screen = start(Xvfb)
    start(Obs, screen.display, running.url("live", "").rstrip("/"), "obs", numbered)
    running.wait_status({"streams": 1})
    at = endpoint(running, "obs", "whep")
    with webrtc_page() as left, webrtc_page() as right:
        firefox, chromium = start(Firefox, left.at(whep=at)), start(Chromium, right.at(whep=at))
        plays(firefox, left, 550)
        plays(chromium, right, 550)
        another = start(WebRtcPeer, "whep", at)
        what = "rising numbers"
        another.wait_until(lambda: rising(another.told("number")) >= ENOUGH, what=what)
        assert "VP8/90000" in left.last["text"] and "H264/90000" not in left.last["text"]
        assert "H264/90000" in right.last["text"]
    made = [line for line in running.output.splitlines() if " transcoding " in line]
    assert sorted(line.partition(" to=")[2] for line in made) == [
        '"h264 320x240"', '"vp8 320x240"', "opus",
    ]  # fmt: skip
    assert " b-frames " not in running.output


def test_what_firefox_publishes_is_played_by_chromium_and_by_firefox(start, gateway):
    """VP8 and Opus, as they are."""
    running = gateway(*WEBRTC)
    with webrtc_page() as camera, webrtc_page() as left, webrtc_page() as right:
        firefox = start(Firefox, camera.at(whip=endpoint(running, "cam", "whip")))
        is_there = lambda: camera.last.get("state") == "connected"  # noqa: E731
        firefox.wait_until(is_there, what="connecting", timeout=HAS_STARTED)
        at = endpoint(running, "cam", "whep")
        for kind, page in ((Chromium, left), (Firefox, right)):
            plays(start(kind, page.at(whep=at)), page, 440)
    assert "transcoding" not in running.output
