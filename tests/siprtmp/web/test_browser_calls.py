"""WHIP and WHEP for calls and rooms, without a socket."""

import pytest
from support.gateway.gateway_world import BOB as NAME
from support.gateway.gateway_world import PCMU, sdp
from support.gateway.whip_world import H264_HEADER, World, offer

from p2psip.sdp.session import SessionDescription
from p2psip.srtp.suites import AES_CM_128_HMAC_SHA1_80
from siprtmp.web import browser_sessions

AUDIO, VIDEO = 8, 9
SOUND = b"\x82" + b"s" * 160
KEYS = (bytes(16), bytes(14))


@pytest.fixture
def web(world):
    return World(world)


def post(web, path, *kinds, flow="sendonly", **more):
    return web.ask("POST", path, offer(*(kinds or ("audio", "h264")), flow=flow), **more)


def whip(web, name=NAME, *kinds, app="call", **more):
    return post(web, f"/{app}/{name}/whip", *kinds, **more)


def whep(web, name=NAME, *kinds, app="call", **more):
    return post(web, f"/{app}/{name}/whep", *kinds, flow="recvonly", **more)


def peer_of(web, got):
    return web.sessions.find(got.headers["Location"].rpartition("/")[2]).peer


def connect(web, got):
    """The browser of an answer is there; what it is sent from now on, without SRTP."""
    peer, sent = peer_of(web, got), []
    transport = peer.transport
    transport._srtp.use(AES_CM_128_HMAC_SHA1_80, KEYS, KEYS)
    transport._until, transport.ice.remote = None, ("192.0.2.7", 5000)
    transport.send_rtp = sent.append
    for line in transport._lines:
        line.on_ready()
    transport.on_connected(web.now)
    return sent


def reason_of(web, got):
    said = web.ask("GET", got.headers["Location"])
    assert said.status == 404
    return said.body.decode().strip()


def test_a_phone_that_answers_gets_the_headers_of_before_and_a_key_frame(world, desk, web):
    desk.answers = b""
    got = whip(web)
    world.wait(0.5)
    peer, published, asked = peer_of(web, got), [], []
    peer.on_tag(VIDEO, 0, H264_HEADER, world.now)
    peer.client.publish = lambda *message: published.append(message[::2])
    peer.session.request_key_frame = asked.append
    desk.calls[0].accept(sdp(PCMU), world.now)
    world.wait()
    assert published == [(VIDEO, H264_HEADER)] and len(asked) == 1


def test_a_connection_that_is_cut_ends_the_browser(world, web):
    got = whip(web, "studio")
    peer_of(web, got).client.abort("cut off", world.now)
    assert len(web.sessions) == 0 and reason_of(web, got) == "The session has ended: cut off."


def test_what_a_browser_publishes_under_an_address_is_a_call(world, desk, web):
    """The answer does not wait for the phone, which then gets what is published, and hangs up."""
    desk.answers = b""
    got = whip(web)
    assert got.status == 201
    answer = SessionDescription.parse(got.body)
    assert [each.attribute("recvonly") for each in answer.media] == ["", ""]
    world.wait(1.0)
    peer = peer_of(web, got)
    peer.on_tag(AUDIO, 0, SOUND, world.now)  # nobody hears it yet
    desk.calls[0].accept(sdp(PCMU), world.now)
    world.wait()
    assert world.gateway.media.sent == []
    peer.on_tag(AUDIO, 20, SOUND, world.now)
    assert world.gateway.media.sent[0][1].endswith(SOUND[1:])
    desk.calls[0].bye(world.now)
    world.wait()
    assert len(web.sessions) == 0 and reason_of(web, got).startswith("The session has ended: ")
    assert [event for event, _ in web.events] == ["publish-start", "publish-end"]
    assert web.events[0][1]["rtmp"] == peer.client.id
    assert world.is_clean()


@pytest.mark.parametrize("phase", ["rings", "talks"])
def test_delete_hangs_up(world, desk, web, phase):
    desk.answers = b"" if phase == "rings" else desk.answers
    got = whip(web)
    world.wait(1.0)
    assert len(world.gateway.context.calls) == 1
    assert web.ask("DELETE", got.headers["Location"]).status == 200
    world.wait(1.0)
    assert len(world.gateway.context.calls) == 0 and len(web.sessions) == 0
    assert reason_of(web, got) == "The session has ended: ended by the client."
    assert world.is_clean()


def test_a_browser_that_goes_hangs_up(world, desk, web):
    got = whip(web)
    world.wait(0.5)
    connect(web, got)
    assert len(world.gateway.context.calls) == 1
    web.transports[0].tick(world.now + 30.0)  # without its consent
    world.wait(1.0)
    assert len(world.gateway.context.calls) == 0 and len(web.sessions) == 0
    assert world.is_clean()


def test_a_call_that_fails_ends_the_session_and_its_reason_can_be_read(world, desk, web):
    desk.answers = 486
    got = whip(web)
    assert got.status == 201
    world.wait(1.0)
    assert len(web.sessions) == 0 and web.transports == []
    assert reason_of(web, got) == "The session has ended: 486 Busy Here."
    for method in ("DELETE", "PATCH"):
        assert web.ask(method, got.headers["Location"]).status == 404
    assert web.events[-1][1]["reason"] == "486 Busy Here"
    world.now += browser_sessions.ENDED_SECONDS
    assert reason_of(web, got) == "No such session."
    assert world.is_clean()


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [("@home", 400, "400"), ("bob@", 400, "400"), ("bob@[", 400, "400")],
)
def test_an_address_that_cannot_be_called_is_refused_at_once(world, web, name, status, said):
    got = whip(web, name)
    assert got.status == status and got.body.decode().startswith(said)
    assert len(web.sessions) == 0 and web.transports == [] and world.is_clean()


def test_a_name_that_waits_is_called_and_played(world, desk, web):
    """One browser talks and another hears; both stay when the phone has hung up."""
    talks, hears = whip(web, "studio"), whep(web, "studio")
    assert talks.status == hears.status == 201
    sent = connect(web, hears)
    call = desk.ring("studio", world.now)
    world.wait(0.5)
    assert call.is_up
    peer_of(web, talks).on_tag(AUDIO, 20, SOUND, world.now)
    assert world.gateway.media.sent[0][1].endswith(SOUND[1:])
    live = world.registry.get("call", "studio")
    live.write(AUDIO, 0, b"\x90Opus", world.now)
    live.write(AUDIO, 0, b"\x91Opus\xf8\xff\xfe", world.now)
    assert [packet[12:] for packet in sent] == [b"\xf8\xff\xfe"]
    call.bye(world.now)
    world.wait(1.0)
    assert len(web.sessions) == 2 and not world.gateway.context.calls
    for got in (talks, hears):
        web.ask("DELETE", got.headers["Location"])
    assert world.is_clean()


def test_who_waits_hears_one_call_after_another(world, web):
    """Whatever the codec of the phone, in one Opus whose times go on."""
    web.transcoding = True
    got = whep(web, "studio")
    sent, live = connect(web, got), world.registry.get("call", "studio")
    times = []
    for head in (b"\x82", b"\x72"):  # PCMU and PCMA
        before = len(sent)
        live.begin(world.now)
        for tick in range(10):
            live.write(AUDIO, 20 * tick, head + b"s" * 160, world.now)
            world.wait(0.02)
        live.end(world.now)
        assert len(sent) - before >= 8
        times += [int.from_bytes(packet[4:8], "big") for packet in sent[before:]]
    assert times == sorted(times) and {packet[1] & 0x7F for packet in sent} == {111}


def test_playing_never_dials(world, desk, web):
    assert whep(web).status == 201
    world.wait(1.0)
    assert desk.calls == []


def test_a_name_has_one_publisher_by_whichever_protocol(world, desk, web):
    tool = world.tool()
    tool.publish("studio")
    world.run()
    got = whip(web, "studio")
    assert got.status == 409 and b"another client holds this name" in got.body
    assert whep(web, "studio").status == 409
    assert whip(web, "attic").status == 201
    again = whip(web, "attic")
    assert again.status == 409 and b"already published" in again.body
    other = world.tool()
    other.publish("attic")
    world.run()
    assert "NetStream.Publish.BadName" in other.codes()


def test_strangers_may_not_use_telephones(world, desk, web):
    """A page of another site counts as a stranger, also in a browser on this machine."""
    world.gateway.admit(False)
    for asks in (whip, whep):
        assert asks(web).status == 401
        got = asks(web, HTTP_AUTHORIZATION="Bearer user=ann&pass=guess")
        assert got.status == 403 and b"403 Forbidden" in got.body
        at_home = {"REMOTE_ADDR": "127.0.0.1"}
        for more in (
            {"HTTP_ORIGIN": "https://evil.example"},
            {"HTTP_ORIGIN": "null"},
            {"HTTP_ORIGIN": "http://["},
            {"HTTP_X_FORWARDED_FOR": "127.0.0.1, 192.0.2.9"},
            {"HTTP_X_FORWARDED_FOR": "localhost"},
            {"HTTP_FORWARDED": 'for=127.0.0.1, for="[2001:db8::1]:4711";proto=https'},
        ):
            assert asks(web, **at_home, **more).status == 401
        for more in ({}, {"HTTP_ORIGIN": "http://localhost:8000"}):
            got = asks(web, **at_home, **more)
            assert got.status == 201
            web.ask("DELETE", got.headers["Location"])


def test_a_publisher_in_a_room_is_heard_and_leaves_by_delete(world, web):
    got, hears = whip(web, "team", app="room"), whep(web, "team", app="room")
    assert got.status == hears.status == 201
    assert len(world.gateway.rooms) == 1
    live = world.registry.get("room", "team")
    assert live.publishing and live.players == 1
    connect(web, hears)
    peer_of(web, got).on_tag(AUDIO, 0, b"\x82" + b"\x80" * 160, world.now)
    web.ask("DELETE", got.headers["Location"])
    assert len(world.gateway.rooms) == 0 and len(web.sessions) == 1  # who listens may wait
    web.ask("DELETE", hears.headers["Location"])
    assert world.is_clean()


def test_there_are_the_rooms_that_the_operator_has_named(web):
    assert whip(web, "cellar", app="room").status == 404
    assert whep(web, "cellar", app="room").status == 404


def test_a_room_asks_a_browser_for_key_frames(world, web):
    first, second = whip(web, "team", app="room"), whip(web, "team", app="room")
    asked = []
    peer_of(web, first).session.request_key_frame = asked.append
    room = world.gateway.rooms.rooms["team"]
    room.members[0].screen.ask_key_frame(world.now)
    assert len(asked) == 1 and second.status == 201


def test_a_viewer_that_has_lost_video_asks_the_phone(world, desk, web):
    hears, asked = whep(web, "studio"), []
    desk.ring("studio", world.now)
    whip(web, "studio")
    world.wait(0.5)
    live = world.registry.get("call", "studio")
    live.write(AUDIO, 0, SOUND, world.now)
    [call] = world.gateway.context.calls
    call.request_key_frame = asked.append
    connect(web, hears)
    assert len(asked) == 1  # for a picture to begin with
    peer_of(web, hears).on_key_frame_wanted()
    assert len(asked) == 2


def test_one_host_has_half_of_the_places(web, monkeypatch):
    """Own design: connected browsers count, and another host has places left."""
    monkeypatch.setattr(browser_sessions, "MAX_SESSIONS", 8)
    got = [whep(web, "studio") for _ in range(5)]
    assert [each.status for each in got] == [201, 201, 201, 201, 503]
    assert whep(web, "attic", REMOTE_ADDR="192.0.2.8").status == 201
    web.ask("DELETE", got[0].headers["Location"])
    assert whep(web, "studio").status == 201
