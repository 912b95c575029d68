"""Stock tools at the application `call`: one name, two directions, at most one call."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support.gateway.gateway_world import AUDIO, DESK, PCMU, Desk, GatewayWorld, sdp
from support.gateway.gateway_world import BOB as NAME

from rtmplite.live.timestamp_rebase import QUIET
from rtmplite.rtmp.netstream import RELEASED

SOUND = b"\x82" + b"s" * 160
START, REJECTED, BAD_NAME = (
    "NetStream.Publish.Start",
    "NetStream.Publish.Rejected",
    "NetStream.Publish.BadName",
)


def talk(world, count=3, first=0):
    """The phone says something to the gateway's only call."""
    for i in range(first, first + count):
        header = b"\x80\x00" + i.to_bytes(2, "big") + (160 * i).to_bytes(4, "big") + bytes(4)
        world.gateway.audio.on_rtp(header + b"p" * 160, world.now)
    world.run()


def heard(peer):
    """The sound a player got."""
    return [payload for type_id, _, payload in peer.media() if type_id == AUDIO]


def test_a_name_with_an_at_sign_is_dialled_and_starts_when_the_phone_answers(world, desk):
    """Covers RTMP 1.0 §7.2.2.6 and RFC 3261 §13.2.1."""
    desk.answers = b""
    tool, player = world.tool(), world.tool()
    player.play(NAME)
    stream = tool.publish(NAME)
    world.wait(20.0)
    assert tool.codes() == [] and not tool.server.closed  # it rings, and pings keep it waiting
    desk.calls[0].accept(sdp(PCMU), world.now)
    world.wait()
    assert tool.codes() == [START]
    tool.write(AUDIO, 0, stream, SOUND)
    assert world.gateway.media.sent[0][1].endswith(SOUND[1:])
    talk(world)
    assert heard(player) == [b"\x82" + b"p" * 160] * 3 and heard(tool) == []
    desk.calls[0].bye(world.now)
    world.wait()
    assert tool.server.closed and not player.server.closed
    assert player.codes()[-1] == "NetStream.Play.UnpublishNotify"
    assert world.is_clean()


@pytest.mark.parametrize(
    ("name", "answers", "said"),
    [
        (NAME, 486, "486 Busy Here"),
        (NAME, sdp("18"), "488 Not Acceptable Here"),
        ("nobody@home", None, "480 Not Registered"),
        ("@home", None, "400"),
        ("bob@", None, "400"),
        ("bob@[", None, "400"),
        ("bob@nowhere.invalid", None, "503"),
    ],
)
def test_a_failed_call_ends_the_publish_with_the_sip_status(world, desk, name, answers, said):
    """Covers RTMP 1.0 §7.2.2."""
    desk.answers = answers
    tool = world.tool()
    tool.publish(name)
    world.wait(1.0)
    assert tool.codes() == [REJECTED] and tool.server.closed
    information = [e.command.args[0] for e in tool.events if hasattr(e, "command")][-1]
    assert information["description"].startswith(said) and information["level"] == "error"
    assert world.is_clean()


def test_a_call_that_finds_no_port_is_not_counted():
    """Own design: else strangers who take all ports would lock users out for hours."""
    world = GatewayWorld(max_user_calls=1)
    Desk(world.link)
    world.gateway.edge.room = 0
    for room, codes in ((0, [REJECTED]), (100, [START])):
        world.gateway.edge.room, tool = room, world.tool()
        tool.publish(NAME)
        world.wait()
        assert tool.codes() == codes
    assert world.is_clean()


def test_no_ports_no_rights_no_name(world):
    """Covers RFC 3261 §21.5.4 and RTMP 1.0 §7.2.2."""
    world.gateway.edge.room = 0
    tool = world.tool()
    tool.publish(NAME)
    assert tool.codes() == [REJECTED]
    world.gateway.admit(False)
    tool, player = world.tool(), world.tool()
    tool.publish(f"{NAME}?user=bob&pass=wrong")
    player.play(NAME)
    assert tool.codes() == [REJECTED] and tool.server.closed
    assert player.codes() == ["NetStream.Play.Failed"]

    def said(peer):
        informed = [e.command.args[0] for e in peer.events if hasattr(e, "command")]
        return informed[-1]["description"]

    assert [said(tool), said(player)] == [
        "403 Forbidden: wrong user or password",
        "403 Forbidden: user and password are needed",
    ]
    tool = world.tool()
    tool.publish("")
    tool.play("")
    assert tool.codes() == [BAD_NAME, "NetStream.Play.StreamNotFound"]
    assert world.is_clean()


@pytest.mark.parametrize("how", ["delete", "close", "FCUnpublish", "die"])
@pytest.mark.parametrize("when", ["ringing", "up"])
def test_the_publisher_going_hangs_up(world, desk, how, when):
    """Covers RFC 3261 §9.1 and §15.1.1."""
    if when == "ringing":
        desk.answers = b""
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    if how == "die":
        world.drop(tool)
    elif how == "delete":
        tool.send("deleteStream", float(stream))
    elif how == "close":
        tool.send("closeStream", stream_id=stream)
    else:
        tool.call("FCUnpublish", NAME)
        tool.send("deleteStream", float(stream))
    world.wait()
    assert desk.events()[-1] == ("cancelled" if when == "ringing" else "ended")
    assert world.is_clean()


def test_what_was_published_is_heard_out_before_the_call_ends(world, desk):
    """Covers RFC 3551 §4.2: a file sent at once, ended at once, is heard whole."""
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    wire, began = world.gateway.media, world.now
    for i in range(200):
        tool.client.send_media(AUDIO, 20 * i, stream, SOUND)
    tool.client.send("deleteStream", float(stream))
    world.run()
    assert not tool.server.transport.reading  # held back
    world.wait(3.5)
    assert desk.events()[-1] != "ended"
    world.wait(0.7)
    assert desk.events()[-1] == "ended"
    assert len(wire.sent) == 200 and wire.sent[-1][0] - began == pytest.approx(199 * 0.02, abs=0.05)
    assert world.is_clean()


def test_a_codec_that_the_phone_does_not_have_is_told_once(world, desk):
    """Covers FLV 10.1 §E.4.2.1."""
    tool = world.tool()
    stream = tool.publish(NAME)
    world.wait()
    for number in range(3):
        tool.write(AUDIO, 20 * number, stream, b"\xaf\x01" + bytes(50))
    [told] = [values for what, values in world.gateway.log.lines if what == "sound-unsuitable"]
    assert told["codec"] == "aac" and told["agreed"] == "pcmu" and told["rtmp"] == tool.server.id
    assert world.is_clean()


def test_a_second_publisher_is_refused_and_disturbs_nothing(world, desk):
    """Covers RTMP 1.0 §7.2.2."""
    first, second = world.tool(), world.tool()
    first.publish(NAME)
    world.wait()
    second.publish(NAME)
    assert second.codes() == [BAD_NAME] and not first.server.closed
    world.drop(second)
    world.wait()
    assert desk.events()[-1] == "accepted" or len(world.gateway.audios) == 1
    again = first.publish(NAME)  # the same tool, on another stream
    assert first.codes()[-1] == BAD_NAME and again
    assert world.is_clean()


def test_a_waiting_name_is_called_twice_in_a_row(world, desk):
    """Covers RFC 3261 §13.3.1.4."""
    tool, player = world.tool(), world.tool()
    stream = tool.publish("studio")
    player.play("studio")
    assert tool.codes() == [START]
    for _ in range(2):
        desk.ring("studio", world.now)
        world.wait()
        assert desk.events()[-1] == "accepted"
        tool.write(AUDIO, int(world.now * 1000), stream, SOUND)
        assert len(world.gateway.media.sent) == 1
        talk(world)
        desk.calls[-1].bye(world.now)
        world.wait()
        assert not world.gateway.audios and not tool.server.closed
    assert len(heard(player)) == 6
    assert player.codes().count("NetStream.Play.UnpublishNotify") == 2
    assert world.is_clean()


def test_a_waiting_name_takes_one_call_at_a_time_and_only_what_it_understands(world, desk):
    """Covers RFC 3261 §21.4.24 and RFC 3264 §6."""
    world.tool().play("studio")  # who only listens can be called as well
    desk.ring("studio", world.now, sdp("18"))
    world.wait()
    assert desk.log[-1][2] == 488
    desk.ring("studio", world.now, b"nonsense")
    world.wait()
    assert desk.log[-1][2] == 400
    desk.ring("studio", world.now)
    world.wait()
    desk.ring("studio", world.now)
    world.wait()
    assert desk.log[-1][2] == 486 and len(world.gateway.audios) == 1
    desk.calls[-2].bye(world.now)
    assert world.is_clean()


def test_a_dialled_name_cannot_be_called(world, desk):
    """Own design: it waits for its publisher, not for a phone."""
    world.tool().play(NAME)
    desk.ring(NAME, world.now)
    world.wait()
    assert desk.log[-1][2] == 480 and world.is_clean()


def test_a_file_published_to_a_waiting_name_takes_its_time(world, desk):
    """Own design: it is not over before the phone rings, and goes on where it is by then."""
    tool = world.tool()
    stream = tool.publish("studio")
    for i in range(500):
        tool.client.send_media(AUDIO, 20 * i, stream, SOUND[:1] + bytes([i // 2]) * 160)
    world.wait(5.0)
    desk.ring("studio", world.now)
    world.wait(1.0)
    wire = world.gateway.media
    assert wire.sent[0][1][-1] == pytest.approx(125, abs=13)  # five seconds have passed unheard
    world.wait(5.0)
    assert len(wire.sent) == pytest.approx(250, abs=26)
    gaps = [b - a for (a, _), (b, _) in zip(wire.sent, wire.sent[1:], strict=False)]
    assert min(gaps) > 0.009
    assert world.is_clean()


def test_a_phone_that_vanishes_is_hung_up_with_a_reason():
    """Own design: what is published to it is no sign of its life, an answer to OPTIONS is."""
    world = GatewayWorld()
    desk, tool = Desk(world.link), world.tool()
    stream = tool.publish(NAME)
    world.wait(50.0)
    talk(world, 1)
    world.wait(240.0)  # a silent phone, but it answers
    assert world.gateway.audios and world.gateway.log.ends() == []
    del world.link.nodes[DESK]
    seconds = 0
    while not world.gateway.log.ends() and seconds < 70:
        tool.write(AUDIO, 1000 * seconds, stream, SOUND)
        world.wait(1.0)
        seconds += 1
    assert world.gateway.log.ends() == ["media timeout"]
    world.link.join(DESK, desk)  # too late
    world.wait(5.0)
    assert desk.events()[-1] == "ended" and tool.server.closed
    byes = [data for *_, (_, data) in world.link.sent if data.startswith(b"BYE ")]
    assert b'\r\nReason: SIP;cause=408;text="Media Timeout"\r\n' in byes[-1]
    assert world.is_clean()


class Calls(RuleBasedStateMachine):
    """Tools, clients and a phone in any order; whatever happens, nothing breaks and all is
    forgotten in the end."""

    @initialize(room=st.integers(0, 4))
    def begin(self, room):
        self.world = GatewayWorld(room=room, media_timeout=20.0)
        self.desk = Desk(self.world.link)
        self.tools, self.clients, self.streams, self.time = [], [], [], 0

    @rule(what=st.sampled_from(["tool", "client"]))
    def come(self, what):
        if what == "tool" and len(self.tools) < 4:
            self.tools.append(self.world.tool())
        elif what == "client":
            self.clients = [each for each in self.clients if not each.closed]
            self.clients.append(self.world.rich("alice@home"))

    @rule(data=st.data(), name=st.sampled_from([NAME, "studio", "alice@home", "x@nowhere.invalid"]))
    def publish(self, data, name):
        if tools := self.heeded():
            tool = data.draw(st.sampled_from(tools))
            self.streams.append((tool, tool.publish(name)))

    @rule(data=st.data(), name=st.sampled_from([NAME, "studio", "alice@home"]))
    def play(self, data, name):
        if tools := self.heeded():
            data.draw(st.sampled_from(tools)).play(name)

    def heeded(self):
        """The tools that are not held back just now, and so get answers."""
        servers = [(tool, tool.server) for tool in self.tools]
        return [tool for tool, server in servers if server.transport.reading and not server.closed]

    @rule(data=st.data(), count=st.integers(1, 60))
    def write(self, data, count):
        live = [(tool, stream) for tool, stream in self.streams if not tool.server.closed]
        if live:
            tool, stream = data.draw(st.sampled_from(live))
            for _ in range(count):
                tool.client.send_media(AUDIO, self.time, stream, SOUND)
                self.time += 20
            self.world.run()

    @rule(data=st.data(), how=st.sampled_from(["delete", "die"]))
    def leave(self, data, how):
        if self.streams:
            tool, stream = self.streams.pop(data.draw(st.integers(0, len(self.streams) - 1)))
            if how == "die" and tool in self.tools:
                self.tools.remove(tool)
                self.world.drop(tool)
            elif not tool.server.closed:
                tool.send("deleteStream", float(stream))

    @rule(
        data=st.data(),
        command=st.sampled_from(
            [
                ("invite", NAME),
                ("invite", NAME, "pcmu", "flv"),
                ("invite", "studio@home"),
                ("invite", "alice@home", "pcmu"),
                ("accept",),
                ("accept", "pcmu"),
                ("reject",),
                ("bye",),
            ]
        ),
    )
    def command(self, data, command):
        if clients := [client for client in self.clients if not client.closed]:
            data.draw(st.sampled_from(clients)).call(*command)

    @rule(
        user=st.sampled_from(["alice", "studio", "nobody"]),
        offer=st.sampled_from([sdp(PCMU), sdp("18"), b"", sdp(PCMU, at="::1")]),
    )
    def ring(self, user, offer):
        self.desk.ring(user, self.world.now, offer)

    @rule(answers=st.sampled_from([sdp(PCMU), sdp("18"), b"", 486]))
    def decide(self, answers):
        self.desk.answers = answers

    @rule(data=st.data(), act=st.sampled_from(["bye", "accept", "hold"]))
    def phone(self, data, act):
        if self.desk.calls:
            call = data.draw(st.sampled_from(self.desk.calls))
            if act == "bye":
                call.bye(self.world.now)
            elif act == "accept" and call.state == "ringing":
                call.accept(sdp(PCMU), self.world.now)
            elif act == "hold":
                call.reinvite(sdp(PCMU, more=("inactive",)), self.world.now)

    @rule(seconds=st.sampled_from([0.0, 0.005, 0.03, 0.5, 5.0, 30.0]))
    def wait(self, seconds):
        self.world.wait(seconds)

    @invariant()
    def is_consistent(self):
        if hasattr(self, "world"):
            gateway = self.world.gateway
            assert len(gateway.audios) <= len(gateway.context.calls) <= gateway.agent.calls + 1
            assert len(gateway.ports) <= gateway.edge.room
            assert all(not peer.server.transport.aborted for peer in self.world.peers)

    def teardown(self):
        if hasattr(self, "world"):
            for call in self.desk.calls:
                call.bye(self.world.now)
            assert self.world.is_clean()


TestCalls = Calls.TestCase
TestCalls.settings = settings(stateful_step_count=30, deadline=None)


@pytest.mark.parametrize(("name", "stays"), [("studio", True), (NAME, False)])
def test_a_publisher_that_is_lost_leaves_its_name_to_the_next(world, desk, name, stays):
    """Own design: a call that has come in goes on, one that was dialled is dialled again."""
    lost = world.tool()
    lost.publish(name)
    if stays:
        desk.ring(name, world.now)
    world.wait()
    lost.carry = lambda: bool(lost.server.transport.take_output())
    world.wait(QUIET)
    early, again = world.tool(), world.tool()
    early.publish(name)
    assert early.codes() == [BAD_NAME] and not lost.server.closed
    world.wait(RELEASED)
    again.call("releaseStream", name)
    stream = again.publish(name)
    world.wait()
    assert again.codes()[0] == START and lost.server.closed
    assert desk.events(desk.calls[0])[-1] == ("accepted" if stays else "ended")
    assert len(desk.calls) == (1 if stays else 2)
    again.write(AUDIO, 0, stream, SOUND)
    assert world.gateway.media.sent[-1][1].endswith(SOUND[1:])
    assert world.is_clean()


def test_a_publisher_that_waits_for_a_call_is_in_the_log(world):
    """With the name to be called; one that dials has its call-start."""
    world.tool().publish("studio")
    world.tool().publish(NAME)
    world.wait()
    [line] = [values for what, values in world.gateway.log.lines if what == "call-wait"]
    assert line["name"] == "studio" and line["source"].startswith("RTMP:") and line["rtmp"]
