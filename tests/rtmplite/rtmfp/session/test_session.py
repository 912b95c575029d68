"""Sessions: Pings, addresses, the size of datagrams, and the end."""

import itertools

import pytest
from support.rtmfp.pair import FAR, NEAR, Pair, PlainCipher

from rtmplite.errors import LocalError
from rtmplite.rtmfp.session.congestion import TimeCritical
from rtmplite.rtmfp.session.limits import SessionLimits
from rtmplite.rtmfp.session.recv_flow import RecvState
from rtmplite.rtmfp.session.session import State
from rtmplite.rtmfp.wire.address import SocketAddress
from rtmplite.rtmfp.wire.chunks import UnknownChunk, encode_chunk
from rtmplite.rtmfp.wire.control_chunks import (
    ForwardedInitiatorHello,
    Ping,
    PingReply,
    SessionClose,
    SessionCloseAck,
)
from rtmplite.rtmfp.wire.flow_chunks import UserData, flow_options
from rtmplite.rtmfp.wire.packet import Mode, Packet, scramble, unscramble

ELSEWHERE = ("203.0.113.9", 50000)
OPENING = UserData(1, 1, 1, b"x", options=flow_options(b"m"))


def put(session, *chunks, now=0.0, source=NEAR, mode=Mode.INITIATOR, **flags):
    session.receive(b"ours" + Packet(mode, chunks, **flags).encode(), source, now)


def take(session, now=0.0):
    """Packets with their destinations."""
    return [
        (Packet.parse(unscramble(datagram)[1][4:]), destination)
        for datagram, destination in session.take(now)
    ]


def chunks(session, now=0.0):
    return [chunk for packet, _ in take(session, now) for chunk in packet.chunks]


def sent(pair, source, kind):
    """The times and destinations of the packets from `source` with such a chunk."""
    found = []
    for at, origin, destination, datagram in pair.link.sent:
        packet = Packet.parse(unscramble(datagram)[1][4:])
        if origin == source and any(isinstance(chunk, kind) for chunk in packet.chunks):
            found.append((round(at, 3), destination))
    return found


def test_a_ping_is_answered_at_once_and_unread():
    """Covers RFC 7016 §3.5.4 [ping-reply] [only-in-response].

    And §2.3.9 [answered-at-once], §2.3.10 [echo-unaltered].
    """
    far = Pair().far
    assert chunks(far) == []
    put(far, Ping(b"\x00anything"), Ping())
    assert chunks(far) == [PingReply(b"\x00anything"), PingReply()]
    put(far, PingReply(b"unasked"))
    assert chunks(far) == []


def test_pings_that_would_fill_the_memory_or_the_packet():
    """RFC 7016 §3.5.4: they are answered as far as there is room."""
    far = Pair().far
    put(far, *[Ping(b"%d" % number) for number in range(300)])
    assert len(chunks(far)) == 64
    put(far, Ping(bytes(1300)))
    assert chunks(far) == []
    put(far, Ping(bytes(1100)), Ping(bytes(1100)))
    assert len(take(far)) == 2


def test_silence_is_questioned_and_ends_the_session():
    """Covers RFC 7016 §3.5.4.1 [empty-message] [once-per-erto] [unanswered-backs-off]."""
    pair = Pair(limits=SessionLimits(keepalive=10.0, silence_timeout=60.0))
    pair.far_node.take = lambda: []
    pair.run(70.0)
    asked = [at for at, _ in sent(pair, NEAR, Ping)]
    gaps = [late - early for early, late in itertools.pairwise(asked)]
    assert asked[0] == 10.0
    assert gaps[0] == 3.0
    assert gaps[1] == pytest.approx(3.0 * 1.4142, abs=0.01)
    assert max(gaps) == 10.0
    assert pair.near_listener.closed == [(60.0, "the far end is silent")]
    assert chunks_of(pair, NEAR, Ping) == [Ping()] * len(asked)
    assert pair.near.deadline is None


def chunks_of(pair, source, kind):
    found = []
    for _, origin, _, datagram in pair.link.sent:
        packet = Packet.parse(unscramble(datagram)[1][4:])
        if origin == source:
            found += [chunk for chunk in packet.chunks if isinstance(chunk, kind)]
    return found


def test_answered_pings_keep_a_session_alive():
    """Covers RFC 7016 §3.5.4.1 [once-per-erto]."""
    pair = Pair(limits=SessionLimits(keepalive=10.0, silence_timeout=60.0))
    pair.run(500.0)
    assert (pair.near.state, pair.far.state) == (State.OPEN, State.OPEN)
    assert 45 <= len(sent(pair, NEAR, PingReply)) + len(sent(pair, FAR, PingReply)) <= 100
    assert pair.near.round_trip.erto < 1.0


def test_forged_and_misdirected_packets_are_counted():
    """Covers RFC 7016 §2.2.4 [initiator-ignores-1] [responder-ignores-2].

    And §2.2.3 [decrypted-by-session].  Packets of startup, damaged or without a header are none
    either.
    """
    pair = Pair()
    far = pair.far
    put(far, Ping(), mode=Mode.RESPONDER)
    far.receive(b"ours" + Packet(Mode.STARTUP, ()).encode(), NEAR, 0.0)
    far.receive(b"forged", NEAR, 0.0)
    far.receive(b"ours", NEAR, 0.0)
    far.receive(b"ours\x0d\x00\x00\x00", NEAR, 0.0)
    assert (far.invalid, chunks(far)) == (5, [])
    put(pair.near, Ping(), mode=Mode.INITIATOR, source=FAR)
    assert (pair.near.invalid, chunks(pair.near)) == (1, [])


def test_unknown_and_damaged_chunks_are_passed_by():
    """RFC 7016 §2.3: a peer in the field reports congestion marks as 0xEC."""
    far = Pair().far
    whole = Packet(Mode.INITIATOR, (UnknownChunk(0xEC, b"\x01\x02\x03"), OPENING, Ping())).encode()
    damaged = b"\x10\x00\x01\x80" + b"\x10\x00\x00" + b"\x11\x00\x00" + b"\x51\x00\x01\x80"
    far.receive(b"ours" + whole[:1] + damaged + whole[1:] + b"\xff\xff\xff\xff", NEAR, 0.0)
    assert far.recv_flows[1].metadata == b"m"
    assert PingReply() in chunks(far)


def test_what_follows_a_damaged_fragment_has_no_number():
    """RFC 7016 §2.3.12: it would be taken for the one that was damaged."""
    pair = Pair()
    whole = Packet(Mode.INITIATOR, (OPENING,)).encode()
    pair.far.receive(b"ours" + whole + b"\x11\x00\x00" + b"\x11\x00\x02\x00x", NEAR, 0.0)
    assert pair.far.recv_flows[1].seen.csn == 1


def test_hellos_come_and_go():
    """Covers RFC 7016 §2.3.3 [fihello-only-in]: a forwarder uses the sessions it has."""
    pair = Pair()
    hello = ForwardedInitiatorHello(b"epd", SocketAddress("203.0.113.9", 1), b"tag")
    startup = bytes((Mode.STARTUP,)) + encode_chunk(hello)
    pair.far.receive(b"ours" + startup, NEAR, 0.0)
    assert pair.far_listener.hellos == []
    pair.near.queue_chunk(hello)
    assert pair.woken == [pair.near]
    pair.run(1.0)
    assert pair.far_listener.hellos == [hello]


def test_packets_are_marked_with_the_role():
    """Covers RFC 7016 §2.2.4 [initiator-marks] [responder-marks]."""
    pair = Pair()
    pair.near.queue_chunk(Ping())
    pair.far.queue_chunk(Ping())
    assert take(pair.near)[0][0].mode is Mode.INITIATOR
    assert take(pair.far)[0][0].mode is Mode.RESPONDER


def test_real_time_data_elsewhere_is_told_and_heeded():
    """Covers RFC 7016 §3.5.2 [tcr-when-others]."""
    notices = TimeCritical()
    one, two = Pair(notices=notices), Pair(notices=notices)
    put(one.near, OPENING, mode=Mode.RESPONDER, source=FAR, time_critical=True)
    assert not take(one.near)[0][0].time_critical_reverse
    two.near.queue_chunk(Ping())
    assert take(two.near)[0][0].time_critical_reverse
    two.near.queue_chunk(Ping())
    assert not take(two.near, 0.9)[0][0].time_critical_reverse
    put(two.far, Ping(), now=1.0, time_critical_reverse=True)
    assert two.far.congestion.tcr_received == 1.0
    one.near.drop(1.0, "over")
    assert not notices.others(two.near, 0.1)


def test_a_new_address_is_verified_first():
    """Covers RFC 7016 §3.5.3 [verify-before-moving], §3.5.4.2 [check-new-address]
    [answer-moves]."""
    pair = Pair()
    far = pair.far
    put(far, Ping(), source=ELSEWHERE)
    packets = take(far)
    assert [(packet.chunks, where) for packet, where in packets][-1] == ((PingReply(),), NEAR)
    (question,), where = packets[0][0].chunks, packets[0][1]
    assert where == ELSEWHERE
    assert question.message.startswith(b"M")
    assert far.address == NEAR
    put(far, Ping(), source=ELSEWHERE, now=0.9)
    assert [where for _, where in take(far)] == [NEAR]
    put(far, PingReply(question.message), source=ELSEWHERE, now=0.95)
    assert far.address == ELSEWHERE
    assert pair.far_listener.moves == [(NEAR, ELSEWHERE)]
    put(far, PingReply(question.message), source=ELSEWHERE, now=1.0)
    assert pair.far_listener.moves == [(NEAR, ELSEWHERE)]
    put(far, Ping(), source=NEAR, now=2.0)
    assert NEAR in [where for _, where in take(far)]


@pytest.mark.parametrize("spoil", ["address", "byte", "age", "marking", "length", "replay"])
def test_what_proves_no_address(spoil):
    """Covers RFC 7016 §3.5.3 [verify-before-moving], §3.5.4.2 [answer-moves]."""
    far = Pair().far
    put(far, Ping(), source=ELSEWHERE, now=5.0)
    message = take(far)[0][0].chunks[0].message
    source, now = ELSEWHERE, 124.9
    if spoil == "address":
        source = ("203.0.113.9", 50001)
    elif spoil == "byte":
        message = message[:4] + bytes([message[4] ^ 1]) + message[5:]
    elif spoil == "age":
        now = 125.1
    elif spoil == "marking":
        message = b"N" + message[1:]
    elif spoil == "length":
        message += b"\0"
    elif spoil == "replay":
        put(far, Ping(), source=NEAR, now=6.5)
        put(far, Ping(), source=ELSEWHERE, now=7.0)
        newer = take(far)[0][0].chunks[0].message
        put(far, PingReply(newer), source=ELSEWHERE, now=8.0)
        far.address = NEAR
    put(far, PingReply(message), source=source, now=now)
    assert far.address == NEAR


def test_larger_datagrams_are_found():
    """Covers RFC 7016 §3.5.4.3 [discovers] [ping-after-padding], §3.6.2.2 [fits-the-path]."""
    largest = 1350
    calm = lambda data, source, destination: (0.02,) if len(data) <= largest else ()  # noqa: E731
    pair = Pair(calm, limits=SessionLimits(mtu_probes=(1280, 1350, 1400, 1452)))
    pair.run(30.0)
    sizes = [len(data) for _, source, _, data in pair.link.sent if source == NEAR]
    assert [size for size in sizes if size > 1192] == [1278, 1350, 1400, 1400, 1400]
    first = unscramble(pair.link.sent[0][3])[1][4:]
    assert first[3] == 0x00
    assert Packet.parse(first).chunks[-1].message.startswith(b"S")
    flow = pair.flow()
    flow.send(bytes(100_000), pair.now)
    pair.run(10.0)
    assert pair.heard().messages == [bytes(100_000)]
    assert max(len(data) for _, _, _, data in pair.link.sent[-100:]) in range(1300, 1351)


def test_an_orderly_close():
    """Covers RFC 7016 §3.5.5 [close-acknowledged] [close-ack-closes] [flows-end]."""
    pair = Pair()
    flow = pair.flow()
    flow.send(b"x", 0.0)
    pair.run(1.0)
    (arriving,) = pair.far.recv_flows.values()
    pair.near.close(pair.now, "enough")
    assert (pair.near.state, flow.state) == (State.NEARCLOSE, "F_CLOSED")
    with pytest.raises(LocalError):
        pair.flow()
    pair.run(0.1)
    assert (pair.near.state, pair.far.state) == (State.CLOSED, State.FARCLOSE_LINGER)
    assert dict(pair.far.recv_flows) == dict(pair.near.send_flows) == {}
    assert arriving.state is RecvState.CLOSED
    assert pair.near_listener.closed == [(1.0, "enough")]
    assert pair.far_listener.closed == [(1.02, "closed there")]
    assert pair.near.deadline is None
    pair.near.close(pair.now)
    pair.near.abort(pair.now)
    put(pair.near, SessionClose(), mode=Mode.RESPONDER, now=2.0)
    assert pair.near.take(2.0) == []


def test_a_close_is_repeated_for_90_seconds():
    """Covers RFC 7016 §3.5.5 [close-repeats] [nearclose-90]."""
    pair = Pair()
    pair.far_node.receive = lambda *_: None
    pair.near.close(0.0)
    pair.run(89.9)
    assert [at for at, _ in sent(pair, NEAR, SessionClose)] == [5.0 * at for at in range(18)]
    assert pair.near.state is State.NEARCLOSE
    pair.run(0.1)
    assert pair.near.state is State.CLOSED


def test_a_repeated_close_is_acknowledged_again():
    """Covers RFC 7016 §3.5.5 [close-acknowledged] [linger-19]."""
    pair = Pair()
    put(pair.far, OPENING)
    for _ in range(3):
        put(pair.far, SessionClose(), Ping(), OPENING)
        assert chunks(pair.far) == [SessionCloseAck()]
    assert pair.far.deadline == 19.0
    pair.far.tick(18.9)
    assert pair.far.state is State.FARCLOSE_LINGER
    pair.far.tick(19.0)
    assert pair.far.state is State.CLOSED


def test_closing_at_both_ends():
    """Covers RFC 7016 §3.5.5 [close-acknowledged] [close-ack-closes]."""
    pair = Pair()
    pair.near.close(0.0)
    pair.far.close(0.0)
    pair.run(1.0)
    assert (pair.near.state, pair.far.state) == (State.CLOSED, State.CLOSED)


def test_an_abrupt_close():
    """Covers RFC 7016 §3.5.5 [abrupt-close] [close-ack-closes]."""
    pair = Pair()
    pair.near.queue_chunk(Ping())
    pair.near.abort(0.0, "shutdown")
    assert pair.near.state is State.CLOSED
    pair.run(1.0)
    assert chunks_of(pair, NEAR, object) == [SessionCloseAck()]
    assert pair.far.state is State.CLOSED
    assert pair.far_listener.closed == [(0.02, "closed there")]
    assert pair.woken == [pair.near]
    pair = Pair()
    pair.near.queue_chunk(Ping())
    pair.near.drop(0.0, "overridden")
    assert pair.near.take(0.0) == []  # no chunk to say it by, so no last packet
    pair = Pair()
    put(pair.near, SessionClose(), mode=Mode.RESPONDER, now=0.0)
    pair.near.queue_chunk(Ping())
    [(packet, _)] = pair.near.take(0.0)  # a packet of both: it was not filled before
    assert len(Packet.parse(unscramble(packet)[1][4:]).chunks) == 2


def test_another_session_takes_its_place():
    """RFC 7016 §3.5, Figure 8: an override is not told to the far end."""
    pair = Pair()
    pair.near.drop(0.0, "overridden")
    assert pair.near.take(0.0) == []
    assert pair.near_listener.closed == [(0.0, "overridden")]
    pair.near.drop(0.0, "again")
    assert pair.near_listener.closed == [(0.0, "overridden")]


def test_a_user_may_close_within_its_callbacks():
    """Own design: a listener may close the session in any of its methods."""
    pair = Pair()
    pair.far_listener.setup = lambda flow: pair.far.close(pair.now)
    flow = pair.flow()
    for _ in range(5):
        flow.send(b"x" * 300, 0.0)
    pair.run(1.0)
    assert pair.near.state is not State.OPEN
    assert pair.far.state is State.CLOSED


def test_work_is_told_once():
    """Own design: so that the endpoint does not have to poll every session."""
    pair = Pair()
    flow = pair.flow()
    flow.send(b"a", 0.0)
    flow.send(b"b", 0.0)
    assert pair.woken == [pair.near]
    assert len(pair.near.take(0.0)) == 1
    assert pair.near.take(0.0) == []
    flow.send(b"c", 0.0)
    assert pair.woken == [pair.near] * 2


def test_the_session_id_is_the_far_ends():
    """RFC 7016 §2.2.2."""
    pair = Pair()
    pair.near.queue_chunk(Ping())
    ((datagram, _),) = pair.near.take(0.0)
    assert unscramble(datagram)[0] == 29
    assert datagram == scramble(29, PlainCipher().seal(Packet.parse(datagram[8:]).encode()))
