"""A server that wants its clients elsewhere."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmp.rtmp_world import World

from rtmplite.amf import amf0
from rtmplite.errors import RemoteError
from rtmplite.rtmp import reconnect
from rtmplite.rtmp.client import Called
from rtmplite.rtmp.wire.command import Command, on_status

HERE = "rtmp://foo.example:1935/app/room"


def test_the_request_on_the_wire():
    """Covers E-RTMP v2 §"NetConnection Commands" [reconnect-code] [reconnect-level]
    [on-status-layout].

    Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [remap-sets-tc-url].
    """
    name, number, none, told = amf0.decode(bytes(reconnect.request("/other", "Moving.")))
    assert (name, number, none) == ("onStatus", 0.0, None)
    code = "NetConnection.Connect.ReconnectRequest"
    assert told == {"level": "status", "code": code, "description": "Moving.", "tcUrl": "/other"}
    assert "tcUrl" not in reconnect.request().args[0]


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("rtmps://bar.example/live", "rtmps://bar.example/live"),
        ("//192.0.2.0/realtimeapp", "rtmp://192.0.2.0/realtimeapp"),
        ("/realtimeapp", "rtmp://foo.example:1935/realtimeapp"),
        ("hall?x=1", "rtmp://foo.example:1935/app/hall?x=1"),
        ("", HERE),
        (None, HERE),
    ],
)
def test_where_to_go(reference, url):
    """Covers E-RTMP v2 §"NetConnection Commands" [relative-tc-url] [reconnect-code]
    [reconnect-level].

    Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [without-tc-url].
    """
    assert reconnect.requested(reconnect.request(reference), HERE) == url


@pytest.mark.parametrize(
    "command",
    [
        Command("onStatus"),
        Command("onStatus", args=("x",)),
        Command("close", args=({"code": reconnect.CODE, "level": "status"},)),
        on_status("status", "NetConnection.Connect.Closed", ""),
        on_status("error", reconnect.CODE, ""),
    ],
)
def test_what_is_no_request(command):
    """Covers E-RTMP v2 §"NetConnection Commands" [reconnect-code] [reconnect-level].

    Other statuses, and what has not the level that it must have.
    """
    assert reconnect.requested(command, HERE) is None


def test_nowhere():
    """A URL that is none."""
    with pytest.raises(RemoteError):
        reconnect.requested(reconnect.request("//[::1"), HERE)


@given(st.text())
def test_any_text_is_a_place_or_none(reference):
    """Nothing but RemoteError."""
    with suppress(RemoteError):
        assert isinstance(reconnect.resolve(reference, HERE), str)


def test_the_old_server_goes_on():
    """Covers E-RTMP v2 §"Message Flow When Handling NetConnection.Connect.ReconnectRequest"
    [old-server-goes-on].
    """
    world = World()
    publisher, player = world.client(), world.client()
    stream, _ = publisher.publish("demo"), player.play("demo")
    assert publisher.server.request_reconnect("rtmp://elsewhere/live")
    world.run()
    (asked,) = [
        event.command
        for event in publisher.events
        if isinstance(event, Called) and event.stream_id == 0
    ]
    assert reconnect.requested(asked, "rtmp://host/live") == "rtmp://elsewhere/live"
    publisher.write(8, 20, stream, b"\xb2sound")
    assert player.media() == [(8, 20, b"\xb2sound")] and not publisher.server.closed


def test_only_who_can_is_asked():
    """Covers E-RTMP v2 §"Enhancing NetConnection connect Command" [caps-ex]."""
    world = World()
    old = world.client(properties={"capsEx": 14.0})
    assert not old.server.request_reconnect() and old.server.transport.take_output() == []
    stranger = world.server()
    assert not stranger.request_reconnect()
