"""Packets in pieces: in any order, within limits, and never for long."""

from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import peak

from rtmplite.rtmfp.endpoint.startup_packets import Reassembler
from rtmplite.rtmfp.wire.control_chunks import Fragment

A, B = (("192.0.2.1", 1935), 0), (("192.0.2.2", 1935), 0)
STARTUP = 3


def cut(packet, size, packet_id=7):
    """The fragments of a packet."""
    starts = range(0, len(packet), size)
    return [
        Fragment(packet_id, number, packet[at : at + size], at != starts[-1])
        for number, at in enumerate(starts)
    ]


def packet(size, seed=1):
    return b"\x0b" + Random(seed).randbytes(size - 1)


@given(st.integers(2, 40), st.randoms(use_true_random=False), st.data())
def test_fragments_come_in_any_order_and_some_twice(count, random, data):
    """Covers RFC 7016 §3.4 [fragments-concatenated]."""
    whole = packet(count * 10)
    pieces = cut(whole, 10)
    pieces += data.draw(st.lists(st.sampled_from(pieces), max_size=5))
    random.shuffle(pieces)
    reassembler = Reassembler(4)
    # Fragments that come after the packet is whole begin it anew, and are forgotten in a second.
    got = [reassembler.add(A, STARTUP, piece, 0.0) for piece in pieces]
    assert next(each for each in got if each is not None) == whole


def test_senders_are_told_apart_by_address_and_packets_by_id():
    """Covers RFC 7016 §3.4 [by-address-and-id]."""
    reassembler = Reassembler(4)
    one, two = packet(20, 1), packet(20, 2)
    (a0, a1), (b0, b1) = cut(one, 10), cut(two, 10)
    (c0, c1) = cut(two, 10, packet_id=8)
    for origin, piece in ((A, a0), (B, b0), (A, c0)):
        assert reassembler.add(origin, STARTUP, piece, 0.0) is None
    assert reassembler.add(B, STARTUP, b1, 0.0) == two
    assert reassembler.add(A, STARTUP, a1, 0.0) == one
    assert reassembler.add((A[0], 5), STARTUP, c1, 0.0) is None  # another session ID
    assert reassembler.add(A, STARTUP, c1, 0.0) == two


def test_fragments_of_another_mode_do_not_belong():
    """Covers RFC 7016 §3.4 [fragment-mode]."""
    reassembler = Reassembler(4)
    first, second = cut(packet(20), 10)
    assert reassembler.add(A, STARTUP, first, 0.0) is None
    assert reassembler.add(A, 1, second, 0.0) is None
    assert reassembler.add(A, STARTUP, second, 0.0) == packet(20)


def test_a_packet_of_another_mode_than_its_fragments_is_discarded():
    """Covers RFC 7016 §3.4 [packet-mode]."""
    reassembler = Reassembler(4)
    for mode, expected in ((3, packet(20)), (1, None)):
        first, second = cut(packet(20), 10)
        assert reassembler.add(A, mode, first, 0.0) is None
        assert reassembler.add(A, mode, second, 0.0) == expected
        assert len(reassembler) == 0


def test_sixty_seconds_while_there_is_progress():
    """Covers RFC 7016 §3.4 [sixty-seconds]: a fragment a second is progress."""
    for count, done in ((60, True), (62, False)):
        whole, reassembler = packet(count * 10), Reassembler(4)
        for second, piece in enumerate(cut(whole, 10)):
            got = reassembler.add(A, STARTUP, piece, second * 0.999)
        assert (got == whole) is done


def test_no_progress_for_a_second_and_it_is_over():
    """Covers RFC 7016 §3.4 [sixty-seconds]: a fragment that has come before is no progress."""
    reassembler = Reassembler(4)
    first, second = cut(packet(20), 10)
    assert reassembler.deadline is None
    reassembler.add(A, STARTUP, first, 5.0)
    reassembler.add(A, STARTUP, first, 5.5)
    assert reassembler.deadline == 6.0
    reassembler.tick(5.99)
    assert len(reassembler) == 1
    reassembler.tick(6.0)
    assert len(reassembler) == 0
    assert reassembler.add(A, STARTUP, second, 6.0) is None


def test_at_most_so_many_packets_at_a_time():
    """Covers RFC 7016 §3.4 [buffers-limited]."""
    reassembler = Reassembler(3)
    for number in range(10):
        reassembler.add(A, STARTUP, cut(packet(20), 10, packet_id=number)[0], 0.0)
    assert len(reassembler) == 3
    first, second = cut(packet(20), 10, packet_id=77)
    reassembler.add(A, STARTUP, first, 1.0)  # the others have stood still for a second
    assert reassembler.add(A, STARTUP, second, 1.0) == packet(20)


@pytest.mark.parametrize(("size", "fits"), [(60_000, True), (66_000, False)])
def test_a_packet_is_at_most_so_large(size, fits):
    """Covers RFC 7016 §3.4 [buffers-limited]."""
    reassembler = Reassembler(3)
    got = [reassembler.add(A, STARTUP, piece, 0.0) for piece in cut(packet(size), 1100)]
    assert (got[-1] == packet(size)) is fits
    if not fits:  # what came after the limit is a packet without a beginning
        reassembler.tick(1.0)
        assert len(reassembler) == 0


def test_the_limit_of_a_packet_is_met_to_the_byte():
    """Covers RFC 7016 §3.4 [buffers-limited]: what we keep of each fragment counts too."""
    for size, fits in ((65536, True), (65537, False)):
        reassembler = Reassembler(3)
        whole = packet(size - 2 * 64)
        first, second = cut(whole, 40_000)
        assert reassembler.add(A, STARTUP, first, 0.0) is None
        assert reassembler.add(A, STARTUP, second, 0.0) == (whole if fits else None)


def test_contradictions_are_discarded():
    """Covers RFC 7016 §3.4 [fragments-concatenated]: one end, and nothing beyond it."""
    last, beyond = Fragment(7, 1, b"end"), Fragment(7, 2, b"more", more_fragments=True)
    other_end = Fragment(7, 3, b"end")
    for first, second in ((last, beyond), (beyond, last), (last, other_end)):
        reassembler = Reassembler(3)
        reassembler.add(A, STARTUP, first, 0.0)
        assert reassembler.add(A, STARTUP, second, 0.0) is None
        assert len(reassembler) == 0


numbers = st.one_of(st.integers(0, 5), st.integers(0, (1 << 64) - 1))
pieces = st.builds(
    Fragment, st.integers(0, 2), numbers, st.binary(min_size=1, max_size=50), st.booleans()
)


@given(st.lists(st.tuples(st.sampled_from([A, B]), st.sampled_from([1, 3]), pieces)))
def test_no_fragments_crash_or_fill_it(received):
    """Covers RFC 7016 §3.4 [buffers-limited]."""
    size = sum(len(piece.packet_fragment) for _, _, piece in received)
    reassembler = Reassembler(3)

    def feed():
        for origin, mode, piece in received:
            got = reassembler.add(origin, mode, piece, 0.0)
            event("whole" if got else "in part")

    assert peak(feed) <= 32 * (size + 4 * len(received)) + 65536
    assert len(reassembler) <= 3
