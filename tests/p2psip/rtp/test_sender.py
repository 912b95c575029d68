"""A source of ours: where its numbers begin."""

from p2psip.rtp.fast import unpack
from p2psip.rtp.sender import Sender


def test_the_first_number_is_in_the_lower_half():
    """Covers RFC 4568 §6.4 [sequence-begins-low]."""
    for drawn in (b"\0\0", b"\x7f\xfe", b"\x7f\xff", b"\x80\0", b"\xff\xfd", b"\xff\xff"):
        source = Sender(7, 8000, {2: drawn}.__getitem__)
        first = source.send(0, b"", 0, False, 0.0)
        assert int.from_bytes(first[2:4], "big") < 1 << 15


def test_numbers_and_counts_of_a_source():
    """Covers RFC 3550 §5.1 [sequence-by-one] [ssrc-names-the-source].

    And RFC 3550 §6.4.1 [packets-since-the-beginning] [octets-of-payloads] [time-of-day].
    """
    source = Sender(7, 8000, {2: b"\x12\x34"}.__getitem__)
    sent = [unpack(source.send(0, bytes(size), 0, False, 0.0)) for size in (160, 0, 33)]
    assert [header[2] for header in sent] == [0x1235, 0x1236, 0x1237]
    assert {header[4] for header in sent} == {7}
    report = source.report((), 0x1122334455667788, 0.0, as_sender=True)
    assert (report.ssrc, report.packets, report.octets) == (7, 3, 193)
    assert report.ntp == 0x1122334455667788
