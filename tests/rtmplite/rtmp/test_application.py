"""The arguments of play, and which application a client gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmp.rtmp_world import World

from rtmplite.amf.values import UNDEFINED
from rtmplite.errors import RemoteError
from rtmplite.rtmp.application import OpenApplication, applications
from rtmplite.rtmp.netstream import ANY, LIVE_ONLY, TO_THE_END, PlayRequest


@pytest.mark.parametrize(
    ("args", "request_"),
    [
        ((), PlayRequest(ANY, TO_THE_END, True)),
        ((-2.0,), PlayRequest(ANY)),
        ((-2000.0,), PlayRequest(ANY)),
        ((-1.0,), PlayRequest(LIVE_ONLY)),
        ((-1000.0, -1.0, False), PlayRequest(LIVE_ONLY, TO_THE_END, False)),
        ((0.0,), PlayRequest(0.0)),
        ((2000.0, 500.0, 1.0), PlayRequest(2000.0, 500.0, True)),
        ((2000.0, -7.0, 0.0), PlayRequest(2000.0, TO_THE_END, False)),
        ((float("nan"), float("inf"), None), PlayRequest()),
        (("2", UNDEFINED, True, 5.0), PlayRequest()),
    ],
)
def test_what_is_asked_for(args, request_):
    """Covers RTMP 1.0 §7.2.2.1 and Field §"Play times"."""
    assert PlayRequest.parse(args) == request_


@given(st.lists(st.floats() | st.booleans() | st.none() | st.text(), max_size=5))
def test_nothing_asked_for_is_absurd(args):
    """Covers RTMP 1.0 §7.2.2.1."""
    asked = PlayRequest.parse(tuple(args))
    assert asked.start in (ANY, LIVE_ONLY) or 0 <= asked.start < 1 << 32
    assert asked.duration == TO_THE_END or 0 <= asked.duration < 1 << 32


def test_a_wrong_name_is_answered_by_the_right_ones():
    """Covers RTMP 1.0 §7.2.1.1."""
    world = World()
    world.application_for = applications({"vod": OpenApplication(), "live": OpenApplication()})
    with pytest.raises(RemoteError) as refused:
        (peer := world.client("rtmp://host/lvie/room")).reply(1.0)
    assert refused.value.code == "NetConnection.Connect.InvalidApp"
    assert refused.value.description == "No such application: lvie; there are: live, vod"
    assert peer.server.closed
    assert world.client("rtmp://host/live/room").reply(1.0)


def test_an_application_that_offers_nothing_says_so():
    """Covers RTMP 1.0 §7.2.2.1."""
    world = World(OpenApplication())
    peer = world.client()
    peer.publish("demo")
    peer.play("demo")
    assert peer.codes() == ["NetStream.Publish.BadName", "NetStream.Play.StreamNotFound"]
