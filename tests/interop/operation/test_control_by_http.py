"""Calls that programs place, follow and end by HTTP, at a real gateway and a real phone."""

from pathlib import Path

import pytest
from support.gateway.richclient import wait_for
from support.peers.baresip import Baresip
from support.resources.control import Control

from rtmplite.auth.credentials import user_lines
from siprtmp.web.branches.openapi import OPERATIONS

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users"
    lines = [*user_lines("ann", "127.0.0.1", "secret"), *user_lines("bob", "127.0.0.1", "other")]
    path.write_text("\n".join([*lines, *user_lines("boss", "127.0.0.1", "third")]) + "\n")
    path.chmod(0o600)
    return path


def test_a_phone_is_called_heard_held_and_hung_up_by_http(gateway, tmp_path):
    server = gateway()
    control = Control(server)
    with Baresip(tmp_path / "phone", "bob", answer="manual") as phone:
        to = phone.uri
        status, name = control.ask("POST", "call", {"from": "studio", "to": to})
        assert status == 201, name
        [name] = control.calls()
        phone.wait_event("CALL_INCOMING")
        wait_for(lambda: control.ask("GET", f"call/{name}")[1]["state"] == "ringing", "ringing")
        phone.accept()
        wait_for(lambda: control.ask("GET", f"call/{name}")[1]["state"] == "up", "an answer")
        assert control.ask("NOTIFY", f"call/{name}", {"digits": "5"})[0] in (200, 204)
        assert control.ask("PATCH", f"call/{name}", {"muted": True})[1]["muted"] is True
        assert control.ask("DELETE", f"call/{name}")[0] in (200, 204)
        phone.wait_event("CALL_CLOSED")
        assert control.calls() == [] and control.ask("GET", f"call/{name}")[0] == 404
    check_story(control, name)


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
    assert [each["method"] for each in entries] == ["DELETE", "PATCH", "NOTIFY", "POST"]
    assert entries[-1]["entity"]["from"] == "studio" and entries[2]["entity"] == {"digits": "..."}


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
