"""What each side of a call is told when it fails, in one table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gateway.gateway_world import BOB, SPEEX, Desk

from siprtmp.calls.failures import asked, failed, refusal, told

REJECTED = "NetStream.Publish.Rejected"
# Refusals of phones, servers and this gateway: what a publisher is told, and a rich client.
FAILURES = [
    (300, "Multiple Choices"),
    (302, "Moved"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (403, "Target Not Allowed"),
    (404, "Not Found"),
    (407, "Proxy Authentication Required"),
    (408, "Request Timeout"),
    (415, "Unsupported Media Type"),
    (420, "Bad Extension"),
    (480, "Temporarily Unavailable"),
    (486, "Busy Here"),
    (487, "Request Terminated"),
    (488, "Not Acceptable Here"),
    (500, "Server Internal Error"),
    (503, "Service Unavailable"),
    (600, "Busy Everywhere"),
    (603, "Decline"),
    (606, "Not Acceptable"),
]


@pytest.fixture
def refusing(world):
    """A phone that refuses with what its `failure` is."""

    class Refusing(Desk):
        def _answer(self, call, now):
            call.reject(*self.failure, now)

    return Refusing(world.link)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_refusal_reaches_the_client_as_text_and_the_text_is_the_refusal(world, refusing, failure):
    """Covers RTMP 1.0 §7.2.2 and RFC 3261 §13.2.2.3."""
    refusing.failure = failure
    tool, alice = world.tool(), world.rich("alice@home")
    tool.publish(BOB)
    alice.call("invite", BOB)
    world.wait()
    information = [e.command.args[0] for e in tool.events if hasattr(e, "command")][-1]
    assert (information["code"], information["level"]) == (REJECTED, "error")
    [(name, text)] = alice.heard()
    assert name == "rejected" and information["description"] == text == told(*failure)
    assert asked(text) == failure
    error = failed(failure)
    assert (error.status, error.reason) == failure
    assert world.is_clean()


@pytest.mark.parametrize("failure", FAILURES)
def test_a_client_refuses_with_the_status_it_names(world, desk, alice, failure):
    """Covers RFC 3261 §13.3.1.3."""
    desk.ring("alice", world.now, SPEEX)
    world.wait()
    alice.call("reject", told(*failure))
    world.wait()
    assert desk.log[-1][0] == "rejected" and desk.log[-1][2] == failure[0]
    assert world.is_clean()


@given(
    st.integers(300, 699), st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=80)
)
def test_told_and_asked_are_each_others_inverse(status, reason):
    assert asked(told(status, reason)) == (status, reason)


@given(st.none() | st.floats() | st.text())
def test_anything_else_that_is_asked_is_a_refusal(text):
    status, reason = asked(text)
    assert 300 <= status < 700 and reason.isprintable() and len(reason) <= 100


@pytest.mark.parametrize(
    "text", ["", "200 OK", "700 Odd", "busy", "48", "4866", "\u0664\u0668\u0666"]
)
def test_no_failure_is_declined(text):
    """Covers RFC 3261 §21.6."""
    assert asked(text) == (603, "Decline")


@pytest.mark.parametrize(
    ("ends", "status"), [("die", 480), ("shutdown", 503), ("bye", 603), ("operator", 603)]
)
def test_what_the_caller_is_told_when_we_end_a_call_that_rings(world, desk, alice, ends, status):
    """Covers RFC 3261 §13.3.1.3: 603 would keep the other phones of a callee from ringing."""
    desk.ring("alice", world.now, SPEEX)
    world.wait()
    [call] = world.gateway.context.calls
    if ends == "die":
        world.drop(alice.peer)
    elif ends == "bye":
        alice.call("bye")
    else:
        call.drop(world.now, ends)
    world.wait()
    assert desk.log[-1][0] == "rejected" and desk.log[-1][2] == status
    assert refusal("anything else") == (603, "Decline")
    assert world.is_clean()
