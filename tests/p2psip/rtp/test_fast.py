"""The media path's header writer and classifier agree with the readable codec."""

from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.fast import VERSION_2, looks_like_rtcp, pack_fixed, unpack
from p2psip.rtp.packet import RtpPacket
from p2psip.strategies.rtp import compounds, rtp_packets, sequences, words


@given(st.integers(0, 127), words, sequences, words, st.booleans(), st.binary(max_size=20))
def test_the_fixed_header_is_what_the_codec_writes(
    kind, ssrc, sequence, timestamp, marker, payload
):
    """Covers RFC 3550 §5.1."""
    header = pack_fixed(VERSION_2, kind | marker << 7, sequence, timestamp, ssrc)
    assert header + payload == bytes(RtpPacket(kind, sequence, timestamp, ssrc, payload, marker))


@given(compounds(), rtp_packets())
def test_rtcp_is_told_from_rtp(packets, rtp):
    """Covers RFC 5761 §4: by the payload types 64 to 95, which RTP leaves alone."""
    assert looks_like_rtcp(bytes(packets[0]))
    second = bytes(rtp)[1]
    assert looks_like_rtcp(bytes(rtp)) == (192 <= second <= 223)
    assert not looks_like_rtcp(b"\x80") and unpack(b"\x80") is None
