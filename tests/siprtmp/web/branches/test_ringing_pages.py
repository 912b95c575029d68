"""A call for a user with a page rings until the page publishes, which answers it."""

import pytest
from support.gateway.gateway_world import AUDIO

SOUND = b"\x82" + b"s" * 160


@pytest.fixture
def paged(world):
    """A gateway in which ann has a page."""
    world.gateway.call.has_page = lambda uri: uri.user == "ann"
    return world


def ring(world, desk, user="ann"):
    call = desk.ring(user, world.now)
    world.wait()
    return call


def test_a_page_is_rung_and_answers_by_publishing(paged, desk):
    """Covers RFC 3261 §13.3.1.1."""
    call = ring(paged, desk)
    assert desk.events() == ["ringing"] and not call.is_up
    tool = paged.tool()
    stream = tool.publish("ann")
    paged.wait()
    assert call.is_up and len(paged.gateway.context.calls) == 1
    tool.write(AUDIO, 0, stream, SOUND)
    assert paged.gateway.media.sent[0][1].endswith(SOUND[1:])
    call.bye(paged.now)
    paged.wait()
    assert not tool.server.closed
    assert paged.is_clean()


def test_a_page_declines(paged, desk):
    ring(paged, desk)
    [call] = paged.gateway.context.calls
    call.drop(paged.now, "user")
    paged.wait()
    assert desk.events() == ["ringing", "rejected"] and paged.is_clean()


def test_a_caller_gives_up(paged, desk):
    call = ring(paged, desk)
    call.bye(paged.now)
    paged.wait()
    assert not paged.gateway.context.calls
    tool = paged.tool()
    tool.publish("ann")  # which waits, as if nobody had called
    paged.wait()
    assert ring(paged, desk).is_up  # one that publishes already does not decide
    assert paged.is_clean()


def test_a_second_call_is_told_that_the_first_rings(paged, desk):
    ring(paged, desk)
    ring(paged, desk)
    assert [each[2] for each in desk.log if each[0] == "rejected"] == [486]
    assert len(paged.gateway.context.calls) == 1
    assert paged.is_clean()


def test_the_page_of_one_user_does_not_ring_for_another(paged, desk):
    ring(paged, desk, "bob")
    assert not paged.gateway.context.calls and len(paged.gateway.call) == 0
    assert paged.is_clean()


def test_a_call_that_nobody_answers_ends(paged, desk):
    ring(paged, desk)
    paged.wait(200.0)
    assert not paged.gateway.context.calls and len(paged.gateway.call) == 0
    assert paged.is_clean()
