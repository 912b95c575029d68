"""Offers as browsers make them (Chromium 156, Firefox 153 of Debian 12), and what is answered.

They offer error correction, redundancy, RTX for each codec, simulcast's extensions, and two kinds
of feedback of the rate.
"""

from pathlib import Path

import pytest
from support.gateway.whip_world import World

from p2psip.sdp.attributes import rtpmaps
from p2psip.sdp.rate_feedback import TRANSPORT_WIDE, wide_number_id
from p2psip.sdp.repairs import repairs_of
from p2psip.sdp.session import SessionDescription

OFFERS = Path(__file__).with_name("offers")
REFUSED = {"red", "ulpfec", "flexfec-03"}
BROWSERS = ["chromium", "firefox"]


def read(name):
    return SessionDescription.parse((OFFERS / f"{name}.sdp").read_bytes())


def answered(got):
    assert got.status == 201
    return SessionDescription.parse(got.body)


def names_of(line):
    return [each.encoding.lower() for each in rtpmaps(line)]


@pytest.mark.parametrize("browser", BROWSERS)
def test_error_correction_is_refused_and_the_rest_goes_on(browser):
    """Own design: it costs a share of the rate that RTX costs only where something is lost."""
    name = f"{browser}-publish"
    assert {"red", "ulpfec", "rtx"} <= set(names_of(read(name).media[1]))
    answer = answered(World().publish(sdp=(OFFERS / f"{name}.sdp").read_bytes()))
    assert [each.port > 0 for each in answer.media] == [True, True]
    for line in answer.media:
        assert REFUSED.isdisjoint(names_of(line)) and line.attribute("simulcast") is None
    assert names_of(answer.media[0]) == ["opus"]


@pytest.mark.parametrize("browser", BROWSERS)
def test_a_publisher_repeats_by_rtx_and_is_told_of_arrivals(browser):
    """Covers RFC 4588 §8.1 [apt-maps-types]: each codec that is answered has its own."""
    offer = read(f"{browser}-publish")
    answer = answered(World().publish(sdp=bytes(offer)))
    video = answer.media[1]
    codecs = [each.payload_type for each in rtpmaps(video) if each.encoding != "rtx"]
    assert codecs and sorted(repairs_of(video).values()) == sorted(codecs)
    assert repairs_of(video).items() <= repairs_of(offer.media[1]).items()
    assert wide_number_id(video) == wide_number_id(offer.media[1])
    extensions = [each.value for each in video.attributes if each.name == "extmap"]
    assert [each.partition(" ")[2] for each in extensions] == [TRANSPORT_WIDE]
    assert b"remb" not in bytes(answer)


def test_a_viewer_gets_repeats_of_a_named_source_and_tells_no_arrivals():
    """Own design: what plays takes the stream as it is, so its rate is nobody's to find."""
    world = World()
    world.transcoding = True
    world.live()
    offer = (OFFERS / "chromium-play.sdp").read_bytes()
    video = answered(world.ask("POST", "/live/obs/whep", offer)).media[1]
    assert repairs_of(video) and wide_number_id(video) is None
    semantics, *sources = video.attribute("ssrc-group").split()
    named = {each.value.split()[0] for each in video.attributes if each.name == "ssrc"}
    assert semantics == "FID" and set(sources) == named and len(sources) == 2
