"""Conference rooms: phones and streams hear each other, and see who speaks."""

from array import array

import pytest
from support.gateway.gateway_world import AUDIO, DESK, PCMA, PCMU, Desk, GatewayWorld, sdp
from support.gateway.video_rig import HEADER, idr, inter, tag
from support.sip.elements import PORT
from support.sip.homes import HOME, request

from p2psip.rtp import fast
from p2psip.rtp.payload import g711
from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow
from p2psip.ua.messages import Messages
from p2psip.ua.outside import outside_request
from siprtmp.calls.conference import room as rooms
from siprtmp.calls.conference import room_app as rooms_app
from siprtmp.media.transcode import audio_decoder
from siprtmp.media.transcode.to_flv import RATE, AacTags

VIDEO = 9
START = "NetStream.Publish.Start"


@pytest.fixture
def world():
    return GatewayWorld()


def desk(world, number):
    return Desk(world.link, f"10.0.1.{number}", answers=b"")


def enter(world, phone, user="team", offer=None):
    """A phone calls a room; the leg of its call."""
    before = set(world.gateway.audios)
    offer = sdp(PCMU, at=phone.stack.contact().host) if offer is None else offer
    call = phone.ring(user, world.now, offer)
    world.wait(0.05)
    [leg] = set(world.gateway.audios) - before
    return call, leg


class Talk:
    """A phone's sound: a packet of one level every 20 ms, by its own sequence."""

    def __init__(self, leg, level):
        self.stream, self.payload, self.number = leg, g711.encode_ulaw([level] * 160), 0

    def go(self, now):
        at = self.number.to_bytes(2, "big"), (160 * self.number).to_bytes(4, "big")
        self.stream.on_rtp(b"\x80\x00" + at[0] + at[1] + bytes(4) + self.payload, now)
        self.number += 1


class Watcher:
    """A member that only sees."""

    def __init__(self, seen):
        self._seen = seen

    def see(self, payload, at, now):
        self._seen.append(payload)

    def hear(self, *_):
        """Listen to nobody."""

    ask_key_frame = hear


def talk(world, *speakers, packets=20):
    for _ in range(packets):
        for each in speakers:
            each.go(world.now)
        world.wait(0.02)


def heard(world, leg, law=g711.decode_ulaw):
    """The levels of the last packets that a phone got."""
    wire = world.gateway.audios[leg]
    packets = [fast.unpack(data) for _, data in wire.sent[-5:]]
    whole = [data for _, data in wire.sent[-5:]]
    return [law(data[start:end])[80] for data, (*_, start, end) in zip(whole, packets, strict=True)]


def near(levels, wanted):
    return all(abs(level - wanted) <= max(40, abs(wanted) / 20) for level in levels)


def events(world, what):
    return [values for name, values in world.gateway.log.lines if name == what]


def test_a_publisher_in_a_room_is_in_the_log(world):
    """From when, for how long, and from where; a phone's lines are those of its call."""
    tool = world.tool("room")
    stream = tool.publish("team")
    world.wait(3.0)
    tool.send("deleteStream", float(stream))
    world.wait()
    [enters], [leaves] = events(world, "room-enter"), events(world, "room-leave")
    assert enters["rtmp"] == leaves["rtmp"] and enters["source"].startswith("RTMP:")
    assert enters["room"] == leaves["room"] == "team"
    assert leaves["seconds"] == pytest.approx(3.0, abs=0.2)


def test_a_publisher_that_a_room_cannot_hear_is_in_the_log_with_a_cure(world, monkeypatch):
    """Covers FLV 10.1 §E.4.2.1: AAC without the extra; once for each reason, and of few."""
    monkeypatch.setattr(audio_decoder, "is_available", lambda: False)
    tool = world.tool("room")
    stream = tool.publish("team")
    for at in range(0, 100, 20):
        tool.write(AUDIO, at, stream, b"\xaf\x01aac")
    world.wait()
    [line] = events(world, "sound-unsuitable")
    assert line["room"] == "team" and "install the extra transcode" in line["cure"]
    assert world.gateway.context.unsuitable == 1
    [member] = world.gateway.rooms.rooms["team"].members
    for number in range(100):
        member.unsuitable = f"broken {number}"
        tool.write(VIDEO, 100, stream, HEADER)
    assert len(events(world, "sound-unsuitable")) == rooms_app.MAX_REASONS


def test_phones_hear_each_other_and_not_themselves(world):
    """Covers RFC 3261 §13.3.1.4: a room answers at once."""
    calls = [enter(world, desk(world, number)) for number in range(3)]
    legs = [leg for _, leg in calls]
    levels = (1000, 2000, 4000)
    speakers = [Talk(leg, level) for leg, level in zip(legs, levels, strict=True)]
    talk(world, *speakers)
    for leg, level in zip(legs, levels, strict=True):
        assert near(heard(world, leg), sum(levels) - level)
    calls[2][0].bye(world.now)
    world.wait()
    talk(world, *speakers[:2])
    assert near(heard(world, legs[0]), 2000) and len(world.gateway.rooms) == 2
    for call, _ in calls[:2]:
        call.bye(world.now)
    world.wait()
    assert world.is_clean()


def test_rooms_are_apart_and_laws_may_differ(world):
    here, there = enter(world, desk(world, 1)), enter(world, desk(world, 2), "attic")
    other = enter(world, desk(world, 3), offer=sdp(PCMA, at="10.0.1.3"))
    talk(world, Talk(here[1], 3000))
    assert near(heard(world, there[1]), 0)
    assert near(heard(world, other[1], g711.decode_alaw), 3000)


def test_a_stream_talks_and_players_hear_everybody(world):
    """Covers RTMP 1.0 §7.2.2.1 and §7.2.2.6."""
    _, leg = enter(world, desk(world, 1))
    tool, player = world.tool("room"), world.tool("room")
    player.play("team")
    stream = tool.publish("team")
    assert tool.codes() == [START] and len(world.gateway.rooms) == 2
    speaker, sound = Talk(leg, 1000), b"\x82" + g711.encode_ulaw([2000] * 160)
    for number in range(20):
        speaker.go(world.now)
        tool.write(AUDIO, 20 * number, stream, sound)
        world.wait(0.02)
    tags = [payload for type_id, _, payload in player.media() if type_id == AUDIO]
    assert near([g711.decode_ulaw(each[1:])[80] for each in tags[-5:]], 3000)
    assert near(heard(world, leg), 2000)
    times = [at for type_id, at, _ in player.media() if type_id == AUDIO]
    assert times == sorted(times) and times[-1] - times[-5] == 80
    for each in (tool, player):
        world.drop(each)
    world.wait(0.1)
    assert len(world.gateway.rooms) == 1 and world.registry.get("room", "team").publishing


@pytest.mark.parametrize("app", ["room"])
def test_what_is_not_there_is_said(world, app):
    """Covers RTMP 1.0 §7.2.2."""
    tool = world.tool(app)
    tool.publish("nowhere")
    tool.play("nowhere")
    assert tool.codes() == ["NetStream.Publish.BadName", "NetStream.Play.StreamNotFound"]
    world.gateway.admit(False)
    stranger = world.tool(app)
    stranger.play("team")
    assert stranger.codes() == ["NetStream.Play.Failed"]
    stranger.publish("team")
    assert stranger.codes()[-1] == "NetStream.Publish.Rejected" and stranger.server.closed


@pytest.fixture
def small(monkeypatch):
    """A world whose rooms have one place."""
    monkeypatch.setattr(rooms, "MAX_MEMBERS", 1)
    return GatewayWorld()


def test_a_room_has_an_end(small):
    """Covers RFC 3261 §21.4.24."""
    world = small
    enter(world, desk(world, 1))
    desk(world, 2).ring("team", world.now, sdp(PCMU, at="10.0.1.2"))
    world.wait()
    assert world.gateway.log.ends() == ["486 Busy Here"]
    tool = world.tool("room")
    tool.publish("team")
    assert tool.codes() == ["NetStream.Publish.Rejected"]


def test_who_rings_at_the_same_time_does_not_fit_either(small):
    """Own design: a place is taken by the INVITE, since a call may wait for its ACK."""
    for number in (1, 2):
        desk(small, number).ring("team", small.now, sdp(PCMU, at=f"10.0.1.{number}"))
    small.wait()
    assert len(small.gateway.rooms) == 1 and small.gateway.log.ends() == ["486 Busy Here"]


def test_a_caller_without_an_ack_holds_its_place_until_it_is_given_up(small):
    """Own design: and a codec that nobody knows, or a hang-up, gives it back at once."""
    phone = desk(small, 1)
    silent = Flow("UDP", ("10.0.1.9", PORT), (HOME, PORT))
    small.gateway.stack.receive(bytes(request("INVITE", "sip:team@home")), silent, small.now)
    phone.ring("team", small.now, sdp(PCMU, at="10.0.1.1"))
    small.wait()
    assert small.gateway.log.ends() == ["486 Busy Here"]
    small.wait(40.0)
    assert small.gateway.log.ends()[1:] == ["no ACK"]
    phone.ring("team", small.now, sdp("96 nobody/8000", at="10.0.1.1"))
    call, _ = enter(small, phone)
    call.bye(small.now)
    small.wait()
    enter(small, phone)
    assert len(small.gateway.rooms) == 1


def test_one_host_never_has_all_places(world):
    """Own design: some are left for others, whoever waits for an ACK or talks."""
    greedy = desk(world, 1)
    for _ in range(rooms.MAX_MEMBERS):
        greedy.ring("team", world.now, sdp(PCMU, at="10.0.1.1"))
    world.wait(0.2)
    held = len(world.gateway.rooms)
    assert rooms.MAX_MEMBERS // 3 < held <= rooms.MAX_MEMBERS // 2
    enter(world, desk(world, 2))
    assert len(world.gateway.rooms) == held + 1


def test_a_room_takes_calls_alone(world):
    """Covers RFC 3428 §7: a MESSAGE is no call."""
    sender = desk(world, 1)
    message = Messages(sender.agent.core)
    answers = []
    request = outside_request(
        sender.random,
        "MESSAGE",
        Address(Uri("sip", "team", None, HOME)),
        Address(Uri("sip", "user", None, DESK)),
        body=b"hello",
        content_type="text/plain",
    )
    message.send(request, lambda response, now: answers.append(response.status), world.now, None)
    world.wait(1.0)
    assert answers and answers[-1] >= 400 and not world.gateway.context.calls


def test_who_enters_leaves_the_others_their_picture(world):
    """Own design: a publisher may make its next key frame late, and cannot be made to."""
    tool, player, late = (world.tool("room") for _ in range(3))
    player.play("team")
    stream = tool.publish("team")
    for body in (HEADER, tag(idr(1), key=True), tag(inter(2))):
        tool.write(VIDEO, 0, stream, body)
    seen = []
    team = world.gateway.rooms.rooms["team"]
    watcher = team.enter(Watcher(seen), world.now)
    tool.write(VIDEO, 40, stream, tag(inter(3)))
    assert not seen  # it depends on pictures from before
    tool.write(VIDEO, 80, stream, tag(idr(4), key=True))
    assert seen == [HEADER, tag(idr(4), key=True)]
    late.publish("team")
    tool.write(VIDEO, 120, stream, tag(inter(5)))
    assert seen[2:] == [tag(inter(5))]
    watcher.leave(world.now)


def test_what_begins_before_the_ack_is_heard_and_seen(world, tone):
    """Covers RFC 3261 §13.3.1.4: media overtake an ACK, and their headers come once."""
    application = world.gateway.rooms
    team, seen = application.rooms["team"], []
    watcher = team.enter(Watcher(seen), world.now)
    phone = rooms_app.RoomPhone(team, application.home)
    early, late = tone[:2], tone[2:]
    for body in early:
        phone.on_tag(AUDIO, 0, body, world.now)
    for body in (HEADER, tag(idr(1), key=True)):
        phone.on_tag(VIDEO, 0, body, world.now)
    assert len(application) == 1 and not seen
    phone.on_call_up(None, world.now)
    for body in late:
        phone.on_tag(AUDIO, 20, body, world.now)
    phone.on_tag(VIDEO, 40, tag(idr(2), key=True), world.now)
    world.wait(0.5)
    assert seen == [HEADER, tag(idr(2), key=True)]
    assert team.members[1].seat.loudness > 0 and not team.members[1].unsuitable
    phone.on_call_over("BYE", world.now)
    watcher.leave(world.now)


@pytest.fixture
def tone():
    """The tags of half a second of AAC, the header first."""
    pytest.importorskip("av")
    samples = array("h", ([6000] * 60 + [-6000] * 60) * 200)
    return [body for _, body in AacTags().encode(samples, RATE, 0)]


def test_pictures_are_those_of_who_speaks(world):
    """Own design: from a key frame on, with its header, and by the clock of the room."""
    first, second, player = (world.tool("room") for _ in range(3))
    player.play("team")
    streams = [each.publish("team") for each in (first, second)]
    room = world.gateway.rooms.rooms["team"]
    asked = []
    for member, name in zip(room.members, "ab", strict=True):
        member.screen.ask_key_frame = lambda now, name=name: asked.append(name)
    quiet, loud = (b"\x82" + g711.encode_ulaw([level] * 160) for level in (300, 9000))
    other = HEADER[:-1] + bytes([HEADER[-1] ^ 1])

    def go(number, sounds):
        for tool, stream, sound, header in zip(
            (first, second), streams, sounds, (HEADER, other), strict=True
        ):
            if number % 25 == 0:
                tool.write(VIDEO, 20 * number, stream, header)
            tool.write(AUDIO, 20 * number, stream, sound)
            picture = tag(idr(number), key=True) if number % 25 == 0 else tag(inter(number))
            tool.write(VIDEO, 20 * number, stream, picture)
        world.wait(0.02)

    for number in range(100):
        go(number, (loud, quiet))
    for number in range(100, 250):
        go(number, (quiet, loud))
    pictures = [(at, payload) for type_id, at, payload in player.media() if type_id == VIDEO]
    headers = [payload for _, payload in pictures if payload[:2] == HEADER[:2]]
    assert headers[0] == HEADER and headers[-1] == other and set(headers) == {HEADER, other}
    times = [at for at, _ in pictures]
    assert times == sorted(times) and times[-1] > 4500
    where = [at for at, (_, payload) in enumerate(pictures) if payload == other]
    assert pictures[where[0] + 1][1][0] >> 4 == 1  # a key frame behind the header
    assert asked[0] == "a" and asked[-1] == "b"


def test_sound_that_cannot_be_heard_is_said(world, monkeypatch):
    """Own design: see NetStream.Publish.Unsuitable."""
    monkeypatch.setattr("siprtmp.media.transcode.audio_decoder.is_available", lambda: False)
    tool = world.tool("room")
    stream = tool.publish("team")
    tool.write(AUDIO, 0, stream, b"\xaf\x01" + bytes(20))
    world.run()
    assert tool.codes() == [START, "NetStream.Publish.Unsuitable"]


def test_a_muted_member_is_not_heard_until_it_may_speak_again(world):
    (_, one), (_, two) = (enter(world, desk(world, number)) for number in (1, 2))
    loud = Talk(one, 8000)
    member = world.gateway.rooms.rooms["team"].members[0]
    talk(world, loud)
    assert near(heard(world, two), 8000)
    member.is_muted = True
    talk(world, loud)
    assert near(heard(world, two), 0)
    member.is_muted = False
    talk(world, loud)
    assert near(heard(world, two), 8000)
