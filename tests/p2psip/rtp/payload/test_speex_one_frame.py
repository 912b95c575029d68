"""The short cut for one Speex frame: right where it says so, and silent where it cannot tell."""

import pytest

from p2psip.rtp.payload.speex import LAYER_BITS, NARROWBAND_BITS, is_comment, one_frame, split

NARROWBAND = (5, 43, 119, 160, 220, 300, 364, 492, 79)  # bits of a frame, by the codec's manual
LAYER = (4, 36, 112, 192, 352)  # and of a layer for wide band above it


def narrow(mode):
    return f"0{mode:04b}".ljust(NARROWBAND[mode], "1")


def layer(mode):
    return f"1{mode:03b}".ljust(LAYER[mode], "1")


def octets(bits, padding="0111111"):
    bits += padding[: -len(bits) % 8]
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def sure(bits, answer):
    """Say what can be told: five bits of padding might be another frame."""
    return answer if -len(bits) % 8 < 5 else (0, False)


@pytest.mark.parametrize("mode", range(9))
def test_a_frame_alone_is_told(mode):
    """Covers RFC 5574 §3.3: with a layer or without.

    Covers RFC 5574 §4.1.1 [any-mode].
    """
    assert dict(enumerate(NARROWBAND)) == NARROWBAND_BITS and dict(enumerate(LAYER)) == LAYER_BITS
    end = NARROWBAND[mode]
    assert one_frame(octets(narrow(mode))) == sure(narrow(mode), (end, False))
    for upper in (1, 2, 3, 4):
        bits = narrow(mode) + layer(upper)
        assert one_frame(octets(bits)) == sure(bits, (end, True))
    empty = octets(narrow(mode) + layer(0))
    assert one_frame(empty) in ((0, False), (end, True)) and split(empty) == [empty]


@pytest.mark.parametrize("mode", NARROWBAND_BITS)
def test_whatever_is_more_or_less_is_left_to_the_long_way(mode):
    """Covers RFC 5574 §3.3: another frame, another layer, half of one, padding that is none."""
    frame = narrow(mode)
    for more in (*NARROWBAND_BITS, "terminator"):
        bits = frame + ("01111" if more == "terminator" else narrow(more))
        assert one_frame(octets(bits)) == (0, False)
    for upper in LAYER_BITS:
        full = octets(frame + layer(upper) + layer(1))
        assert one_frame(full) == (0, False)
        assert one_frame(octets(frame + layer(upper)) + b"\x7f") == (0, False)
        if upper:
            assert one_frame(octets(frame + layer(upper))[:-1]) == (0, False)
    for upper in (5, 6, 7):
        assert one_frame(octets(f"{frame}1{upper:03b}".ljust(len(frame) + 80, "1"))) == (0, False)
    if len(frame) % 8:
        assert one_frame(octets(frame, padding="1111111")) == (0, False)
        assert one_frame(octets(frame)[:-1]) == (0, False)
    if (len(frame) + 36) % 8:
        assert one_frame(octets(frame + layer(1), padding="1111111")) == (0, False)


def test_what_begins_no_frame_is_none():
    """Covers RFC 5574 §3.3: whatever follows modes that do not exist."""
    assert one_frame(b"") == (0, False)
    for head in range(9 << 3, 1 << 8):
        assert one_frame(bytes((head,))) == (0, False)
        for rest in range(1 << 8):
            assert one_frame(bytes((head, rest))) == (0, False)
        for size in range(2, 70):
            assert one_frame(bytes((head,)) + bytes(size)) == (0, False)


def test_the_least_comment_packets():
    """Covers RFC 5574 §3.2: no vendor, no tags; the last tag ends where the packet does."""
    none = bytes(8)
    assert is_comment(none) and is_comment(none + b"\1")
    assert not is_comment(none + b"\0\0") and not is_comment(none[:7]) and not is_comment(b"")
    tags = b"\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0x"
    assert is_comment(tags) and is_comment(tags + b"\1")
    assert not is_comment(tags[:-1]) and not is_comment(tags + b"\1\1")
    assert not is_comment(b"\0\0\0\0\1\0\0\0\1\0\0") and not is_comment(b"\5\0\0\0\0\0\0\0")


def test_one_frame_comes_back_as_it_is_whatever_its_padding():
    """Covers RFC 5574 §3.3: padding that we would not write is no reason to write it anew."""
    odd = octets(narrow(0) + layer(1), padding="0111100")
    assert one_frame(odd) == (0, False) and split(odd) == [odd]
