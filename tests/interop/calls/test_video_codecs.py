"""VP8 and HEVC between streams and phones, as they are: each picture says its own number."""

from itertools import pairwise

import pytest
from support.gateway.accounts import PASSWORD, users_file
from support.peers.baresip import Baresip
from support.peers.rtmp_peers import OwnPublisher, PyavPlayer, PyavPublisher
from support.peers.rtmp_servers import Tool
from support.peers.rtmp_sources import av, need_av

SECONDS = 4


def own_player(folder, url, file):
    """The one that takes VP8 too."""
    return Tool(folder, "play", "-o", file, url)


# ffmpeg has no tags for VP8
PEERS = {"libx265": (PyavPublisher, PyavPlayer), "libvpx": (OwnPublisher, own_player)}


def numbers(path):
    """The codecs of a recording, and the number of each of its pictures."""
    codecs, found = av("numbers", path)
    return codecs, [int(each) for each in found.split()]


@pytest.mark.needs("baresip")
@pytest.mark.parametrize(
    ("encoder", "video", "codec"), [("libx265", "H265", "hevc"), ("libvpx", "VP8", "vp8")]
)
def test_a_stream_is_seen_by_a_phone_and_comes_back(
    start, gateway, tmp_path, encoder, video, codec
):
    """A phone that mirrors what it sees, without --transcode-video."""
    need_av()
    film, seen = tmp_path / "film.flv", tmp_path / "seen.flv"
    av("film", encoder, film, SECONDS)
    server = gateway("--users", users_file(tmp_path, "bob"), "--sip-t1", "200")
    phone = start(Baresip, "bob", registrar=server.sip, password=PASSWORD, mirror=True, video=video)
    url = server.url("call", f"bob@{server.sip}")
    publish, play = PEERS[encoder]
    player = start(play, url, seen)
    publisher = start(publish, film, url, speed="1")
    phone.wait_event("CALL_ESTABLISHED")
    assert publisher.finish() == 0
    phone.wait_event("CALL_CLOSED")
    player.finish()
    codecs, found = numbers(seen)
    assert codecs == codec
    assert len(set(found)) > 0.8 * 15 * (SECONDS - 2), found
    in_order = sum(after > before for before, after in pairwise(found))
    assert in_order > 0.99 * (len(found) - 1) - 1, found


def test_a_film_of_hevc_crosses_two_gateways(start, gateway, tmp_path):
    """By ffmpeg 8 at both ends: the player has said at connect that it takes it."""
    need_av()
    film, seen = tmp_path / "film.flv", tmp_path / "seen.flv"
    av("film", "libx265", film, SECONDS)
    near, far = gateway(), gateway()
    player = start(PyavPlayer, far.url("call", "studio"), seen)
    far.wait_status({"players": 1})
    publisher = start(PyavPublisher, film, near.url("call", f"studio@{far.sip}"), speed="1")
    assert publisher.finish() == 0
    player.finish()
    assert "video=h264,h265" in far.output and "transcoding" not in near.output + far.output
    codecs, found = numbers(seen)
    assert codecs == "hevc" and len(set(found)) > 0.8 * 15 * (SECONDS - 1), found
    assert found == sorted(found)
