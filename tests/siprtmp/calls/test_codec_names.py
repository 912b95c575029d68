"""The names of codecs in the client's API, with the extra that makes codecs and without."""

import pytest
from support.gateway.gateway_world import BOB, PCMA, PCMU, sdp

from p2psip.sdp.local_media import LocalTransport
from p2psip.sdp.session import SessionDescription
from p2psip.stack.address_validation import OFFER
from siprtmp.calls import codec_names
from siprtmp.media import sdp_map
from siprtmp.media.sdp_map import Endpoint
from siprtmp.media.transcode import audio_decoder


@pytest.fixture(params=[True, False])
def makes(request, monkeypatch):
    """Whether the extra is there."""
    monkeypatch.setattr(audio_decoder, "is_available", lambda: request.param)
    return request.param


def test_a_client_that_speaks_speex_to_a_phone_with_g711(world, desk, alice, makes):
    """Covers RFC 3264 §5: G.711 is offered, and the client is told to publish Speex."""
    desk.answers = sdp(PCMA)
    alice.call("invite", BOB, "alaw", "ulaw", "wideband")
    world.wait()
    if makes:
        offer = SessionDescription.parse(desk.calls[-1].remote_sdp)
        assert offer.media[0].formats == ("8", "0", "96")
        assert alice.heard() == [("accepted", "speex", None)]
    else:
        assert alice.heard()[0][1].startswith("488")  # Speex alone is left
    assert world.is_clean()


def test_such_a_client_is_called(world, desk, alice, makes):
    """Covers RFC 3264 §6."""
    desk.ring("alice", world.now, sdp(PCMU))
    world.wait()
    alice.call("accept", "ULAW")
    world.wait()
    told = ("accepted", "speex", None) if makes else ("byed",)
    assert alice.heard()[1:] == [told] and world.is_clean()


def test_the_url_of_a_stock_tool_may_name_codecs(world, desk):
    """Own design: as a rich client does; what is not known is passed over."""
    desk.answers = sdp(PCMU)
    world.tool().publish(f"{BOB}?codecs=pcmu%2CAAC,h265,x")
    world.wait()
    offer = SessionDescription.parse(desk.calls[-1].remote_sdp)
    assert offer.media[0].formats == ("0", "113", "114", "115", "116")
    assert offer.media[1].formats == ("104",)


@pytest.mark.parametrize("query", ["codecs=", "codecs=x,y", "other=aac"])
def test_a_query_without_any_is_none(makes, query):
    assert codec_names.offered(query) == codec_names.offered()


def test_an_offer_in_a_200_has_no_octets_to_spare():
    """Own design: so it fits where `address_validation` leaves room; L16 and AAC alone are kept."""
    every = (*codec_names.everything(), *sdp_map.VIDEO_NAMES)
    brief, ports = codec_names.brief(every), [LocalTransport(65_000 + n) for n in range(2)]
    ours = Endpoint("203.0.113.100", 65_002, 2**32 - 1, video=ports[0], x_flv=ports[1], vp8=True)
    assert len(bytes(sdp_map.offer(brief, ours))) <= OFFER < len(bytes(sdp_map.offer(every, ours)))
    assert set(every) - set(brief) == {name for name in every if "l16" in name or "aac" in name}
    for alone in (("l16", "dtmf"), ("aac", "h264"), ("l16-44", "aac-mono")):
        assert codec_names.brief(alone) == alone
