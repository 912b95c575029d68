"""Push and pull by RTMFP between two of our servers, ffmpeg at both ends of the chain."""

from pathlib import Path

from interop.streams.test_relay import is_tail, publish
from support.peers.peers import AAC_H264, Ffmpeg, frame_hashes
from support.peers.rtmp_peers import FfmpegPlayer
from support.peers.rtmp_servers import Player, Server, Tool, media, without_end


def by_flows(start, *words):
    """A server that listens to RTMFP as well."""
    return start(Server, "--rtmfp", "127.0.0.1:0", *words)


def equal(far: Path, near: Path) -> bool:
    """Whether what was played there is the end of what was published here, tag for tag."""
    return is_tail(without_end(media(far)), without_end(media(near)))


def test_push_from_the_command_line(start):
    """`push`, from a server to another one; both by RTMFP, and both ends at the same time."""
    source, target = by_flows(start), by_flows(start)
    urls = source.url("demo", "rtmfp"), target.url("copy", "rtmfp")
    push = start(Tool, "push", *urls)
    here, there = start(Player, source.url("demo")), start(FfmpegPlayer, target.url("copy"))
    source.joined(2)
    target.joined(1)
    assert publish(start, source.url("demo"), 5).finish() == 0
    assert [each.finish() for each in (push, here, there)] == [0, 0, 0]
    assert equal(there.file, here.file) and "1 of 1 targets" in push.output
    pictures = frame_hashes(there.file)
    assert len(pictures) > 40 and pictures == frame_hashes(here.file)[-len(pictures) :]


def test_push_by_a_rule(start):
    """The same by a server's own rule, for a stream that begins later."""
    target = by_flows(start)
    source = by_flows(start, "--push", f"live/*={target.url('{name}-copy', 'rtmfp')}")
    here, there = start(Player, source.url("demo")), start(FfmpegPlayer, target.url("demo-copy"))
    source.joined(1)
    target.joined(1)
    publisher = publish(start, source.url("demo"), 5)
    source.says("rtmfp://")
    assert [each.finish() for each in (publisher, here, there)] == [0, 0, 0]
    assert equal(there.file, here.file)


def test_pull_on_demand(start):
    """For the first player, and let go after the last; ffmpeg notices nothing of the way."""
    source = by_flows(start)
    home = by_flows(start, "--pull", f"live/*={source.url('{name}', 'rtmfp')}")
    here = start(Player, source.url("demo"))
    source.joined(1)
    publisher = start(Ffmpeg.publish, source.url("demo"), seconds=6, codecs=AAC_H264, video=True)
    here.wait_until(lambda: here.output.count("video") > 3, what="some frames")
    assert "connecting" not in home.output
    there = start(FfmpegPlayer, home.url("demo"))
    home.says(": running")
    assert [each.finish() for each in (publisher, here, there)] == [0, 0, 0]
    home.says(": idle")
    assert equal(there.file, here.file)
    pictures = frame_hashes(there.file)
    assert pictures and pictures == frame_hashes(here.file)[-len(pictures) :]
