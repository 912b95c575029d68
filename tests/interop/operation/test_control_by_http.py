"""Calls that programs place, follow and end by HTTP, at a real gateway and a real phone."""

from pathlib import Path

import pytest
from interop.streams.test_record import probe
from support.gateway.richclient import wait_for
from support.peers.baresip import Baresip
from support.peers.peers import AAC_H264, LASTING, Ffmpeg, NginxRtmp, decode_audio
from support.peers.tones import tone_fraction
from support.resources.control import Control

from rtclab.explain.command import key_file
from rtclab.lint.command import lint
from rtclab.lint.packets import read_capture
from rtmplite.auth.credentials import user_lines
from siprtmp.web.branches.openapi import OPERATIONS

ROOT = Path(__file__).resolve().parents[3]
ENOUGH = 20_000  # octets of a capture: some 80 packets


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users"
    lines = [*user_lines("ann", "127.0.0.1", "secret"), *user_lines("bob", "127.0.0.1", "other")]
    path.write_text("\n".join([*lines, *user_lines("boss", "127.0.0.1", "third")]) + "\n")
    path.chmod(0o600)
    return path


@pytest.mark.sources  # the laboratory reads sources; this process may have what was compiled
def test_a_phone_is_called_heard_held_and_hung_up_by_http(gateway, tmp_path):
    """And captured meanwhile, from its first message to its last."""
    server = gateway("--capture-calls", str(tmp_path / "captures"), "--srtp", "any")
    control = Control(server)
    with Baresip(tmp_path / "phone", "bob", answer="manual", srtp="srtp") as phone:
        to = phone.uri
        status, name = control.ask("POST", "call", {"from": "studio", "to": to})
        assert status == 201, name
        [name] = control.calls()
        phone.wait_event("CALL_INCOMING")
        wait_for(lambda: control.ask("GET", f"call/{name}")[1]["state"] == "ringing", "ringing")
        assert control.ask("POST", "capture", {"call": name}) == (201, {"id": "1"})
        phone.accept()
        wait_for(lambda: control.ask("GET", f"call/{name}")[1]["state"] == "up", "an answer")
        assert control.ask("POST", "capture", {"call": name})[0] == 409
        assert control.ask("NOTIFY", f"call/{name}", {"digits": "5"})[0] in (200, 204)
        assert control.ask("PATCH", f"call/{name}", {"muted": True})[1]["muted"] is True
        captured = control.ask("GET", "capture/1")[1]
        wait_for(lambda: control.ask("GET", "capture/1")[1]["octets"] > ENOUGH, "packets")
        assert control.ask("DELETE", f"call/{name}")[0] in (200, 204)
        phone.wait_event("CALL_CLOSED")
        assert control.calls() == [] and control.ask("GET", f"call/{name}")[0] == 404
    check_story(control, name)
    wait_for(lambda: control.ask("GET", "capture?view=children") == (200, []), "its end")
    check_capture(tmp_path / "captures", captured)


def check_capture(folder, captured):
    """The messages of one call, and its audio, which the file of keys opens."""
    path, keys = folder / captured["file"], key_file(str(folder / captured["keys"]))
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
    capture = read_capture(path.read_bytes())
    assert not capture.fault and not capture.skipped and len(keys.srtp) == 2
    report = lint(capture, keys)
    rows = [arrow.label for each in report.diagrams if each.kind == "call" for arrow in each.arrows]
    for wanted in ("INVITE (SDP)", "180", "200 OK (SDP)", "ACK", "BYE"):
        assert any(row.startswith(wanted[:3]) for row in rows), (wanted, rows)
    assert rows[0].startswith("INVITE") and "200" in rows[-1], rows
    assert {each.is_open for each in report.streams} == {True}, report.streams


def check_story(control, name):
    """What is kept of a call that went well, and of who has placed and ended it."""

    def read(path):
        status, said = control.ask("GET", path)
        assert status == 200, (path, said)
        return said

    wait_for(lambda: "200 OK (BYE)" in str(read(f"call/{name}/ladder")), "the answer to BYE")
    steps = [(each["from"], each["text"]) for each in read(f"call/{name}/ladder")["steps"]]
    for step in (("gateway", "INVITE"), ("phone", "200 Answering (INVITE)"), ("gateway", "BYE")):
        assert step in steps
    lines = read(f"call/{name}/log")["lines"]
    assert "call-start" in lines[0] and any("call-end" in line for line in lines)
    [ended] = read("gateway/ended")["calls"]
    assert (ended["id"], ended["reason"]) == (name, "operator")
    assert read(f"call/{name}/advice") == {} and "samples" in read(f"call/{name}/quality")
    entries = read("gateway/audit")["entries"]
    assert [each["method"] for each in entries if each["resource"] != "/capture"] == [
        *("DELETE", "PATCH", "NOTIFY", "POST")
    ]
    assert entries[-1]["entity"]["from"] == "studio"
    assert entries[2]["entity"] == {"digits": "..."} and entries[3]["entity"] == {"call": name}


@pytest.mark.needs("baresip", "ffmpeg", "nginx")
def test_streams_are_recorded_and_pushed_when_an_operator_asks(gateway, start, users, tmp_path):
    """And no others are; what was recorded is played by ffprobe, what was pushed by ffmpeg."""
    here, nginx = tmp_path / "here", start(NginxRtmp)
    folder = ("--record", str(here), "--record-when", "asked")
    listed = ("--tree-push", f"127.0.0.1:{nginx.port}")
    server = gateway(*folder, *listed, "--users", str(users), "--operator", "boss")
    ann, boss = Control(server, "ann:secret"), Control(server, "boss:third")
    url = f"rtmp://ann:secret@{server.rtmp}/live/demo"
    start(Ffmpeg.publish, url, codecs=AAC_H264, video=True, seconds=LASTING)
    phone = start(Baresip, "bob", hz=900)
    assert boss.ask("POST", "call", {"from": "studio", "to": phone.uri})[0] == 201
    phone.wait_event("CALL_ESTABLISHED")
    [call] = boss.calls()
    for path in ("stream/call/studio", "stream/live/demo"):
        wait_for(lambda path=path: "seconds" in str(boss.ask("GET", path)[1]), path)
    assert ann.ask("POST", "recording", {"stream": "live/demo"})[0] == 403
    assert boss.ask("POST", "recording", {"stream": "live/none"})[0] == 404
    for number, wanted in (("1", {"stream": "live/demo"}), ("2", {"call": call})):
        assert boss.ask("POST", "recording", wanted) == (201, {"id": number})
        assert boss.ask("POST", "recording", wanted)[0] == 409
        path = f"recording/{number}"
        wait_for(lambda path=path: boss.ask("GET", path)[1]["seconds"] > 2, path)
    assert boss.ask("DELETE", "recording/1")[0] in (200, 204)
    check_push(start, boss, nginx)
    assert boss.ask("DELETE", f"call/{call}")[0] in (200, 204)
    wait_for(lambda: server.status()["recordings"] == 0, "the files to be closed")
    assert boss.ask("GET", "recording?view=children") == (200, [])
    assert {str(each.relative_to(here)) for each in here.rglob("*.flv")} == {
        *("live/demo.flv", "call/studio.flv")
    }
    film = probe(here / "live" / "demo.flv")
    assert {each["codec_name"] for each in film["streams"]} == {"h264", "aac"}
    assert float(film["format"]["duration"]) > 2
    assert tone_fraction(decode_audio(here / "call" / "studio.flv"), 8000, 900) > 0.95


def check_push(start, boss, nginx):
    """A stream reaches the one server that is listed."""
    wanted = {"stream": "live/demo", "url": nginx.url("secret")}
    elsewhere = {**wanted, "url": "rtmp://127.0.0.1:9/live/secret"}
    assert boss.ask("POST", "push", elsewhere)[0] == 403
    assert boss.ask("POST", "push", wanted) == (201, {"id": "1"})
    wait_for(lambda: boss.ask("GET", "push/1")[1]["state"] == "running", "the push")
    assert "secret" not in str(boss.ask("GET", "push/1"))
    film = start(Ffmpeg.play, nginx.url("secret"), to=nginx.folder / "copy.flv", seconds=2)
    assert film.finish() == 0
    found = probe(nginx.folder / "copy.flv")
    assert {each["codec_name"] for each in found["streams"]} == {"h264", "aac"}
    assert boss.ask("DELETE", "push/1")[0] in (200, 204)
    assert boss.ask("GET", "push/1")[0] == 404


def test_a_user_cannot_touch_the_calls_of_another(gateway, users, tmp_path):
    server = gateway("--users", str(users), "--operator", "boss")
    ann, bob, boss = (Control(server, who) for who in ("ann:secret", "bob:other", "boss:third"))
    with Baresip(tmp_path / "phone", "bob") as phone:
        to = phone.uri
        assert ann.ask("POST", "call", {"from": "ann", "to": to})[0] == 201
        [name] = ann.calls()
        assert bob.calls() == [] and boss.calls() == [name]
        for method, value in (
            ("GET", None),
            ("DELETE", None),
            ("PATCH", {"muted": True}),
            ("NOTIFY", {"digits": "1"}),
        ):
            assert bob.ask(method, f"call/{name}", value)[0] == 403
        assert bob.ask("POST", "call", {"from": "ann", "to": to})[0] == 403
        assert bob.ask("GET", "stream")[0] == 403 and boss.ask("GET", "stream")[0] == 200
        assert ann.ask("DELETE", f"call/{name}")[0] in (200, 204)


def test_no_page_of_another_site_places_a_call(gateway):
    control = Control(gateway())
    order = {"from": "studio", "to": "sip:bob@127.0.0.1:9"}
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        assert control.ask("POST", "call", order, **headers)[0] in (403, 421)
    assert control.calls() == []


def test_each_path_of_the_openapi_document_answers(gateway):
    control = Control(gateway("--room", "team", "--tree-webhook", "crm.example"))
    status, said = control.ask("GET", "openapi")
    assert status == 200 and said["openapi"] == "3.1.0"
    assert len(said["paths"]) == len(OPERATIONS)
    for path, item in said["paths"].items():
        below = path.removeprefix("/tree/")
        if "{" not in below:
            assert control.ask("GET", below)[0] == 200, path
            continue
        names = {"{room}": "team"}
        for each in [part for part in below.split("/") if part.startswith("{")]:
            below = below.replace(each, names.get(each, "none"))
        for method in set(item) - {"parameters"}:
            word = method.removeprefix("x-").upper()
            value = {} if word in ("PUT", "PATCH", "NOTIFY") else None
            expected = {200} if below.endswith("team") else {404, 405, 422}
            assert control.ask(word, below, value)[0] in expected, (word, below)


def test_the_manual_has_each_path_and_method():
    page = (ROOT / "docs/3-howto/control-by-http.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| `/tree/")]
    for (branch, below), operations in OPERATIONS.items():
        [line] = [each for each in lines if f"`/tree/{branch}{below}`" in each]
        assert all(each.method in line or each.method == "PUT" for each in operations), line
