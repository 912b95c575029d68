"""`python -m siprtmp calls` against a running gateway: what goes on, and an end to it."""

import json
import socket
import stat
import subprocess
import sys

import pytest
from support.attacks.hostile_sip import Callee, Caller, SipAttacker, sdp
from support.gateway.gateway import Gateway
from support.gateway.richclient import RichClient, wait_for

from p2psip.sip.build import response_to
from p2psip.sip.message import parse_message
from rtmplite.net.client.rtmp_client import RtmpClient
from siprtmp import __main__
from siprtmp.edge.control_socket import MAX_REQUEST
from siprtmp.media.transcode import audio_decoder


@pytest.fixture
def calls(capsys):
    """`calls(folder, *words)`: the command: exit code, output, errors."""

    def run(folder, *words):
        code = __main__.main(["calls", "--state", str(folder), *words])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def listed(calls):
    """`listed(folder)`: what programs read."""

    def run(folder):
        code, out, errors = calls(folder, "--json")
        assert code == 0 and not errors
        return json.loads(out)

    return run


def test_the_operator_sees_a_call_a_stream_and_a_phone_and_ends_each(
    gateway, calls, listed, tmp_path
):
    state = tmp_path / "state"
    server = gateway("--state", str(state), "--sip-t1", "50")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "control.sock").stat().st_mode) == 0o600
    assert listed(state) == {"calls": [], "registrations": [], "streams": [], "trunks": []}
    alice = RichClient(server.rtmp, "alice@127.0.0.1")
    caller = Caller(server, "alice")
    caller.call(alice)
    alice.open_streams()
    publisher = RtmpClient.connect(server.url("live"))
    publisher.create_stream().publish("demo")
    bob = SipAttacker(server)
    assert bob.ask("REGISTER", "sip:127.0.0.1", To="<sip:bob@127.0.0.1>", Expires="60") == 200

    now = listed(state)
    [call], [phone] = now["calls"], now["registrations"]
    assert call["state"] == "up" and call["direction"] == "in" and call["codec"] == "wideband"
    assert call["caller"] == "sip:mallory@evil.invalid" and call["callee"] == "sip:alice@127.0.0.1"
    assert call["source"] == "UDP:127.0.0.1" and call["lost_from_phone"] is None
    assert phone["user"] == "sip:bob@localhost" and phone["source"] == "UDP:127.0.0.1"
    assert 0 < phone["expires"] <= 60
    [demo] = [each for each in now["streams"] if each["name"] == "live/demo"]
    assert demo["source"] == "RTMP:127.0.0.1" and demo["id"]

    code, out, _ = calls(state)
    assert code == 0 and all(each["id"] in out for each in (call, phone, demo))
    assert calls(state, "--end", "nobody") == (1, "", "siprtmp: no id begins with 'nobody'\n")

    if audio_decoder.is_available():
        stream = f"mixed/{call['rtmp']}"
        assert calls(state, "--mix", call["id"][:10]) == (0, f"mixed: {stream}\n", "")
        [mixed] = [each for each in listed(state)["streams"] if each["name"] == stream]
        assert mixed["codecs"] == ["aac"]
        assert calls(state, "--unmix", call["id"]) == (0, f"unmixed: {stream}\n", "")
    answer = (1, "", "siprtmp: that call is not mixed\n")
    assert calls(state, "--unmix", call["id"]) == answer
    assert calls(state, "--end", call["id"]) == (0, "ended: call\n", "")
    alice.expect("byed")
    while not (heard := caller.heard()).startswith(b"BYE "):
        assert heard is not None
    assert calls(state, "--end", phone["id"][:6])[1] == "ended: registration\n"
    assert calls(state, "--end", demo["id"])[1] == "ended: publisher\n"
    wait_for(lambda: publisher.closed, "the publisher's end")
    left = listed(state)
    assert not left["calls"] + left["registrations"]
    assert "live/demo" not in [each["name"] for each in left["streams"]]
    for line in ("call-end call=", "unregistered source=", "disconnected rtmp="):
        assert any(line in each and "operator" in each for each in server.output.splitlines())
    alice.close()


def test_no_gateway_is_one_line_and_exit_code_2(calls, tmp_path):
    (tmp_path / "file").write_text("")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "control.sock"))
    for folder in (tmp_path, tmp_path / "none", tmp_path / "file", tmp_path / ("x" * 120)):
        code, out, errors = calls(folder)
        assert (code, out) == (2, "") and errors.startswith(f"siprtmp: --state {folder}: ")
        assert errors.count("\n") == 1
    assert calls(tmp_path, "--sing")[0] == 2


def test_a_stale_socket_is_replaced_a_running_gateways_never(gateway, calls, tmp_path):
    state = tmp_path / "state"
    first = Gateway(tmp_path / "first", "--state", str(state)).__enter__()
    words = [sys.executable, "-m", "siprtmp", "--rtmp", "127.0.0.1:0", "--rtmfp", "off"]
    words += ["--sip", "off", "--http", "off", "--state", str(state)]
    second = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert second.returncode == 2 and "another running gateway" in second.stderr
    assert calls(state)[0] == 0
    first.child.kill()
    first.child.wait(10)
    assert (state / "control.sock").exists() and calls(state)[0] == 2
    third = gateway("--state", str(state))
    assert calls(state)[0] == 0
    assert third.stop() == 0 and not (state / "control.sock").exists()


@pytest.mark.parametrize(
    "said", [b"\n", b"[]\n", b'{"do": 3}\n', b'{"do": "end", "id": 7}\n', b"x" * MAX_REQUEST]
)
def test_the_socket_answers_nonsense_with_an_error(said, operated):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(operated))
        client.sendall(said)
        assert set(json.loads(client.makefile().readline())) == {"error"}


@pytest.fixture(scope="module")
def operated(tmp_path_factory):
    """The control socket of a gateway that does nothing else."""
    folder = tmp_path_factory.mktemp("operated")
    with Gateway(folder / "gateway", "--sip", "off", "--state", str(folder / "state")):
        yield folder / "state" / "control.sock"


def test_a_call_between_two_phones_ends_with_a_bye_to_each(gateway, calls, listed, tmp_path):
    """Covers RFC 3261 §15.1.1: a stolen password is stopped though the call only passes through."""
    state = tmp_path / "state"
    server = gateway("--state", str(state), "--sip-t1", "50")
    alice, bob = Callee(server), Callee(server)
    assert bob.ask("REGISTER", "sip:127.0.0.1", To="<sip:bob@127.0.0.1>") == 200
    alice.send(alice.request("INVITE", "sip:bob@127.0.0.1", body=sdp()))
    invite = bob.invite()
    contact = [("Contact", f"<sip:bob@127.0.0.1:{bob.port}>")]
    bob.send(bytes(response_to(parse_message(invite), 200, to_tag="b", headers=contact)))
    while not alice.heard().startswith(b"SIP/2.0 200"):
        pass
    [call] = listed(state)["calls"]
    assert (call["direction"], call["state"]) == ("through", "up")
    assert call["callee"] == "sip:bob@127.0.0.1" and call["source"] == "UDP:127.0.0.1"
    assert calls(state, "--end", call["id"])[0] == 0
    for phone in (bob, alice):
        while not (heard := phone.heard() or b"").startswith(b"BYE "):
            assert heard
        phone.settle(heard)
    server.wait_until(lambda: not listed(state)["calls"], what="the end of the call")
    assert f"proxy-end call={call['id']} reason=operator" in server.output


def test_a_call_by_an_address_is_shown_by_that_address(gateway, listed, tmp_path):
    """RFC 3261 §16.5: routes match the domain by any of its names; people see the one called."""
    state, records, path = (tmp_path / each for each in ("state", "calls.jsonl", "siprtmp.toml"))
    routes = {"news@127.0.0.1": 'stream = "studio"', "far@127.0.0.1": 'to = "sip:bob@localhost"'}
    path.write_text("".join(f'[[route]]\nmatch = "{a}"\n{to}\n' for a, to in routes.items()))
    words = ("--config", str(path), "--state", str(state), "--call-records", str(records))
    server = gateway(*words, "--sip-t1", "100", "--log-format", "json")
    bob, caller, other = Callee(server), Caller(server, "news"), Caller(server, "far")
    contact = f"<sip:bob@127.0.0.1:{bob.port}>"
    assert bob.ask("REGISTER", "sip:localhost", To="<sip:bob@localhost>", Contact=contact) == 200
    assert caller.ask_raw(caller.within("INVITE", body=caller.offer)) == 200
    other.send(other.within("INVITE", body=other.offer))
    invite = bob.invite()
    assert invite.startswith(f"INVITE sip:bob@127.0.0.1:{bob.port} ".encode())
    shown = {each["direction"]: each["callee"] for each in listed(state)["calls"]}
    assert shown == {"in": "sip:news@127.0.0.1", "through": "sip:far@127.0.0.1"}
    server.stop()
    events = [json.loads(line) for line in server.output.splitlines() if line.startswith("{")]
    said = {each["event"]: each["callee"] for each in events if "callee" in each}
    assert said == {"call-start": "sip:news@127.0.0.1", "proxy-start": "sip:far@127.0.0.1"}
    [kept] = [json.loads(line) for line in records.read_text().splitlines()]
    assert kept["callee"] == "sip:news@127.0.0.1"
