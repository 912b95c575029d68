"""One source is listened to; another may replace it but never disturb it."""

from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.reception import Reception
from p2psip.rtp.rtcp import SenderReport, ntp_time


def header(ssrc, sequence, payload_type=0):
    return payload_type, False, sequence & 0xFFFF, sequence * 160, ssrc, 12, 172


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 0xFFFF))
def test_a_stray_stream_between_is_not_heard(strays, first):
    """Covers RFC 3550 §A.1: two packets in a row are needed to take over.

    Covers Field §"Sources that change".
    """
    reception = Reception(8000)
    for number, stray in enumerate(strays):
        heard = reception.heard(header(1, number), 0.0)
        assert heard == number and reception.ssrc == 1
        if stray:
            assert reception.heard(header(2, first + number), 0.0) is None
    assert reception.octets == 160 * len(strays)


def test_a_new_source_takes_over_with_higher_numbers():
    """Covers RFC 3550 §A.1: when the phone's SSRC changes, on hold for instance.

    Covers RFC 3550 §6.4.1 [statistics-start-anew].
    """
    reception = Reception(8000)
    old = reception.heard(header(1, 500), 0.0)
    assert reception.heard(header(2, 3), 0.0) is None
    new = reception.heard(header(2, 4), 0.0)
    assert new > old and reception.ssrc == 2 and reception.octets == 160
    assert reception.heard(header(1, 501), 0.0) is None


def test_after_a_bye_the_next_is_believed_at_once():
    """Covers RFC 3550 §6.3.4.

    Covers Field §"Sources that change".
    """
    reception = Reception(8000)
    old = reception.heard(header(1, 500), 0.0)
    reception.forget()
    assert reception.block(1.0) == ()
    assert reception.heard(header(2, 3), 0.0) > old


def test_a_new_source_must_speak_what_was_agreed():
    """Covers RFC 3550 §A.1, and RFC 5761 §4 where nothing was agreed."""
    reception = Reception(8000, payload_types={0, 101})
    assert reception.heard(header(1, 1, payload_type=8), 0.0) is None
    assert reception.heard(header(1, 2), 0.0) == 2
    assert reception.heard(header(1, 3, payload_type=13), 0.0) == 3
    assert Reception(8000).heard(header(1, 1, payload_type=72), 0.0) is None


def test_blocks_report_what_came_since_the_last():
    """Covers RFC 3550 §6.4.1 [block-of-each-source] [last-sr] [delay-since-last-sr].

    The echo of the sender report is of the same source only.
    """
    reception = Reception(8000)
    assert reception.block(0.0) == ()
    reception.note(SenderReport(1, 0x1122334455667788, 9, 0, 0), now=5.0)
    for number in (1, 2, 4):
        reception.heard(header(1, number), 6.0)
    [block] = reception.block(5.5)
    assert (block.ssrc, block.lost, block.fraction_lost) == (1, 1, 64)
    assert (block.highest_sequence, block.last_sr, block.delay) == (4, 0x33445566, 1 << 15)
    assert reception.block(6.0) == () and reception.sender_clock == (0x1122334455667788, 9)
    reception.note(SenderReport(2, 0, 0, 0, 0), now=7.0)
    assert reception.sender_clock == (0x1122334455667788, 9)
    reception.heard(header(3, 1), 8.0), reception.heard(header(3, 2), 8.0)
    assert reception.block(8.0)[0].last_sr == 0


def test_a_sender_without_a_clock_says_0():
    """Covers RFC 3550 §6.4.1 [no-clock]: which is no time, unlike any other number."""
    reception = Reception(8000)
    reception.heard(header(1, 1), 0.0)
    for ntp, told in ((0, None), (1, (1, 9)), (1 << 63, (1 << 63, 9))):
        reception.note(SenderReport(1, ntp, 9, 0, 0), now=1.0)
        assert reception.sender_clock == told


def test_a_block_tells_the_delay_to_the_tick_and_none_without_a_report():
    """Covers RFC 3550 §6.4.1: the delay is 0 until a sender report came."""
    reception = Reception(8000)
    reception.heard(header(1, 1), 0.0)
    [block] = reception.block(1.0)
    assert (block.last_sr, block.delay) == (0, 0)
    reception.note(SenderReport(1, 0, 0, 0, 0), now=2.0)
    reception.heard(header(1, 2), 2.0)
    assert reception.block(102.0)[0].delay == 100 * 65536


def test_a_block_tells_the_jitter():
    """Covers RFC 3550 §6.4.1 and §A.8: a sixteenth of 80 ticks, for a packet 10 ms late."""
    reception = Reception(8000)
    reception.heard(header(1, 1), 0.0)
    reception.heard(header(1, 2), 0.03)
    assert reception.block(1.0)[0].jitter == 5


def test_the_clock_of_a_source_is_not_that_of_the_next():
    """Covers RFC 3550 §6.4.1: a report ties the timestamps of its own source to time."""
    reception = Reception(8000)
    assert reception.time_of(160) is None
    reception.heard(header(1, 1), 0.0)
    reception.note(SenderReport(1, ntp_time(1000.0), 2**32 - 800, 0, 0), 1.0)
    assert reception.time_of(0) == 1000.1 and reception.time_of(2**32 - 1600) == 999.9
    reception.heard(header(2, 5), 2.0), reception.heard(header(2, 6), 2.0)
    assert reception.ssrc == 2 and reception.time_of(0) is reception.sender_clock is None
    reception.note(SenderReport(2, ntp_time(2000.0), 0, 0, 0), 3.0)
    assert reception.time_of(8000) == 2001.0
