"""Numbers of variable length, and byte strings that they count."""

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.wire.vlu import (
    MAX,
    decode_counted,
    decode_vlu,
    encode_counted,
    encode_vlu,
    vlu_length,
)
from rtmplite.strategies.rtmfp import blobs, long_vlus, numbers


def digits(value):
    """Write a number as the RFC's diagram does, the slow way."""
    bits = f"{value:b}"
    bits = bits.zfill(-(-len(bits) // 7) * 7)
    groups = [bits[at : at + 7] for at in range(0, len(bits), 7)]
    return bytes(int("1" + group, 2) for group in groups[:-1]) + bytes([int(groups[-1], 2)])


@given(numbers(), st.binary(max_size=3))
@example(0, b"")
@example(MAX, b"\xff")
def test_reading_undoes_writing(value, rest):
    """Covers RFC 7016 §2.1.2 [vlu-layout] [vlu-64-bits]."""
    encoded = encode_vlu(value)
    assert encoded == digits(value) and len(encoded) == vlu_length(value)
    assert decode_vlu(b"!" + encoded + rest, 1) == (value, 1 + len(encoded))


@given(long_vlus())
def test_digits_of_zero_in_front_change_nothing(spelled):
    """Covers RFC 7016 §2.1.2 [vlu-layout]."""
    value, data = spelled
    assert decode_vlu(data) == (value, len(data))


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\xff\xff", b"\x82" + b"\x80" * 8 + b"\x00", b"\xff" * 4000 + b"\x00"]
)
def test_what_is_cut_off_or_beyond_64_bits_is_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed], §2.1.2 [vlu-64-bits]."""
    with pytest.raises(RemoteError):
        decode_vlu(data)


@pytest.mark.parametrize("value", [-1, MAX + 1])
def test_what_no_vlu_of_ours_can_say_is_our_own_bug(value):
    """RFC 7016 §2.1.2."""
    with pytest.raises(LocalError):
        encode_vlu(value)


@given(blobs(), st.binary(max_size=3))
def test_counted_bytes_are_read_again(data, rest):
    """Covers RFC 7016 §2 [truncation-noticed], §2.1.2 [vlu-layout]."""
    encoded = encode_counted(data)
    assert decode_counted(b"!" + encoded + rest, 1) == (data, 1 + len(encoded))
    if data:
        with pytest.raises(RemoteError):
            decode_counted(encoded[:-1])


@given(mutations(blobs().map(encode_counted)))
@example(b"\xff" * 9 + b"\x7f")
def test_any_bytes_are_read_or_refused(data):
    """Covers RFC 7016 §2 [truncation-noticed]."""
    try:
        found, end = decode_counted(data)
    except RemoteError:
        event("refused")
        return
    event("read")
    assert data[end - len(found) : end] == found


def test_memory_is_bounded():
    """Covers RFC 7016 §2 [truncation-noticed]: a length alone allocates nothing."""

    def attempt(data):
        with pytest.raises(RemoteError):
            decode_counted(data)

    for data in (encode_vlu(MAX) + bytes(100), b"\xff" * 65536, b"\x80" * 65536):
        assert peak(lambda data=data: attempt(data)) <= 32 * len(data) + 65536
