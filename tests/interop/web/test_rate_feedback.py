"""A publisher's browser finds its rate, and loss is mended by RTX, judged by their statistics."""

import pytest
from support.nat.lossy_relay import lossy_relay
from support.peers.browser_peer import Chromium
from support.peers.webrtc_peers import ENOUGH, WEBRTC, endpoint, rising, webrtc_page

BEGIN = 300_000  # bit/s, of Chromium


@pytest.mark.alone  # Chromium finds the rate of its encoder, which is that of the machine
def test_chromium_finds_its_rate_and_a_viewer_behind_a_bad_link_gets_packets_by_rtx(start, gateway):
    """Transport-wide feedback to the publisher; a viewer loses 5 % and takes 100 ms.

    The picture is noise around its number, so that the encoder can use what the path has.
    Chromium puts in order what comes by RTX: RFC 4588 §4.
    """
    running = gateway(*WEBRTC)
    host, _, port = running.listeners["webrtc"].rpartition(":")
    with (
        webrtc_page() as camera,
        webrtc_page() as screen,
        lossy_relay((host, int(port))) as link,
    ):
        at = camera.at(whip=endpoint(running, "cam", "whip"), codec="VP8", picture="noise")
        browser = start(Chromium, at)

        def is_told():
            """Whether it goes beyond the first rate; agreed on and not sent, it falls to 70,000."""
            return any(each.get("available", 0) > 1.5 * BEGIN for each in camera.results)

        browser.wait_until(is_told, what="a higher rate", timeout=120)
        answers = [each["text"] for each in camera.results if "text" in each]
        assert "transport-cc" in answers[0]  # which the rate comes by
        whep = endpoint(running, "cam", "whep")
        viewer = start(Chromium, screen.at(whep=whep, relay=str(link.port)))
        viewer.wait_until(
            lambda: rising(screen.last.get("numbers", ())) >= ENOUGH, what="numbers", timeout=60
        )
        viewer.wait_until(
            lambda: screen.last.get("again", 0) > 5, what="packets by RTX", timeout=60
        )
        assert link.lost
