"""The bandwidth check, with clients that answer, answer late, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmp.rtmp_world import World

from rtmplite.rtmp.client import Called
from rtmplite.rtmp.netconnection import PAYLOADS, BandwidthCheck
from rtmplite.rtmp.wire.command import Command


def answer(world, peer, seconds):
    """Let the client answer what it was asked, so long after; whether it was."""
    asked = [e.command for e in peer.events if isinstance(e, Called) and e.command.transaction_id]
    if not asked:
        return False
    peer.events.clear()
    world.now += seconds
    peer.client.send_command(Command("_result", asked[-1].transaction_id, None, ()))
    world.run()
    return True


@pytest.mark.parametrize(
    ("ask", "call", "end"),
    [("checkBandwidth", "onBWCheck", "onBWDone"), ("_checkbw", "_onbwcheck", "_onbwdone")],
)
def test_a_client_that_answers_is_told_how_fast_it_is(ask, call, end):
    """Covers Field §"Bandwidth check"."""
    world = World()
    peer = world.client()
    peer.send(ask)
    assert [each[0] for each in peer.calls()] == [call]
    assert answer(world, peer, 0.1)
    assert len(peer.calls()[0][1]) == PAYLOADS[1]
    assert answer(world, peer, 0.2) and answer(world, peer, 0.2)
    ((name, speed, size, took, latency),) = peer.calls()
    assert (name, size) == (end, sum(PAYLOADS))
    assert took == pytest.approx(200.0) and latency == pytest.approx(100.0)
    assert speed == pytest.approx(size * 8 / took)
    assert not answer(world, peer, 0.1)


def test_who_does_not_answer_is_asked_no_more():
    """ffmpeg, for one; and it may ask again."""
    peer = World().client()
    assert peer.call("_checkbw") == (None, None)
    assert len(peer.calls()) == 1
    peer.client.send_command(Command("_result", 77.0, None, ()))
    peer.world.run()
    assert len(peer.calls()) == 1
    peer.send("_checkbw")
    assert len(peer.calls()) == 2 and not peer.server.closed


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=8))
def test_no_clock_breaks_it(times):
    """Own design: answers that take no time, or seem to come before their question."""
    check = BandwidthCheck("a", "b", 1.0)
    check.begin(times[0])
    said = [check.answered(1.0, at) for at in times]
    ends = [command for command in said if command is not None and command.name == "b"]
    assert len(ends) == (1 if len(times) >= len(PAYLOADS) else 0)
    assert all(value >= 0 for command in ends for value in command.args)
