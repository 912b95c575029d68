"""A session whose far end is hostile: what each of its packets costs us in time and memory.

Times are of this process alone, and the bounds far above what is usual: without the limits that are
tried here one packet takes seconds.
"""

import time
from itertools import count

import pytest
from support.mutations import peak
from support.rtmfp.pair import FAR, NEAR, Pair
from support.rtmfp.wire import BEGIN, END, META, MIDDLE, Receiving, data

from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.acks import DataAckBitmap, DataAckRanges
from rtmplite.rtmfp.wire.address import Origin, SocketAddress
from rtmplite.rtmfp.wire.chunks import encode_chunk
from rtmplite.rtmfp.wire.control_chunks import (
    ForwardedInitiatorHello,
    Ping,
    PingReply,
    SessionClose,
    SessionCloseAck,
)
from rtmplite.rtmfp.wire.flow_chunks import (
    BufferProbe,
    FlowException,
    NextUserData,
    UserData,
    flow_options,
)
from rtmplite.rtmfp.wire.packet import Mode, Packet

PACKET = 1180  # bytes
SLOW = 0.1  # s of this process's time for one packet
HELLO = ForwardedInitiatorHello(b"epd", SocketAddress("192.0.2.9", 9, Origin.OBSERVED), b"tag")


def filled(*chunks, mode=Mode.INITIATOR):
    """A sealed packet full of these chunks, repeated."""
    once = b"".join(map(encode_chunk, chunks))
    return b"ours" + bytes([mode]) + once * (PACKET // len(once))


def cost(session, packet, source=NEAR, now=0.0):
    """Seconds of this process's time that a packet takes, answers included; and their bytes."""
    began = time.process_time()
    session.receive(packet, source, now)
    answers = session.take(now)
    return time.process_time() - began, sum(len(datagram) for datagram, _ in answers)


def streaming(messages=30_000):
    """A session that has far more to send than the far end takes."""
    pair = Pair()
    flow = pair.flow()
    for _ in range(messages):
        flow.send(b"x" * 20, 0.0)
    pair.near.take(0.0)
    return pair.near, flow


@pytest.mark.parametrize(
    "chunk",
    [
        DataAckRanges(1, 0, 5, (1, 1 << 60)),
        DataAckRanges(1, 100, (1 << 64) - 1),
        DataAckRanges(1, 1, 0),
        DataAckBitmap(1, 100, 0, b"\x55" * 1000),
        FlowException(1, 1),
    ],
    ids=["beyond the end", "everything", "nothing", "every other one", "exceptions"],
)
def test_acknowledgements_of_what_was_never_sent(chunk):
    """RFC 7016 §3.6.2.4: they cost little, however long the queue is."""
    session, flow = streaming()
    sent = flow._queue.unsent
    packet = filled(chunk, mode=Mode.RESPONDER)
    assert min(cost(session, packet, FAR)[0] for _ in range(3)) < SLOW
    if not flow.exception:
        assert flow.queued >= (30_000 - sent - 1000) * 20


def test_a_hole_that_is_acknowledged_around_for_ever():
    """RFC 7016 §3.6.2.4: thousands of numbers that are gone cost nothing."""
    session, flow = streaming()
    around = filled(DataAckRanges(1, 1000, 0, (1, 1 << 40)), mode=Mode.RESPONDER)
    for _ in range(200):
        cost(session, around, FAR)
    assert flow._queue.first == 1
    assert flow._queue.end - flow._queue.entries > 5000
    assert min(cost(session, around, FAR)[0] for _ in range(3)) < SLOW


@pytest.mark.parametrize("ordered", [True, False])
def test_a_message_of_countless_fragments(ordered):
    """RFC 7016 §3.6.3.3: a fragment that waits for the one before does not look at all others."""
    wire = Receiving()
    wire.pair.far_listener.setup = lambda flow: setattr(flow, "ordered", ordered)
    wire.put(data(1))
    numbers = count(3)
    costs = []
    for _ in range(50):
        body = b"".join(encode_chunk(data(next(numbers), b"", control=MIDDLE)) for _ in range(180))
        packet = b"ours" + bytes([Mode.INITIATOR]) + body
        costs.append(cost(wire.session, packet)[0])
    assert min(costs[-5:]) < SLOW / 4
    assert wire.heard.messages == [b"x"]
    assert wire.session.buffered < (1 << 20) + 64 * 1024


def test_parts_in_any_order_before_their_turn():
    """RFC 7016 §3.6.3.3: an unordered flow hands over what is whole, whichever part came last."""
    parts = [(3, b"a", BEGIN), (4, b"b", MIDDLE), (5, b"c", MIDDLE), (6, b"d", END)]
    for last in range(4):
        wire = Receiving()
        wire.pair.far_listener.setup = lambda flow: setattr(flow, "ordered", False)
        wire.put(data(1))
        order = [part for part in parts if part != parts[last]] + [parts[last]]
        for number, payload, control in order:
            assert wire.heard.messages == [b"x"]
            wire.put(data(number, payload, control=control))
        assert wire.heard.messages == [b"x", b"abcd"]
        wire.put(data(7, b"e", control=MIDDLE), data(8, b"f", control=END))
        wire.put(data(2, b"y"))
        assert wire.heard.messages == [b"x", b"abcd", b"y"]
        assert (wire.session.buffered, wire.flow._runs) == (0, {})


@pytest.mark.parametrize(
    "chunks",
    [
        (Ping(),),
        (PingReply(b"M" + bytes(24)),),
        (DataAckRanges(9, 1, 1),),
        (BufferProbe(1),),
        (HELLO,),
        (UserData(1, 3, 3, b""),),
        (UserData(1, (1 << 64) - 1, 1, b""),),
        (UserData(1, 1, 1, bytes(200), options=META),),
        (SessionClose(), SessionCloseAck()),
    ],
    ids=lambda chunks: type(chunks[0]).__name__,
)
def test_a_packet_full_of_one_chunk(chunks):
    """RFC 7016 §5: it causes neither much work nor a long answer."""
    wire = Receiving()
    wire.put(data(1))
    packet = filled(*chunks)
    for turn in range(5):
        seconds, answered = cost(wire.session, packet, now=turn * 0.001)
        assert seconds < SLOW
        assert answered <= 2 * len(packet)


def test_a_number_after_the_last_one_there_is():
    """RFC 7016 §2.1.2, §2.3.12: it is ignored, since no acknowledgement could contain it."""
    wire, last = Receiving(), (1 << 64) - 1
    wire.put(data(1))
    wire.put(data(last, fsn=last - 1), NextUserData(b"too far"), NextUserData(b"more"))
    assert wire.wait(0.9) == [DataAckRanges(1, wire.flow.blocks_available, last)]
    assert wire.heard.messages == [b"x", b"x"]


def test_flows_without_end_are_the_end():
    """RFC 7016 §5: the session ends if the far end opens flow after flow; its memory is free."""
    numbers = count(1)

    def flood():
        wire = Receiving()
        while wire.session.state is State.OPEN:
            number = next(numbers)
            opening = UserData(number, 1, 1, b"x", options=flow_options(b"%d" % number))
            wire.put(opening)
        return wire

    assert peak(flood) < 8 << 20
    assert len(flood().session.recv_flows) == 0


def test_metadata_and_messages_of_any_size():
    """RFC 7016 §2.3.11.1.1, §5: the memory of all flows together is limited."""
    wire = Receiving()
    for number in range(1, 200):
        options = flow_options(b"m" * 500)
        wire.put(UserData(number, 1, 1, b"x" * 60_000, BEGIN, options=options))
        wire.put(UserData(number, 3, 3, b"x" * 60_000, MIDDLE))
        assert wire.session.buffered <= wire.session._recv.limits.session_buffer_bytes + 65536
    assert wire.session.state is State.OPEN


def test_times_from_the_future():
    """RFC 7016 §3.5.2.2: a wrong clock delays only data to the peer that has it."""
    pair = Pair()
    for turn in range(2000):
        now = turn * 0.1
        stamp = (turn * 40_503) & 0xFFFF
        packet = Packet(Mode.RESPONDER, (Ping(),), timestamp=stamp, timestamp_echo=stamp ^ 0x5555)
        pair.near.receive(b"ours" + packet.encode(), FAR, now)
        assert len(pair.near.take(now)) == 1
    assert pair.near.round_trip.srtt <= 32767 / 250
    assert pair.near.deadline <= 1999 * 0.1 + 120.0
    pair.near.tick(1999 * 0.1 + 120.1)
    assert pair.near.state is State.CLOSED


def test_windows_that_shrink_and_grow():
    """RFC 7016 §3.6.2.9: a receiver whose window jumps gets no more than it allows."""
    session, flow = streaming(2000)
    for turn in range(3000):
        now = turn * 0.01
        blocks = (0, 1, 1 << 50, 2)[turn % 4]
        ack = DataAckRanges(1, blocks, turn // 8)
        session.receive(b"ours" + Packet(Mode.RESPONDER, (ack,)).encode(), FAR, now)
        before = flow.outstanding
        session.take(now)
        if blocks <= 2:
            assert flow.outstanding <= max(before, blocks * 1024 + 64)
        assert session.outstanding <= session.congestion.cwnd + PACKET
        if session.deadline <= now:
            session.tick(now)
