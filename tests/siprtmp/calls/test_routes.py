"""The operator's routes: a call to an address of ours goes to a client, a stream, a file, a server.

Covers RFC 3261 §16.5.
"""

from functools import partial

import pytest
from support.gateway.gateway_world import AUDIO, DESK, PCMU, SPEEX, Desk, GatewayWorld, sdp
from support.rtmp.vod_world import Shelf
from support.sip.homes import HOME

from p2psip.sip.address import Address
from p2psip.sip.uri import Uri
from p2psip.ua.messages import Messages
from p2psip.ua.outside import outside_request
from rtmplite.flv.file import write_flv
from rtmplite.flv.tag import Tag
from siprtmp.calls.routes import Routes
from siprtmp.calls.trunks import Trunk, Trunks
from siprtmp.settings.routes import RouteSettings
from siprtmp.settings.trunks import TrunkSettings

CAROL = "10.0.0.4"
PACKETS = 50  # a second of sound


def sound(letter, packets=PACKETS):
    """A file of G.711 whose packets are full of one letter."""
    return write_flv([Tag(AUDIO, 20 * i, b"\x82" + letter * 160) for i in range(packets)])


@pytest.fixture
def shelf(world):
    """The files of `--vod`."""
    return Shelf(world, {"hello": sound(b"h"), "film": sound(b"f"), "long": sound(b"l", 3000)})


@pytest.fixture
def routed(world, shelf):
    """`routed(ROUTE, ...)`: the gateway has these routes."""
    return partial(have_routed, world, shelf)


def have_routed(world, library, *routes, proven=True):
    core = world.gateway.core
    core.is_proven = lambda server, now: proven
    core.routes = Routes(routes, core, core.domains, world.registry)
    core.routes.library = library


def heard(world):
    """The sound that the phone got, a letter for each packet."""
    return b"".join(data[-1:] for _, data in world.gateway.media.sent)


def last(desk):
    return desk.log[-1][0], desk.log[-1][2]


def test_the_first_route_that_matches_counts_and_others_change_nothing(world, desk, routed):
    routed(RouteSettings("a*", stream="one"), RouteSettings("ab@home", stream="two"))
    for user, name in (("ab", "one"), ("AB", "one"), ("b", None)):
        desk.ring(user, world.now)
        world.wait()
        assert [call.user.name for call in world.gateway.context.calls] == [name] * bool(name)
        desk.calls[-1].bye(world.now)
        world.wait()
    assert world.is_clean()


@pytest.mark.parametrize("called", ["localhost", HOME])
@pytest.mark.parametrize("pattern", ["news@localhost", f"news@{HOME}", "news@10.0.*", "NEWS"])
def test_a_domain_matches_by_each_of_its_names(pattern, called):
    """An address in a pattern is that of the domain, whatever name was called, and the reverse."""
    world = GatewayWorld(domain=())
    desk = Desk(world.link, hosts={"localhost": [HOME]})
    have_routed(world, None, RouteSettings(pattern, stream="show"))
    call = desk.ring("news", world.now, host=called)
    world.wait()
    assert desk.events()[-1] == "accepted"
    [talk] = world.gateway.context.calls
    assert talk.user.name == "show" and talk.origin.callee == f"sip:news@{called}"
    call.bye(world.now)
    world.wait()
    assert world.is_clean()


def test_another_domain_is_not_ours(world, desk, routed):
    routed(RouteSettings("news@10.0.9.9", stream="show"))
    desk.ring("news", world.now)
    world.wait()
    assert last(desk) == ("rejected", 480) and world.is_clean()


def test_a_stream_takes_the_call_though_nobody_is_there(world, desk, routed):
    """A player may come later, and a publisher too."""
    routed(RouteSettings("news", stream="show"))
    desk.ring("news", world.now)
    world.wait()
    assert desk.events()[-1] == "accepted"
    player, tool = world.tool(), world.tool()
    player.play("show")
    stream = tool.publish("show")
    tool.write(AUDIO, 0, stream, b"\x82" + b"s" * 160)
    header = b"\x80\x00\0\x01" + bytes(8)
    world.gateway.audio.on_rtp(header + b"p" * 160, world.now)
    world.run()
    assert heard(world) == b"s" and [each for each in player.media() if each[0] == AUDIO]
    desk.ring("news", world.now)
    world.wait()
    assert last(desk) == ("rejected", 486)
    assert world.is_clean()


@pytest.mark.parametrize("announce", ["", "hello"])
def test_a_stream_that_cannot_answer_is_forgotten(world, desk, routed, announce):
    routed(RouteSettings("news", stream="show", announce=announce))
    desk.ring("news", world.now, sdp("18"))
    world.wait()
    assert last(desk) == ("rejected", 488) and len(world.gateway.call) == 0
    assert world.is_clean()


def test_a_client_here_takes_the_call(world, desk, alice, routed):
    routed(RouteSettings("hotline", to="sip:alice@home"))
    desk.ring("hotline", world.now, SPEEX)
    world.wait()
    assert [name for name, *_ in alice.heard()] == ["invited"]
    alice.call("accept")
    world.wait()
    assert desk.events()[-1] == "accepted"
    assert world.is_clean()


@pytest.mark.parametrize(
    ("to", "uri"), [(f"sip:carol@{CAROL}", f"sip:carol@{CAROL}"), (f"sip:{{user}}@{CAROL}", "+491")]
)
def test_another_server_gets_the_call_by_the_proxy(world, desk, routed, to, uri):
    """Covers RFC 3261 §16.6: with a new Request-URI, and within the call both talk directly."""
    carol = Desk(world.link, CAROL)
    routed(RouteSettings("+49*", to=to))
    call = ring(desk, "+491", "ann@home", world.now)
    world.wait()
    assert desk.events()[-1] == "accepted" and uri in str(carol.calls[0].invite.uri)
    call.bye(world.now)
    world.wait()
    assert carol.events()[-1] == "ended"
    assert world.is_clean()


def ring(desk, user, caller, now):
    """A call of somebody else by the phone."""
    to, me = Address(Uri("sip", user, None, HOME)), Address(Uri.parse(f"sip:{caller}"))
    return desk.agent.invite(to, me, desk.contact, sdp(PCMU), desk, now)


def test_a_stranger_chooses_no_number_of_another_server(world, desk, routed):
    """Own design: that server may bill the gateway; a target of the operator's is open to all."""
    carol = Desk(world.link, CAROL)
    routed(
        RouteSettings("9*", to=f"sip:{{user}}@{CAROL}"), RouteSettings("*", to=f"sip:desk@{CAROL}")
    )
    ring(desk, "900123", "x@stranger.example", world.now)
    world.wait()
    assert last(desk) == ("rejected", 403) and not carol.calls
    ring(desk, "office", "x@stranger.example", world.now)
    world.wait()
    assert last(desk)[0] == "accepted" and len(carol.calls) == 1


def test_a_message_is_no_call_to_be_played_something(world, desk, routed):
    """Covers RFC 3428 §7: only an address takes it on."""
    routed(RouteSettings("*", announce="hello"))
    answers = []
    request = outside_request(
        desk.random,
        "MESSAGE",
        Address(Uri("sip", "news", None, HOME)),
        Address(Uri("sip", "user", None, DESK)),
        body=sdp(PCMU),
        content_type="application/sdp",
    )
    Messages(desk.agent.core).send(
        request, lambda response, now: answers.append(response), world.now
    )
    world.wait()
    assert [each.status >= 400 for each in answers] == [True]
    assert not world.gateway.context.calls


def test_a_file_is_played_after_the_answer_at_its_pace(world, desk, routed, shelf):
    """Covers RFC 3551 §4.2: and the call ends with the file."""
    routed(RouteSettings("film", file="film"))
    desk.ring("film", world.now)
    world.wait(0.5)
    assert desk.events()[-1] == "accepted"
    assert len(heard(world)) == pytest.approx(25, abs=2)
    world.wait(0.4)
    assert len(heard(world)) == pytest.approx(45, abs=2)
    world.wait(1.0)
    assert last(desk)[0] == "ended" and shelf.open_files == 0
    assert world.gateway.log.ends() == ["file played"]
    assert world.is_clean()


def test_a_long_file_is_read_as_it_is_played(world, desk, routed):
    """Own design: two blocks at most are in memory, of a minute and 500 kB."""
    routed(RouteSettings("film", file="long"))
    desk.ring("film", world.now)
    world.wait(30.0)
    assert heard(world) == b"l" * len(heard(world))
    assert len(heard(world)) == pytest.approx(1500, abs=5)
    world.wait(31.0)
    assert world.gateway.log.ends() == ["file played"]
    assert world.is_clean()


def test_an_announcement_is_heard_before_the_answer_and_then_the_stream_answers(
    world, desk, routed
):
    """Covers RFC 3960 §3: a 183 with a description."""
    routed(RouteSettings("news", announce="hello", stream="show"))
    desk.ring("news", world.now)
    world.wait(0.5)
    [(name, _, status, description)] = desk.log
    assert (name, status) == ("ringing", 183) and b"m=audio" in description
    assert len(heard(world)) == pytest.approx(25, abs=2)
    assert len(world.gateway.call) == 0
    world.wait(1.0)
    assert desk.events() == ["ringing", "accepted"] and heard(world) == b"h" * PACKETS
    assert len(world.gateway.call) == 1
    [named] = world.gateway.call._names.values()
    assert world.gateway.audio.codec_selection.header is named.published.header  # not the file's
    tool = world.tool()
    tool.write(AUDIO, 0, tool.publish("show"), b"\x82" + b"s" * 160)
    assert heard(world).endswith(b"s")
    assert world.is_clean()


def test_an_announcement_then_a_file(world, desk, routed):
    routed(RouteSettings("film", announce="hello", file="film"))
    desk.ring("film", world.now)
    world.wait(1.5)
    assert desk.events() == ["ringing", "accepted"]
    assert heard(world).startswith(b"h" * PACKETS + b"f" * 20)
    world.wait(1.0)
    assert last(desk)[0] == "ended"
    assert world.is_clean()


def test_an_announcement_alone_ends_without_an_answer(world, desk, routed):
    """Covers RFC 3261 §13.3.1.3: the call costs nothing."""
    routed(RouteSettings("*", announce="hello"))
    desk.ring("anybody", world.now)
    world.wait(1.5)
    assert desk.events() == ["ringing", "rejected"] and last(desk)[1] == 480
    assert world.is_clean()


def test_without_an_offer_there_is_no_announcement(world, desk, routed):
    """Covers RFC 3261 §13.2.1: the description of a 183 would have to be an offer."""
    routed(
        RouteSettings("film", announce="hello", file="film"), RouteSettings("x", announce="hello")
    )
    film, alone = desk.ring("film", world.now, b""), desk.ring("x", world.now, b"")
    world.wait(0.1)
    assert desk.events(film)[:2] == ["offer", "accepted"]
    assert desk.events(alone) == ["rejected"]
    assert world.is_clean()


def test_an_announcement_goes_to_nobody_who_may_not_have_asked_for_it(world, desk, routed):
    """Own design: the source of an INVITE by UDP can be forged, until the caller sends sound."""
    routed(RouteSettings("*", announce="hello"), proven=False)
    desk.ring("anybody", world.now)
    world.wait(0.5)
    assert heard(world) == b""
    world.gateway.audio.on_rtp(b"\x80\x00\0\x01" + bytes(8) + b"p" * 160, world.now)
    world.wait(0.4)
    assert len(heard(world)) == pytest.approx(20, abs=2)
    assert world.is_clean()


@pytest.mark.parametrize("seconds", [0.3, 1.3])
def test_a_caller_that_gives_up_closes_the_file(world, desk, routed, shelf, seconds):
    """Covers RFC 3261 §9.2 and §15.1.2."""
    routed(RouteSettings("film", announce="hello", file="film"))
    desk.ring("film", world.now)
    world.wait(seconds)
    desk.calls[0].bye(world.now)
    world.wait(0.1)
    assert not world.gateway.audios and shelf.open_files == 0
    assert world.is_clean()


def test_a_caller_that_gives_up_before_the_file_is_open(world, desk, routed, shelf):
    shelf.slow = True
    routed(RouteSettings("film", file="film"))
    desk.ring("film", world.now)
    world.wait(0.5)
    desk.calls[0].bye(world.now)
    world.wait(0.1)
    shelf.answer()
    assert shelf.open_files == 0 and not world.gateway.audios
    assert world.is_clean()


@pytest.mark.parametrize("key", ["file", "announce"])
def test_a_file_that_is_not_there(world, desk, routed, key):
    """Covers RFC 3261 §21.4.5."""
    routed(RouteSettings("film", **{key: "nothing"}))
    desk.ring("film", world.now)
    world.wait()
    assert last(desk) == ("rejected", 404)
    assert ("no-file", {"rtmp": "vod/nothing"}) in world.gateway.log.lines
    assert world.is_clean()


def test_sound_that_the_phone_does_not_have_ends_the_call(world, desk, routed, shelf):
    """And the log says why."""
    shelf.files["aac"] = write_flv([Tag(AUDIO, 23 * i, b"\xaf\x01aac") for i in range(9000)])
    routed(RouteSettings("film", file="aac"))
    desk.ring("film", world.now)
    world.wait()
    assert world.gateway.log.ends() == ["sound unsuitable"]
    assert "sound-unsuitable" in [what for what, _ in world.gateway.log.lines]
    assert world.is_clean()


def test_a_call_by_a_trunk_is_known_by_the_number_in_to(world, desk, routed):
    """Own design: its Request-URI is our Contact at the provider."""
    gateway = world.gateway
    settings = TrunkSettings("t", Uri.parse(f"sip:me@{DESK}"), ("*",), register=False)
    gateway.context.trunks = Trunks([Trunk(settings, Uri, "t0", gateway.log)])
    routed(RouteSettings(f"+4930123@{DESK}", stream="show"), RouteSettings("me", stream="other"))
    for called, name in ((f"sip:+49-30-123@{DESK}", "show"), (f"sip:me@{DESK}", "other")):
        request_uri = gateway.contact("me", "t0")
        gateway_call = desk.agent.invite(
            Address(Uri.parse(called)), Address(desk.contact), desk.contact, sdp(PCMU), desk, 0.0
        )
        assert gateway_call.invite.to.uri == Uri.parse(called)
        request = gateway_call.invite.replace(uri=request_uri)
        found = gateway.core.routes.find(request)
        assert found.args[0].stream == name
