"""Pages call a phone by WHIP and WHEP; ffmpeg 8 publishes into a room by WHIP of its own."""

import urllib.error
import urllib.request
from itertools import pairwise

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import Baresip
from support.peers.browser_peer import Chromium
from support.peers.tones import levels, tone_fraction
from support.peers.webrtc_peers import WebRtcPeer, webrtc_page

WEBRTC = ("--webrtc", "127.0.0.1:0", "--sip-t1", "200")
ENOUGH = 20  # pictures in a row
PRESENT = 20.0  # dB over what no tone accounts for


def rising(numbers):
    """How many pictures at the end show a number that is higher than the one before."""
    count = 0
    for before, after in pairwise(numbers):
        count = count + 1 if before < after <= before + 8 else 0
    return count


def hears(page, tone):
    return abs(page.last.get("pitch", 0) - tone) < 10


def ask(method, url):
    """Status and text of the answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@pytest.mark.needs("baresip", "chromium")
def test_pages_call_a_phone_and_both_hear_and_see(start, gateway, tmp_path):
    """The phone mirrors what it sees; DELETE hangs up, and the page that plays stays."""
    server = gateway("--users", users_file(tmp_path, "bob"), *WEBRTC)
    http = f"http://{server.listeners['http']}"
    at = f"{http}/call/bob@{server.sip}"
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, hz=900, mirror=True)
    with webrtc_page() as camera, webrtc_page() as screen:
        viewer = start(Chromium, screen.at(whep=f"{at}/whep"))
        viewer.wait_until(lambda: screen.last.get("status") == 201, what="a session", timeout=60)
        browser = start(Chromium, camera.at(whip=f"{at}/whip", codec="H264"))
        phone.wait_event("CALL_ESTABLISHED")
        shown = lambda: rising(screen.last.get("numbers", ())) >= ENOUGH  # noqa: E731
        viewer.wait_until(shown, what="rising numbers", timeout=60)
        viewer.wait_until(lambda: hears(screen, 900), what="the phone's tone", timeout=60)
        session = f"{http}{camera.last['location']}"
        assert ask("DELETE", session)[0] == 200
        phone.wait_event("CALL_CLOSED")
        server.wait_status({"calls": 0, "browsers": 1})
        status, text = ask("GET", session)
        assert (status, text) == (404, "The session has ended: ended by the client.\n")
        browser.wait_until(lambda: camera.last["state"] != "connected", what="the end", timeout=60)
    samples, rate = phone.heard()
    assert tone_fraction(samples, rate, 440) > 0.9


@pytest.mark.needs("baresip")
def test_ffmpeg_publishes_by_its_own_whip_into_a_room(start, gateway, tmp_path):
    """A phone in the room and aiortc by WHEP hear it, and see it; SIGTERM ends it by DELETE."""
    server = gateway("--room", "team", *WEBRTC)
    at = f"http://{server.listeners['http']}/room/team"
    viewer = start(WebRtcPeer, "whep", f"{at}/whep")
    phone = start(Baresip, "bob", hz=900)
    phone.dial(f"sip:team@{server.sip}")
    phone.wait_event("CALL_ESTABLISHED")
    encoder = start(WebRtcPeer, "ffmpeg", f"{at}/whip", str(tmp_path))
    viewer.wait_until(
        lambda: rising(viewer.told("number")) >= ENOUGH, what="rising numbers", timeout=60
    )
    viewer.wait_until(
        lambda: any(abs(each - 440) < 10 or abs(each - 900) < 10 for each in viewer.told("pitch")),
        what="a tone of the room", timeout=60,
    )  # fmt: skip
    server.wait_status({"room_members": 2, "browsers": 2})
    encoder.stop()
    server.wait_status({"room_members": 1, "browsers": 1})
    assert 'reason="ended by the client"' in server.output
    phone.hangup()
    phone.wait_event("CALL_CLOSED")
    samples, rate = phone.heard()
    assert levels(samples, rate, (440, 900))[440] > PRESENT
