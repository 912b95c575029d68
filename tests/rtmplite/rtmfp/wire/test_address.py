"""Socket addresses in introductions and redirections."""

from ipaddress import ip_address

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.address import Origin, SocketAddress, parse_address
from rtmplite.strategies.rtmfp import addresses


@given(addresses(), st.binary(max_size=3), st.sampled_from([bytes, memoryview]))
def test_reading_undoes_writing(address, rest, kind):
    """Covers RFC 7016 §2.1.5 [address-layout]."""
    data = address.encode()
    assert len(data) == (7 if ip_address(address.ip).version == 4 else 19)
    assert parse_address(kind(b"!" + data + rest), 1) == (address, 1 + len(data))


@pytest.mark.parametrize(
    ("data", "want"),
    [
        ("02 c0000207 078f", SocketAddress("192.0.2.7", 1935, Origin.OBSERVED)),
        ("01 0a000001 0001", SocketAddress("10.0.0.1", 1, Origin.LOCAL)),
        (
            "83" + "20010db8" + "00" * 11 + "01" + "ffff",
            SocketAddress("2001:db8::1", 0xFFFF, Origin.RELAY),
        ),
        ("7c c0000207 078f", SocketAddress("192.0.2.7", 1935, Origin.UNKNOWN)),
        ("7e c0000207 078f", SocketAddress("192.0.2.7", 1935, Origin.OBSERVED)),
    ],
)
def test_flags_origins_and_reserved_bits(data, want):
    """Covers RFC 7016 §2.1.5 [address-layout] [origins], §2 [reserved-ignored]."""
    found, _ = parse_address(bytes.fromhex(data))
    assert found == want
    assert found.encode()[0] == bytes.fromhex(data)[0] & 0x83


@pytest.mark.parametrize("origin", [(0, "UNKNOWN"), (1, "LOCAL"), (2, "OBSERVED"), (3, "RELAY")])
def test_the_numbers_of_the_origins(origin):
    """Covers RFC 7016 §2.1.5 [origins]."""
    number, name = origin
    data = SocketAddress("192.0.2.7", 1935, Origin[name]).encode()
    assert data[0] == number and parse_address(data)[0].origin is Origin[name]


@given(addresses())
def test_what_is_cut_off_is_refused(address):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    data = address.encode()
    for length in range(len(data)):
        with pytest.raises(RemoteError):
            parse_address(data[:length])
    assert parse_address(data) == (address, len(data))


@pytest.mark.parametrize(("ip", "port"), [("localhost", 1), ("", 1), ("::1", 65536), ("::1", -1)])
def test_names_and_impossible_ports_are_our_own_bug(ip, port):
    """Covers RFC 7016 §2.1.5 [address-layout]."""
    with pytest.raises(LocalError):
        SocketAddress(ip, port).encode()


@given(mutations(addresses().map(SocketAddress.encode)))
def test_any_bytes_are_read_or_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    assert peak(lambda: _attempt(data)) <= 32 * len(data) + 65536


def _attempt(data):
    try:
        parse_address(data)
        event("read")
    except RemoteError:
        event("refused")
