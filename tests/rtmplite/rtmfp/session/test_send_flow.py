"""Sending flows: the chunks they make, and the effect of acknowledgements on them."""

import pytest
from support.rtmfp.pair import Sender
from support.rtmfp.wire import Sending, send

from rtmplite.errors import LocalError
from rtmplite.rtmfp.session.flow_states import SendState
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.wire.acks import DataAckRanges
from rtmplite.rtmfp.wire.flow_chunks import (
    FlowException,
    FragmentControl,
    NextUserData,
    UserData,
    flow_options,
)


def test_options_go_with_the_first_chunk_of_each_packet_until_acknowledged():
    """Covers RFC 7016 §3.6.1.3 [options-until-acknowledged], §3.6.1.1 [one-association].

    And §2.3.11.1.1 [until-acknowledged] [once-in-a-packet] [then-never-again].
    And §2.3.11.1.2 [until-acknowledged] [once-in-a-packet] [then-never-again] [from-the-first].
    """
    wire = Sending()
    wire.answer(UserData(9, 1, 1, options=flow_options(b"theirs")))
    theirs = wire.session.recv_flows[9]
    flow = wire.flow(associated=theirs)
    send(flow, 6, 0.0, size=500)
    chunks = [chunk for packet in wire.take() for chunk in packet.chunks]
    firsts = [chunk for chunk in chunks if isinstance(chunk, UserData)]
    assert len(firsts) == 3
    for chunk in firsts:
        assert [(option.type_id, option.value) for option in chunk.options] == [
            (0, b"meta"),
            (10, b"\x09"),
        ]
    followers = [chunk for chunk in chunks if isinstance(chunk, NextUserData)]
    assert len(followers) == 3
    assert all(chunk.options is None for chunk in followers)
    wire.ack(1)
    send(flow, 1, 0.0)
    assert [chunk.options for chunk in wire.data()] == [None]


def test_next_user_data_is_for_the_next_number_alone():
    """Covers RFC 7016 §3.6.2.3.2 [next-user-data] [first-is-user-data].

    And §2.3.12 [follows-user-data].
    """
    wire = Sending()
    flow = wire.flow()
    send(flow, 5, 0.0, size=100)
    (packet,) = wire.take()
    assert [type(chunk) for chunk in packet.chunks] == [UserData] + [NextUserData] * 4
    wire.ack(0, 1, 1, 1, 1)  # 2 and 4
    wire.wait(4.0)
    (packet,) = wire.take()
    assert [type(chunk) for chunk in packet.chunks] == [UserData] * 3
    assert [chunk.sequence_number for chunk in packet.chunks] == [1, 3, 5]


def test_fragments_have_the_marks_of_their_places_and_fit():
    """Covers RFC 7016 §3.6.2.2 [fits-the-path], §3.6.1.2 [numbers-grow] [takes-a-number].

    And §2.3.11 [contiguous] [first-is-1] [first-above-0].
    """
    wire = Sending()
    flow = wire.session.open_flow(bytes(512), 0.0)
    flow.send(bytes(2500), 0.0)
    flow.send(b"", 0.0)
    last = flow.send(b"x", 0.0).last
    got = wire.data()
    while got[-1].sequence_number < last:
        wire.ack(got[-1].sequence_number)
        got += wire.data()
    control = [chunk.fragment_control for chunk in got]
    begin, end, middle = FragmentControl.BEGIN, FragmentControl.END, FragmentControl.MIDDLE
    assert control == [begin] + [middle] * (len(got) - 4) + [end, 0, 0]
    assert [chunk.sequence_number for chunk in got] == list(range(1, len(got) + 1))
    assert b"".join(chunk.data for chunk in got) == bytes(2500) + b"x"


@pytest.mark.parametrize("size", [1000, 1100, 1150, 1192, 5000])
def test_no_datagram_is_larger_than_it_may_be(size):
    """Covers RFC 7016 §3.6.2.2 [fits-the-path]: the sending end of the test looks at every one."""
    wire = Sending()
    flow = wire.flow()
    last = send(flow, 10, 0.0, size=size)[-1].last
    for _ in range(80):
        numbers = wire.numbers()
        wire.now += 0.004
        wire.ack(max(numbers, default=last))
    assert flow.queued == 0


def test_an_acknowledgement_that_comes_late_still_counts():
    """RFC 7016 §3.6.2.4, from which we depart: no fragment is sent again that has arrived."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 4, 0.0)
    wire.take()
    wire.wait(3.0)
    wire.ack(4)
    assert (wire.numbers(), flow.queued) == ([], 0)


def test_what_was_never_sent_cannot_be_acknowledged():
    """RFC 7016 §3.6.2.4: a receiver that lies harms only itself."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 20, 0.0)
    assert wire.numbers() == [1, 2, 3, 4, 5]
    wire.ack(1 << 60, 5, 1 << 61)
    assert wire.numbers()[0] == 6
    assert flow.queued == 15_000


def test_the_receive_window_is_obeyed():
    """Covers RFC 7016 §3.6.2.9 [window-obeyed]."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 10, 0.0)
    assert wire.numbers() == [1, 2, 3, 4, 5]
    wire.ack(5, blocks=2)
    assert wire.numbers() == [6, 7, 8]
    wire.ack(6, blocks=2)
    assert wire.numbers() == [9]
    assert flow.rx_buffer_size == 2048


def test_an_exception_closes_the_flow():
    """Covers RFC 7016 §3.6.1.3 [exception-closes] [exception-told], §3.6.2.7.1 [fsn-update]."""
    wire, user = Sending(), Sender()
    flow = wire.flow(sender=user)
    send(flow, 10, 0.0)
    assert wire.numbers() == [1, 2, 3, 4, 5]
    wire.answer(FlowException(1, 77), DataAckRanges(1, 0, 2))
    wire.answer(FlowException(1, 77), DataAckRanges(1, 0, 2))
    assert user.exceptions == [77]
    assert (flow.state, flow.queued, flow.exception) == (SendState.CLOSING, 0, True)
    (last,) = wire.data()
    assert (last.sequence_number, last.abandon, last.final, last.data) == (10, True, True, b"")
    with pytest.raises(LocalError):
        flow.send(b"more", 0.0)
    wire.answer(FlowException(1, 77), DataAckRanges(1, 0, 10))
    assert (flow.state, user.complete) == (SendState.COMPLETE_LINGER, 1)


def test_closing_marks_the_last_number():
    """RFC 7016 §3.6.2.11: the last fragment if it has not left, else one more without data."""
    wire = Sending()
    flow = wire.flow()
    flow.send(b"one", 0.0)
    flow.close(0.0)
    flow.close(0.0)
    assert [(chunk.sequence_number, chunk.final, chunk.abandon) for chunk in wire.data()] == [
        (1, True, False)
    ]
    flow = wire.flow()
    flow.send(b"one", 0.0)
    assert wire.numbers() == [1]
    flow.close(0.0)
    assert [(chunk.sequence_number, chunk.final, chunk.abandon) for chunk in wire.data()] == [
        (2, True, True)
    ]


def test_a_message_given_up_is_never_sent_again():
    """Covers RFC 7016 §3.6.2.7 [never-un-abandoned] [whole-message], §3.6.2.7.1 [fsn-update]."""
    wire = Sending()
    flow = wire.flow()
    message = flow.send(bytes(3000), 0.0)
    assert wire.numbers() == [1, 2, 3]
    wire.ack(0, 1, 1)
    flow.abandon(message, 0.0)
    wire.wait(3.0)
    (update,) = wire.data()
    assert (update.sequence_number, update.fsn_offset) == (3, 0)
    assert (update.abandon, update.data) == (True, b"")
    wire.wait(10.0)
    assert wire.numbers() == [3]
    wire.ack(3)
    assert (flow.queued, wire.session.queued) == (0, 0)


def test_giving_up_a_message_spares_the_next():
    """Covers RFC 7016 §3.6.2.7 [whole-message]: all of its fragments, and no other."""
    wire = Sending()
    flow = wire.flow()
    message = flow.send(bytes(3000), 0.0)
    flow.send(b"next", 0.0)
    flow.abandon(message, 0.0)
    assert [chunk.data for chunk in wire.data()] == [b"next"]


def test_the_fsn_waits_for_what_is_outstanding():
    """Covers RFC 7016 §3.6.2.3 [fsn-below-outstanding] [fsn-not-outstanding]."""
    wire = Sending()
    flow = wire.flow()
    message = flow.send(b"one", 0.0)
    assert wire.numbers() == [1]
    flow.abandon(message, 0.0)
    flow.send(b"two", 0.0)
    (two,) = wire.data()
    assert (two.sequence_number, two.forward_sequence_number) == (2, 0)
    wire.wait(3.0)
    (two,) = wire.data()
    assert (two.sequence_number, two.forward_sequence_number) == (2, 1)


def given_up_between():
    """A flow that has sent 1 and 3, of which 1 has arrived; 2 was abandoned before it was sent."""
    wire = Sending()
    flow = wire.flow()
    flow.send(b"one", 0.0)
    flow.abandon(flow.send(b"two", 0.0), 0.0)
    flow.send(b"three", 0.0)
    assert wire.numbers() == [1, 3]
    return wire, flow


@pytest.mark.parametrize("acks", [[(1,), (1, 1, 1)], [(1, 1, 1)]])
def test_what_was_given_up_is_told_though_all_else_has_arrived(acks):
    """Covers RFC 7016 §3.6.2.7.1 [fsn-update]: or the receiver would hold 3 for ever."""
    wire, flow = given_up_between()
    updates = []
    for ack in acks:
        wire.ack(*ack)
        updates += wire.data()
    (update,) = updates
    assert (update.sequence_number, update.fsn_offset, update.abandon) == (2, 0, True)
    wire.wait(3.0)
    assert wire.numbers() == [2]
    wire.ack(3)
    assert (flow.queued, wire.session.queued, flow.has_entries) == (0, 0, False)


def test_an_fsn_that_is_on_its_way_is_not_told_twice():
    """Covers RFC 7016 §3.6.2.7.1 [fsn-update]: but again if another copy of that chunk arrived."""
    wire = Sending()
    flow = wire.flow()
    flow.send(b"one", 0.0)
    wire.data()
    wire.ack(1)
    flow.abandon(flow.send(b"two", 0.0), 0.0)
    flow.send(b"three", 0.0)
    (three,) = wire.data()
    assert (three.sequence_number, three.forward_sequence_number) == (3, 2)
    wire.ack(1)
    assert wire.data() == []
    wire.ack(1, 1, 1)
    assert wire.numbers() == [2]


def test_what_was_given_up_makes_room_too():
    """Own design: a user that waits for room would wait for ever if nothing else was in flight."""
    wire, user = Sending(), Sender()
    flow = wire.flow(sender=user)
    message = flow.send(bytes(500), 0.0)
    wire.data()
    flow.abandon(message, 0.0)
    wire.wait(4.0)
    assert wire.numbers() == [1] and user.writable == 0
    wire.ack(1)
    assert (user.writable, flow.queued) == (1, 0)
    wire.ack(1)
    assert user.writable == 1


def test_late_messages_are_given_up():
    """RFC 7016 §3.6.2.7: by their age, or because no fragment was sent in time."""
    wire = Sending()
    flow = wire.flow()
    wire.session.congestion.cwnd = 1
    flow.send(b"first", 0.0)
    flow.send(b"begun", 0.0, start_by=0.1)
    flow.send(b"x" * 1000, 0.0, lifetime=0.5)
    flow.send(b"y" * 1000, 0.0, start_by=0.3)
    flow.send(b"z" * 1000, 0.0)
    assert wire.numbers() == [1, 2, 3]
    wire.wait(0.4)
    wire.ack(0)
    assert flow.queued == 10 + 3000  # nobody looked yet
    wire.wait(3.0)
    wire.session.congestion.cwnd = 4000
    assert wire.numbers() == [1, 2, 5]
    assert flow.queued == 10 + 1000


def test_a_late_message_within_a_reliable_flow():
    """RFC 7016 §3.6.2.7: it is abandoned wherever it is in the queue."""
    wire = Sending()
    flow = wire.flow()
    flow.send(b"stays", 0.0)
    flow.send(b"goes", 0.0, lifetime=5.0)
    flow.send(b"goes first", 0.0, lifetime=1.0)
    flow.send(b"stays", 0.0)
    assert wire.numbers() == [1, 2, 3, 4]
    wire.wait(3.0)
    assert wire.numbers() == [1, 2, 4]


def test_a_flow_begins_without_a_message():
    """RFC 7016 §3.6.2.1: its options go with an abandoned fragment."""
    wire = Sending()
    wire.flow().announce(0.0)
    (chunk,) = wire.data()
    assert (chunk.abandon, chunk.fsn_offset, chunk.options) == (True, 0, flow_options(b"meta"))


def test_metadata_has_a_limit_and_answers_need_an_open_flow():
    """Covers RFC 7016 §3.6.2.1 [no-return-to-closed]."""
    wire = Sending()
    with pytest.raises(LocalError):
        wire.session.open_flow(bytes(513), 0.0)
    wire.answer(UserData(9, 1, 1, options=flow_options(b"theirs")))
    theirs = wire.session.recv_flows[9]
    theirs.reject(5, 0.0)
    with pytest.raises(LocalError):
        wire.flow(associated=theirs)


def test_a_hole_that_is_never_filled_stops_the_flow():
    """RFC 7016 §5: the span of numbers that a flow remembers is limited."""
    wire = Sending(limits=SessionLimits(flight_span=20))
    flow = wire.flow()
    send(flow, 100, 0.0, size=10)
    assert wire.numbers() == list(range(1, 21))
    wire.ack(0, 1, 19)
    assert wire.numbers() == []
    wire.wait(4.0)
    assert wire.numbers() == [1]
    wire.ack(20)
    assert wire.numbers() == list(range(21, 41))


def test_a_window_that_is_just_full():
    """Covers RFC 7016 §3.6.2.9 [window-obeyed]: as much outstanding as the window is enough."""
    wire = Sending()
    flow = wire.flow()
    send(flow, 1, 0.0)
    wire.take()
    wire.ack(1, blocks=1)
    send(flow, 2, 0.0, size=1024 - 7)
    assert wire.numbers() == [2]
    assert flow.outstanding == flow.rx_buffer_size == 1024


def test_the_fsn_may_be_outstanding_if_it_was_given_up_before():
    """Covers RFC 7016 §3.6.2.3 [fsn-not-outstanding]."""
    wire = Sending()
    flow = wire.flow()
    flow.announce(0.0)
    assert wire.numbers() == [1]
    flow.send(b"two", 0.0)
    assert [chunk.forward_sequence_number for chunk in wire.data()] == [1]


def test_options_go_once_even_where_the_numbers_jump():
    """Covers RFC 7016 §2.3.11.1.1 [until-acknowledged] [once-in-a-packet].

    And §2.3.11.1.2 [until-acknowledged] [once-in-a-packet].  The long form of a chunk is needed
    behind a message that was given up, and that is not the first of the packet.
    """
    wire = Sending()
    flow = wire.flow()
    flow.send(b"one", 0.0)
    flow.abandon(flow.send(b"two", 0.0), 0.0)
    flow.send(b"three", 0.0)
    (packet,) = wire.take()
    first, second = packet.chunks
    assert isinstance(first, UserData) and isinstance(second, UserData)
    assert [option.value for option in first.options] == [b"meta"]
    assert second.options is None and (second.data, second.sequence_number) == (b"three", 3)
