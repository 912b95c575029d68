"""Programs that people have on their desks: OBS publishes, VLC plays; and ffmpeg as a server."""

from pathlib import Path

import pytest
from support.peers.obs_peer import FPS, KEY_FRAMES, SIZE, Obs, Xvfb
from support.peers.peers import AAC_H264, Ffmpeg, frame_hashes
from support.peers.process import free_port
from support.peers.rtmp_peers import (
    FfmpegPlayer,
    FfmpegPublisher,
    OwnPublisher,
    RtmpdumpPlayer,
    Vlc,
)
from support.peers.rtmp_servers import Player, Server, media, without_end

from rtmplite.flv import file, metadata
from rtmplite.flv.video import is_key_frame, is_sequence_header


@pytest.fixture
def server(start):
    """A running server."""
    return start(Server)


def bodies(tags, kind):
    """What one medium consists of."""
    return [body for each, _, body in tags if each == kind]


@pytest.mark.needs("ffmpeg")
def test_obs_publishes(start, server):
    """Every frame that it recorded beside is played, from the first on; and it unpublishes."""
    players = start(Player, server.url("obs")), start(RtmpdumpPlayer, server.url("obs"))
    server.joined(2)
    screen = start(Xvfb)
    obs = start(Obs, screen.display, server.url("").rstrip("/"), "obs")
    players[0].wait_until(lambda: players[0].output.count("video") > 3 * FPS, what="some frames")
    assert obs.leave() == players[0].finish() == 0 and players[1].finish() in (0, 2)
    got, recorded = without_end(media(players[0].file)), without_end(media(obs.recording))
    assert media(players[1].file) == got
    for kind in (8, 9):
        streamed, stored = bodies(got, kind), bodies(recorded, kind)
        assert streamed[0] == stored[0] and len(streamed) > FPS
        # The one of both that OBS began first has some frames that the other lacks.  The other
        # begins with a key frame to which OBS adds the encoder's SEI, so what follows it is sought.
        if streamed[2] in stored[2:]:
            stored = stored[stored.index(streamed[2], 2) - 2 :]
        else:
            streamed = streamed[streamed.index(stored[2], 2) - 2 :]
        both = min(len(streamed), len(stored))  # it ends neither at the same frame
        assert both > FPS and streamed[2:both] == stored[2:both]
    pictures = bodies(got, 9)
    assert is_sequence_header(pictures[0])
    keys = [at for at, body in enumerate(pictures[1:]) if is_key_frame(body)]
    assert keys == list(range(0, len(pictures) - 1, KEY_FRAMES))
    assert len(frame_hashes(players[0].file)) == len(pictures) - 1
    tags = file.tags(players[0].file.read_bytes())
    described = next(metadata.read(tag.data) for tag in tags if tag.tag_type == 18)
    assert (described["width"], described["height"]) == SIZE and "obs" in described["encoder"]
    server.says("closed by the peer")


@pytest.mark.needs("ffmpeg")
def test_vlc_demuxes_what_is_live(start, server):
    """Not only its access module: its demuxer finds both tracks, and each picture.

    The last few stay in its muxer when it quits.
    """
    url = server.url("vlc")
    player = start(Vlc, url, "--sout", "#std{access=file,mux=ts,dst=-}")
    own = start(Player, url)
    server.joined(2)
    publisher = start(Ffmpeg.publish, url, seconds=2, codecs=AAC_H264, video=True)
    assert publisher.finish() == player.finish() == own.finish() == 0
    whole, seen = frame_hashes(own.file), frame_hashes(player.file)
    assert len(whole) == 24 and len(seen) > 12 and seen == whole[: len(seen)]


def test_vlc_plays_a_recording(start, corpus):
    """By its own pace, to the end."""
    server = start(Server, "--vod", corpus / "flv")
    name = "ruffle_aac_stereo_22050hz"
    player = start(Vlc, server.url(name).replace("/live/", "/vod/"))
    assert player.finish() == 0
    assert media(player.file) == media(corpus / "flv" / f"{name}.flv")


def listens(port):
    """Whether somebody does, seen without a connection, for ffmpeg takes only one."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def test_our_client_publishes_to_ffmpeg(start, corpus):
    """`-listen 1`: ffmpeg is the server."""
    source, port = corpus / "flv" / "gnash_square_h263_mp3.flv", free_port()
    url = f"rtmp://127.0.0.1:{port}/live/demo"
    far = start(FfmpegPlayer, url, "-listen", "1")
    far.wait_until(lambda: listens(port), what="ffmpeg to listen")
    assert start(OwnPublisher, source, url).finish() == 0
    far.finish()
    assert media(far.file) == media(source)


def test_our_client_plays_from_ffmpeg(start, corpus):
    """Though it sends on stream 0, as nobody else does."""
    source, port = corpus / "flv" / "gnash_square_h263_mp3.flv", free_port()
    url = f"rtmp://127.0.0.1:{port}/live/demo"
    far = start(FfmpegPublisher, source, url, "-listen", "1")
    far.wait_until(lambda: listens(port), what="ffmpeg to listen")
    player = start(Player, url)
    assert far.finish() == player.finish() == 0
    assert media(player.file) == media(source)
