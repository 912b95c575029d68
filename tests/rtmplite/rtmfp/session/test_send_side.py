"""What sending flows share: the window, losses, time-outs, probes and turns."""

import itertools

import pytest
from support.rtmfp.pair import FAR
from support.rtmfp.wire import Sending, send

from rtmplite.errors import LocalError
from rtmplite.rtmfp.session.flow_states import SendState
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.send_flow import Priority
from rtmplite.rtmfp.wire.acks import DataAckRanges
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, FlowException
from rtmplite.rtmfp.wire.packet import Mode, Packet


def test_six_segments_leave_at_once_and_then_none():
    """RFC 7016 §3.5.2.3: seven packets, which are a little smaller than segments."""
    wire = Sending()
    wire.session.congestion.cwnd = 100_000
    flow = wire.flow()
    send(flow, 20, 0.0, size=1120)
    assert wire.numbers() == [1, 2, 3, 4, 5, 6, 7]
    assert wire.numbers() == []
    wire.ack(0)
    assert wire.numbers() == [8, 9, 10, 11, 12, 13, 14]
    wire.wait(3.1)
    assert wire.numbers() == [1, 2]  # CWND_TIMEDOUT, whatever else was sent


def test_the_window_holds_back():
    """Covers RFC 7016 §3.5.2 [tcp-compatible], §2.2.4 [one-chunk]."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 20, 0.0)
    assert wire.numbers() == [1, 2, 3, 4, 5]
    assert wire.session.outstanding >= wire.session.congestion.cwnd
    wire.ack(2)
    assert wire.numbers() == [6, 7, 8]


def test_three_acknowledgements_of_later_ones_mean_loss():
    """Covers RFC 7016 §3.6.2.5 [three-naks], §3.6.1.2 [lowest-first]; §A.2."""
    wire = Sending()
    wire.session.congestion.cwnd = 20_000
    flow = wire.flow()
    send(flow, 20, 0.0, size=1120)
    assert wire.numbers() == [1, 2, 3, 4, 5, 6, 7]
    wire.ack(1, 1, 1)
    assert wire.numbers() == [8, 9, 10, 11, 12, 13, 14]
    wire.ack(1, 1, 2)
    assert wire.session.congestion.cwnd == 20_000
    before = wire.session.congestion.pre_ack_outstanding
    wire.ack(1, 1, 3)
    assert wire.session.congestion.cwnd == before // 2
    wire.session.congestion.cwnd = 20_000
    assert wire.numbers()[:2] == [2, 15]


def test_a_timeout_loses_all_that_is_in_flight():
    """Covers RFC 7016 §3.6.2.6 [lost-after-erto], §3.5.2.2 [erto-backoff], §A.2 [timeout]."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 4, 0.0)
    assert wire.numbers() == [1, 2, 3, 4]
    assert wire.session.deadline == 3.0
    wire.wait(2.99)
    assert wire.session.outstanding > 0
    wire.wait(0.01)
    assert (wire.session.outstanding, flow.outstanding) == (0, 0)
    assert wire.session.round_trip.erto == pytest.approx(3 * 1.4142)
    assert wire.numbers() == [1, 2]
    wire.ack(2)
    assert wire.session.deadline == pytest.approx(3.0 + 3 * 1.4142)


def test_a_closed_window_is_probed():
    """Covers RFC 7016 §3.6.2.9.1 [probes] [probe-soon] [probe-period] [probes-slow-down]
    [probe-each-minute] [probes-end]."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 10, 0.0)
    wire.take()
    wire.ack(5, blocks=0)
    assert wire.numbers() == []
    asked = []
    while wire.now < 400:
        wire.wait(0.5)
        wire.session.keepalive.heard = wire.now
        asked += [wire.now] * wire.probes()
    assert asked[0] == 1.0
    assert asked[1] - asked[0] == 3.0  # the first ERTO
    gaps = [late - early for early, late in itertools.pairwise(asked)]
    assert gaps[:6] == [3.0, 6.0, 12.0, 24.0, 48.0, 60.0]
    assert set(gaps[6:]) == {60.0}
    wire.ack(5, blocks=50)
    assert wire.numbers() == [6, 7, 8, 9, 10]
    wire.ack(10, blocks=0)
    wire.wait(200.0)
    assert wire.probes() == 0  # nothing is left to send


def test_a_complete_flow_keeps_its_identifier():
    """Covers RFC 7016 §3.6.2.11 [lingers-130]."""
    wire = Sending()
    flow = wire.flow()
    flow.close(0.0)
    wire.take()
    wire.ack(1)
    assert flow.state is SendState.COMPLETE_LINGER
    assert wire.flow().flow_id == 2
    wire.session.keepalive.heard = 100.0
    wire.wait(129.9)
    assert wire.session.send_flows[1] is flow
    wire.wait(0.1)
    assert (flow.state, 1 in wire.session.send_flows) == (SendState.CLOSED, False)
    assert wire.flow().flow_id == 3


def test_priorities_and_turns():
    """RFC 7016 §3.6.1.2: higher flows first, equal ones in turns."""
    wire = Sending()
    wire.session.congestion.cwnd = 100_000
    low, one, two = (wire.flow(priority=priority) for priority in map(Priority, (0, 3, 3)))
    for flow in (low, one, two):
        send(flow, 4, 0.0)
    ids = [chunk.flow_id for chunk in wire.data()]
    wire.ack(0)
    ids += [chunk.flow_id for chunk in wire.data()]
    assert ids == [2, 3, 2, 3, 2, 3, 2, 3, 1, 1, 1, 1]


def test_real_time_data_is_marked():
    """RFC 7016 §3.6.2.3: packets with it carry the timeCritical flag, others do not."""
    wire = Sending()
    media, bulk = wire.flow(time_critical=True), wire.flow()
    send(bulk, 1, 0.0)
    assert [packet.time_critical for packet in wire.take()] == [False]
    send(media, 1, 0.0)
    send(bulk, 1, 0.0)
    assert [packet.time_critical for packet in wire.take()] == [True, False]


def test_what_nobody_takes_ends_the_session():
    """RFC 7016 §5: data that the far end does not take cannot fill the memory."""
    wire = Sending(limits=SessionLimits(queued_bytes=100_000))
    flow = wire.flow()
    with pytest.raises(LocalError):
        for _ in range(1000):
            send(flow, 1, 0.0)
            wire.take()
    assert wire.pair.near_listener.closed == [(0.0, "the far end takes no data")]
    with pytest.raises(LocalError):
        wire.flow()


def test_chunks_of_unknown_flows_mean_nothing():
    """RFC 7016 §3.6.2.4: acknowledgements and exceptions of flows that are gone."""
    wire = Sending()
    wire.answer(DataAckRanges(5, 1, 1), FlowException(5, 1), BufferProbe(5))
    assert wire.take() == []


def test_probes_begin_anew_when_the_window_closes_again():
    """Covers RFC 7016 §3.6.2.9.1 [probes-end] [probe-soon]."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 20, 0.0)
    wire.take()
    wire.ack(5, blocks=0)
    wire.wait(1.0)
    assert wire.probes() == 1
    wire.ack(5, blocks=1)
    last = wire.numbers()[-1]
    wire.wait(0.5)
    wire.ack(last, blocks=0)
    wire.wait(0.9)
    assert wire.probes() == 0
    wire.wait(0.1)
    assert wire.probes() == 1


def test_an_acknowledgement_puts_the_alarm_off():
    """Covers RFC 7016 §3.6.2.6 [lost-after-erto]: it shows that packets still arrive."""
    wire = Sending()
    send(wire.flow(), 4, 0.0)
    wire.take()
    wire.now = 2.0
    wire.ack(1)
    assert wire.take() == []
    wire.wait(2.9)
    assert wire.session.outstanding > 0
    wire.wait(0.1)
    assert wire.session.outstanding == 0


def test_a_window_that_opens_for_a_moment_ends_the_probes():
    """Covers RFC 7016 §3.6.2.9.1 [probes-end] [probe-soon]: the next ones begin anew, at once."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 20, 0.0)
    wire.take()
    wire.ack(5, blocks=0)
    wire.wait(1.0)
    assert wire.probes() == 1
    wire.ack(5, blocks=1)
    wire.ack(wire.numbers()[-1], blocks=0)
    wire.wait(0.9)
    assert wire.probes() == 0
    wire.wait(0.1)
    assert wire.probes() == 1


def test_the_first_measurement_brings_the_alarm_forward():
    """RFC 7016 §3.6.2.6, §3.5.2.2: it does not ring by the three seconds of the beginning."""
    wire = Sending()
    send(wire.flow(), 4, 0.0)
    wire.take()
    wire.now = 0.1
    wire.session.receive(b"ours" + Packet(Mode.RESPONDER, (), None, 0).encode(), FAR, wire.now)
    assert wire.session.round_trip.srtt == pytest.approx(0.1)
    assert wire.session.deadline == pytest.approx(0.1 + wire.session.round_trip.erto)
    assert wire.session.round_trip.erto < 1
