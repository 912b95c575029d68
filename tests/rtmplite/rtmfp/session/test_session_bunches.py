"""Packets that are read together, as from a fast link or after a pause."""

import pytest
from support.rtmfp.pair import FAR, NEAR, Pair
from support.rtmfp.wire import Sending

from rtmplite.rtmfp.session.recv_flow import QUICK_PACKETS


def test_packets_read_together_are_acknowledged_by_twos():
    """Covers RFC 7016 §3.6.3.4.1 [acknowledge-soon]."""
    pair = Pair()
    pair.near.congestion.cwnd = 100_000
    flow = pair.near.open_flow(b"m", 0.0)
    for _ in range(6):
        flow.send(bytes(1000), 0.0)
    for datagram, _ in pair.near.take(0.0):
        pair.far.receive(datagram[4:], NEAR, 0.0)
    assert len(pair.far.take(0.0)) == 3


def test_acknowledgements_read_together_let_more_than_a_burst_leave():
    """RFC 7016 §3.5.2.3: each of them lets six segments leave."""
    wire = Sending()
    wire.session.congestion.cwnd = 100_000
    flow = wire.flow()
    for _ in range(40):
        flow.send(bytes(1120), 0.0)
    assert len(wire.numbers()) == 7
    for number in 2, 4, 6:
        wire.ack(number)
    assert len(wire.numbers()) == 14  # seven for the second of them, seven for the last


def test_the_window_grows_however_packets_are_bunched():
    """RFC 7016 §A.2: a bulk transfer over a path of 50 ms whose packets are read together."""
    pair = Pair()
    flow = pair.near.open_flow(b"m", 0.0)
    for _ in range(400):
        flow.send(bytes(1000), 0.0)
    now, turns = 0.0, 0
    while flow.queued:
        now, turns = now + 0.05, turns + 1
        for datagram, _ in pair.near.take(now):
            pair.far.receive(datagram[4:], NEAR, now)
        for datagram, _ in pair.far.take(now):
            pair.near.receive(datagram[4:], FAR, now)
    assert turns <= 12  # 67, if there were one burst a turn


@pytest.mark.parametrize("critical", [True, False])
def test_the_first_real_time_packets_are_acknowledged_one_by_one(critical):
    """RFC 7016 §3.6.3.4.1: so that the sender's window doubles in each round trip."""
    pair = Pair()
    flow = pair.near.open_flow(b"m", 0.0, time_critical=critical)
    answers = []
    for number in range(QUICK_PACKETS + 7):
        flow.send(b"x", number / 100)
        for datagram, _ in pair.near.take(number / 100):
            pair.far.receive(datagram[4:], NEAR, number / 100)
        for datagram, _ in pair.far.take(number / 100):
            pair.near.receive(datagram[4:], FAR, number / 100)
            answers.append(number)
    last = QUICK_PACKETS if critical else 1
    assert answers[:last] == list(range(last))
    assert answers[last:] == list(range(last + 1, QUICK_PACKETS + 7, 2))
