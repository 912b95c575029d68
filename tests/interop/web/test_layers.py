"""Tracks of Enhanced RTMP as layers that browsers choose, told apart by the numbers they show."""

import sys
from itertools import groupby, pairwise

from support.peers.browser_peer import Chromium
from support.peers.process import Process
from support.peers.rtmp_sources import av, need_av
from support.peers.webrtc_peers import ENOUGH, WEBRTC, WebRtcPeer, endpoint, rising, webrtc_page

SECOND = 1 << 14  # the first number in pictures of the second track
WATCHES = 60.0  # s, for a browser to start, and to see it all


def test_a_browser_goes_from_layer_to_layer_and_a_late_one_begins_in_one(start, gateway, tmp_path):
    """Two tracks of H.264 as ffmpeg 8 lays them out, published by ours; no new offer is made."""
    need_av()
    source = tmp_path / "layers.flv"
    av("layers", source, 20)
    running = gateway(*WEBRTC)
    url, at = running.url("live", "obs"), endpoint(running, "obs", "whep")
    start(Process, [sys.executable, "-m", "rtmplite", "publish", "--loop", str(source), url])
    running.wait_status({"streams": 1})
    with webrtc_page() as page:
        browser = start(Chromium, page.at(whep=at, choose="1"))
        late = start(WebRtcPeer, "whep", f"{at}?layer=1")
        late.wait_until(lambda: rising(late.told("number")) >= ENOUGH, what="the second track")
        assert all(each >= SECOND for each in late.told("number"))
        late.stop()
        is_back = lambda: steps_of_layers(page) == [True, True, True]  # noqa: E731
        browser.wait_until(is_back, what="one track, the other, and the first", timeout=WATCHES)
        assert page.last["numbers"][0] < SECOND and page.last["chose"] == [200, 200]
        widths = zip(page.last["numbers"], page.last["widths"], strict=True)
        assert {(number >= SECOND, width) for number, width in widths} == {(0, 320), (1, 160)}
        told = page.last["layers"]["1"]["layers"]
        assert [(each["encodingId"], each["width"]) for each in told] == [("0", 320), ("1", 160)]
        assert page.last["state"] == "connected" and page.last["status"] == 201
    assert running.output.count(" play-start ") == 2


def steps_of_layers(page):
    """For each run of pictures of one track, whether their numbers rise for long enough."""
    numbers = page.last.get("numbers", [])
    runs = [list(run) for _, run in groupby(numbers, lambda number: number >= SECOND)]
    return [sum(0 < b - a <= 8 for a, b in pairwise(run)) >= ENOUGH for run in runs]
