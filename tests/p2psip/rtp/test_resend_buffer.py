"""Packets to send again: the last ones, for a second, and never more than a share of the stream."""

from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.resend_buffer import MAX_AGE, MAX_CREDIT, PACKETS, SHARE, ResendBuffer


def filled(count=10, octets=100, start=0):
    buffer = ResendBuffer()
    for number in range(start, start + count):
        buffer.keep(number & 0xFFFF, number.to_bytes(4, "big") * (octets // 4), 0.0)
    return buffer


def test_a_packet_is_sent_again_as_it_was():
    """Covers RFC 4585 §6.2.1, across the end of the numbers.

    Covers Field §"Packets sent again".
    """
    buffer = filled(10, start=65530)
    assert [data[:4] for data in buffer.again([65535, 2], 0.5, 0.1)] == [
        (65535).to_bytes(4, "big"),
        (65538).to_bytes(4, "big"),
    ]


def test_an_old_packet_is_not_sent_again():
    """Own design: nobody waits for it any more."""
    buffer = filled()
    assert buffer.again([3], MAX_AGE + 0.01, 0.1) == [] and buffer.again([3], MAX_AGE, 0.1)
    buffer = filled(PACKETS + 3)
    assert not buffer.again([2], 0.1, 0.1) and buffer.again([3], 0.1, 0.1)


def test_a_packet_is_repeated_once_in_a_round_trip():
    """Own design: one that has just been repeated is still on its way."""
    buffer = filled()
    assert buffer.again([3], 0.1, 0.05) and not buffer.again([3], 0.14, 0.05)
    assert buffer.again([3], 0.151, 0.05) and (buffer.repeated, buffer.refused) == (2, 1)
    buffer.keep(3 + PACKETS, b"another", 0.16)
    assert buffer.again([3 + PACKETS], 0.16, 0.05) == [b"another"]


def test_a_packet_that_a_request_left_out_can_still_be_asked_for():
    """Covers RFC 4585 §6.2.1 [zero-is-no-receipt]."""
    buffer = filled()
    assert [len(buffer.again([number], 0.1, 0.05)) for number in (3, 4, 2)] == [1, 1, 1]
    assert buffer.again([5 + PACKETS], 0.1, 0.05) == buffer.again([5], MAX_AGE + 1, 0.05) == []
    buffer.keep(6, b"later", 64.0)
    assert buffer.again([6], 64.0 + MAX_AGE, 0.05) == [b"later"]


def test_nothing_of_another_source_is_sent():
    """Covers RFC 3550 §8.2."""
    buffer = filled()
    buffer.clear()
    assert buffer.again(range(10), 0.1, 0.1) == []


@given(
    st.lists(
        st.tuples(st.integers(4, 1200), st.lists(st.integers(0, 300), max_size=40)), max_size=200
    )
)
def test_requests_are_no_amplifier(turns):
    """Covers RFC 4585 §6.2.1: forged requests take a share of the stream, and no more.

    Covers RFC 4585 §8 [strange-requests-take-a-share].
    """
    buffer = filled(1, 100)
    buffer._credit = 99
    assert buffer.again([0], 0.1, 0.0) == []
    buffer._credit = 100
    assert [len(data) for data in buffer.again([0], 0.1, 0.0)] == [100]
    buffer, now, sent, again = ResendBuffer(), 0.0, 0, 0
    for number, (octets, lost) in enumerate(turns):
        now += 0.01
        buffer.keep(number, bytes(octets), now)
        sent += octets
        again += sum(map(len, buffer.again(lost, now, 0.0)))
        assert buffer.again([number + 1], now, 0.0) == []  # was never sent
        assert again <= MAX_CREDIT + SHARE * sent


def test_a_request_for_everything_costs_no_more_than_the_ring():
    """Own design: one datagram may name some eight thousand packets."""
    buffer = filled()
    assert len(buffer.again(range(65536), 0.1, 0.1)) == 10
    assert buffer.repeated + buffer.refused == PACKETS


def test_requests_are_no_amplifier_in_the_long_run():
    """Covers RFC 4585 §6.2.1: all that there is, asked for a thousand times."""
    buffer = filled(100, 1200)
    again = sum(len(data) for _ in range(1000) for data in buffer.again(range(100), 0.1, 0.0))
    assert MAX_CREDIT - 1200 < again <= MAX_CREDIT
