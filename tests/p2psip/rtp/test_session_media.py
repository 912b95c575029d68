"""The media path of a session: what leaves is RTP, and the short way in is the long one."""

import random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.session import RtpSession

OURS, PEER, OTHER = 1, 2, 3


def session(ssrc=OURS, **options):
    return RtpSession(ssrc, 8000, "ann@host", random.Random(1).randbytes, 0.0, **options)


@pytest.mark.parametrize("marker", [False, True])
@pytest.mark.parametrize("payload_type", [0, 96, 127])
def test_what_is_sent_is_a_packet(payload_type, marker):
    """Covers RFC 3550 §5.1: every field, and one number more each time.

    Covers RFC 4733 §2.5.1.6 [numbers-by-one].
    """
    ours, sent = session(), []
    for timestamp in (0xFFFFFFF0, 144):
        data = ours.send(payload_type, b"sound", timestamp, marker, 0.0)
        sent.append(RtpPacket.parse(data))
        assert sent[-1] == RtpPacket(
            payload_type, sent[-1].sequence, timestamp, OURS, b"sound", marker
        )
    assert sent[1].sequence == (sent[0].sequence + 1) & 0xFFFF
    assert (ours.statistics.packets_sent, ours.statistics.octets_sent) == (2, 10)


first_octets = st.sampled_from([0x80] * 6 + [0xA0, 0x90, 0x81, 0x40, 0x00])
arrivals = st.lists(
    st.tuples(
        first_octets,
        st.sampled_from([0, 13, 72, 127, 128, 200, 255]),
        st.sampled_from([1, 2, 3, 4, 5, 40_000, 40_001]) | st.integers(0, 0xFFFF),
        st.sampled_from([PEER] * 6 + [OTHER, OTHER, OURS]),
        st.binary(max_size=8),
    ),
    max_size=12,
)


def datagram(first, second, sequence, ssrc, rest):
    fields = (sequence.to_bytes(2, "big"), bytes(4), ssrc.to_bytes(4, "big"))
    return bytes((first, second)) + b"".join(fields) + rest


@given(arrivals, st.booleans(), st.sampled_from([None, {0, 127}]))
def test_the_short_way_in_is_the_long_one(packets, echo, payload_types):
    """Covers RFC 3550 §A.1: whatever comes, the same answer and the same books."""
    short, long = (session(echo=echo, payload_types=payload_types) for _ in range(2))
    for number, fields in enumerate(packets):
        data, now = datagram(*fields), number * 0.02
        header = short.received_rtp(data, now)
        assert header == long._received_unusual(data, now)
        event("heard" if header else "dropped")
        assert short.statistics == long.statistics and short.ssrc == long.ssrc
        assert short.last_received == long.last_received
        assert short.reception.candidate_ssrc == long.reception.candidate_ssrc


def test_a_packet_of_the_known_source_is_told_apart():
    """Covers RFC 3550 §5.1: and its octets are counted, without the header."""
    ours, peer = session(), session(PEER)
    for marker in (False, True):
        data = peer.send(127, b"sound", 160, marker, 0.0)
        number = int.from_bytes(data[2:4], "big")
        assert ours.received_rtp(data, 0.5) == (127, marker, number, 160, PEER, 12, 17)
    assert ours.last_received == 0.5 and ours.statistics.octets_received == 10
    far = datagram(0x80, 0, number + 30_000 & 0xFFFF, PEER, b"")
    assert ours.received_rtp(far, 1.0) is None and ours.statistics.invalid == 1
    assert ours.last_received == 0.5
    ours.received_rtp(datagram(0x80, 0, 7, OTHER, b""), 1.0)
    assert ours.received_rtp(data, 1.0) and ours.reception.candidate_ssrc is None
