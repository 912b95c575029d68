"""RTMP through HTTP: ffmpeg and rtmpdump against our server, with RTMP players beside them."""

from pathlib import Path

import pytest
from support.peers.peers import AAC_H264, LASTING, Ffmpeg, RtmpDump, frame_hashes
from support.peers.rtmp_servers import Player, Server, media, without_end


@pytest.fixture
def server(start) -> Server:
    """A running server with RTMP and RTMPT."""
    return start(Server, "--rtmpt", "127.0.0.1:0")


@pytest.mark.needs("ffmpeg", "rtmpdump")
def test_ffmpeg_publishes_through_a_tunnel(start, server):
    """Every picture arrives, in both kinds of player.  Covers Field §"HTTP tunnel"."""
    plain = start(Player, server.url("demo"))
    dump = start(RtmpDump, server.url("demo", "rtmpt"))
    server.joined(2)
    url = server.url("demo", "rtmpt")
    publish = start(Ffmpeg.publish, url, seconds=3, codecs=AAC_H264, video=True)
    assert publish.finish() == plain.finish() == dump.finish() == 0
    assert len(frame_hashes(plain.file)) == 36
    assert media(dump.file) == without_end(media(plain.file))


def test_ffmpeg_plays_through_a_tunnel(start, server, corpus):
    """Tags out equal tags in.  Covers Field §"HTTP tunnel"."""
    source = corpus / "flv" / "h264_720p30_bf3_aac44k_30s.flv"
    tunnelled = start(Ffmpeg.play, server.url("copy", "rtmpt"), to=Path("ff.flv"))
    plain = start(Player, server.url("copy"))
    server.joined(2)
    words = ("-re", "-i", source, "-t", "3", "-c", "copy", "-f", "flv", server.url("copy"))
    assert start(Ffmpeg, *words).finish() == plain.finish() == tunnelled.finish() == 0
    copied = {(kind, body) for kind, _, body in media(tunnelled.folder / "ff.flv")}
    sent = {(kind, body) for kind, _, body in without_end(media(plain.file))}
    assert len(sent) > 200 and sent - copied == set()


@pytest.mark.needs("ffmpeg")
def test_a_publisher_that_stops_is_unpublished(start, server):
    """ffmpeg closes its tunnel when asked to stop; the name is free at once."""
    url = server.url("again", "rtmpt")
    player = start(Player, server.url("again"))
    publish = start(Ffmpeg.publish, url, seconds=LASTING)
    player.wait_until(lambda: player.output.count("audio") > 20, what="some sound")
    publish.stop()
    server.says("closed by the peer")
    assert player.finish() == 0
    assert start(Ffmpeg.publish, url, seconds=1).finish() == 0
