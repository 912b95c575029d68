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
