"""What a phone sends reaches players in its own rhythm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siprtmp.media.translate.audio_formats import PCMA, PCMU, WIDEBAND
from siprtmp.media.translate.flv_to_rtp import FlvToRtp
from siprtmp.media.translate.rtp_to_flv import RtpToFlv


@given(
    start=st.integers(0, (1 << 32) - 1),
    steps=st.lists(st.integers(0, 40000), max_size=30),
    jitter=st.lists(st.integers(0, 500), min_size=30, max_size=30),
)
def test_rtmp_time_follows_rtp_time_and_not_arrival(start, steps, jitter):
    """Covers RTMP 1.0 §5.4.1.

    Covers RFC 3551 §4.1 [silence-is-expected].
    """
    machine, ticks, times = RtpToFlv(PCMU), 0, []
    for step, late in zip([0, *steps], [0, *jitter], strict=False):
        ticks += step
        rtp = (start + ticks) % (1 << 32)
        ((at, tag),) = machine.convert(b"x", rtp, 1, 5000 + ticks // 8 + late)
        assert tag == b"\x82x"
        times.append(at - 5000 - ticks // 8)
    assert set(times) == {0}


def test_a_new_source_or_a_jump_starts_from_arrival_and_never_runs_back():
    """Covers RFC 3550 §5.1.

    Covers Field §"Clocks that jump".
    """
    machine = RtpToFlv(PCMU)
    assert machine.convert(b"x", 1000, 1, 100) == [(100, b"\x82x")]
    assert machine.convert(b"x", 9, 2, 300) == [(300, b"\x82x")]  # another SSRC
    assert machine.convert(b"x", 9 + 80 * 8000, 2, 500) == [(500, b"\x82x")]  # a jump
    assert machine.convert(b"x", 0, 3, 200) == [(500, b"\x82x")]
    machine.switch(PCMA)
    assert machine.convert(b"x", 160, 3, 900) == [(520, b"\x72x")]


@given(st.binary(max_size=200))
def test_any_payload_is_speex_or_nothing(payload):
    """Covers RFC 5574 §3.3."""
    tags = RtpToFlv(WIDEBAND).convert(payload, 0, 1, 0)
    assert all(tag[0] == 0xB2 for _, tag in tags)


@pytest.mark.parametrize("octets", [1, 80, 160, 320, 1600])
def test_a_packet_of_any_time_up_to_200_ms_is_heard(octets):
    """Covers RFC 3551 §4.2 [other-values] [takes-200-ms]."""
    sound = bytes(octets)
    assert RtpToFlv(PCMU).convert(sound, 0, 1, 7) == [(7, b"\x82" + sound)]


def test_ten_frames_of_a_packet_are_ten_tags():
    """Covers RFC 3551 §4.2 [takes-ten-frames] and RFC 5574 §6 [bits-decide].

    Nothing but the payload says that there are so many.
    """
    silence = 10 * "00000" + "011111"  # ten frames of 5 bits, and padding
    tags = RtpToFlv(WIDEBAND).convert(int(silence, 2).to_bytes(7, "big"), 0, 1, 0)
    assert [at for at, _ in tags] == list(range(0, 200, 20))
    assert {tag for _, tag in tags} == {b"\xb2\x03"}
    for frames in (50, 51):  # a second and more: Own design
        bits = frames * "00000" + "0"
        data = int(bits + "1" * (-len(bits) % 8), 2).to_bytes(-(-len(bits) // 8), "big")
        assert len(RtpToFlv(WIDEBAND).convert(data, 0, 1, 0)) == (50 if frames == 50 else 0)


@given(st.lists(st.binary(min_size=160, max_size=160), min_size=1, max_size=20))
def test_out_and_back_is_the_same_sound(frames):
    """Covers RFC 3551 §4.5.14."""
    there, back = FlvToRtp(PCMU), RtpToFlv(PCMU)
    for i, frame in enumerate(frames):
        (packet,) = there.convert(b"\x82" + frame, 20 * i)
        assert back.convert(packet.payload, packet.ticks, 7, 0) == [(20 * i, b"\x82" + frame)]
