"""The hidden digests: found under both schemes, verified against Adobe's imitators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtmplite.rtmp.wire import digest

SCHEMES = {scheme.name: scheme for scheme in digest.SCHEMES}
packets = st.binary(min_size=100, max_size=100).map(lambda seed: (seed * 16)[: digest.PACKET_SIZE])
keys = st.sampled_from([digest.PLAYER_TEXT, digest.SERVER_TEXT])


@given(packets, st.sampled_from(digest.SCHEMES), keys)
def test_what_is_signed_is_found(packet, scheme, key):
    """Covers Field §"Digest handshake", Field §"Digest offset schemes"."""
    signed = digest.sign(packet, scheme, key)
    at = digest.offset(signed, scheme)
    assert len(signed) == digest.PACKET_SIZE and digest.offset(packet, scheme) == at
    assert digest.find(signed, key) == (scheme, signed[at : at + 32])
    assert signed[:at] == packet[:at] and signed[at + 32 :] == packet[at + 32 :]


@given(packets, keys)
def test_what_is_not_signed_is_not_found(packet, key):
    """Covers Field §"Digest handshake"."""
    assert digest.find(packet, key) is None


@pytest.mark.parametrize(("name", "least"), [("digest0", 12), ("digest1", 776)])
def test_the_schemes_look_in_different_places(name, least):
    """Covers Field §"Digest offset schemes"."""
    scheme = SCHEMES[name]
    assert digest.offset(bytes(1536), scheme) == least
    full = digest.offset(b"\xff" * 1536, scheme)
    assert full == least + 1020 % 728 and full + 32 <= 1536
    packet = bytearray(1536)
    packet[scheme.pointer : scheme.pointer + 4] = bytes((255, 255, 217, 0))
    assert digest.offset(bytes(packet), scheme) == least + 727
    assert least + 727 + 32 <= (772 if name == "digest0" else 1536)


@given(st.binary(min_size=1504, max_size=1504), st.binary(min_size=32, max_size=32))
def test_an_answer_proves_the_key(filler, theirs):
    """Covers Field §"Digest handshake"."""
    answer = digest.answer(filler, theirs, digest.SERVER_KEY)
    assert len(answer) == digest.PACKET_SIZE
    assert digest.answers(answer, theirs, digest.SERVER_KEY)
    assert not digest.answers(answer, theirs, digest.PLAYER_KEY)
    assert not digest.answers(bytes(1536), theirs, digest.SERVER_KEY)
