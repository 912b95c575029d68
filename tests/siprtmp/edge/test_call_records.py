"""A call that has ended leaves one line of JSON, and counts in `/metrics`."""

import json
import re
import signal
import urllib.request
from datetime import datetime
from time import monotonic

import pytest
from support.gateway.gateway import Gateway
from support.gateway.gateway_world import AUDIO, BOB, DESK, HOME, Log, sdp

from p2psip.rtp.rtcp import ReceiverReport, ReportBlock, compound
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from rtmplite.errors import RemoteError
from rtmplite.net.client.rtmp_client import RtmpClient
from siprtmp.calls.quality import summary
from siprtmp.edge.call_records import MAX_LINES, CallRecords, UnfinishedCalls, left_behind
from siprtmp.edge.metrics import COUNTERS, EVERY, CallTotals, LoopLag, page
from siprtmp.operation.arguments import ConfigError

SOUND = b"\x82" + b"s" * 160
WALL = 1_000_000_000.0


@pytest.fixture
def file(tmp_path):
    return tmp_path / "calls.jsonl"


@pytest.fixture
def totals(world, file):
    """Records and totals of the gateway's calls."""
    totals, records = CallTotals(), CallRecords(file, world.gateway.log, lambda: WALL)

    def on_end(call, reason, now):
        totals.end(call, reason, now)
        records.write(call, reason, now)

    world.gateway.context.on_end = on_end
    world.gateway.context.on_begin = records.begin
    yield totals
    records.close()
    assert [path.name for path in file.parent.iterdir() if path.suffix == ".begun"] == []


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def talk(world, desk):
    """A call of ten seconds, of which the phone loses a tenth and sends three packets of four."""
    tool = world.tool()
    stream = tool.publish(BOB)
    world.wait(1.0)
    for sequence in (1, 2, 3, 5):
        header = b"\x80\x00" + sequence.to_bytes(2, "big") + bytes(8)
        world.gateway.audio.on_rtp(header + b"p" * 160, world.now)
    for i in range(50):
        tool.write(AUDIO, 20 * i, stream, SOUND)
    world.wait(2.0)
    ours = int.from_bytes(world.gateway.media.sent[0][1][8:12], "big")
    block = ReportBlock(ours, 25, 5, 60, 160, 0, 0)
    world.gateway.audio.on_rtcp(compound(ReceiverReport(9, (block,))), world.now)
    world.wait(7.0)
    return tool


def test_the_line_of_a_call_that_was_up(world, desk, totals, file):
    """Covers RFC 3550 §6.4.1: loss each way, jitter, and what both are worth."""
    talk(world, desk)
    live = summary(world.gateway.context.calls)
    assert live["mos_lowest"] == live["mos_mean"] == pytest.approx(2.63, abs=0.05)
    desk.calls[0].bye(world.now)
    world.wait()
    [line] = lines(file)
    assert (line["reason"], line["direction"], line["callee"]) == ("BYE", "out", f"sip:{BOB}")
    assert (line["codec"], line["trunk"]) == ("pcmu", None)
    assert (line["sent"], line["received"]) == (50, 4)
    assert (line["lost_from_phone"], line["lost_to_phone"]) == (20.0, 10.0)
    assert line["jitter_to_phone_ms"] == 20.0
    assert line["mos_from_phone"] == pytest.approx(2.63, abs=0.05)
    assert line["mos_to_phone"] == pytest.approx(3.42, abs=0.05)
    begin, end = (datetime.fromisoformat(line[name]).timestamp() for name in ("begin", "end"))
    answered = datetime.fromisoformat(line["answered"]).timestamp()
    assert begin <= answered and end - answered == pytest.approx(line["seconds"], abs=0.1)
    assert line["transcoding"] == []
    assert begin >= WALL and end - begin == pytest.approx(line["seconds"], abs=0.1)
    assert line["seconds"] == pytest.approx(10, abs=0.2)
    assert file.stat().st_mode & 0o007 == 0
    assert totals.ended == {("out", "answered"): 1} and totals.mos.count == 1
    assert summary(()) == {"mos_lowest": None, "mos_mean": None}
    assert world.is_clean()


def test_a_call_id_that_is_no_text(world, desk, alice, totals, file):
    """Own design: a strict reader of the records is not stopped by a stranger's octet."""
    to, me = (Address(Uri("sip", "alice", host=host)) for host in (HOME, DESK))
    agent, now = desk.agent, world.now
    call = agent.invite(to, me, desk.contact, sdp("0"), desk, now, call_id="a\udc85b")
    world.wait()
    call.bye(world.now)
    world.wait()
    text = file.read_bytes().decode("ascii")
    assert json.loads(text)["id"] == "a\ufffdb"


@pytest.mark.parametrize(
    ("answers", "reason", "outcome"),
    [(486, "486 Busy Here", "busy"), (503, "503 No", "5xx"), (404, "404 No", "4xx")],
)
def test_the_line_of_a_call_that_failed(world, desk, totals, file, answers, reason, outcome):
    desk.answers = answers
    world.tool().publish(BOB)
    world.wait()
    [line] = lines(file)
    assert (line["reason"], line["seconds"], line["codec"]) == (reason, 0.0, None)
    assert totals.ended == {("out", outcome): 1} and totals.mos.count == 0
    assert world.is_clean()


def test_a_call_that_its_caller_cancels(world, desk, alice, totals, file):
    call = desk.ring("alice", world.now)
    world.wait()
    call.bye(world.now)
    world.wait()
    assert totals.ended == {("in", "cancelled"): 1}
    assert lines(file)[0]["direction"] == "in"
    assert world.is_clean()


def test_a_file_that_was_moved_away_is_begun_again(world, desk, totals, file):
    desk.answers = 486
    for _ in range(2):
        world.tool().publish(BOB)
        world.wait()
        assert len(lines(file)) == 1
        file.rename(file.with_suffix(".old"))
    assert world.is_clean()


def test_a_file_that_cannot_be_written(world, desk, totals, file):
    """At the start it is the operator's mistake; later it is said once, and calls go on."""
    with pytest.raises(ConfigError, match="--call-records"):
        CallRecords(file / "below", Log())
    desk.answers = 486
    file.unlink()
    file.mkdir()
    for _ in range(2):
        world.tool().publish(BOB)
        world.wait()
    said = [what for what, _ in world.gateway.log.lines if what == "no-call-record"]
    assert said == ["no-call-record"]
    file.rmdir()
    world.tool().publish(BOB)
    world.wait()
    assert len(lines(file)) == 1
    assert world.is_clean()


def test_the_metrics_page(world, desk, totals):
    """In the text format of Prometheus: each metric has a type, and each value a number."""
    talk(world, desk)
    desk.calls[0].bye(world.now)
    world.wait()
    lag = LoopLag()
    lag.deadline = 8.0
    lag.tick(8.004)
    assert lag.deadline == 8.004 + EVERY
    status = {"version": "1.2", "calls": 1, "mos_lowest": 3.5, "mos_mean": None, "sip_repeated": 7}
    text = page(status, totals, lag.seen)
    assert text.endswith("\n")
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert values['siprtmp_info{version="1.2"}'] == values["siprtmp_calls"] == "1"
    assert values["siprtmp_mos_lowest"] == "3.5" and "siprtmp_mos_mean" not in values
    assert values["siprtmp_sip_repeated_total"] == "7" and "sip_repeated" in COUNTERS
    assert values['siprtmp_calls_ended_total{direction="out",outcome="answered"}'] == "1"
    assert values['siprtmp_call_seconds_bucket{le="10"}'] <= "1"
    assert values['siprtmp_call_mos_bucket{le="+Inf"}'] == values["siprtmp_call_mos_count"] == "1"
    assert values['siprtmp_loop_lag_seconds_bucket{le="0.005"}'] == "1"
    assert values['siprtmp_loop_lag_seconds_bucket{le="0.002"}'] == "0"
    typed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    for name in values:
        bare = name.partition("{")[0]
        family = bare.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        assert bare in typed or family in typed
        float(values[name])
    assert world.is_clean()


def test_a_gateway_serves_its_metrics_and_writes_its_records(tmp_path):
    """The loop's lag is measured, and a call that failed is in both."""
    records, begun = tmp_path / "calls.jsonl", monotonic()
    with Gateway(tmp_path / "gateway", "--call-records", str(records)) as gateway:
        peer = RtmpClient.connect(gateway.url("call"))
        with pytest.raises(RemoteError):
            peer.create_stream().publish("nobody@127.0.0.1")
        url = f"http://{gateway.listeners['http']}/metrics"

        def measured():
            with urllib.request.urlopen(url, timeout=20) as answer:
                text = answer.read().decode()
            ended = 'siprtmp_calls_ended_total{direction="out",outcome="4xx"} 1\n' in text
            assert "\nsiprtmp_loop_lag_ms " in text and "\nsiprtmp_media_left_out_total 0\n" in text
            return ended and "siprtmp_loop_lag_seconds_count 0\n" not in text

        gateway.wait_until(measured, what="the metrics")
        with urllib.request.urlopen(url, timeout=20) as answer:
            [count] = re.findall(rb"loop_lag_seconds_count (\d+)", answer.read())
        assert 1 <= int(count) <= (monotonic() - begun) / EVERY  # it measures, and costs nothing
    assert lines(records)[0]["reason"] == "480 Not Registered"


def test_a_gateway_that_is_killed_leaves_the_records_of_its_calls(tmp_path):
    """They are written at the next start, and once; a gateway that lives keeps its own."""
    records, words = tmp_path / "calls.jsonl", ("--call-records", str(tmp_path / "calls.jsonl"))
    with Gateway(tmp_path / "callee", "--room", "hall", *words) as callee:
        killed = Gateway(tmp_path / "killed", *words).start()
        peer = RtmpClient.connect(killed.url("call"))
        peer.create_stream().publish(f"hall@{callee.sip}")
        killed.wait_status({"calls": 1})
        killed.child.kill()
        assert killed.finish() == -signal.SIGKILL
        assert records.read_text() == ""
        for number in range(2):
            with Gateway(tmp_path / f"next{number}", *words):
                pass
            [line] = lines(records)
        assert (line["reason"], line["direction"]) == ("gateway gone", "out")
        assert line["codec"] in ("opus", "pcmu")  # with the extra, or without
        assert line["callee"] == f"sip:hall@{callee.sip}" and line["answered"] > line["begin"]
        assert line["end"] is line["seconds"] is None
    assert [each["direction"] for each in lines(records)] == ["out", "in"]
    assert list(tmp_path.glob("*.begun")) == []


def test_the_calls_that_have_begun_need_little_room(tmp_path):
    """However many have ended, and a last line may be cut short."""
    begun, longest = UnfinishedCalls(tmp_path / "calls.jsonl"), 0
    begun.note("stays", {"id": "stays"})
    for number in range(2 * MAX_LINES):
        begun.note(number, {"id": str(number)})
        begun.forget(number)
        longest = max(longest, begun.path.stat().st_size)
    begun.note("stays", {"id": "stays", "codec": "pcmu"})
    begun.note("last", {"id": "last"})
    begun.forget("never noted")
    assert longest < 100 * MAX_LINES
    copy = tmp_path / "calls.jsonl.dead.begun"
    copy.write_bytes(begun.path.read_bytes()[:-3])
    (tmp_path / "other.jsonl.dead.begun").write_bytes(begun.path.read_bytes())
    assert list(left_behind(tmp_path / "calls.jsonl")) == [{"id": "stays", "codec": "pcmu"}]
    assert not copy.exists() and begun.path.exists()
    begun.forget("stays")
    begun.forget("last")
    assert begun.path.read_bytes() == b""
    begun.close()


def test_a_folder_that_takes_no_other_file_costs_only_what_a_killed_gateway_would_leave(
    tmp_path, monkeypatch
):
    """The log says so, and records are written as ever."""

    def refuse(*words):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("siprtmp.edge.call_records.tempfile.mkstemp", refuse)
    log = Log()
    CallRecords(tmp_path / "calls.jsonl", log).close()
    assert log.lines == [
        ("no-call-record", {"file": tmp_path, "reason": "Permission denied"}),
    ]


def test_the_worst_lag_is_that_of_the_last_half_of_a_minute():
    """And it is forgotten after a whole one."""
    lag, at = LoopLag(), 60.0
    lag.deadline = at
    lag.tick(at + 0.25)
    assert lag.worst == 0.25
    seen = {}
    while at < 150.0:
        at = lag.deadline
        lag.tick(at)
        seen[at] = lag.worst
    assert min(worst for when, worst in seen.items() if when < 90) == 0.25
    assert max(worst for when, worst in seen.items() if when > 121) < 0.01
