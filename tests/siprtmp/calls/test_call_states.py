"""The states and keys of a call, as tools hear them that can only publish and play."""

from support.gateway.gateway_world import AUDIO, BOB, PCMU, sdp

from rtmplite.amf import amf0

DATA = 18
SOUND = b"\x82" + b"s" * 160


def told(peer, stream=None):
    """The states that a client has heard, as (last word of the code, description)."""
    found = []
    for type_id, _, payload in peer.media():
        if type_id == DATA:
            name, *values = amf0.decode(payload)
            if name == "onStatus":
                assert values[0]["level"] == "status"
                found.append((values[0]["code"].removeprefix("NetStream.Call."),
                              values[0]["description"]))  # fmt: skip
    return found


def test_a_publisher_that_dials_hears_of_its_call(world, desk):
    """Covers RTMP 1.0 §7.1.2: and a tool that waits for Publish.Start sees no other status."""
    desk.answers = b""
    tool = world.tool()
    stream = tool.publish(BOB)
    world.wait()
    assert told(tool) == [("Ringing", "180 Ringing")] and tool.codes() == []
    desk.calls[0].accept(sdp(PCMU), world.now)
    world.wait()
    tool.write(AUDIO, 0, stream, SOUND)
    desk.calls[0].info("application/dtmf-relay", b"Signal=5\r\n", world.now)
    desk.calls[0].reinvite(sdp(PCMU, more=("sendonly",)), world.now)
    world.wait()
    desk.calls[0].reinvite(sdp(PCMU), world.now)
    world.wait()
    states = [("Answered", "pcmu"), ("Digit", "5"), ("Held", ""), ("Resumed", "")]
    assert told(tool)[1:] == states
    assert tool.codes() == ["NetStream.Publish.Start"] and world.is_clean()


def test_a_waiting_publisher_and_its_players_hear_of_a_phone(world, desk):
    """Covers RTMP 1.0 §7.1.2: players from the first sound on, and all that it has gone."""
    tool, player, late = world.tool(), world.tool(), world.tool()
    tool.publish("studio")
    player.play("studio")
    call = desk.ring("studio", world.now)
    world.wait()
    call.info("application/dtmf", b"#", world.now)
    world.wait()
    for number in range(2):
        header = b"\x80\x00" + number.to_bytes(2, "big") + bytes(8)
        world.gateway.audio.on_rtp(header + b"p" * 160, world.now)
        call.info("application/dtmf", b"1", world.now)
        world.wait()
        late.play("studio")
    assert told(tool) == [("Answered", "pcmu"), ("Digit", "#"), ("Digit", "1"), ("Digit", "1")]
    assert told(player) == told(tool)[2:] and told(late) == told(tool)[3:]  # what was is past
    for peer in (player, late):
        kinds = [type_id for type_id, *_ in peer.media()]
        assert kinds[0] == DATA and b"onMetaData" in peer.media()[0][2] and AUDIO in kinds
    call.bye(world.now)
    world.wait()
    assert told(tool)[-1] == ("Ended", "BYE") and not tool.server.closed
    assert player.codes()[-1] == "NetStream.Play.UnpublishNotify" and world.is_clean()
