"""Receiving flows, tested with hand-made chunks and the acknowledgements that they cause."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rtmfp.wire import BEGIN, END, MIDDLE, WHOLE, Receiving, acked, data

from rtmplite.rtmfp.session.flow_states import RecvState
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.wire.flow_chunks import (
    BufferProbe,
    FragmentControl,
    NextUserData,
    UserData,
    flow_options,
)


def test_messages_come_in_order():
    """Covers RFC 7016 §3.6.3.3 [in-order], §3.6.1.1 [no-meaning-in-ids]."""
    wire = Receiving()
    for number in (1, 4, 3, 2, 3, 5):
        wire.put(data(number, b"%d" % number))
    assert wire.heard.messages == [b"1", b"2", b"3", b"4", b"5"]
    wire.put(UserData(77, 1, 1, b"other", options=flow_options(b"n")))
    assert wire.pair.heard(b"n").messages == [b"other"]


def test_only_whole_messages_are_handed_over():
    """Covers RFC 7016 §3.6.3.3 [whole-only]."""
    wire = Receiving()
    wire.put(data(1, b"a", control=BEGIN))
    wire.put(data(3, b"c", control=END))
    assert wire.heard.messages == []
    wire.put(data(2, b"b", control=MIDDLE))
    assert wire.heard.messages == [b"abc"]
    assert wire.session.buffered == 0


@pytest.mark.parametrize(
    "stray",
    [
        [(2, MIDDLE), (3, END)],
        [(2, BEGIN), (3, WHOLE)],
        [(2, BEGIN), (3, BEGIN), (4, END)],
        [(2, END), (3, MIDDLE)],
        [(2, BEGIN), (4, END)],
    ],
)
def test_parts_of_nothing_are_dropped(stray):
    """Covers RFC 7016 §3.6.3.3 [abandoned-go]."""
    wire = Receiving()
    wire.put(data(1, b"first"))
    for number, control in stray:
        wire.put(data(number, b"%d" % number, control=control))
    wire.put(data(9, b"last", fsn=8))
    assert wire.heard.messages[0] == b"first"
    assert wire.heard.messages[-1] == b"last"
    assert set(wire.heard.messages[1:-1]) <= {b"3", b"34"}
    assert wire.session.buffered == 0


def test_the_user_hears_of_gaps():
    """Covers RFC 7016 §3.6.1.2 [gap-told], §3.6.3.3 [abandoned-go], §2.3.11 [abandoned-ignored]."""
    wire = Receiving()
    wire.put(data(1))
    wire.put(data(4, b"four"), data(2, b"two", control=BEGIN))
    assert wire.heard.gaps == []
    wire.put(data(5, b"five", fsn=3))
    assert wire.heard.messages == [b"x", b"four", b"five"]
    assert wire.heard.gaps == [(1, 1)]
    wire.put(data(8, b"not said", fsn=8, abandon=True))
    assert wire.heard.gaps == [(1, 1), (3, 3)]
    assert wire.heard.messages == [b"x", b"four", b"five"]
    wire.put(data(9, b"", fsn=9, abandon=True, final=True))
    assert wire.heard.gaps == [(1, 1), (3, 3)]  # the last number was never a message's
    assert wire.heard.complete == 1
    assert wire.session.buffered == 0


def test_messages_before_their_turn():
    """RFC 7016 §3.6.3.3: an unordered flow waits for whole messages, and for nothing else."""
    wire = Receiving()
    wire.pair.far_listener.setup = lambda flow: setattr(flow, "ordered", False)
    wire.put(data(1))
    wire.put(data(7, b"c", control=END))
    wire.put(data(5, b"a", control=BEGIN))
    wire.put(data(3, b"three"))
    assert wire.heard.messages == [b"x", b"three"]
    wire.put(data(6, b"b", control=MIDDLE))
    assert wire.heard.messages == [b"x", b"three", b"abc"]
    wire.put(data(2, b"two"))
    wire.put(data(4, b"four"))
    assert wire.heard.messages == [b"x", b"three", b"abc", b"two", b"four"]
    assert (wire.heard.gaps, wire.session.buffered) == ([], 0)


@pytest.mark.parametrize(
    ("capacity", "held", "blocks"),
    [
        (4096, 0, 4),
        (4096, 1, 4),
        (4096, 924, 3),
        (4096, 5000, 1),
        (1025, 0, 2),
        (1, 0, 1),
        (0, 0, 0),
    ],
)
def test_the_window_is_what_is_free(capacity, held, blocks):
    """Covers RFC 7016 §3.6.3.5 [blocks] [window] [one-block], §2.3.15 [probe-answered]."""
    wire = Receiving()
    wire.put(data(1))
    wire.flow.capacity = capacity
    if held:
        wire.put(data(3, bytes(held)))
    (ack,) = wire.put(BufferProbe(1))
    assert ack.buffer_blocks_available == blocks


def test_a_user_that_waits_closes_the_window():
    """Covers RFC 7016 §3.6.3.5 [one-block]: unless the user suspended the flow."""
    wire = Receiving()
    wire.put(data(1))
    wire.flow.suspend()
    wire.flow.capacity = 2048
    wire.put(data(2, bytes(1000)), data(3, bytes(900)), data(4, b"end", final=True))
    assert wire.heard.messages == [b"x"]
    (ack,) = wire.put(BufferProbe(1))
    assert ack.buffer_blocks_available == 0
    assert wire.put(data(5)) != []  # a nearly closed window is answered at once
    wire.flow.resume(0.0)
    assert wire.heard.messages == [b"x", bytes(1000), bytes(900), b"end"]
    assert wire.heard.complete == 1
    (ack,) = wire.take()
    assert ack.buffer_blocks_available == 2


def test_more_gaps_than_may_be():
    """RFC 7016 §5: a fragment that is not kept is not acknowledged either."""
    wire = Receiving(limits=SessionLimits(gaps=3))
    wire.put(data(1))
    for number in (3, 5, 7, 9, 1 << 60):
        wire.put(data(number))
    assert acked(wire.put(data(8))) == [(0, 1), (3, 3), (5, 5), (7, 8)]
    assert acked(wire.put(data(2))) == [(0, 3), (5, 5), (7, 8)]


def test_more_than_the_window_is_forgotten():
    """RFC 7016 §3.6.3.5: a sender that ignores the window gains nothing."""
    wire = Receiving(limits=SessionLimits(buffer_bytes=10_000))
    wire.put(data(1))
    for number in range(3, 400):
        wire.put(data(number, bytes(1000)))
    assert wire.session.buffered < 10_000 + 64 * 1024
    assert wire.put(data(2)) != []
    assert (wire.session.buffered, wire.heard.messages[1]) == (0, b"x")


def test_a_message_without_end_ends_its_flow():
    """RFC 7016 §5: one message cannot fill the memory."""
    wire = Receiving(limits=SessionLimits(message_bytes=20_000))
    wire.put(data(1, control=BEGIN))
    for number in range(2, 40):
        wire.put(data(number, bytes(1000), control=MIDDLE))
    assert wire.flow.state is RecvState.REJECTED
    assert (wire.heard.exceptions, wire.session.buffered) == (1, 0)


def test_next_user_data_continues():
    """RFC 7016 §2.3.12: the number and the FSN follow from the chunk before."""
    wire = Receiving()
    wire.put(NextUserData(b"lost"), data(1, b"one"), NextUserData(b"two"), BufferProbe(1))
    assert wire.heard.messages == [b"one", b"two"]


fragments = st.lists(
    st.tuples(
        st.integers(1, 12), st.sampled_from(FragmentControl), st.booleans(), st.integers(0, 3)
    ),
    max_size=40,
)


def test_a_message_out_of_order_is_delivered_as_soon_as_it_is_whole():
    """Covers RFC 7016 §3.6.3.3 [whole-only]: in a flow whose user wants no order."""
    wire = Receiving()
    wire.pair.far_listener.setup = lambda flow: setattr(flow, "ordered", False)
    wire.put(data(1, b"1"))
    wire.put(data(3, b"3"))
    assert wire.heard.messages == [b"1", b"3"]
    wire.put(data(6, b"b", control=MIDDLE))
    wire.put(data(7, b"c", control=END))
    assert wire.heard.messages == [b"1", b"3"]  # its begin is missing
    wire.put(data(5, b"a", control=BEGIN))
    assert wire.heard.messages == [b"1", b"3", b"abc"]
    wire.put(data(9, b"d", control=BEGIN))
    wire.put(data(10, b"e", control=MIDDLE))
    assert wire.heard.messages == [b"1", b"3", b"abc"]  # its end is missing


@given(fragments, st.booleans())
def test_any_fragments_in_any_order(fragments, ordered):
    """Covers RFC 7016 §3.6.3.3 [in-order] [whole-only], §3.6.1.3 [acknowledge-truth]."""
    wire = Receiving()
    wire.pair.far_listener.setup = lambda flow: setattr(flow, "ordered", ordered)
    wire.put(data(1, b"1"))
    seen = {0, 1}
    for number, control, abandon, behind in fragments:
        fsn = max(0, number - behind - (not abandon))
        payload = b"%d " % number
        wire.put(data(number, payload, fsn=fsn, control=control, abandon=abandon, options=None))
        seen |= {number, *range(fsn + 1)}
    probe = acked(wire.put(BufferProbe(1)))
    assert {at for low, high in probe for at in range(low, high + 1)} == seen
    spoken = [[int(part) for part in message.split()] for message in wire.heard.messages]
    flat = [number for message in spoken for number in message]
    assert len(flat) == len(set(flat))
    assert all(message == list(range(message[0], message[-1] + 1)) for message in spoken)
    if ordered:
        assert flat == sorted(flat)
    wire.put(data(50, b"", fsn=50, abandon=True))
    assert wire.session.buffered == 0
