"""The media path's header writer and classifier agree with the readable codec."""

from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.fast import HeaderTemplate, looks_like_rtcp, unpack
from p2psip.rtp.packet import RtpPacket
from p2psip.strategies.rtp import compounds, rtp_packets, sequences, words


@given(st.integers(0, 127), words, sequences, words, st.booleans(), st.binary(max_size=20))
def test_a_template_writes_what_the_codec_writes(kind, ssrc, sequence, timestamp, marker, payload):
    """Covers RFC 3550 §5.1."""
    header = HeaderTemplate(kind, ssrc).pack(sequence, timestamp, marker)
    packet = RtpPacket(kind, sequence, timestamp, ssrc, payload, marker)
    assert header + payload == bytes(packet)


@given(words, words)
def test_counters_wrap(sequence, timestamp):
    """Covers RFC 3550 §5.1: the caller may count on without masking."""
    template = HeaderTemplate(0, 1)
    wrapped = template.pack(sequence & 0xFFFF, timestamp)
    assert template.pack(sequence, timestamp + (1 << 32)) == wrapped


@given(compounds(), rtp_packets())
def test_rtcp_is_told_from_rtp(packets, rtp):
    """Covers RFC 5761 §4: by the payload types 64 to 95, which RTP leaves alone."""
    assert looks_like_rtcp(bytes(packets[0]))
    second = bytes(rtp)[1]
    assert looks_like_rtcp(bytes(rtp)) == (192 <= second <= 223)
    assert not looks_like_rtcp(b"\x80") and unpack(b"\x80") is None
