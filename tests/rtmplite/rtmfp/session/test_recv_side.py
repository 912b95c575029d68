"""What receiving flows share: when they acknowledge, and which flows are accepted."""

import pytest
from support.rtmfp.wire import BEGIN, META, Receiving, acked, data

from rtmplite.rtmfp.session.flow_states import RecvState
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.wire.acks import DataAckRanges
from rtmplite.rtmfp.wire.control_chunks import Ping
from rtmplite.rtmfp.wire.flow_chunks import BufferProbe, FlowException, UserData, flow_options
from rtmplite.rtmfp.wire.option import Option


def test_a_new_flow_is_acknowledged_at_once():
    """Covers RFC 7016 §3.6.3.4.1 [acknowledge-soon], §3.6.3.4 [all-acknowledged]."""
    wire = Receiving()
    assert acked(wire.put(data(1))) == [(0, 1)]


def test_the_second_packet_or_the_alarm_is_acknowledged():
    """Covers RFC 7016 §3.6.3.4.1 [acknowledge-soon]."""
    wire = Receiving()
    wire.put(data(1))
    assert wire.put(data(2)) == []
    assert acked(wire.put(data(3))) == [(0, 3)]
    assert wire.put(data(4), data(5)) == []
    assert wire.session.deadline == pytest.approx(0.2)
    assert wire.wait(0.19) == []
    assert acked(wire.wait(0.01)) == [(0, 5)]
    assert wire.put(data(6)) == []
    assert wire.session.deadline == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("before", "chunk"),
    [
        ([data(2)], data(2)),  # seen already
        ([], data(3)),  # makes a gap
        ([data(3)], data(2)),  # there was a gap
        ([], data(2, b"", fsn=2, abandon=True)),
        ([], data(2, final=True)),
        ([], BufferProbe(1)),
        ([data(2, final=True)], data(2, final=True)),  # not open any more
    ],
)
def test_what_is_unusual_is_acknowledged_at_once(before, chunk):
    """Covers RFC 7016 §3.6.3.4.1 [acknowledge-soon], §3.6.3.4 [all-acknowledged]."""
    wire = Receiving()
    wire.put(data(1))
    for early in before:
        wire.put(early)
    wire.wait(0.2)
    assert acked(wire.put(chunk))


def test_all_flows_are_acknowledged_together():
    """Covers RFC 7016 §3.6.3.4.6 [travel-along]: with any other acknowledgement.

    RFC 7016 §3.6.3.4.1 [acknowledge-soon], §3.6.3.4.5 [when-due].
    """
    wire = Receiving()
    wire.put(data(1), data(1, flow=2))
    assert wire.put(data(2), data(2, flow=2)) == []
    assert [chunk.flow_id for chunk in wire.put(data(2))] == [1, 2]


def test_acknowledgements_travel_with_user_data():
    """Covers RFC 7016 §3.6.3.4.6 [travel-along]: where there is room in a packet anyway.

    RFC 7016 §3.6.3.4.1 [acknowledge-soon].
    """
    wire = Receiving()
    wire.put(data(1))
    assert wire.put(data(2)) == []
    wire.session.open_flow(b"back", 0.0).send(bytes(5000), 0.0)
    chunks = wire.take()
    assert [type(chunk) for chunk in chunks][:2] == [UserData, DataAckRanges]
    assert [type(chunk) for chunk in chunks].count(DataAckRanges) == 1


def test_acknowledgements_wait_when_no_user_data_leave():
    """Covers RFC 7016 §3.6.3.4.1 [acknowledge-soon]: also while other chunks are sent."""
    wire = Receiving()
    wire.put(data(1))
    flow = wire.session.open_flow(b"back", 0.0)
    flow.send(b"x", 0.0)
    wire.take()
    wire.put(DataAckRanges(1, 0, 1))
    flow.send(b"y", 0.0)  # for which there is no window
    assert wire.put(data(2)) == []
    wire.session.queue_chunk(Ping())
    assert wire.take() == [Ping()]


def test_only_what_was_received_is_acknowledged():
    """Covers RFC 7016 §3.6.1.3 [acknowledge-truth], §3.6.3.4 [all-acknowledged].

    And §2.3.13 [not-below-fsn], §2.3.14 [not-below-fsn].
    """
    wire = Receiving()
    wire.put(data(1))
    assert acked(wire.put(data(5, fsn=2))) == [(0, 2), (5, 5)]
    assert acked(wire.put(data(3))) == [(0, 3), (5, 5)]
    assert acked(wire.put(data(9))) == [(0, 3), (5, 5), (9, 9)]
    assert acked(wire.put(data(9, fsn=7))) == [(0, 7), (9, 9)]


def test_ranges_alone_are_sent():
    """Field §"RTMFP bitmap acks": not all senders understand bit maps."""
    wire = Receiving()
    wire.put(data(1))
    for number in (3, 5, 7, 1000):
        [chunk] = wire.put(data(number))
        assert isinstance(chunk, DataAckRanges)
    assert acked([chunk]) == [(0, 1), (3, 3), (5, 5), (7, 7), (1000, 1000)]


def test_an_acknowledgement_is_cut_to_the_packet():
    """Covers RFC 7016 §3.6.3.4.2 [cut-or-wait]: the rest is acknowledged later."""
    wire = Receiving(limits=SessionLimits(gaps=2000, datagram_bytes=200))
    wire.put(data(1))
    chunks = []
    for number in range(3, 8000, 31):
        chunks = wire.put(data(number))
    assert 100 < len(chunks[0].encode()) < 190
    assert acked(chunks)[0] == (0, 1)


@pytest.mark.parametrize(("spare", "waits"), [(0, False), (-1, True)])
def test_an_acknowledgement_behind_others_is_whole_or_waits(spare, waits):
    """Covers RFC 7016 §3.6.3.4.2 [cut-or-wait]: only the first of a packet is cut."""
    wire = Receiving()
    wire.put(data(1))
    side, alone, packet = wire.session._recv, bytearray(), bytearray(10)
    side.acknowledge_now(wire.flow)
    side.assemble(alone, 1000)
    side.acknowledge_now(wire.flow)
    side.assemble(packet, len(packet) + len(alone) + spare)
    assert (wire.flow in side.should_ack) is waits
    assert packet[10:] == (b"" if waits else alone)


def test_the_alarm_of_a_rejected_flow():
    """Covers RFC 7016 §3.6.1.3 [acknowledge-rejected], §2.3.16 [before-every-ack]."""
    wire = Receiving()
    wire.put(data(1))
    wire.flow.reject(33, 0.0)
    first = wire.take()
    assert first == [FlowException(1, 33), DataAckRanges(1, 1024, 1)]
    again = wire.put(data(2, b"ignored"))
    assert again == [FlowException(1, 33), DataAckRanges(1, 1024, 2)]
    assert wire.heard.messages == [b"x"]
    wire.flow.reject(34, 0.0)
    assert wire.flow.exception_code == 33
    wire.put(data(3, final=True))
    assert wire.flow.state is RecvState.COMPLETE_LINGER
    assert wire.heard.complete == 0


def test_a_flow_that_nobody_wants():
    """RFC 7016 §3.6.3.1: the user may refuse."""
    wire = Receiving()
    wire.pair.far_listener.refuse = True
    assert wire.put(data(1))[0] == FlowException(1, 0)


def test_a_flow_without_metadata_is_rejected():
    """Covers RFC 7016 §3.6.3.1 [no-metadata-rejects], §2.3.16 [automatic-is-0]."""
    wire = Receiving()
    assert wire.put(data(2, options=()))[0] == FlowException(1, 0)
    assert wire.flow.state is RecvState.REJECTED
    assert wire.pair.far_listener.flows == {}


def test_an_answer_needs_an_open_flow():
    """Covers RFC 7016 §3.6.3.1 [unknown-association-rejects] [closed-association-rejects].

    And §2.3.11.1.2 [answers-an-open-flow].
    """
    wire = Receiving()
    assert wire.put(data(1, options=flow_options(b"m", 1)))[0] == FlowException(1, 0)
    ours = wire.session.open_flow(b"ours", 0.0)
    wire.put(data(1, options=flow_options(b"n", 1), flow=2))
    assert wire.pair.far_listener.flows[b"n"].associated is ours
    ours.close(0.0)
    assert FlowException(3, 0) in wire.put(data(1, options=flow_options(b"o", 1), flow=3))


@pytest.mark.parametrize(("type_id", "is_rejected"), [(0x1FFF, True), (0x2000, False)])
def test_unknown_options(type_id, is_rejected):
    """Covers RFC 7016 §3.6.3.1 [unknown-option-rejects], §3.6.3.2 [unknown-option-rejects].

    And §2.3.11.1 [unknown-rejects], §2.3.16 [automatic-is-0].
    """
    odd = (*META, Option(type_id, b"?"))
    wire = Receiving()
    chunks = wire.put(data(1, options=odd))
    assert (FlowException(1, 0) in chunks) == is_rejected
    wire = Receiving()
    wire.put(data(1))
    chunks = wire.put(data(2, options=odd), data(3))
    assert (FlowException(1, 0) in chunks) == is_rejected
    assert wire.heard.exceptions == is_rejected
    assert len(wire.heard.messages) == (1 if is_rejected else 3)


def test_metadata_beyond_our_limit():
    """RFC 7016 §2.3.11.1.1: 512 bytes are usual, and twice that is enough."""
    wire = Receiving()
    long = (Option(0, bytes(1025)),)
    assert FlowException(1, 0) in wire.put(data(1, options=long))


def test_a_complete_flow_answers_for_two_minutes():
    """Covers RFC 7016 §3.6.3.8 [receiver-lingers]."""
    wire = Receiving()
    wire.put(data(1, final=True))
    assert (wire.heard.complete, wire.flow.state) == (1, RecvState.COMPLETE_LINGER)
    wire.session.keepalive.heard = 100.0
    wire.wait(119.9)
    flow = wire.flow
    assert flow.state is RecvState.COMPLETE_LINGER
    assert acked(wire.put(data(1, final=True))) == [(0, 1)]
    assert wire.flow is flow
    wire.wait(0.1)
    assert (flow.state, dict(wire.session.recv_flows)) == (RecvState.CLOSED, {})
    flow.resume(200.0)
    assert wire.take() == []
    assert wire.heard.complete == 1


def test_many_messages_without_end():
    """RFC 7016 §5: many messages, on many flows, cannot fill the memory either."""
    wire = Receiving(limits=SessionLimits(session_buffer_bytes=50_000))
    for flow in range(1, 100):
        options = flow_options(b"%d" % flow)
        wire.put(data(1, bytes(1000), control=BEGIN, options=options, flow=flow))
    assert wire.session.buffered <= 50_000
    assert wire.pair.heard(b"99").exceptions == 1


def test_too_many_flows_end_the_session():
    """RFC 7016 §5: the session of a far end that opens flow after flow is aborted."""
    wire = Receiving(limits=SessionLimits(flows=50))
    for flow in range(1, 60):
        wire.put(data(1, flow=flow, options=flow_options(b"%d" % flow)))
    assert wire.pair.far_listener.closed == [(0.0, "the far end opens too many flows")]
    assert len(wire.pair.far_listener.flows) == 50


@pytest.mark.parametrize(("capacity", "at_once"), [(2048, False), (1024, True)])
def test_a_small_window_is_acknowledged_at_once(capacity, at_once):
    """Covers RFC 7016 §3.6.3.4.1 [acknowledge-soon]: fewer than two blocks, and no more."""
    wire = Receiving()
    wire.put(data(1))
    wire.flow.capacity = capacity
    wire.put(BufferProbe(1))
    wire.flow.capacity = 10_000
    assert (wire.put(data(2)) != []) == at_once


@pytest.mark.parametrize(("size", "at_once"), [(100, False), (1500, True)])
def test_a_fragment_that_fills_the_window_is_acknowledged_at_once(size, at_once):
    """Covers RFC 7016 §3.6.3.4.1 [acknowledge-soon]: less than a block is free after it."""
    wire = Receiving()
    wire.put(data(1))
    wire.flow.suspend()
    wire.flow.capacity = 2 * 1024
    wire.put(BufferProbe(1))
    assert (wire.put(data(2, bytes(size))) != []) == at_once
