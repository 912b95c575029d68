"""When a Ping counts as unanswered."""

from rtmplite.rtmfp.session.keepalive import Keepalive
from rtmplite.rtmfp.session.rtt import RoundTrip


def test_what_was_heard_in_the_same_moment_is_a_reply():
    """Covers RFC 7016 §3.5.4.1 [unanswered-backs-off]."""
    timing = RoundTrip()
    silence = Keepalive(timing, 10.0, 60.0, 0.0)
    assert silence.tick(10.0)
    silence.heard = 10.0
    assert silence.tick(20.0)
    assert timing.erto == 3.0
    assert silence.tick(30.0)
    assert timing.erto > 3.0


def test_data_that_cease_are_asked_for_once():
    """RFC 7016 §3.5.4.1, §3.5.4.2: by a Ping after a second, which also tells of a new address."""
    silence = Keepalive(RoundTrip(), 10.0, 60.0, 0.0)
    silence.hear(1.0)
    assert not silence.tick(2.0)  # no data have come
    silence.expects = True
    assert silence.deadline == 2.0
    assert not silence.tick(1.9)
    assert silence.tick(2.0)
    assert not silence.tick(4.9)
    assert silence.tick(5.0)  # the Ping was lost
    silence.hear(5.1)
    assert not silence.tick(10.0)  # the far end is there, and has nothing to send
