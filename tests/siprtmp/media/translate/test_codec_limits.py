"""What a phone takes of pictures, and what is made of those that are too much for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.sdp.h264_parameters import LEVEL_1B, H264Parameters
from siprtmp.media.translate.codec_limits import CodecLimits, VideoProperties, h264_limits

sides = st.integers(16, 4096)
limits = st.builds(
    CodecLimits,
    width=st.sampled_from([0, 176, 640]),
    height=st.sampled_from([0, 144, 360]),
    rate=st.sampled_from([0, 7, 15]),
    bits=st.sampled_from([0, 64_000, 500_000]),
    level=st.sampled_from([0, 1.2, 3.1]),
    blocks=st.sampled_from([0, 99, 396]),
    block_rate=st.sampled_from([0, 1485, 11_880]),
)


def of(fmtp, bits=0):
    return h264_limits(H264Parameters.parse(fmtp), bits)


@pytest.mark.parametrize(
    ("fmtp", "level", "blocks", "block_rate", "bits"),
    [
        ("profile-level-id=42e00a", 1.0, 99, 1485, 64_000),
        ("profile-level-id=42f00b", LEVEL_1B, 99, 1485, 128_000),
        ("profile-level-id=42e01f", 3.1, 3600, 108_000, 14_000_000),
        ("profile-level-id=42e0ff", 5.2, 36_864, 2_073_600, 240_000_000),
        ("profile-level-id=42e003", 1.0, 99, 1485, 64_000),
        ("profile-level-id=42e00c;max-fs=3600", 1.2, 3600, 6000, 384_000),
        (
            "profile-level-id=42e00c;max-fs=3600;max-mbps=108000;max-br=14000",
            *(3.1, 3600, 108_000, 14_000_000),
        ),
        ("profile-level-id=42e00c;max-fs=x;max-mbps=-1;max-br=", 1.2, 396, 6000, 384_000),
    ],
)
def test_a_level_is_a_row_of_the_table(fmtp, level, blocks, block_rate, bits):
    """Covers RFC 6184 §8.1: max-fs and the like raise it, one by one or all together."""
    read = of(fmtp)
    assert (read.level, read.blocks, read.block_rate, read.bits) == (
        level, blocks, block_rate, bits
    )  # fmt: skip
    assert of(fmtp, 50_000).bits == 50_000


@pytest.mark.parametrize(
    ("allowed", "seen", "reason"),
    [
        (CodecLimits(), VideoProperties(4096, 2304, 5.2, "H", 60, 9e7), ""),
        (CodecLimits(level=3.1), VideoProperties(level=3.1), ""),
        (CodecLimits(level=3.1), VideoProperties(level=3.2), "level 3.2"),
        (CodecLimits(baseline=True), VideoProperties(profile="CB"), ""),
        (CodecLimits(baseline=True), VideoProperties(profile=""), ""),
        (CodecLimits(baseline=True), VideoProperties(profile="H"), "profile H"),
        (CodecLimits(640), VideoProperties(641, 300), "size 641x300"),
        (CodecLimits(640, 360), VideoProperties(640, 361), "size 640x361"),
        (CodecLimits(blocks=396), VideoProperties(352, 288), ""),
        (CodecLimits(blocks=396), VideoProperties(368, 288), "size 368x288"),
        (CodecLimits(rate=15), VideoProperties(rate=16.4), ""),
        (CodecLimits(rate=15), VideoProperties(rate=25), "25 pictures a second"),
        (CodecLimits(bits=300_000), VideoProperties(bits=320_000), ""),
        (CodecLimits(bits=300_000), VideoProperties(bits=512_400), "512 kbit/s"),
    ],
)
def test_what_is_too_much_is_named(allowed, seen, reason):
    assert allowed.excess(seen) == reason


@given(limits, limits)
def test_of_two_limits_the_lower_holds(mine, theirs):
    both = mine.lower(theirs)
    assert both == theirs.lower(mine) and both == both.lower(mine)
    for name in ("width", "height", "rate", "bits", "level", "blocks", "block_rate"):
        pair = [each for each in (getattr(mine, name), getattr(theirs, name)) if each]
        assert getattr(both, name) == min(pair, default=0)


@given(limits, sides, sides)
def test_what_is_made_fits_and_is_never_larger(allowed, width, height):
    made_width, made_height, rate = allowed.fitted(width, height)
    assert made_width % 2 == made_height % 2 == 0
    assert 16 <= made_width <= width and 16 <= made_height <= height
    assert 0 < rate <= (allowed.rate or 30)
    assert not allowed.excess(VideoProperties(made_width, made_height, rate=rate))
    blocks = -(-made_width // 16) * -(-made_height // 16)
    assert not allowed.block_rate or blocks * rate <= allowed.block_rate
    assert 0 < allowed.bits_for(made_width, made_height, rate) <= (allowed.bits or 1e9)


def test_pictures_keep_their_shape():
    small = CodecLimits(640, 360)
    assert small.fitted(1280, 720) == (640, 360, 30)
    assert small.fitted(720, 1280) == (202, 360, 30)
    assert small.fitted(320, 240) == (320, 240, 30)
    assert of("profile-level-id=42e00a").fitted(1280, 720)[:2] == (198, 112)
