"""Addresses that peers tell us, and that we tell peers."""

import pytest

from rtmplite.rtmfp.wire.address import Origin, SocketAddress, is_sendable, observed, told


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
