"""Sessions of RTWebSocket: flows, acknowledgements, what is urgent and what is too late."""

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.rtws import Listener, RtwsPair

from rtmplite.errors import LocalError
from rtmplite.rtmfp.session.flow_states import RecvState, SendState
from rtmplite.rtmfp.session.limits import SessionBudget, SessionLimits
from rtmplite.rtmfp.session.send_flow import Priority
from rtmplite.rtws.frames import (
    Abandon,
    AckWindow,
    Data,
    DataAck,
    FlowClose,
    FlowOpen,
    FlowRejection,
    LifeSign,
    parse_frame,
)
from rtmplite.rtws.session import RtwsSession
from rtmplite.strategies import rtws as strategies

LONG = bytes(range(256)) * 100


def frames(pair, kind, side=1):
    """The frames of a kind that a side has got."""
    read = [parse_frame(each) for each in pair.link.log[side]]
    return [each for each in read if isinstance(each, kind)]


def alone(**limits):
    """A session whose far end the test plays."""
    return RtwsSession(("192.0.2.9", 80), 0.0, Listener(), SessionLimits(**limits))


def given_frames(session, *given, now=0.0):
    """Give frames, and read the answers."""
    for each in given:
        session.receive(bytes(each), now)
    return [parse_frame(each) for each in session.take(now)]


def test_messages_arrive_whole_and_in_order():
    """Covers Field §"RTWebSocket flows" [parts-then-last]."""
    pair = RtwsPair()
    flow = pair.flow()
    for message in (b"one", b"", LONG, b"four"):
        flow.send(message, pair.now)
    assert flow.queued == len(LONG) + 7 and flow.has_entries
    pair.run()
    assert pair.heard().messages == [b"one", b"", LONG, b"four"]
    assert flow.queued == 0 and not flow.has_entries and pair.b.buffered == 0
    assert flow.sender.writable > 0
    parts = frames(pair, Data)
    assert all(len(each.data) <= 1400 for each in parts)
    assert [each.more for each in parts[2:]] == [True] * (len(LONG) // 1400) + [False, False]


def test_a_flow_that_returns_names_the_one_it_answers():
    pair = RtwsPair()
    first = pair.flow(b"first")
    first.send(b"question", pair.now)
    pair.run()
    asked = pair.listeners[1].flows[b"first"]
    answer = pair.b.open_flow(b"back", pair.now, associated=asked, sender=first.sender)
    answer.send(b"answer", pair.now)
    pair.run()
    assert pair.listeners[0].flows[b"back"].associated is first


@pytest.mark.parametrize("answers", [7, None])
def test_a_flow_that_answers_nothing_is_rejected(answers):
    """Covers Field §"RTWebSocket flows" [answers-what-is-open]: or one that has been closed."""
    pair = RtwsPair()
    first = pair.flow(b"first")
    pair.run()
    number = first.flow_id if answers is None else answers
    first.close(pair.now)
    pair.a.receive(bytes(FlowOpen(3, b"back", number)), pair.now)
    assert b"back" not in pair.listeners[0].flows
    assert bytes(FlowRejection(3, 0)) in pair.a.take(pair.now)


def test_who_is_not_wanted_is_told():
    """Covers Field §"RTWebSocket flows" [exception-closes] [close-is-acknowledged]."""
    pair = RtwsPair()
    pair.listeners[1].refuse = True
    flow = pair.flow()
    for _ in range(100):
        flow.send(bytes(1000), pair.now)
    pair.run()
    assert flow.sender.exceptions == [0] and flow.state is SendState.CLOSED
    assert flow.refused > 0 and flow.queued == 0 and flow.sender.complete == 1
    assert frames(pair, Abandon) == [Abandon(flow.flow_id, frames(pair, Abandon)[0].count)]
    assert not pair.listeners[1].receivers and pair.a.is_open and pair.b.is_open
    with pytest.raises(LocalError):
        flow.send(b"more", pair.now)


def test_the_end_comes_behind_everything():
    """Covers Field §"RTWebSocket flows" [closes-behind-all] [close-is-acknowledged]."""
    pair = RtwsPair()
    flow = pair.flow()
    flow.send(LONG, pair.now)
    flow.close(pair.now)
    assert flow.state is SendState.CLOSING
    pair.run()
    heard = pair.heard()
    assert (heard.messages, heard.complete) == ([LONG], 1)
    assert flow.state is SendState.CLOSED and flow.sender.complete == 1
    assert isinstance(parse_frame(pair.link.log[1][-1]), FlowClose)
    said = [parse_frame(each) for each in pair.link.log[0]]
    assert isinstance(said[-2], DataAck) and said[-1] == FlowClose(flow.flow_id, is_ack=True)
    assert pair.a.queued == 0 and pair.a.memory == pair.b.memory == 0


def test_what_is_late_is_abandoned():
    """Covers Field §"RTWebSocket flows" [abandons]: wholly, or when a part of it is on its way."""
    pair = RtwsPair()
    flow = pair.flow()
    pair.run()
    pair.link.held = True
    kept = flow.send(bytes(65536), pair.now)
    torn = flow.send(bytes(65000), pair.now, lifetime=0.5)
    lost = flow.send(b"late", pair.now, lifetime=0.5)
    assert not torn.abandoned
    pair.run()
    pair.link.held = False
    pair.run()
    flow.send(b"last", pair.now)
    pair.run()
    assert [len(each) for each in pair.heard().messages] == [65536, 4]
    assert torn.abandoned and lost.abandoned and not kept.abandoned
    assert frames(pair, Abandon) == [Abandon(flow.flow_id, 2)]
    assert pair.b.buffered == 0 and flow.queued == 0


def test_a_torn_message_is_forgotten():
    """Covers Field §"RTWebSocket flows" [abandons]."""
    session = alone()
    given_frames(session, FlowOpen(1, b"f"), Data(1, b"torn", more=True), Abandon(1), Data(1, b"x"))
    assert session.listener.receivers[b"f"].messages == [b"x"]
    assert session.buffered == 0


def test_the_urgent_goes_first_and_equals_in_turn():
    """Covers Field §"RTWebSocket flows" [urgent-first]."""
    pair = RtwsPair()
    bulk, second = pair.flow(b"bulk"), pair.flow(b"second")
    urgent = pair.flow(b"urgent", priority=Priority.IMMEDIATE)
    for flow in (bulk, second, urgent):
        flow.send(bytes(4200), pair.now)
    pair.run()
    order = [each.flow_id for each in frames(pair, Data)]
    assert order == [urgent.flow_id] * 3 + [bulk.flow_id, second.flow_id] * 3


def test_the_window_is_obeyed():
    """Covers Field §"RTWebSocket acknowledgements" [window-obeyed].

    Covers Field §"RTWebSocket acknowledgements" [window-beyond-the-acknowledged].
    """
    session = alone()
    flow = session.open_flow(b"f", 0.0, sender=RtwsPair().flow().sender)
    flow.send(bytes(100_000), 0.0)
    sent = sum(len(each) for each in session.take(0.0) if each[0] in (0x1D, 0x3D))
    assert 65536 <= sent < 65536 + 4
    assert given_frames(session, DataAck(flow.flow_id, 1000, sent - 1000)) == []
    answers = given_frames(session, DataAck(flow.flow_id, 0, sent - 900))
    assert [len(each.data) for each in answers if isinstance(each, Data)] == [100]


def test_more_acknowledged_than_sent_ends_it():
    session = alone()
    flow = session.open_flow(b"f", 0.0, sender=RtwsPair().flow().sender)
    given_frames(session, DataAck(flow.flow_id, 1, 65536))
    assert not session.is_open and "1 bytes acknowledged of 0" in session.reason


def test_acknowledgements():
    """Covers Field §"RTWebSocket acknowledgements" [at-once-on-open] [within-250-ms] [all-at-once].

    Covers Field §"RTWebSocket acknowledgements" [count-with-headers].
    """
    session = alone(buffer_bytes=1 << 20)
    assert given_frames(session, FlowOpen(1, b"1"), FlowOpen(2, b"2")) == [
        DataAck(1, 0, 1 << 20),
        DataAck(2, 0, 1 << 20),
    ]
    assert given_frames(session, Data(1, b"abc"), Data(2, b"de"), now=1.0) == []
    assert 1.0 < session.deadline <= 1.25
    answers = [parse_frame(each) for each in session.take(session.deadline)]
    assert answers == [DataAck(1, 5, 1 << 20), DataAck(2, 4, 1 << 20)]
    assert session.take(session.deadline) == []


def test_the_sender_says_how_often_to_acknowledge():
    """Covers Field §"RTWebSocket acknowledgements" [window-of-acks]."""
    session = alone()
    given_frames(session, FlowOpen(1, b"1"))
    assert given_frames(session, Data(1, bytes(2797))) == []  # 2,799 with its header
    assert [each.count for each in given_frames(session, Data(1, b""))] == [2801]
    given_frames(session, AckWindow(5000))
    assert given_frames(session, Data(1, bytes(4900))) == []
    assert [each.count for each in given_frames(session, Data(1, bytes(200)))] == [5104]
    given_frames(session, AckWindow(1))  # never less than two packets
    assert given_frames(session, Data(1, bytes(2000))) == []


def test_half_a_window_is_acknowledged():
    """Covers Field §"RTWebSocket acknowledgements" [half-window]."""
    session = alone(buffer_bytes=1000)
    given_frames(session, FlowOpen(1, b"1"))
    assert given_frames(session, Data(1, bytes(400))) == []
    assert [each.count for each in given_frames(session, Data(1, bytes(100)))] == [504]


def test_what_is_kept_narrows_the_window():
    """Covers Field §"RTWebSocket acknowledgements" [waiting-narrows-the-window]."""
    pair = RtwsPair(SessionLimits(buffer_bytes=10_000))
    flow = pair.flow()
    pair.run()
    held = pair.listeners[1].flows[b"flow"]
    held.suspend()
    for number in range(60):
        flow.send(bytes([number]) * 1000, pair.now)
    pair.run()
    assert pair.heard().messages == [] and 0 < pair.b.buffered <= 22_000
    assert frames(pair, DataAck, 0)[-1].window < 1100
    held.resume(pair.now)
    pair.run()
    assert [each[0] for each in pair.heard().messages] == list(range(60))


def test_a_flow_that_ends_while_it_waits_is_delivered_later():
    pair = RtwsPair()
    flow = pair.flow()
    pair.run()
    held = pair.listeners[1].flows[b"flow"]
    held.suspend()
    flow.send(b"kept", pair.now)
    flow.close(pair.now)
    pair.run()
    assert pair.heard().messages == [] and held.state is RecvState.COMPLETE_LINGER
    held.resume(pair.now)
    assert (pair.heard().messages, pair.heard().complete) == ([b"kept"], 1)
    assert pair.b.buffered == 0


def test_pings_are_answered_the_last_one_alone():
    """Covers Field §"RTWebSocket frames" [ping-is-answered]."""
    session = alone()
    assert given_frames(session, LifeSign(b"1"), LifeSign(b"2")) == [LifeSign(b"2", is_reply=True)]


def test_a_silent_far_end_is_asked_and_then_given_up():
    pair = RtwsPair()
    pair.run(30)
    assert LifeSign() in frames(pair, LifeSign) and pair.a.is_open
    pair.link.held = True
    pair.run(200)
    assert (
        not pair.a.is_open and pair.listeners[0].closed[0][1] == "no packet has come for too long"
    ) or (pair.a.reason)


@pytest.mark.parametrize("delay", [0.02, 0.1])
def test_the_path_is_filled_and_no_more(delay):
    """Covers Field §"RTWebSocket pace" [path-plus-a-little] [asks-for-acks].

    10 Mb/s: after a while, what is sent arrives 50 ms later at the most.  200 ms there and back
    need five times what may always be on its way.
    """
    pair = RtwsPair(delay=delay, rate=1_250_000)
    flow = pair.flow()
    for _ in range(200):
        flow.send(bytes(50_000), pair.now)
    pair.run(2.0)  # a few round trips tell what the path takes
    before = len(pair.heard().messages)
    pair.run(3.0)
    bulk = len(pair.heard().messages) - before
    assert bulk * 50_000 > 0.8 * 3 * 1_250_000
    urgent = pair.flow(b"urgent", priority=Priority.IMMEDIATE)
    urgent.send(b"now", pair.now)
    begun = pair.now
    pair.run(1.0)
    assert pair.heard(b"urgent").times[0] - begun < delay + 0.06
    sizes = [each.size for each in frames(pair, AckWindow)]
    assert sizes[0] == 2800 and max(sizes) == 11200


def test_a_slow_path_has_64_kilobytes_on_its_way():
    """Covers Field §"RTWebSocket pace" [path-plus-a-little]."""
    pair = RtwsPair(delay=0.02, rate=20_000)
    flow = pair.flow()
    flow.send(bytes(1 << 20), pair.now)
    pair.run(10.0)
    assert sum(len(frame) for _, frame in pair.link.ways[1]) <= 65536 + 1403 + 20


BREACHES = [
    (FlowOpen(1, b"x"),),  # open already
    (Data(9, b"x"),),
    (Abandon(9),),
    (FlowClose(9),),
    (DataAck(9, 0, 0),),
    (FlowClose(9, is_ack=True),),
    (FlowRejection(9),),
]


@pytest.mark.parametrize("breach", BREACHES, ids=lambda each: type(each[0]).__name__)
def test_what_breaks_the_rules_ends_the_session(breach):
    """Covers Field §"RTWebSocket flows" [identifier-in-use]."""
    session = alone()
    given_frames(session, FlowOpen(1, b"f"))
    assert session.is_open
    assert given_frames(session, *breach) == []
    assert not session.is_open and session.listener.closed == [(0.0, session.reason)]
    with pytest.raises(LocalError):
        session.open_flow(b"f", 0.0, sender=None)


def test_an_open_flow_is_not_acknowledged_as_closed():
    session = alone()
    flow = session.open_flow(b"f", 0.0, sender=None)
    given_frames(session, FlowClose(flow.flow_id, is_ack=True))
    assert not session.is_open


def test_limits():
    """Flows, metadata, messages, memory and answers that nobody reads."""
    session = alone(flows=3)
    given_frames(session, *(FlowOpen(number, b"f") for number in range(4)))
    assert session.reason == "too many flows"
    session = alone(metadata_bytes=10)
    assert FlowRejection(1, 0) in given_frames(session, FlowOpen(1, bytes(11)))
    assert not session.listener.flows and session.is_open
    session = alone(message_bytes=1000)
    open_one = FlowOpen(1, b"f"), *[Data(1, bytes(600), more=True)] * 2
    assert FlowRejection(1, 0) in given_frames(session, *open_one)
    assert session.listener.receivers[b"f"].exceptions == 1 and session.buffered == 0
    given_frames(session, Data(1, bytes(600)))  # what was on its way
    assert session.is_open and session.listener.receivers[b"f"].messages == []
    session = alone(session_buffer_bytes=5000)
    given_frames(session, FlowOpen(1, b"f"))
    session.listener.flows[b"f"].suspend()
    given_frames(session, *[Data(1, bytes(1000))] * 5)
    assert session.reason == "more than there is room for" and session.buffered == 0
    session = alone()
    for _ in range(2049):
        session.receive(bytes(FlowOpen(1, b"f")), 0.0)
        session.receive(bytes(FlowClose(1)), 0.0)
    assert session.reason == "answers that it does not read"


def test_memory_is_counted_for_all_sessions():
    budget = SessionBudget(100_000)
    session = RtwsSession(("192.0.2.9", 80), 0.0, Listener(), SessionLimits(), budget)
    budget.add(session)
    given_frames(session, FlowOpen(1, b"f"))
    session.listener.flows[b"f"].suspend()
    given_frames(session, *[Data(1, bytes(1300))] * 100)
    budget.count(session)
    assert budget.used == session.memory > 130_000
    assert budget.excess(0.0) == [session]
    session.abort(0.0, "too much memory")
    assert session.listener.closed == [(0.0, "too much memory")]


@given(st.lists(strategies.small_frames(), max_size=40))
@settings(max_examples=200)
def test_no_frames_of_a_stranger_break_it(given):
    """Whatever comes, it goes on or is closed; what it holds is counted, and no more is held."""
    session = alone()
    session.open_flow(b"ours", 0.0, sender=RtwsPair().flow().sender).send(bytes(3000), 0.0)
    for number, frame in enumerate(given):
        session.receive(bytes(frame), number * 0.1)
        session.take(number * 0.1)
        session.tick(number * 0.1)
    event("open" if session.is_open else session.reason.split()[0])
    assert session.buffered == 0 or session.is_open
    assert session.buffered <= sum(len(bytes(each)) + 200 for each in given)
    assert session.is_open or len(session.listener.closed) == 1


class Conversation(RuleBasedStateMachine):
    """Flows come and go both ways; all that is sent and not abandoned arrives, in order, once."""

    def __init__(self):
        super().__init__()
        self.pair = RtwsPair(SessionLimits(buffer_bytes=4000), delay=0.03, rate=300_000)
        self.sent, self.flows, self.mortal, self.count = {}, {}, {}, 0

    @rule(side=st.integers(0, 1), priority=st.sampled_from(Priority))
    def open(self, side, priority):
        if len(self.flows) < 6:
            name = b"%d" % len(self.flows)
            session = (self.pair.a, self.pair.b)[side]
            sender = RtwsPair().flow().sender
            self.flows[name] = (
                session.open_flow(name, self.pair.now, sender=sender, priority=priority),
                self.pair.listeners[1 - side],
            )
            self.sent[name], self.mortal[name] = [], []

    @rule(data=st.data(), size=st.sampled_from([0, 5, 1400, 1401, 9000]), late=st.booleans())
    def send(self, data, size, late):
        open_ones = [name for name, (flow, _) in self.flows.items() if flow.state == "F_OPEN"]
        if open_ones:
            name = data.draw(st.sampled_from(open_ones))
            self.count += 1
            message = self.count.to_bytes(4) + bytes(size)
            out = self.flows[name][0].send(message, self.pair.now, lifetime=0.05 if late else None)
            self.sent[name].append((message, out))

    @rule(seconds=st.sampled_from([0.0, 0.02, 0.3]))
    def wait(self, seconds):
        self.pair.run(seconds)

    @rule(data=st.data(), is_held=st.booleans())
    def hold(self, data, is_held):
        heard = [flow for each in self.pair.listeners for flow in each.flows.values()]
        if heard:
            flow = data.draw(st.sampled_from(heard))
            flow.suspend() if is_held else flow.resume(self.pair.now)

    @rule(data=st.data())
    def close(self, data):
        if self.flows:
            self.flows[data.draw(st.sampled_from(sorted(self.flows)))][0].close(self.pair.now)

    @invariant()
    def nothing_comes_twice_or_out_of_turn(self):
        assert self.pair.a.is_open and self.pair.b.is_open
        for name, (_, listener) in self.flows.items():
            if name in listener.receivers:
                heard = listener.receivers[name].messages
                sent = iter([message for message, _ in self.sent[name]])
                assert all(each in sent for each in heard)

    def teardown(self):
        for each in self.pair.listeners:
            for flow in each.flows.values():
                flow.resume(self.pair.now)
        self.pair.run(20)
        for each in self.pair.listeners:
            for flow in each.flows.values():
                flow.resume(self.pair.now)
        for name, (flow, listener) in self.flows.items():
            whole = [message for message, out in self.sent[name] if not out.abandoned]
            heard = listener.receivers[name].messages if name in listener.receivers else []
            assert heard == whole and flow.queued == 0
        assert self.pair.a.buffered == self.pair.b.buffered == 0


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=40, stateful_step_count=30)
