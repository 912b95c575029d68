"""What is noted of a call while it runs, and after its end."""

import logging
from dataclasses import replace

import pytest
from support.gateway.gateway_world import AUDIO, DESK, Desk, GatewayWorld

from p2psip.rtp.session import Statistics
from p2psip.transaction.flow import Flow
from siprtmp.core.placing import Placing
from siprtmp.edge.branches.call_lines import CallLines
from siprtmp.edge.overview import call_row
from siprtmp.operation.logs import Log
from siprtmp.web.branches.advice import MissingMedia, advised, codes
from siprtmp.web.branches.call_branch import CallBranch
from siprtmp.web.branches.call_stories import MAX_ENDED, CallStories
from siprtmp.web.branches.call_story import (
    MAX_KEPT,
    MAX_STEPS,
    PARTS,
    CallStory,
    Clients,
    Media,
    Sip,
)
from siprtmp.web.branches.roles import Roles
from siprtmp.web.branches.sip_step import MAX_OCTETS, call_id_in, causes_in, step_of
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JSON, Entity
from siprtmp.web.resources.mode import Right

HERE, CLERK, ANN = Asker(host="127.0.0.1"), Asker("clerk"), Asker("ann")
PHONE = f"user@{DESK}"
SECRETS = (
    b"INVITE sip:bob:hush@host SIP/2.0\r\nFrom: <sip:ann:hush@host>;tag=1\r\ni: a@b\r\n"
    b"CSeq: 1 INVITE\r\nProxy-Authorization: Digest response=hush\r\nm: <sip:ann@10.0.0.9>\r\n"
    b"Content-Type: application/sdp\r\n\r\nv=0\r\nm=audio 1 RTP/SAVP 0\r\n"
    b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:hush\r\na=ice-pwd:hush\r\na=rtpmap:0 PCMU/8000\r\n"
)


class Teller:
    """Subscribers of everything."""

    def __init__(self):
        self.heard, self.gone = [], []

    def changed(self, path, change, entity):
        if len(path) == 2:
            self.gone.append(path)

    def notify(self, path, entity):
        if len(path) == 2:
            self.heard.append((path[1], entity.data))

    def is_heard(self, path):
        return True


class Rig:
    """A gateway in memory whose calls are noted."""

    def __init__(self):
        self.world = GatewayWorld()
        self.desk = Desk(self.world.link)
        core, world = self.world.gateway.core, self.world
        roles = Roles([], is_local=True, viewers=["clerk"])
        placing = Placing(core, core.names, world.registry)
        self.stories = stories = CallStories(1000.0)
        self.branch = CallBranch(roles, placing, call_row, lambda: world.now, lambda: None)
        self.branch.stories = stories
        core.context.on_event = self.branch.on_event
        core.stack.watch = lambda data, flow, is_sent: stories.message(
            data, flow, world.now, is_sent=is_sent
        )
        self.teller = Teller()
        self.branch.attach(self.teller)

    def place(self):
        self.name = self.branch.create((), Entity(JSON, {"from": "studio", "to": PHONE}), HERE)
        self.world.wait()
        return self.name

    def read(self, part):
        return self.branch.read((self.name, part)).data

    def steps(self):
        steps = self.read("ladder")["steps"]
        return [(each["from"], each["protocol"], each["text"]) for each in steps]

    def run(self, seconds, act=lambda: None):
        """Let whole seconds pass, as the edge does."""
        for _ in range(seconds):
            act()
            self.world.wait(1.0)
            self.stories.tick(self.world.now)


@pytest.fixture
def rig():
    return Rig()


def test_the_ladder_has_each_message_of_the_call_from_its_first(rig):
    rig.place()
    shown = [each for each in rig.steps() if each[2] != "100 Trying (INVITE)"]
    assert shown == [
        ("gateway", "SIP", "INVITE"),
        ("phone", "SIP", "200 OK (INVITE)"),
        ("gateway", "SIP", "ACK"),
    ]
    first = rig.read("ladder")["steps"][0]
    assert first["at"] == 0 and f"To: <sip:{PHONE}>" in first["detail"]
    assert "m=audio" in first["detail"] and f"{DESK}:5060" in first["detail"]
    rig.branch.remove((rig.name,), HERE)
    rig.world.wait()
    assert ("gateway", "SIP", "BYE") in rig.steps() and rig.branch.read((rig.name,)) is None
    told = [said["step"]["text"] for part, said in rig.teller.heard if part == "ladder"]
    assert told[-2:] == ["BYE", "200 OK (BYE)"]


def test_a_call_that_comes_is_noted_from_its_invite(rig):
    rig.world.tool().publish("studio")
    rig.desk.ring("studio", rig.world.now)
    rig.world.wait()
    [rig.name] = rig.branch.children(())
    assert rig.steps()[0] == ("phone", "SIP", "INVITE")
    assert rig.branch.children((rig.name,)) == [*PARTS]


def test_clients_keys_and_reports_are_steps_once():
    """With a browser, whose keys come by DTLS."""
    seen = Statistics(9, 900, 9, 900, 0, 1.0, 0, None, 0, 0.0, 0.0)
    story = CallStory("a", "a", 0.0)
    story.begin(Clients(publishes=True), 0.0)
    story.up_at, suite = 1.0, "AES_CM_128_HMAC_SHA1_80"
    media = Media("opus", 9, 9, seen, True, suite, Clients(publishes=True))
    later = media._replace(rtp=replace(seen, rtt=0.0213), clients=Clients(players=2))
    for at, each in ((1.0, media), (2.0, media), (8.0, later), (14.0, later)):
        story.look(lambda each=each: each, at)
    steps = story.read("ladder", 14.0)["steps"]
    told = [(each["at"], each["from"], each["protocol"], each["text"]) for each in steps]
    assert [each for each in told if each[2] not in ("RTP", "ICE")] == [
        (0.0, "client", "RTMP", "publishes"),
        (1.0, "phone", "DTLS", f"keys for {suite}"),
        (8.0, "client", "RTMP", "publishes no longer"),
        (8.0, "client", "RTMP", "players: 2"),
        (8.0, "phone", "RTCP", "round trip 21 ms"),
    ]


def test_nothing_secret_is_shown():
    text, detail = step_of(SECRETS)
    assert text == "INVITE" and "hush" not in detail and "crypto" not in detail
    assert "sip:bob:***@host" in detail and "Contact: <sip:ann@10.0.0.9>" in detail
    assert "a=rtpmap:0 PCMU/8000" in detail and call_id_in(SECRETS) == "a@b"
    assert call_id_in(b"no message at all") == "" and step_of(b"\xff\r\n:\r\nCSeq:\r\n")[0]


@pytest.mark.parametrize(
    ("octets", "steps"), [(50, MAX_STEPS), (1000, MAX_KEPT // 1000), (9000, MAX_KEPT // MAX_OCTETS)]
)
def test_a_ladder_is_bounded_in_steps_and_in_octets(octets, steps):
    story = CallStory("a", "a", 0.0)
    flow = Flow("UDP", ("10.0.0.1", 5060), ("10.0.0.9", 5060))
    data = b"BYE sip:bob@host SIP/2.0\r\n".ljust(octets, b"x")
    told = [story.note(Sip(float(at), True, flow, data)) for at in range(steps)]
    assert not story.read("ladder", 0.0)["truncated"]
    told.append(story.note(Sip(float(steps), True, flow, data)))
    ladder = story.read("ladder", 0.0)
    assert len(ladder["steps"]) == steps and ladder["truncated"]
    assert told[-1] is None and told[-2][1]()["step"] == ladder["steps"][-1]


def test_packets_quality_and_silence_are_noted(rig):
    tool = rig.world.tool()
    stream = tool.publish("studio")
    rig.place()

    def speak():
        for at in range(0, 1000, 20):
            tool.write(AUDIO, at, stream, b"\x82" + b"s" * 160)

    rig.run(11, speak)
    assert ("gateway", "RTP", "first packets, pcmu") in rig.steps()
    samples = rig.read("quality")["samples"]
    assert len(samples) == 2 and samples[0]["b"]["kbps"] > 0
    assert samples[0]["a"] == {"loss": None, "jitter_ms": 0.0, "rtt_ms": None, "kbps": 0.0}
    assert rig.read("advice")["code"] == "nat"
    assert [part for part, _ in rig.teller.heard].count("quality") == 2


def test_a_call_that_has_failed_is_kept_with_its_advice_and_others_forgotten_in_time(rig):
    rig.desk.answers = 488
    rig.place()
    [ended] = rig.stories.ended()
    assert (ended["id"], ended["reason"]) == (rig.name, "488 No") and ended["ended_at"] > 1000
    assert rig.read("advice")["code"] == "codec" and rig.read("log") == {"lines": []}
    assert ("phone", "SIP", "488 No (INVITE)") in rig.steps()
    first = rig.name
    for _ in range(MAX_ENDED):
        rig.place()
    assert len(rig.stories.ended()) == MAX_ENDED
    assert rig.branch.read((first, "ladder")) is None
    assert rig.teller.gone == [(first, part) for part in PARTS]
    assert len(rig.stories._known) == MAX_ENDED and rig.world.is_clean()


def test_the_log_of_a_call_is_that_of_the_gateway(rig, caplog):
    stories = rig.stories
    lines = CallLines(lambda *about: stories.line(*about, rig.world.now))
    lines.start()
    try:
        rig.place()
        log = Log("siprtmp")
        with caplog.at_level(logging.INFO, "siprtmp"):
            log.event("other-call", call="other")
            log.event("nothing", rtmp="1")
            log.event("sound-unsuitable", call=rig.name, cure="another codec")
    finally:
        lines.stop()
    [line] = rig.read("log")["lines"]
    assert line.endswith(f'siprtmp sound-unsuitable call={rig.name} cure="another codec"')
    assert rig.teller.heard[-1] == ("log", {"line": line})
    assert rig.read("advice")["do"] == "another codec"


def test_viewers_see_what_stands_below_a_call_and_its_user_does_not(rig):
    rig.place()
    for part in PARTS:
        path = (rig.name, part)
        assert rig.branch.may(path, Right.READ, CLERK) and rig.branch.read(path) is not None
        assert not rig.branch.may(path, Right.READ, ANN)
        assert not rig.branch.may(path, Right.UPDATE, CLERK)
    assert rig.branch.read((rig.name, "none")) is None
    assert rig.branch.read((rig.name, "ladder", "more")) is None


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("503 Not Found in DNS", "dns"),
        ("500 Not Reachable", "port"),
        ("503 No Media Port", "port"),
        ("488 Not Acceptable Here", "codec"),
        ("407 Proxy Authentication Required", "auth"),
        ("480 Not Registered", "registration"),
        ("media timeout", "nat"),
        ("no media path: is the port of --webrtc reachable?", "nat"),
        ("503 Service Unavailable", "server"),
    ],
)
def test_each_reason_has_its_advice(reason, code):
    said = advised(reason, {}, MissingMedia.NONE, ['399 host "why not"'])
    assert said["code"] == code and said["do"] and "why not" in said["why"]
    assert code in codes()


def test_a_call_that_went_well_needs_no_advice():
    for reason in ("", "BYE", "486 Busy Here", "cancelled", "operator", "603 Decline"):
        assert advised(reason, {"call-start": {}, "call-end": {}}, MissingMedia.NONE) == {}
    missing = {"transcode-missing": {"cure": "pip install"}}
    assert advised("488 x", missing, MissingMedia.NONE)["do"] == "pip install"
    assert causes_in(b"BYE a SIP/2.0\r\nReason: Q.850;cause=16\r\n\r\nReason: no") == [
        "Q.850;cause=16"
    ]
