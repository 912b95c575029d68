"""A source of ours: where its numbers begin."""

from p2psip.rtp.sender import Sender


def test_the_first_number_is_in_the_lower_half():
    """Covers RFC 4568 §6.4 [sequence-begins-low]."""
    for drawn in (b"\0\0", b"\x7f\xfe", b"\x7f\xff", b"\x80\0", b"\xff\xfd", b"\xff\xff"):
        source = Sender(7, 8000, {2: drawn}.__getitem__)
        first = source.send(0, b"", 0, False, 0.0)
        assert int.from_bytes(first[2:4], "big") < 1 << 15
