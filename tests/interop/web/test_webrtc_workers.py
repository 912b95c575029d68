"""Browsers of a gateway with two workers: any of them takes a request, one serves the stream."""

import os
import re
import signal
import urllib.error
import urllib.request

import pytest
from interop.web.test_webrtc import ENOUGH, WEBRTC, endpoint, hears, rising, wait
from support.gateway.gateway import Gateway
from support.gateway.whip_world import offer
from support.gateway.workers import lines, one_at, worker_in, workers_of
from support.peers.webrtc_peers import NumberedPublisher, WebRtcPeer

from rtmplite.net.addresses import parse

REQUESTS = 12  # each by a connection of its own; all reach one worker once in 2,000 times
CANDIDATE = re.compile(rb"a=candidate:\S+ 1 \S+ \d+ \S+ (\d+) typ host")


@pytest.fixture
def pair(start) -> Gateway:
    """A gateway with two workers."""
    return start(Gateway, *WEBRTC, "--workers", "2")


def asked(url, method="POST", body=None, **headers):
    """The status of an answer, where it leads, and its content."""
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers["Location"], answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, None, refused.read()


@pytest.mark.parametrize("home", [0, 1])
@pytest.mark.needs("ffmpeg")
def test_a_request_is_served_by_the_worker_with_the_stream(start, pair, home):
    """Offers, candidates and ends, by whichever worker they come; nobody else's session is hit."""
    url = pair.url("live", "obs")
    one_at(pair, home, "publish-start", lambda: start(NumberedPublisher, url))
    pair.wait_status({"streams": 1})
    offered = offer("audio", "h264", flow="recvonly")
    kind = {"Content-Type": "application/sdp", "X-Forwarded-For": "192.0.2.7"}
    places, ports = [], set()
    for _ in range(REQUESTS):
        status, place, answer = asked(endpoint(pair, "obs", "whep"), "POST", offered, **kind)
        assert status == 201, answer
        places.append(f"http://{pair.listeners['http']}{place}")
        ports |= {int(each) for each in CANDIDATE.findall(answer)}
    assert len(ports) == 1
    assert (parse(pair.listeners["webrtc"])[1] in ports) == (home == 0)
    assert {worker_in(line) for line in lines(pair, "play-start")} == {home}
    assert all(" source=192.0.2.7 " in line for line in lines(pair, "play-start"))
    assert asked(endpoint(pair, "obs", "whep").replace("live", "call"))[0] == 404
    pair.wait_status({"browsers": REQUESTS, "browsers_opening": REQUESTS})
    fragment = b"a=ice-ufrag:them\r\na=ice-pwd:secret\r\n"
    more = {"Content-Type": "application/trickle-ice-sdpfrag", "If-Match": '"wrong"'}
    for place in places:
        assert asked(place, "PATCH", fragment, **more)[0] == 412
    assert [asked(place, "DELETE")[0] for place in places] == [200] * REQUESTS
    assert [asked(place, "DELETE")[0] for place in places] == [404] * REQUESTS
    status, _, answer = asked(endpoint(pair, "obs", "whip"), "POST", offer("audio", "h264"), **kind)
    assert (status, answer) == (409, b"obs is already published.\n")
    assert asked(endpoint(pair, "none", "whep"), "POST", offered, **kind)[0] == 409
    pair.wait_status({"browsers": 0})


@pytest.mark.needs("ffmpeg")
def test_a_worker_that_dies_takes_its_own_browsers_only(start, pair):
    """What the other worker's browser publishes is seen on, by both kinds of player."""
    publisher = start(WebRtcPeer, "whip", endpoint(pair, "cam", "whip"))
    wait(publisher, lambda: "connected" in publisher.told("state"), "connecting")
    pair.wait_status({"browsers": 1, "browsers_opening": 0, "streams": 1})
    home = worker_in(lines(pair, "publish-start")[0])
    viewer = start(WebRtcPeer, "whep", endpoint(pair, "cam", "whep"))
    wait(viewer, lambda: rising(viewer.told("number")) >= ENOUGH, "rising numbers")
    mine = workers_of(pair)[home]
    os.kill(workers_of(pair)[1 - home], signal.SIGKILL)
    pair.wait_until(lambda: len(workers_of(pair)) == 2, what="another one")
    seen = len(viewer.told("number"))
    wait(viewer, lambda: rising(viewer.told("number")[seen:]) >= ENOUGH, "rising numbers")
    player = one_at(
        *(pair, 1 - home, "play-start"),
        lambda: start(WebRtcPeer, "rtmp", pair.url("live", "cam")),
    )
    wait(player, lambda: rising(player.told("number")) >= ENOUGH, "rising numbers")
    wait(player, lambda: hears(player.told("pitch"), 440), "a tone of 440 Hz")
    pair.wait_status({"browsers": 2, "streams": 1, "workers_silent": 0})
    os.kill(mine, signal.SIGKILL)
    pair.wait_status({"browsers": 0, "workers_silent": 0})
    again = start(WebRtcPeer, "whip", endpoint(pair, "cam", "whip"))
    wait(again, lambda: "connected" in again.told("state"), "connecting")
    pair.wait_status({"browsers": 1, "streams": 1})
