"""What both ends of a startup share."""

import pytest

from rtmplite.errors import RemoteError
from rtmplite.rtmfp.endpoint.startup import (
    HandshakeBackoff,
    Job,
    StartupLimits,
    is_sendable,
    observed,
    told,
)
from rtmplite.rtmfp.wire.address import Origin, SocketAddress


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


def test_a_job_hands_its_result_over():
    """Own design: work in a thread, what follows where machines are called."""
    heard = []
    job = Job(lambda: 42, lambda result, now: heard.append((result, now)))
    job.run()
    assert heard == []
    job.finish(3.0)
    assert heard == [(42, 3.0)]


def refuse():
    raise RemoteError("no")


def crash():
    raise ValueError("a bug")


def test_a_job_that_fails_has_a_result_too():
    """Own design: whatever happens to it, the machines go on."""
    heard = []
    for work in (refuse, crash, None):
        job = Job(work, lambda result, now: heard.append(str(result)))
        if work is crash:
            with pytest.raises(ValueError, match="a bug"):
                job.run()
        elif work is not None:
            job.run()
        job.finish(0.0)
    assert "no" in heard[0]
    assert "did not end" in heard[1]
    assert "did not end" in heard[2]


@pytest.mark.parametrize(
    ("ip", "port", "sendable"),
    [
        ("192.0.2.1", 1, True),
        ("127.0.0.1", 65535, True),
        ("10.0.0.1", 1935, True),
        ("::1", 1935, True),
        ("2001:db8::1", 1935, True),
        ("::ffff:192.0.2.1", 1935, True),
        ("192.0.2.1", 0, False),
        ("0.0.0.0", 1935, False),
        ("::", 1935, False),
        ("224.0.0.1", 1935, False),
        ("239.255.255.250", 1900, False),
        ("ff02::1", 1935, False),
        ("255.255.255.255", 1935, False),
        ("::ffff:224.0.0.1", 1935, False),
        ("::ffff:255.255.255.255", 1935, False),
        ("::ffff:0.0.0.0", 1935, False),
    ],
)
def test_nobody_makes_us_send_to_many(ip, port, sendable):
    """Covers RFC 7016 §5 [resources-bounded]: others' networks are resources too."""
    assert is_sendable((ip, port)) is sendable


def test_addresses_as_sockets_and_packets_have_them():
    """Own design: what we saw, we say that we saw."""
    assert observed(("192.0.2.1", 5)) == SocketAddress("192.0.2.1", 5, Origin.OBSERVED)
    assert told(SocketAddress("192.0.2.1", 5)) == ("192.0.2.1", 5)
    assert told(SocketAddress("2001:db8::1", 5)) == ("2001:db8::1", 5)


@pytest.mark.parametrize("ip", ["224.0.0.1", "255.255.255.255", "0.0.0.0"])
def test_no_address_of_many_is_told_in_disguise(ip):
    """Covers RFC 7016 §5 [resources-bounded]: a socket for both families would send it there."""
    assert told(SocketAddress(f"::ffff:{ip}", 5)) == (ip, 5)


def test_the_limits_are_what_the_spec_names():
    """Covers RFC 7016 §3.5.1.1.1 [threshold-24]."""
    assert StartupLimits().redirect_threshold == 24
