"""The measuring tools measure: a known load, the real relay, and rows that void themselves."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

PERF = Path(__file__).resolve().parent.parent / "perf"
ONE_CONNECTION = ("crlf", "stream", "pings", "rtmp", "get")  # what a stranger says on it
PATIENCE = 2.0  # s for what is on its way when a busy machine stands still


@pytest.fixture(autouse=True)
def perf_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(PERF))


def test_the_meter_sees_a_busy_and_an_idle_process():
    import cpu

    commands = (
        [sys.executable, "-c", f"print(flush=True)\n{work}"]
        for work in ("while True: pass", "import time; time.sleep(60)")
    )
    children = [subprocess.Popen(words, stdout=subprocess.PIPE) for words in commands]
    try:
        for child in children:
            assert child.stdout is not None and child.stdout.readline()  # started, which costs too
        meters = [cpu.Meter(child.pid) for child in children]
        own, end = cpu.Meter(os.getpid()), time.monotonic() + 0.5
        while time.monotonic() < end:
            sum(range(1000))
        worked, slept = (meter.read() for meter in meters)
        assert worked.cpu > 0.05 > slept.cpu or worked.cpu > 5 * slept.cpu
        assert 0 < own.read().share <= 1.05
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_stamped_frames_are_whole_speex_frames():
    """The load is what it claims to be, by the gateway's own reading of the bit stream."""
    import load

    from p2psip.rtp.payload import speex

    for frame, wideband in ((load.SPEEX_8K, False), (load.SPEEX_16K, True)):
        before = time.monotonic_ns()
        stamped = load.stamp(frame)
        assert len(stamped) == len(frame)
        assert len(speex.split(stamped, wideband)) == 1
        (stamp,) = load.STAMP.unpack_from(stamped)
        assert before <= stamp <= time.monotonic_ns()


@pytest.mark.parametrize(
    ("found", "worse"),
    [
        ([1.0, 0.98, 1.02] * 5, False),
        ([1.2, 1.18, 1.22] * 5, True),
        ([0.8] * 15, False),
        ([1.3] * 4 + [1.0] * 11, False),  # a few rounds that something else disturbed
        ([1.08] * 15, False),  # less than noise
    ],
)
def test_the_guard_minds_what_is_slower_beyond_noise(found, worse):
    import bench_guard

    row = bench_guard.judge("flv", found)
    assert row.worse is worse and row.low <= row.ratio <= row.high


def test_the_guard_finds_a_slower_tree(tmp_path):
    """The same sources with a reader that does its work three times."""
    import bench_guard

    ours = PERF.parent / "src"
    shutil.copytree(ours / "rtmplite", tmp_path / "rtmplite")
    reader = tmp_path / "rtmplite" / "flv" / "file.py"
    slow = reader.read_text().replace(
        "found.append(Tag.parse(bytes(held[at:end])))",
        "found.append([Tag.parse(bytes(held[at:end])) for _ in range(6)][0])",
    )
    assert slow != reader.read_text()
    reader.write_text(slow)
    core = min(os.sched_getaffinity(0))
    row = bench_guard.compare("flv", ours, tmp_path, core, pairs=6)
    assert row is not None and row.worse and row.ratio > 1.5
    reader.write_text("")
    assert bench_guard.compare("flv", tmp_path, ours, core, pairs=1) is None  # it has no reader


def test_every_work_of_the_guard_is_done():
    import guard_work

    for make in guard_work.WORKS.values():
        assert make()() is None or make()()


def test_the_relay_loses_nothing(monkeypatch):
    import bench_calls
    import cpu
    import load
    from options import Options
    from results import Row

    if shutil.which("cc") is None:
        pytest.skip("no C compiler: apt-get install gcc libc6-dev, or make peers")
    monkeypatch.setattr(load, "WARM_UP", 0.1)
    monkeypatch.setattr(load, "DRAIN", PATIENCE)
    server_core, _ = cpu.two_cores()
    options = Options(0.5, 1, (4,), (), ("spread",), server_core)
    usage, tally = bench_calls.measure_relay(4, load.SPEEX_16K, "spread", options)
    assert tally.sent >= 4 * 2 * 20 and tally.lost == 0 and usage.cpu > 0
    row = Row.of("relay", "speex 16 kHz", 4, "spread", [(usage, tally)])
    assert row.mhz_each == pytest.approx(usage.cpu / usage.seconds * usage.mhz / 4)


def test_calls_and_players_of_the_gateway_lose_nothing(monkeypatch):
    import audience
    import bench_calls
    import bench_players
    import cpu
    import gateway
    import load
    from options import Options

    monkeypatch.setattr(load, "WARM_UP", 0.1)
    monkeypatch.setattr(load, "DRAIN", PATIENCE)
    monkeypatch.setattr(audience, "DRAIN", PATIENCE)
    server_core, _ = cpu.two_cores()
    options = Options(0.5, 1, (2,), (2,), ("spread",), server_core)
    for frame in (load.SPEEX_8K, load.SPEEX_16K):
        usage, tally = bench_calls.measure_gateway(2, frame, "spread", options)
        assert tally.sent >= 2 * 2 * 20 and tally.lost == 0 and usage.cpu > 0
    with gateway.Gateway(server_core) as server:
        usage, tally = bench_players.measure(server, 2, True, 0.5)
    assert tally.sent >= 2 * 30 and tally.lost == 0 and usage.cpu > 0


def test_rows_void_themselves_and_survive_json(tmp_path, monkeypatch):
    import results
    from cpu import Usage
    from load import Tally

    def row(received, late_ms):
        tally = Tally(100, received, [int(late_ms * 1e6)] * received)
        return results.Row.of("x", "y", 2, "spread", [(Usage(1.0, 0.1, 2000.0), tally)])

    assert not row(100, 9).void and row(99, 9).void and row(100, 11).void
    assert row(100, 9).mhz_each == pytest.approx(100.0)
    runs = [(Usage(1.0, 0.2, 2000.0), Tally(100, 100, [0] * 100))]
    compared = results.Row.of("z", "y", 2, "spread", runs, reference=row(100, 9))
    assert compared.ratio == pytest.approx(2.0) and compared.mhz == pytest.approx(400.0)
    alone = results.Row.of("x", "y", 0, "bunched", [(Usage(1.0, 0.1, 2000.0), Tally(0, 0, []))])
    assert alone.mhz_each == pytest.approx(200.0) and not alone.void
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    path = results.save("x", [row(100, 9)])
    assert results.read(path) == [row(100, 9)]


def test_a_flood_is_measured_beside_honest_calls(monkeypatch, tmp_path):
    """Own design: whether it loses nothing is for an idle machine to say."""
    import bench_attacks
    import cpu
    import load
    import results
    from options import Options

    monkeypatch.setattr(load, "WARM_UP", 0.1)
    monkeypatch.setattr(bench_attacks, "WARM_UP", 0.1)
    monkeypatch.setattr(bench_attacks, "RATE", 400.0)
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    options = Options(0.5, 1, (), (), (), cpu.two_cores()[0])
    rows = [
        bench_attacks.measure(kind, options, calls=2, pair=False)
        for kind in ("none", "invite", "passwords", "http", *ONE_CONNECTION)
    ]
    quiet, *floods = rows
    assert quiet.sent == 0 and quiet.frames >= 2 * 2 * 20 and len(quiet.memory) == 4
    assert all(row.sent > 100 for row in floods)
    assert all((row.answered > 0) == (row.attack != "pings") for row in floods)
    assert set(ONE_CONNECTION) < set(bench_attacks.KINDS)
    assert results.read(results.save("attacks", rows)) == rows


def test_nginx_runs_pinned():
    import cpu
    import nginx

    try:
        reference = nginx.Nginx(cpu.two_cores()[0])
    except RuntimeError as absent:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(absent))
    with reference:
        assert os.sched_getaffinity(reference.process.pid) == {reference.core}
        assert reference.meter().read().cpu < 0.1
        assert reference.url("a") == f"rtmp://127.0.0.1:{reference.port}/live/a"


def test_sip_calls_are_counted():
    import bench_sip
    import cpu
    from options import Options
    from support.peers.process import require

    require("sipp", "sip-tester")
    server_core, load_core = cpu.two_cores()
    options = Options(0.2, 1, (), (), (), server_core, load_core=load_core)
    row = bench_sip.callee(options, least=0.2)
    assert (row.calls, row.failed) == (20, 0) and 0 < row.share <= 1.05 and row.answer_ms >= 0


def test_the_table_of_calls_a_second_is_the_kept_measurement():
    """Numbers that are typed from one run stay when the next one is kept."""
    rows = json.loads((PERF / "results" / "sip.json").read_text())["rows"]
    measured = {row["subject"]: row for row in rows}
    page = (PERF / "README.md").read_text().partition("## Calls a second")[2]
    cells = re.findall(
        r"^\| .*?(user agent|p2psip|kamailio).*? \| ([\d,]+).*? \| (.*?) \|", page, re.M
    )
    table = {name: (int(rate.replace(",", "")), share) for name, rate, share in cells}
    assert list(table) == ["user agent", "p2psip", "kamailio"]
    for name, row in zip(table, ("callee", "p2psip", "kamailio"), strict=True):
        share = measured[row]["share"]
        percent = "not measured" if share is None else f"{100 * share:.0f} %"
        assert table[name] == (measured[row]["rate"], percent), name
        assert (measured[row]["failed"], measured[row]["repeated"]) == (0, 0)


def test_the_highest_clean_rate_is_found_and_compared():
    from functools import partial

    import bench_signalling
    from options import Options

    def window(most, us_each, rate):
        return bench_signalling.Rate(rate, max(0, round(rate - most)), us_each, 2.0)

    few, many = (
        bench_signalling.climb(partial(window, most, 1.0), 50, 1.25, 5000) for most in (60, 900)
    )
    assert few.rate == 50 and 900 / 1.25 < many.rate <= 900 and many.is_clean
    assert not bench_signalling.climb(partial(window, 10, 1.0), 50, 1.25, 5000).is_clean
    assert bench_signalling.climb(partial(window, 9e9, 1.0), 50, 1.25, 5000).rate <= 5000
    kinds = {"C": lambda: window(60, 200.0, 50), "ours": lambda: window(10, 500.0, 50)}
    rows = list(bench_signalling.beside("calls", kinds, Options(1.0, 3, (), (), (), 0)))
    assert [(row.subject, row.figures["ratio"], row.void) for row in rows] == [
        ("C", 1.0, False),
        ("ours", 2.5, True),
    ]


def test_a_server_is_measured_with_registrations_and_handshakes(tmp_path):
    """One server of ours takes what the generators make."""
    import bench_signalling
    import cpu
    import tls_load
    from options import Options
    from sip_servers import Proxy, register
    from support.peers.process import require

    require("openssl", "openssl")
    server_core, load_core = cpu.two_cores()
    options = Options(1.0, 1, (), (), (), server_core, load_core=load_core, small=True)
    pem = tls_load.certificate("ECDSA P-256", tmp_path)
    with Proxy(server_core, pem) as server:
        register(server.udp, 9)
        made = bench_signalling.agent(server.udp, options)
        assert made.rate > 0 and made.us_each > 0
        assert tls_load.handshakes(server.port, 1, load_core, clients=1) > 0
        assert server.meter().read().cpu >= 0


def test_pictures_are_compared_with_the_sound_of_their_moment():
    """By the clocks of the phone: one fast, one slow."""
    import together

    from rtmplite.flv.file import framed, start
    from rtmplite.flv.tag import Tag

    ppm, late = 1000.0, 25
    tags = [Tag(8, round(20 * n / 1.001), b"\x82#%08d#" % n) for n in range(500)]
    tags += [Tag(9, round(40 * n / 0.999) + late, b"\x27#%08d#" % n) for n in range(250)]
    rows = together.apart(start(True, True) + b"".join(map(framed, tags)), ppm)
    assert len(rows) >= 245
    assert all(abs(ms - late) <= 2 for _, ms in rows)
    assert rows[-1][0] == pytest.approx(0.04 * 249 / 0.999, abs=0.1)


def samples(megabytes, threads, seconds=3600):
    """What a gateway held in each second."""
    import soak

    return [
        soak.Sample(float(at), megabytes(at), threads(at), 40, at) for at in range(0, seconds, 10)
    ]


@pytest.mark.parametrize(
    ("megabytes", "threads", "faults"),
    [
        (lambda at: min(100.0, 60.0 + at), lambda at: 3, []),
        (lambda at: 100.0 + at % 60, lambda at: 3, []),  # between two collections
        (lambda at: 100.0 + at / 300, lambda at: 3, ["memory grew from 101.1 to 111.9 MB"]),
        (lambda at: 100.0, lambda at: 3 + at // 3000, ["threads grew from 3 to 4"]),
        (lambda at: 100.0, lambda at: 4 - at // 3000, []),
    ],
)
def test_a_soak_fails_where_memory_or_threads_grow(megabytes, threads, faults):
    from collections import Counter

    import soak

    ended = Counter(soak.KINDS)
    held = samples(megabytes, threads)
    verdict = soak.judge(held, Counter(), ended)
    assert verdict.faults == faults
    del ended["room"]
    verdict = soak.judge(held, Counter(video=2), ended)
    assert verdict.faults == ["2 calls of video failed", "no call of room", *faults]


def test_a_short_soak_lets_workers_start_a_thread():
    from collections import Counter

    import soak

    for more, faults in ((1, []), (2, ["threads grew from 3 to 5"])):
        held = samples(lambda at: 100.0, lambda at, more=more: 3 + more * (at > 120), 180)
        assert soak.judge(held, Counter(), Counter(soak.KINDS)).faults == faults


def test_a_soak_makes_calls_of_every_kind():
    import soak

    with soak.soaking(call_seconds=1.0) as running:
        running.run(0.5)  # and to the end of the calls
    assert set(running.ended) == set(soak.KINDS) and not running.failed
    assert running.samples[0].megabytes > 10 and running.samples[0].threads >= 1
    assert running.site.heard > 8 * 20


def test_the_largest_number_that_workers_serve_is_found():
    import bench_workers
    from results import WorkersRow

    tried = []

    def serve(count):
        tried.append(count)
        return WorkersRow("calls", 1, 0.5, count, max(0, count - 137), 5.0, (1.0,))

    found = bench_workers.most(serve, 24)
    assert 137 / bench_workers.NEAR - 1 <= found.count <= 137 and not found.void
    assert len(tried) < 15
    assert bench_workers.most(serve, 200).void
    beside = serve(100).beside(serve(50))
    assert beside.gain == 2 and "2.00" in str(beside)


def test_many_streams_have_their_publishers():
    import bench_workers
    from cpu import two_cores
    from gateway import Gateway
    from load import drive

    with Gateway(two_cores()[0], "--sip", "off", "--workers", "2") as gateway:
        clocks = bench_workers.Clocks(bench_workers.processes(gateway, 2))
        legs, players = bench_workers.legs_of(gateway, "many streams", 40)
        assert (len(legs), len(players)) == (2, 40)
        tally = drive(legs, 0.5, "spread", clocks.window, players)
        for each in (*legs, *players):
            each.close()
    assert 0 < tally.received <= tally.sent // len(legs)
    assert len(clocks.seconds) == 2 and min(clocks.seconds) > 0


def test_the_slope_of_a_table_is_what_one_player_more_takes():
    import bench_founding
    from cpu import Usage
    from load import Tally

    assert bench_founding.slope([(0, 28.0), (1, 36.5), (2, 45.0), (3, 53.5)]) == 8.5

    def runs(mhz):
        return [(Usage(1.0, mhz / 2000, 2000.0), Tally(100, 100, [0] * 100))]

    counts = (0, 1, 2, 3, 10, 100)
    found = [
        bench_founding.compared("audio", count, runs(10 + count), runs(20 + 2 * count))
        for count in counts
    ]
    assert [row.figures["ratio"] for row in found] == pytest.approx([2.0] * len(counts))
    assert found[3].figures["article"] == pytest.approx(53.25)
    assert found[4].figures["article"] is None
    publisher, few, many = bench_founding.slopes("audio", found)
    assert publisher.figures["MHz"] == pytest.approx(20.0)
    for row in (few, many):
        assert row.figures["MHz"] == pytest.approx(2.0)
        assert row.figures["reference"] == pytest.approx(1.0)
    assert few.figures["article"] == pytest.approx(0.39 * 21.3) and many.figures["article"] is None


def test_merged_messages_are_compared_with_those_that_are_not(tmp_path, monkeypatch):
    import bench_merging
    import results
    from cpu import Usage
    from load import Tally

    def window(late_ms, mhz):
        tally = Tally(100, 100, [int(late_ms * 1e6)] * 100)
        return bench_merging.Window(Usage(1.0, mhz / 2000, 2000.0), tally)

    calls = bench_merging.Calls
    reference = bench_merging.line("apart", 10, 0, [window(1, 80)], calls(1.0, 1.5), None)
    merged = bench_merging.line("apart", 10, 20, [window(25, 40)], calls(0.125, 0.3), reference)
    late = bench_merging.line("apart", 10, 20, [window(31, 40)], None, reference)
    assert (reference.figures["fewer"], merged.figures["fewer"]) == (1.0, 8.0)
    assert merged.figures["ratio"] == pytest.approx(0.5)
    assert not merged.void and late.void and late.figures["sends"] is None
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    rows = [reference, merged, late]
    assert results.read(results.save("merging", rows, small=True)) == rows


def test_system_calls_are_counted():
    import system_calls

    table = "  9.74    0.000247           7        35           openat\n"
    table += "  3.98    0.000101           0       194        12 sendmsg\n"
    table += "100.00    0.002535           4       229        12 total\n"
    assert system_calls.counts(table) == {"openat": 35, "sendmsg": 194}
    if not system_calls.is_there():
        pytest.skip("no strace")
    words = "import os, sys\nfor line in sys.stdin.buffer.raw: os.write(1, line)"
    with subprocess.Popen(
        [sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        core = min(os.sched_getaffinity(child.pid))
        with system_calls.Counted(child.pid, core) as counted:
            child.stdin.write(b"once\n")
            child.stdin.flush()
            assert child.stdout.readline() == b"once\n"
        assert counted.sends == 1
        child.stdin.close()


def test_one_system_call_sends_the_messages_of_one_time(monkeypatch):
    """However late they come: the load arrives whole, and all together by one call."""
    import bench_merging
    import load
    from cpu import two_cores
    from gateway import Gateway

    monkeypatch.setattr(load, "WARM_UP", 0.1)
    monkeypatch.setattr(load, "DRAIN", PATIENCE)
    with Gateway(two_cores()[0], "--sip", "off") as gateway:
        for arrivals in ("apart", "together"):
            run = bench_merging.measure(gateway, arrivals, arrivals, 2, 0.5)
            assert run.tally.sent >= 2 * 8 * 20 and run.tally.lost == 0
        calls = bench_merging.count(gateway, "together", 0.5)
    assert calls is None or 0 < calls.sends <= 0.25


def test_codecs_and_libraries_do_the_same():
    """The kinds compare what both have read and written before they are timed."""
    import bench_codecs

    found = [operation for kind in bench_codecs.KINDS for operation, *_ in kind()]
    assert len(found) == 15
    row = bench_codecs.row("x", "y", [(1000, 2000), (1500, 3000), (4000, 4000)])
    assert row.figures == {"us": 1.5, "library": 3.0, "ratio": 0.5, "from": 0.5, "to": 1.0}
    assert len(list(bench_codecs.sip())) == 2
    assert bench_codecs.compare("x", lambda: sum(range(300)), "y", int, 3).figures["ratio"] > 1


def test_all_ways_reach_every_track_and_are_compared():
    import bench_strategies
    import fan_out

    assert fan_out.buckets(5, 2) == [(0, 3), (3, 5)] and fan_out.buckets(1, 2) == [(0, 1)]
    with fan_out.Tracks(3, 2) as tracks:
        for text in (b"", bytes(5000)):
            tracks.work(text)
            taken = bench_strategies.in_turns(tracks, tracks.strategies(), 3, 2)  # drains each
            assert len(taken) == 5 and all(len(times) == 2 for times in taken.values())
    found = [
        row
        for count, pool in ((1, 30.0), (10, 80.0), (100, 50.0))
        for row in bench_strategies.lines({"loop": [100.0], "pool": [pool]}, "x", count)
    ]
    assert [row.figures["ratio"] for row in found] == [1.0, 0.3, 1.0, 0.8, 1.0, 0.5]
    (threshold,) = bench_strategies.thresholds(found)
    assert (threshold.subject, threshold.figures["wins from"]) == ("pool", 1.0)
    found += bench_strategies.lines({"loop": [100.0], "pool": [96.0]}, "x", 500)
    (threshold,) = bench_strategies.thresholds(found)
    assert threshold.figures["wins from"] is None


def test_the_ways_of_the_kernel_lose_nothing():
    import bench_strategies

    if shutil.which("cc") is None:
        pytest.skip("no C compiler: apt-get install gcc libc6-dev, or make peers")
    program = bench_strategies.build()
    for way in bench_strategies.WAYS:
        done = subprocess.run([program, way, "3", "8", "2"], capture_output=True, text=True)
        if done.returncode == bench_strategies.ABSENT and way != "sendto":
            continue
        assert (done.returncode, done.stderr) == (0, "")  # it reads all that it has sent
        assert len(done.stdout.splitlines()) == 2


def test_memory_is_counted_for_each_of_those_that_came_later(monkeypatch):
    from contextlib import nullcontext

    import bench_memory

    joined, resident = [], {2: 1000.0, 6: 1400.0}
    monkeypatch.setattr(bench_memory, "resident", lambda server: resident[len(joined)])

    class Peer:
        def close(self):
            joined.remove(self)

    def join(server, number):
        assert number == len(joined)
        joined.append(Peer())
        return joined[-1]

    kb, total = bench_memory.each_of(nullcontext(), join, 2, 4)
    assert kb == 100.0 and total == pytest.approx(1400 / 1024) and joined == []
    row = bench_memory.line("x", 4, kb, total, 200.0, 50.0)
    assert (row.figures["ratio"], row.figures["idle"]) == (0.5, 2.0)


def test_calls_come_and_go_for_the_memory():
    import bench_memory
    from cpu import two_cores
    from gateway import Gateway

    peer = bench_memory.Callee()
    with Gateway(two_cores()[0]) as gateway:
        bench_memory._calls(gateway, peer, 2)  # each is answered, and ended by a BYE
        assert bench_memory.resident(gateway) > 1024


def test_a_generator_reads_frames_however_they_are_cut():
    import tree_load

    whole = b"".join(
        bytes([0x80 | opcode]) + size + body
        for opcode, size, body in (
            (tree_load.TEXT, b"\x05", b"hello"),
            (tree_load.PING, b"\x00", b""),
            (tree_load.TEXT, b"\x7e" + (300).to_bytes(2), b"x" * 300),
        )
    )
    data, found = bytearray(), []
    for octet in whole:
        data.append(octet)
        found += tree_load.frames(data)
    assert found == [(1, b"hello"), (9, b""), (1, b"x" * 300)] and not data


def test_each_subscriber_of_the_tree_hears_each_event(monkeypatch, tmp_path):
    """Own design: how late it may be is for an idle machine to say."""
    import bench_tree
    import results
    from cpu import Usage, two_cores
    from gateway import Gateway
    from load import Tally

    with Gateway(two_cores()[0], "--http", "127.0.0.1:0", "--sip", "off") as gateway:
        usage, tally, kb = bench_tree.measure(gateway, 8, 5, 0.0001)
    assert tally.sent == tally.received == len(tally.late_ns) >= 5
    assert usage.cpu > 0 and min(tally.late_ns) > 0
    usage = Usage(1.0, 0.5, 2000.0)
    late = bench_tree.line(9, 5, usage, Tally(10, 10, [21_000_000] * 10), kb)
    good = bench_tree.line(9, 5, usage, Tally(10, 10, [19_000_000] * 10), kb)
    lost = bench_tree.line(9, 5, usage, Tally(10, 9, [19_000_000] * 9), kb)
    assert late.void and lost.void and not good.void and good.figures["us each"] == 50_000
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert results.read(results.save("tree", [good, late])) == [good, late]
