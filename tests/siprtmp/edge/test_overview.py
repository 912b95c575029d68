"""What the operator is told of a gateway, and what becomes of what is ended."""

from functools import partial

import pytest
from support.gateway.gateway_world import AUDIO, BOB, DESK, PCMU, Log, sdp
from support.sip.homes import BOB as BOB_HOST
from support.sip.homes import CAROL, Home, register

from p2psip.errors import LocalError
from p2psip.rtp.rtcp import ReceiverReport, ReportBlock, compound
from p2psip.sip.uri import Uri
from rtmplite.amf import amf0
from rtmplite.flv import metadata
from siprtmp.calls.trunks import Trunk, Trunks
from siprtmp.edge import calls_command
from siprtmp.edge.overview import Overview
from siprtmp.settings.trunks import TrunkSettings

AVC_HEADER = bytes.fromhex("1700000000014d401effe1")


@pytest.fixture
def overview(world):
    """Over the whole of a gateway without sockets."""
    clients = lambda: [peer.server for peer in world.peers]  # noqa: E731
    gateway = world.gateway
    overview = Overview(world.registry, clients, gateway.log)
    overview.calls, overview.registrar = gateway.context.calls, gateway.registrar
    return overview


def rows(overview, world, kind):
    return [row for found, row in overview.rows(world.now) if found == kind]


def rtp(sequence):
    header = b"\x80\x00" + sequence.to_bytes(2, "big") + (160 * sequence).to_bytes(4, "big")
    return header + bytes(4) + b"p" * 160


def test_a_call_that_is_made_rings_is_up_and_loses_packets(world, desk, overview):
    """Covers RFC 3550 §6.4.1: lost from the phone as we count, to the phone as it reports."""
    desk.answers = b""
    tool = world.tool()
    stream = tool.publish(BOB)
    world.wait(2.0)
    [row] = rows(overview, world, "calls")
    assert (row["state"], row["seconds"], row["codec"]) == ("ringing", 2.0, None)
    assert row["direction"] == "out" and row["callee"] == f"sip:{BOB}"
    assert row["rtmp"] == tool.server.id
    desk.calls[0].accept(sdp(PCMU), world.now)
    world.wait(1.0)
    leg = world.gateway.audio
    for sequence in (1, 2, 3, 5):
        leg.on_rtp(rtp(sequence), world.now)
    for i in range(50):
        tool.write(AUDIO, 20 * i, stream, b"\x82" + b"s" * 160)
    world.wait(2.0)
    ours = int.from_bytes(world.gateway.media.sent[0][1][8:12], "big")
    leg.on_rtcp(compound(ReceiverReport(9, (ReportBlock(ours, 25, 5, 60, 0, 0, 0),))), world.now)
    [row] = rows(overview, world, "calls")
    assert (row["state"], row["codec"], row["received"]) == ("up", "pcmu", 4)
    assert row["seconds"] == pytest.approx(3.0, abs=0.2)
    assert row["lost_from_phone"] == 20.0
    assert row["lost_to_phone"] == pytest.approx(100 * 5 / row["sent"], abs=0.01)
    assert row["jitter_ms"] >= 0
    world.gateway.context.calls.copy().pop().drop(world.now, "test")
    assert world.is_clean()


def test_a_call_is_ended_by_its_id_or_the_beginning_of_it(world, desk, alice, overview):
    """Covers RFC 3261 §15.1.1."""
    desk.ring("alice", world.now)
    world.wait()
    assert alice.heard()[0][0] == "invited"
    [row] = rows(overview, world, "calls")
    assert row["direction"] == "in" and row["source"] == "UDP:10.0.0.3"
    for nobody in ("", "no such id"):
        with pytest.raises(LocalError, match="no id"):
            overview.end(nobody, world.now)
    assert overview.end(row["id"][:10], world.now) == ["call"]
    world.wait()
    assert alice.heard() == [("byed",)] and desk.events()[-1] == "rejected"
    assert world.gateway.log.ends() == ["operator"] and rows(overview, world, "calls") == []
    assert world.is_clean()


def test_both_sides_of_a_call_between_clients_end_together(world, alice, overview):
    bob = world.rich("bob@home")
    alice.call("invite", "bob@home")
    world.wait()
    first, second = rows(overview, world, "calls")
    assert first["id"] == second["id"] and {first["direction"], second["direction"]} == {
        "in",
        "out",
    }
    assert overview.end(first["id"], world.now) == ["call", "call"]
    world.wait()
    assert bob.heard()[-1][0] in ("byed", "cancelled") and alice.heard()[-1][0] == "byed"
    assert world.is_clean()


def test_an_id_that_begins_several_ends_none(world, overview):
    for name in ("a", "b"):
        world.client("rtmp://host/live").publish(name)
    one, other = (row["id"] for row in rows(overview, world, "streams"))
    assert one != other
    world.peers[0].server.id = "same1"
    world.peers[1].server.id = "same2"
    with pytest.raises(LocalError, match="several ids begin with 'same'"):
        overview.end("same", world.now)
    assert overview.end("same2", world.now) == ["publisher"]
    world.run()
    assert [peer.server.closed for peer in world.peers] == [False, True]


def test_a_stream_tells_its_publisher_its_codecs_and_how_many_play_it(world, overview):
    world.wait(5.0)
    publisher, player = world.client("rtmp://host/live"), world.client("rtmp://host/live")
    stream = publisher.publish("demo")
    player.play("demo")
    player.play("later")
    publisher.write(18, 0, stream, metadata.build(audio_codec_id=11, video_codec_id=7))
    publisher.write(9, 0, stream, AVC_HEADER)
    world.wait(3.0)
    demo, later = rows(overview, world, "streams")
    assert demo["name"] == "live/demo" and demo["id"] == publisher.server.id
    assert (demo["seconds"], demo["players"]) == (3.0, 1)
    assert sorted(demo["codecs"]) == ["avc", "speex"]
    assert later["name"] == "live/later" and not later["id"] and later["seconds"] is None


def test_metadata_that_names_no_codec_is_no_trouble(world, overview):
    publisher = world.client("rtmp://host/live")
    stream = publisher.publish("odd")
    odd = {"audiocodecid": [1.0], "videocodecid": float("nan")}
    publisher.write(18, 0, stream, amf0.encode("onMetaData", odd))
    [row] = rows(overview, world, "streams")
    assert row["codecs"] == []


def test_a_waiting_name_is_a_stream_without_players(world, overview):
    tool = world.tool()
    tool.publish("studio")
    [row] = rows(overview, world, "streams")
    assert (row["name"], row["id"], row["players"]) == ("call/studio", tool.server.id, 0)


def test_where_sip_is_off_there_are_streams_alone(world):
    world.client("rtmp://host/live").publish("demo")
    clients = lambda: [peer.server for peer in world.peers]  # noqa: E731
    overview = Overview(world.registry, clients, world.gateway.log)
    assert [kind for kind, _ in overview.rows(0.0)] == ["streams"]


def test_a_thousand_calls_are_aligned_and_no_name_plays_with_the_terminal():
    row = {
        "id": "0" * 24,
        "state": "up",
        "seconds": 61.2,
        "caller": "sip:\x1b[2Jm\u00e4x@evil.invalid",
        "callee": "sip:bob@home",
        "source": "UDP:192.0.2.1",
        "codec": "pcmu",
        "lost_from_phone": 1.25,
        "lost_to_phone": None,
        "mos_from_phone": 3.93,
    }
    reply = {"calls": [row | {"id": f"{i:024}"} for i in range(1000)], "streams": []}
    lines = calls_command._lines(reply)
    assert lines[0] == "calls: 1000" and lines[-2:] == ["registrations: 0", "streams: 0"]
    assert len({len(line) for line in lines[2:1002]}) == 1
    assert lines[2].split() == [
        *("1m01s", "up", "sip:\\x1b[2Jm\\xe4x@evil.invalid", "sip:bob@home", "UDP:192.0.2.1"),
        *("pcmu", "-", "1.2%/-", "3.9/-", "0" * 24),
    ]
    assert all(line.isascii() and line.isprintable() for line in lines)


def test_a_trunk_is_listed_with_the_calls_that_leave_by_it(world, desk, overview):
    gateway = world.gateway
    settings = TrunkSettings("t", Uri.parse(f"sip:me@{DESK}"), ("+*",), register=False)
    contact = partial(gateway.contact, "me", "t")
    trunks = [Trunk(settings, contact, "t", gateway.log)]
    gateway.context.trunks, overview.trunks = Trunks(trunks, gateway.domains), trunks
    world.tool().publish("tel:+49")
    world.wait()
    [row], [call] = rows(overview, world, "trunks"), rows(overview, world, "calls")
    assert (row["name"], row["address"], row["calls"]) == ("t", f"sip:me@{DESK}", 1)
    assert (row["state"], row["reason"], call["trunk"]) == ("unregistered", "", "t")
    lines = calls_command._lines({"trunks": [row]})
    assert lines[-3:-1] == ["trunks: 1", "  NAME  ADDRESS          STATE         CALLS  REASON"]
    assert lines[-1].split() == ["t", f"sip:me@{DESK}", "unregistered", "1", "-"]
    assert world.is_clean()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (60, "1m00s"), (3661, "1h01m"), (90_000, "1d01h"), (None, "-")],
)
def test_durations(seconds, text):
    assert calls_command._duration(seconds) == text


def test_a_registration_is_forgotten_and_only_that(world):
    """Covers RFC 3261 §10.3."""
    home, log = Home(), Log()
    for cseq, phone in enumerate((BOB_HOST, CAROL), 1):
        home.hear(register(contact=f"<sip:bob@{phone}>", cseq=cseq), source=phone)
    overview = Overview(world.registry, list, log)
    overview.registrar = home.registrar
    first, second = rows(overview, world, "registrations")
    assert (first["user"], first["source"]) == ("sip:bob@home", f"UDP:{BOB_HOST}")
    assert first["contact"] == f"sip:bob@{BOB_HOST}" and first["expires"] == 3600
    assert overview.end(first["id"], world.now) == ["registration"]
    assert rows(overview, world, "registrations") == [second]
    assert log.lines == [
        (
            "unregistered",
            {"user": "sip:bob@home", "source": "operator", "contact": f"sip:bob@{BOB_HOST}"},
        )
    ]
    assert home.registrar.count(world.now) == 1


def test_what_goes_on_may_change_while_it_is_told(world, overview):
    """The list is made in pieces, and packets go on between them."""
    peers = [world.client("rtmp://host/live") for _ in range(3)]
    for number, peer in enumerate(peers):
        peer.publish(f"{number}a")
        peer.publish(f"{number}b")
    told = overview.rows(world.now)
    next(told)
    for peer in peers[::2]:
        peer.server.streams.clear()
        world.drop(peer)
    assert {"live/1a", "live/1b"} <= {row["name"] for _, row in told}
