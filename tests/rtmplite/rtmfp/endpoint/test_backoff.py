"""When hellos and keyings are sent again."""

from rtmplite.rtmfp.endpoint.initiator import HandshakeBackoff


def test_each_wait_is_longer_by_a_second_and_a_half():
    """Covers RFC 7016 §3.5.1.1.1 [hello-backoff] [keying-backoff]."""
    backoff, now, sent = HandshakeBackoff(10.0), 10.0, []
    while now < 105.0:
        assert not backoff.is_due(now - 0.001)
        assert backoff.is_due(now)
        sent.append(now - 10.0)
        now = backoff.due
    assert sent == [0, 1.5, 4.5, 9, 15, 22.5, 31.5, 42, 54, 67.5, 82.5]


def test_who_comes_late_waits_from_then_on():
    """Own design: two packets are never closer than the interval between them."""
    backoff = HandshakeBackoff(0.0)
    backoff.is_due(0.0)
    assert backoff.is_due(7.0)
    assert backoff.due == 10.0
