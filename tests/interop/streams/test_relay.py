"""Push and pull: between two of our servers, to and from nginx-rtmp, and from the command line."""

import json
import re
import signal

import pytest
from support.certificates import certificate
from support.peers.hook_service import HookService
from support.peers.peers import AAC_H264, LASTING, Ffmpeg, NginxRtmp, frame_hashes
from support.peers.process import free_port
from support.peers.rtmp_servers import Player, Server, Tool, media, without_end

from rtmplite.flv.audio import is_sequence_header as is_audio_header
from rtmplite.flv.video import is_key_frame, is_sequence_header


def publish(start, url, seconds=3):
    """Pictures and sound at their own pace."""
    return start(Ffmpeg.publish, url, seconds=seconds, codecs=AAC_H264, video=True)


def sees(player, count):
    """Wait until a player has so many pictures, however late it came."""
    player.wait_until(lambda: player.output.count("video") > count, what=f"{count} pictures")


def is_tail(part, whole):
    """Whether `part` is the end of `whole`, its pictures from a key frame on, after their header.

    Sound may begin before the pictures do: nginx-rtmp does not hold it back for them.
    """
    video = [body for kind, _, body in part if kind == 9]
    assert is_sequence_header(video[0]) and is_key_frame(video[1])
    return all(is_end(frames(part, kind), frames(whole, kind)) for kind in (8, 9))


def is_end(part, whole):
    """Whether there is enough of it, and all of it at the end of `whole`."""
    return len(part) > 10 and part == whole[-len(part) :]


def frames(tags, kind):
    """The tags of one medium without codec headers."""
    header = is_sequence_header if kind == 9 else is_audio_header
    return [tag for tag in tags if tag[0] == kind and not header(tag[2])]


def test_nginx_is_pushed_to(start):
    """By a pattern; what is played there is what was published here."""
    nginx = start(NginxRtmp)
    server = start(Server, "--push", f"live/*={nginx.url('{name}-copy')}")
    here, there = start(Player, server.url("demo")), start(Player, nginx.url("demo-copy"))
    server.joined(1)
    assert publish(start, server.url("demo"), 4).finish() == here.finish() == 0
    assert there.finish() == 0
    whole = without_end(media(here.file))
    assert is_tail(without_end(media(there.file)), whole)
    assert "onMetaData" in there.output


def test_nginx_is_pulled_from(start):
    """On demand: not a player there before there is one here, and none after."""
    nginx = start(NginxRtmp)
    server = start(Server, "--pull", f"live/*={nginx.url('{name}')}")
    there = start(Player, nginx.url("demo"))
    source = publish(start, nginx.url("demo"), 60)
    sees(there, 3)
    assert "connecting" not in server.output
    here = start(Player, server.url("demo"))
    server.says(": running")
    sees(here, 20)
    assert source.leave() and there.finish() == here.finish() == 0
    server.says(": idle")
    assert is_tail(without_end(media(here.file)), without_end(media(there.file)))
    pictures = frame_hashes(here.file)
    assert pictures == frame_hashes(there.file)[-len(pictures) :]


def test_several_targets_one_over_tls_one_not_there_yet(start, tmp_path):
    """Each comes and goes by itself."""
    made = certificate(tmp_path)
    words = ("--rtmps", "127.0.0.1:0", "--tls-cert", made.file, "--tls-key", made.key)
    secure, port = start(Server, *words), free_port()
    late = f"rtmp://127.0.0.1:{port}/live"
    server = start(
        *(Server, "--ca", made.file, "--push", f"live/demo={secure.url('demo', 'rtmps')}"),
        *("--push", f"live/demo={late}"),
    )
    first = start(Player, secure.url("demo"))
    secure.joined(1)
    source = publish(start, server.url("demo"), 60)
    server.says(f"{late}/demo: waiting")
    server.says("refused")
    other = start(Server, rtmp=f"127.0.0.1:{port}")
    second = start(Player, other.url("demo"))
    server.says(f"{late}/demo: running")
    sees(second, 20)
    assert source.leave() and first.finish() == second.finish() == 0
    assert is_tail(without_end(media(second.file)), without_end(media(first.file)))
    assert len(re.findall("rtmps://.*: running", server.output)) == 1


@pytest.mark.needs("ffmpeg")
def test_a_target_that_is_restarted(start):
    """The push comes back, the publisher notices nothing."""
    port = free_port()
    far = start(Server, rtmp=f"127.0.0.1:{port}")
    server = start(Server, "--push", f"live/*=rtmp://127.0.0.1:{port}/live")
    source = publish(start, server.url("demo"), 60)
    server.says(": running")
    far.child.send_signal(signal.SIGKILL)
    server.says(": waiting")
    again = start(Server, rtmp=f"127.0.0.1:{port}")
    again.joined(1)
    player = start(Player, again.url("demo"))
    sees(player, 20)
    assert source.leave() and player.finish() == 0
    assert len(frame_hashes(player.file)) > 12


@pytest.mark.needs("ffmpeg", "nginx")
def test_push_from_the_command_line(start):
    """From one server to two others, to the end of the stream."""
    source, first, second = start(Server), start(Server), start(NginxRtmp)
    urls = [source.url("demo"), first.url("one"), second.url("two")]
    push = start(Tool, "push", *urls)
    players = [start(Player, url) for url in urls]
    source.joined(2)
    assert publish(start, source.url("demo"), 4).finish() == 0
    assert push.finish() == 0
    assert [player.finish() for player in players] == [0, 0, 0]
    whole, *copies = [without_end(media(player.file)) for player in players]
    assert all(is_tail(copy, whole) for copy in copies)
    assert "2 of 2 targets" in push.output


@pytest.mark.parametrize(
    "missing", ["source", pytest.param("target", marks=pytest.mark.needs("ffmpeg"))]
)
def test_push_gives_up(start, missing):
    """One line and exit code 1."""
    server, nowhere = start(Server), f"rtmp://127.0.0.1:{free_port()}/live/x"
    urls = [server.url("demo"), nowhere] if missing == "target" else [nowhere, server.url("demo")]
    if missing == "target":
        start(Ffmpeg.publish, server.url("demo"), seconds=LASTING)
        server.joined(1)
    push = start(Tool, "push", *urls, "--attempts", "1")
    assert push.finish() == 1
    last = push.output.splitlines()[-1]
    assert last.startswith("rtmplite: ") and "refused" in last


def test_probe_of_ours_and_nginx(start):
    """Tracks, rates and key frames of what ffmpeg sends."""
    nginx = start(NginxRtmp)
    server = start(Server, "--push", f"live/*={nginx.url('{name}')}")
    publish(start, server.url("demo"), LASTING)  # until all have looked
    server.says(": running")
    for url in (server.url("demo"), nginx.url("demo")):
        probe = start(Tool, "probe", url, "--seconds", "2.5", "--json")
        assert probe.finish() == 0
        report = json.loads(probe.output)
        tracks = {track["kind"]: track for track in report["tracks"]}
        assert (tracks["audio"]["codec"], tracks["audio"]["hz"]) == ("AAC", 44100)
        assert tracks["video"]["codec"] == "AVC"
        assert tracks["video"]["rate"] == pytest.approx(12, abs=1)
        assert tracks["video"]["key_frame_interval"] == pytest.approx(1.0, abs=0.1)
        assert tracks["audio"]["rate"] == pytest.approx(43, abs=3)
        assert report["metadata"]["width"] == 320 and report["round_trip_ms"] < 1000
    words = start(Tool, "probe", server.url("demo"), "--seconds", "1")
    assert words.finish() == 0
    assert "AVC" in words.output and "44100 Hz" in words.output and "320x240" in words.output
    nothing = start(Tool, "probe", server.url("nothing"), "--seconds", "0.5")
    assert nothing.finish() == 1
    assert nothing.output.startswith("rtmplite: ") and nothing.output.count("\n") == 1


def test_publish_in_rounds(start, corpus):
    """A file of a second, three times: the times go on."""
    server = start(Server)
    source = corpus / "flv" / "ruffle_aac_mono_44100hz.flv"
    player = start(Player, server.url("demo"))
    server.joined(1)
    words = ("publish", "--fast", "--loop", "3", source, server.url("demo"))
    publisher = start(Tool, *words)
    assert publisher.finish() == player.finish() == 0
    sent, got = media(source), media(player.file)
    assert [body for _, _, body in got] == 3 * [body for _, _, body in sent]
    times = [time for _, time, _ in got]
    assert times == sorted(times) and times[-1] > 3 * sent[-1][1]
    assert f"{3 * (len(sent) + 1)} messages" in publisher.output


@pytest.mark.needs("ffmpeg")
def test_relays_and_clients_go_where_they_are_sent(start):
    """Covers Field §"Redirects": a service sends whoever publishes or plays to another server."""
    real = start(Server)
    there = real.url("").rstrip("/")
    with HookService(lambda path, form: (302, there)) as service:
        hooks = ("--on-publish", f"{service.url}/publish", "--on-play", f"{service.url}/play")
        sending = start(Server, *hooks)
        server = start(
            *(Server, "--push", f"live/out={sending.url('{name}')}"),
            *("--pull", f"live/in={sending.url('{name}')}"),
        )
        source = publish(start, server.url("out"), 60)
        copy = start(Player, sending.url("out"))
        server.says(f"{real.url('out')}: running")
        sees(copy, 20)
        assert source.leave() and copy.finish() == 0 and media(copy.file)
        pulled = start(Player, server.url("in"))
        server.says(f"{real.url('in')}: running")
        words = ("publish", "--fast", copy.file, sending.url("in"))
        assert start(Tool, *words).finish() == pulled.finish() == 0
        assert len(media(pulled.file)) == len(media(copy.file))


@pytest.mark.needs("ffmpeg")
def test_relays_move_when_a_server_is_drained(start):
    """Own design, with real programs: nobody who watches notices that the server has changed."""
    new = start(Server)
    old = start(Server, "--drain", "10", "--reconnect-to", new.url("").rstrip("/"))
    pushing = start(Server, "--push", f"live/*={old.url('{name}')}")
    pulling = start(Server, "--pull", f"live/*={old.url('{name}')}")
    here, there = start(Player, pushing.url("demo")), start(Player, pulling.url("demo"))
    pulling.says(": running")
    source = publish(start, pushing.url("demo"), 60)
    pushing.says(": running")
    sees(there, 12)
    old.child.send_signal(signal.SIGTERM)
    assert old.finish() == 0
    pushing.says(f"{new.url('demo')}: running")
    pulling.says(f"{new.url('demo')}: running")
    sees(there, 100)
    assert source.leave() and here.finish() == there.finish() == 0
    whole, copy = (without_end(media(player.file)) for player in (here, there))
    assert is_end(frames(copy, 9), frames(whole, 9)) and len(frames(copy, 9)) > 80
    begin = frames(copy, 9)[0][1]  # sound before the first picture may be left out
    sound = [each for each in frames(copy, 8) if each[1] >= begin]
    assert len(sound) > 300 and is_end(sound, frames(whole, 8))
