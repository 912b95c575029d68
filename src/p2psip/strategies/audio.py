"""Strategies for payloads of audio, for tests of any implementation.

Own design: the oracle's grammar of RFC 6716 §3, RFC 3389 §3, RFC 2198 §3 and RFC 3640 §3.3.6.
"""

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from p2psip.rtp.payload.aac import pack_aac
from p2psip.rtp.payload.comfort_noise import ComfortNoise
from p2psip.rtp.payload.opus import MAX_TICKS, OpusPacket
from p2psip.rtp.payload.red import RedundantBlock, RedundantPayload

_TYPES = st.integers(0, 127)
_FRAMES = st.sampled_from([1, 2, 4, 48])
_SIZES = st.sampled_from([0, 1, 10, 251, 252, 255, 256, 1275])
_PADDINGS = st.just(0) | st.integers(0, 1000)


@st.composite
def opus_packets(draw: DrawFn) -> OpusPacket:
    """Packets of every code and configuration, with padding or not: RFC 6716 §3.2."""
    configuration = draw(st.integers(0, 31))
    frame_ticks = OpusPacket(configuration, False, (b"",)).frame_ticks
    most = min(MAX_TICKS // frame_ticks, draw(_FRAMES))
    if draw(st.booleans()):
        size = draw(_SIZES)
        frames = [bytes(size)] * draw(st.integers(1, most))
    else:
        frames = [bytes(each) for each in draw(st.lists(_SIZES, min_size=1, max_size=most))]
    padding = draw(_PADDINGS)
    return OpusPacket(configuration, draw(st.booleans()), tuple(frames), padding)


def comfort_noises() -> SearchStrategy[ComfortNoise]:
    """Levels, with a model of the noise or without: RFC 3389 §3."""
    indices = st.lists(st.integers(0, 254), max_size=12).map(tuple)
    return st.builds(ComfortNoise, st.integers(0, 127), indices)


def redundant_payloads() -> SearchStrategy[RedundantPayload]:
    """A payload with none, some or many older ones: RFC 2198 §3."""
    blocks = st.builds(
        RedundantBlock,
        _TYPES,
        st.integers(0, (1 << 14) - 1),
        st.binary(max_size=20) | st.just(bytes(1023)),
    )
    older = st.lists(blocks, max_size=3) | st.lists(blocks, min_size=32, max_size=32)
    return st.builds(RedundantPayload, _TYPES, st.binary(max_size=20), older.map(tuple))


def aac_payloads() -> SearchStrategy[bytes]:
    """Payloads of some frames, or of a part of one, in the mode AAC-hbr: RFC 3640 §3.3.6."""
    frames = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=6)
    payloads = st.builds(pack_aac, frames, st.sampled_from([5, 12, 30, 1400]))
    return payloads.flatmap(st.sampled_from).map(lambda pair: pair[0])
