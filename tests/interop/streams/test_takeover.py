"""An encoder that returns while the server still has its dead connection."""

import signal
from pathlib import Path

import pytest
from interop.streams.test_flv_http import WebServer
from support.peers.peers import AAC_H264, LASTING, Ffmpeg, frame_hashes
from support.peers.rtmp_servers import Player


@pytest.mark.needs("ffmpeg")
def test_ffmpeg_takes_over_from_one_that_hangs(start, tmp_path):
    """It tries until it is let in; who watches by RTMP and by HTTP sees both, to the end."""
    server = start(WebServer, "--record", tmp_path)
    hung = start(Ffmpeg.publish, server.url("demo"), seconds=LASTING, codecs=AAC_H264, video=True)
    server.wait_until(lambda: "publishing demo" in server.output, what="publishing")
    players = [
        start(Ffmpeg.play, server.url("demo"), to=Path("played.flv")),
        start(Ffmpeg.play, server.watch("demo"), to=Path("played.flv")),
    ]
    for player in players:
        player.wait_until(lambda each=player: "Output #0" in each.output, what="pictures")
    own = start(Player, server.url("demo"))
    server.wait_until(lambda: server.output.count(" playing ") == 3, what="players")
    hung.child.send_signal(signal.SIGSTOP)
    try:
        again = start(Ffmpeg.publish, server.url("demo"), seconds=3, codecs=AAC_H264, video=True)
        refused = 0
        while again.finish() != 0:
            refused += 1
            again = start(
                *(Ffmpeg.publish, server.url("demo")), seconds=3, codecs=AAC_H264, video=True
            )
        assert refused and refused == server.output.count("somebody publishes that already")
        assert own.finish() == 0
        for player in players:
            assert player.finish() == 0
            assert len(frame_hashes(player.folder / "played.flv")) > 36  # three seconds, and before
    finally:
        hung.child.send_signal(signal.SIGCONT)
    assert hung.finish() != 0
    recorded = sorted((tmp_path / "live").iterdir())
    assert len(recorded) == 2 and [len(frame_hashes(each)) for each in recorded].count(36) == 1
