"""Two processes that serve as one gateway: streams, names, figures, and the end of one of them."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.gateway.accounts import users_file
from support.gateway.gateway import Gateway
from support.gateway.workers import TRIES, lines, one_at, worker_in, workers_of
from support.peers.peers import AAC_H264, LASTING, Ffmpeg, frame_hashes
from support.peers.process import PATIENCE, wait_until
from support.peers.rtmp_servers import Player, media, without_end

WORKERS = ("--sip", "off", "--workers", "2")


@pytest.fixture
def pair(start) -> Gateway:
    """A gateway with two workers."""
    return start(Gateway, *WORKERS)


def bus_folder(pid: int) -> Path:
    """Where a worker has its Unix sockets, by the list of the kernel."""
    own = {each.readlink().name for each in Path(f"/proc/{pid}/fd").iterdir()}
    for line in Path("/proc/net/unix").read_text().splitlines():
        words = line.split()
        if f"socket:[{words[6]}]" in own and "siprtmp-" in words[-1]:
            return Path(words[-1]).parent
    pytest.fail("a worker without a bus")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return " Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except OSError:
        return False


def publishing(start, gateway, name="demo", seconds=LASTING) -> tuple[Ffmpeg, int]:
    """ffmpeg that publishes a picture and a tone, and the worker it has reached."""
    known = len(lines(gateway, "publish-start"))
    url = gateway.url("live", name)
    source = start(Ffmpeg.publish, url, seconds=seconds, codecs=AAC_H264, video=True)
    gateway.wait_until(lambda: len(lines(gateway, "publish-start")) > known, what="publishing")
    return source, worker_in(lines(gateway, "publish-start")[known])


@pytest.mark.needs("ffmpeg")
def test_a_player_of_either_worker_sees_the_whole_stream(start, pair):
    """Players that wait in both get all that is published, message for message, and its end."""
    players = {
        each: one_at(pair, each, "play-start", lambda: start(Player, pair.url("live", "demo")))
        for each in (0, 1)
    }
    source, _ = publishing(start, pair, seconds=3)
    assert source.finish() == 0
    assert all(player.finish() == 0 for player in players.values())
    played = [without_end(media(player.file)) for player in players.values()]
    assert played[0] == played[1] and len(played[0]) > 100
    assert len(frame_hashes(players[1].file)) == 36


@pytest.mark.needs("ffmpeg")
def test_ffmpeg_joins_late_in_the_other_worker_and_the_figures_are_those_of_both(start, pair):
    """The stream is one, its players are counted once, and nothing is left of it in the end."""
    before = pair.status()
    source, home = publishing(start, pair)
    url = pair.url("live", "demo")

    def play() -> Ffmpeg:
        return start(Ffmpeg.play, url, to=Path("played.flv"))

    far = one_at(pair, 1 - home, "play-start", play)
    near = one_at(pair, home, "play-start", play)
    pair.wait_status({"streams": 1, "players": 2, "rtmp_connections": 3, "workers": 2})
    for player in (far, near):
        player.wait_until(lambda each=player: "Output #0" in each.output, what="pictures")
    assert source.leave()
    for player in (far, near):
        assert player.finish() == 0
        assert frame_hashes(player.folder / "played.flv")
    left = ("streams", "players", "rtmp_connections", "sockets", "greenlets", "workers_silent")
    pair.wait_status({name: before[name] for name in left})


@pytest.mark.needs("ffmpeg")
def test_a_stream_of_another_server_is_pulled_once_for_all_workers(start):
    """It comes when a player waits, to both workers, and goes with the last one."""
    origin = start(Gateway, "--sip", "off")
    pair = start(Gateway, *WORKERS, "--pull", f"live/*=rtmp://{origin.rtmp}/live")
    players = {
        each: one_at(pair, each, "play-start", lambda: start(Player, pair.url("live", "demo")))
        for each in (1, 0)
    }
    url = origin.url("live", "demo")
    source = start(Ffmpeg.publish, url, seconds=LASTING, codecs=AAC_H264, video=True)
    for player in players.values():
        player.wait_until(lambda each=player: size(each) > 9999, what="media")
    assert origin.status()["players"] == 1
    pair.wait_status({"streams": 1, "players": 2, "relays": 1, "relays_running": 1})
    players[0].stop()
    far = size(players[1])
    players[1].wait_until(lambda: size(players[1]) > far, what="more")
    players[1].stop()
    pair.wait_status({"streams": 0, "players": 0, "relays": 0})
    origin.wait_status({"players": 0})
    source.stop()


def size(player: Player) -> int:
    """The bytes that a player has written."""
    return player.file.stat().st_size if player.file.exists() else 0


@pytest.mark.needs("ffmpeg")
def test_a_viewer_by_http_has_its_stream_fetched(start, pair):
    """Whichever worker a request reaches, the stream is there."""
    source, _ = publishing(start, pair)
    for _ in range(6):
        where = f"http://{pair.listeners['http']}/live/demo.flv"
        with urllib.request.urlopen(where, timeout=PATIENCE) as answer:
            assert answer.read(4096).startswith(b"FLV")
    assert source.leave()


@pytest.mark.needs("ffmpeg")
def test_a_name_is_that_of_one_publisher_in_all_workers(start, pair):
    """The second one is refused by either worker, and the first one goes on."""
    source, home = publishing(start, pair)

    def again() -> Ffmpeg:
        return start(Ffmpeg.publish, pair.url("live", "demo"), codecs=AAC_H264, seconds=2)

    other = one_at(pair, 1 - home, "refused", again)
    assert other.finish() != 0
    assert all("somebody publishes that already" in line for line in lines(pair, "refused"))
    assert pair.status()["streams"] == 1 and source.leave()


@pytest.mark.needs("ffmpeg")
def test_ffmpeg_takes_its_name_back_in_the_other_worker(start, pair):
    """An encoder that hangs loses its name to one that comes back, wherever that arrives."""
    hung, _ = publishing(start, pair)
    hung.child.send_signal(signal.SIGSTOP)
    try:
        url = pair.url("live", "demo")
        for _ in range(TRIES):
            known = len(lines(pair, "publish-start"))
            again = start(Ffmpeg.publish, url, seconds=1, codecs=AAC_H264, video=True)
            if again.finish() == 0:
                break
        assert len(lines(pair, "publish-start")) == known + 1
    finally:
        hung.child.send_signal(signal.SIGCONT)
    assert hung.finish() != 0
    pair.wait_status({"streams": 0, "rtmp_connections": 0})


@pytest.mark.needs("ffmpeg")
def test_a_worker_that_dies_takes_its_own_clients_only(start, pair):
    """The others go on, and it is started again, and serves as before."""
    source, home = publishing(start, pair)
    near = one_at(pair, home, "play-start", lambda: start(Player, pair.url("live", "demo")))
    before = workers_of(pair)
    os.kill(before[1 - home], signal.SIGKILL)
    pair.wait_until(lambda: lines(pair, "worker-died"), what="its death")
    assert f"worker={1 - home} code=-9" in lines(pair, "worker-died")[0]
    pair.wait_until(lambda: len(workers_of(pair)) == 2, what="another one")
    pair.wait_status({"workers": 2, "workers_silent": 0, "streams": 1, "players": 1})
    far = one_at(pair, 1 - home, "play-start", lambda: start(Player, pair.url("live", "demo")))
    pair.wait_until(lambda: far.file.exists() and far.file.stat().st_size > 9999, what="media")
    assert source.leave()
    assert near.finish() == 0 and far.finish() == 0
    assert before[home] in workers_of(pair)


def test_all_workers_may_die_at_once(pair):
    """What ends one may end all; the gateway goes on with new ones."""
    before = workers_of(pair)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    pair.wait_until(lambda: len(lines(pair, "worker-died")) == 2, what="their deaths")
    pair.wait_until(lambda: len(workers_of(pair)) == 2, what="others")
    pair.wait_status({"workers": 2, "workers_silent": 0})
    assert not {*before} & {*workers_of(pair)}


@pytest.mark.needs("ffmpeg")
def test_the_players_elsewhere_of_a_worker_that_dies_hear_of_the_end(start, pair):
    """Its publisher is lost with it; its name is free."""
    source, home = publishing(start, pair)
    far = one_at(pair, 1 - home, "play-start", lambda: start(Player, pair.url("live", "demo")))
    pair.wait_until(lambda: far.file.exists() and far.file.stat().st_size > 9999, what="media")
    os.kill(workers_of(pair)[home], signal.SIGKILL)
    assert far.finish() == 0 and source.finish() != 0
    again, _ = publishing(start, pair, seconds=1)
    assert again.finish() == 0


def test_a_worker_that_is_stuck_is_told_and_not_waited_for(pair):
    """The other one answers for both."""
    stuck = workers_of(pair)[1]
    os.kill(stuck, signal.SIGSTOP)
    try:
        seen: dict[str, Any] = {}
        for _ in range(TRIES):
            with suppress(OSError):
                url = f"http://{pair.listeners['http']}/status"
                with urllib.request.urlopen(url, timeout=5) as answer:
                    seen = json.load(answer)
                    break
        assert (seen["workers"], seen["workers_silent"]) == (2, 1)
        assert "silent=1" in lines(pair, "worker-silent")[0]
    finally:
        os.kill(stuck, signal.SIGCONT)
    pair.wait_status({"workers_silent": 0})


@pytest.mark.needs("ffmpeg")
def test_the_operator_sees_all_workers_and_ends_a_publisher_in_any(start):
    """One stream with the players of both; its id ends it, whichever worker has it."""
    gateway = start(Gateway, *WORKERS, "--state", "state")
    folder = gateway.folder / "state"

    def calls(*words: str) -> dict[str, Any]:
        argv = [sys.executable, "-m", "siprtmp", "calls", "--state", str(folder), "--json", *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    source = one_at(
        *(gateway, 1, "publish-start"),
        lambda: start(
            Ffmpeg.publish, gateway.url("live", "demo"), seconds=LASTING, codecs=AAC_H264
        ),
    )
    players = [
        one_at(
            *(gateway, each, "play-start"),
            lambda: start(Player, gateway.url("live", "demo")),
        )
        for each in (0, 1)
    ]
    gateway.wait_until(lambda: calls()["streams"][0]["players"] == 2, what="both players")
    [row] = calls()["streams"]
    assert (row["name"], row["codecs"], row["source"]) == ("live/demo", ["aac"], "RTMP:127.0.0.1")
    assert calls("--end", row["id"]) == {"ended": ["publisher"]}
    assert source.finish() != 0 and [each.finish() for each in players] == [0, 0]


@pytest.mark.needs("ffmpeg")
def test_what_is_published_is_recorded_once(start, tmp_path):
    """By the worker that has the publisher."""
    gateway = start(Gateway, *WORKERS, "--record", str(tmp_path / "kept"))
    players = [
        one_at(
            *(gateway, each, "play-start"),
            lambda: start(Player, gateway.url("live", "demo")),
        )
        for each in (0, 1)
    ]
    source, _ = publishing(start, gateway, seconds=2)
    assert source.finish() == 0 and [each.finish() for each in players] == [0, 0]
    gateway.wait_status({"recordings": 0})
    [kept] = (tmp_path / "kept" / "live").iterdir()
    assert len(frame_hashes(kept)) == 24


def test_all_end_with_the_supervisor(tmp_path):
    """Also when it is killed: no worker stays behind."""
    gateway = Gateway(tmp_path / "killed", *WORKERS).start()
    pids = workers_of(gateway)
    folder = bus_folder(pids[0])
    assert folder.is_dir()
    gateway.child.kill()
    gateway.child.wait()
    wait_until(lambda: not any(map(is_alive, pids)), what="their end", log=gateway.log)
    assert not folder.exists()


def test_signals_and_metrics_are_those_of_all(start, tmp_path):
    """SIGHUP is every worker's, SIGUSR1 logs the figures of all once, and /metrics adds them."""
    gateway = start(Gateway, *WORKERS, "--users", users_file(tmp_path, "bob"))
    gateway.child.send_signal(signal.SIGHUP)
    gateway.wait_until(lambda: len(lines(gateway, "reloaded")) == 2, what="both to reload")
    assert {worker_in(line) for line in lines(gateway, "reloaded")} == {0, 1}
    gateway.child.send_signal(signal.SIGUSR1)
    gateway.wait_until(lambda: lines(gateway, "status"), what="the figures")
    assert [" workers=2 " in line for line in lines(gateway, "status")] == [True]
    with urllib.request.urlopen(f"http://{gateway.listeners['http']}/metrics") as answer:
        text = answer.read().decode()
    assert "\nsiprtmp_workers 2\n" in text and "\nsiprtmp_workers_silent 0\n" in text


@pytest.mark.parametrize("option", ["rtmp", "rtmfp"])
def test_a_port_that_is_taken_is_one_line_and_code_2(start, option):
    """Also if another gateway with workers has it, and if a worker alone opens it."""
    holder = start(Gateway, "--sip", "off", "--rtmfp", "127.0.0.1:0", "--workers", "2")
    port = holder.listeners[option]
    words = [sys.executable, "-m", "siprtmp", *WORKERS, "--rtmp", "127.0.0.1:0", "--http", "off"]
    done = subprocess.run([*words, f"--{option}", port], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"siprtmp: --{option} {port}: " in done.stderr and "Traceback" not in done.stderr


@pytest.mark.needs("ffmpeg")
def test_what_comes_by_rtmfp_is_played_in_the_other_worker(start):
    """The first worker serves RTMFP; a client of it plays what was published in the second one."""
    gateway = start(Gateway, *WORKERS, "--rtmfp", "127.0.0.1:0")
    source = one_at(
        *(gateway, 1, "publish-start"),
        lambda: start(
            *(Ffmpeg.publish, gateway.url("live", "demo")),
            seconds=LASTING,
            codecs=AAC_H264,
            video=True,
        ),
    )
    player = start(Player, f"rtmfp://{gateway.rtmfp}/live/demo")
    gateway.wait_until(lambda: player.file.exists(), what="what it plays")
    gateway.wait_until(lambda: player.file.stat().st_size > 20_000, what="pictures")
    assert source.leave()
    assert player.finish() == 0 and frame_hashes(player.file)
