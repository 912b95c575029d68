"""Keys pressed on telephones are heard once each, in order, with their length, despite loss."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations

from p2psip.errors import LocalError, RemoteError
from p2psip.rtp.packet import RtpPacket
from p2psip.rtp.payload.dtmf import TelephoneEvent, parse_events
from p2psip.rtp.payload.event_receiver import EventBegan, EventEnded, EventReceiver
from p2psip.rtp.payload.event_sender import INTERVAL, MAX_QUEUED, EventPress, EventSender
from p2psip.strategies.rtp import telephone_events, words

RATE = 8000


def play(sender, start=0, until=1e9):
    """All packets of a sender, with their times; the sound goes on by the clock."""
    sent = []
    while sender.deadline is not None and sender.deadline < until:
        now = sender.deadline
        position = start + round(now * RATE) & 0xFFFFFFFF
        sent += [(now, *packet) for packet in sender.tick(now, position)]
    return sent


def hear(packets):
    """What a receiver tells of (now, timestamp, marker, payload), the wait at the end included."""
    receiver, told = EventReceiver(), []
    for now, timestamp, _, payload in packets:
        told += receiver.tick(now)
        told += receiver.heard(timestamp, payload, now)
    return told + receiver.tick(1e9)


presses = st.builds(
    EventPress,
    st.integers(0, 15),
    st.floats(0.04, 0.3) | st.sampled_from([8.2, 17.0]),
    st.integers(0, 63),
)


@given(st.lists(presses, max_size=5), words)
def test_what_is_pressed_is_heard(keys, start):
    """Covers RFC 4733 §2.5.1.2 [final-has-end] and §2.5.2.3
    [segments-without-gap-are-one-event]: over a link that loses nothing.
    """
    sender = EventSender(RATE)
    for key in keys:
        sender.press(key, 0.0)
    told = hear(play(sender, start))
    assert told[::2] == [EventBegan(key.event, key.volume) for key in keys]
    assert told[1::2] == [EventEnded(key.event, round(key.seconds * RATE), True) for key in keys]
    assert not sender.busy


@given(st.lists(presses, min_size=1, max_size=4), st.randoms(use_true_random=False), words)
def test_what_is_lost_is_never_heard_twice_nor_longer(keys, chance, start):
    """Covers RFC 4733 §2.5.2.2 [ended-is-not-restarted] [lengths-from-reports]."""
    sender = EventSender(RATE)
    for key in keys:
        sender.press(key, 0.0)
    sent = play(sender, start)
    lost = chance.choice([0.1, 0.5, 0.9])
    told = hear([packet for packet in sent if chance.random() > lost])
    began = [each for each in told if isinstance(each, EventBegan)]
    ended = [each for each in told if isinstance(each, EventEnded)]
    event(f"lost {lost}: {'all' if len(began) == len(keys) else 'some' if began else 'none'}")
    assert [each.event for each in began] == [each.event for each in ended]
    assert sum(each.duration for each in ended) <= sum(round(k.seconds * RATE) for k in keys)


def test_a_key_as_packets():
    """Covers RFC 4733 §2.5.1.2 [duration-grows] [no-end-meanwhile]
    [final-has-end] [constant-intervals], §2.5.1.4 [final-three-times] and §2.3.5
    [no-zero-duration].

    Covers RFC 4733 §2.5.1.2 [fifty-ms] and §2.5.1.4 [end-stays].
    """
    sender = EventSender(RATE)
    sender.press(EventPress(11, 0.12, 7), 0.0)
    read = [(now, at, marker, parse_events(data)[0]) for now, at, marker, data in play(sender, 99)]
    assert [(round(now, 2), at, marker) for now, at, marker, _ in read] == [
        (0.05, 99, True),
        *((now, 99, False) for now in (0.1, 0.15, 0.2, 0.25)),
    ]
    assert [report for *_, report in read] == [
        TelephoneEvent(11, 400, False, 7),
        TelephoneEvent(11, 800, False, 7),
        *[TelephoneEvent(11, 960, True, 7)] * 3,
    ]


def test_the_next_key_begins_anew():
    """Covers RFC 4733 §2.5.1.2 [reports-at-once] [first-has-marker]."""
    sender = EventSender(RATE)
    sender.press(EventPress(1, 0.12), 0.0)
    play(sender, 99)
    sender.press(EventPress(2, 0.12), 7.0)
    assert sender.tick(7.0, 5000) == []
    [(at, marker, data)] = sender.tick(7.05, 5000)
    assert (at, marker, *parse_events(data)) == (5000, True, TelephoneEvent(2, 400, False, 10))


def test_keys_that_a_stall_brings_together_are_heard_each():
    """Covers RFC 4733 §2.5.1.2: each has a timestamp of its own, also where audio stood still."""
    sender, position, now = EventSender(RATE), 0xFFFFFFF0, 0.0
    for _ in range(2):
        sender.press(EventPress(7, 0.06), 0.0)
    packets = []
    while sender.deadline is not None:
        now += 1.0
        packets += [(now, *packet) for packet in sender.tick(now, position)]
    assert hear(packets) == [EventBegan(7, 10), EventEnded(7, 480, True)] * 2
    assert {timestamp for _, timestamp, _, _ in packets} == {position, position + 480 & 0xFFFFFFFF}


def test_a_long_event_is_one_event_in_segments():
    """Covers RFC 4733 §2.5.1.3 [max-duration-without-end] [segment-begins-where-the-last-ended]
    [no-marker-on-segments] [last-segment-has-end] and §2.5.2.3
    [segments-without-gap-are-one-event].

    Covers RFC 4733 §2.5.1.3 [as-many-segments].
    """
    sender = EventSender(RATE)
    sender.press(EventPress(1, 20.0), 0.0)
    sent = play(sender, 0xFFFFFF00)
    starts = [0xFFFFFF00, 0xFFFFFF00 + 0xFFFF & 0xFFFFFFFF, 0xFFFFFF00 + 0x1FFFE & 0xFFFFFFFF]
    assert list(dict.fromkeys(at for _, at, _, _ in sent)) == starts
    assert [marker for _, _, marker, _ in sent] == [True] + [False] * (len(sent) - 1)
    finals = [(at, parse_events(data)[0]) for _, at, _, data in sent]
    for start in starts[:2]:
        assert [report for at, report in finals if at == start][-3:] == [
            TelephoneEvent(1, 0xFFFF)
        ] * 3
    assert [at for at, report in finals if report.end] == [starts[2]] * 3
    assert hear(sent) == [EventBegan(1, 10), EventEnded(1, 160000, True)]
    sender.press(EventPress(1, 0xFFFF / RATE), 100.0)
    assert len({at for _, at, _, _ in play(sender, 7)}) == 1  # just full
    # A segment whose last reports are lost ended where the next one begins.
    full = bytes(TelephoneEvent(1, 0xFFFF))
    assert hear([packet for packet in sent if packet[3] != full])[-1].duration == 160000


@pytest.mark.parametrize("first", [0, 1])
def test_a_timestamp_that_moves_with_each_report_makes_one_key(first):
    """Covers Field §"Events whose timestamp moves": a second press has a pause before it."""
    moving = [(n, 160 * n, TelephoneEvent(5, 160 * n)) for n in range(first, 6)]
    moving += [(n, 160 * n, TelephoneEvent(5, 800, end=True)) for n in range(6, 9)]
    again = [(n + 20, at + 3200, report) for n, at, report in moving]
    sent = [(n / 50, at, False, bytes(report)) for n, at, report in moving + again]
    told = hear(sent)
    assert told == [EventBegan(5, 10), EventEnded(5, 800, True)] * 2
    other = (6 / 50, 960, False, bytes(TelephoneEvent(7, 160)))
    assert [each.event for each in hear([*sent[:3], other])] == [5, 5, 7, 7]


def test_a_late_call_makes_one_report():
    """Covers RFC 4733 §2.5.1.2: of the true duration."""
    sender = EventSender(RATE)
    sender.press(EventPress(1, 1.0), 0.0)
    sender.tick(0.0, 0)
    [(_, _, data)] = sender.tick(0.73, 5840)
    assert parse_events(data)[0].duration == 5840
    assert sender.tick(0.73 + INTERVAL / 2, 0) == []


@pytest.mark.parametrize("late", [0.1, 0.4])
def test_a_key_that_is_told_of_late_is_seen_to_begin(late):
    """Covers RFC 4733 §2.5.1.2: a report without the end comes first; baresip 1.0 acts at it."""
    sender = EventSender(RATE)
    sender.press(EventPress(5, 0.1), 0.0)
    sender.tick(0.0, 99)
    sent = [(late, *packet) for packet in sender.tick(late, 99)] + play(sender, 99)
    assert [(at, marker) for _, at, marker, _ in sent] == [(99, True), *[(99, False)] * 3]
    reports = [parse_events(data)[0] for *_, data in sent]
    assert [(each.duration, each.end) for each in reports] == [(800, False), *[(800, True)] * 3]
    assert hear(sent) == [EventBegan(5, 10), EventEnded(5, 800, True)]


def test_no_more_is_sent_after_clear():
    """Own design: a call on hold or at its end sends no keys."""
    sender = EventSender(RATE)
    sender.press(EventPress(1), 0.0)
    sender.tick(0.0, 0)
    sender.clear()
    assert not sender.busy and sender.tick(5.0, 0) == []
    for _ in range(MAX_QUEUED):
        sender.press(EventPress(1), 5.0)
    with pytest.raises(LocalError):
        sender.press(EventPress(1), 5.0)


@pytest.mark.parametrize("wrong", [(256,), (-1,), (1, 0.0), (1, float("nan")), (1, 1.0, 64)])
def test_no_such_event(wrong):
    """Covers RFC 4733 §2.3.1 and §2.3.4."""
    with pytest.raises(LocalError):
        EventPress(*wrong)


@given(
    st.lists(
        st.tuples(
            words | st.integers(0, 3).map(lambda n: n * 0xFFFF),
            mutations(telephone_events().map(bytes)) | st.binary(max_size=20),
        ),
        max_size=20,
    )
)
def test_any_packets_make_events_that_begin_and_end(packets):
    """Covers RFC 4733 §2.5.2.2: whatever arrives, beginnings and ends take turns."""
    receiver, told = EventReceiver(), []
    for timestamp, payload in packets:
        try:
            told += receiver.heard(timestamp, payload, 0.0)
        except RemoteError:
            event("refused")
    told += receiver.tick(1.0)
    assert all(isinstance(each, EventBegan) for each in told[::2])
    assert all(isinstance(each, EventEnded) for each in told[1::2]) and len(told) % 2 == 0
    assert all(first.event == last.event for first, last in zip(told[::2], told[1::2], strict=True))


def test_zero_duration_is_no_event():
    """Covers RFC 4733 §2.3.5 [zero-duration-ignored]."""
    assert EventReceiver().heard(0, bytes(TelephoneEvent(1, 0)), 0.0) == []


def test_an_event_without_an_end_is_over_when_nothing_more_comes():
    """Covers RFC 4733 §2.5.2.2 [lengths-from-reports]: not by when the reports arrived."""
    receiver = EventReceiver()
    receiver.heard(0, bytes(TelephoneEvent(1, 400)), 0.0)
    assert receiver.heard(0, bytes(TelephoneEvent(1, 800)), 0.1) == []
    assert receiver.tick(0.2) == []
    assert receiver.tick(receiver.deadline) == [EventEnded(1, 800, False)]
    # RFC 4733 §2.5.2.2 [ended-is-not-restarted]
    assert receiver.heard(0, bytes(TelephoneEvent(1, 1200, True)), 0.5) == []


def test_several_events_in_one_packet():
    """Covers RFC 4733 §2.5.1.5 and §2.5.2.4: each begins where the one before it ended.

    Covers RFC 4733 §2.5.1.5 [timestamp-of-first].
    """
    payload = b"".join(bytes(TelephoneEvent.of(key, 400, end=True)) for key in "12")
    receiver = EventReceiver()
    told = receiver.heard(0xFFFFFFF0, payload, 0.0)
    assert [(type(each), each.digit) for each in told] == [
        (EventBegan, "1"), (EventEnded, "1"), (EventBegan, "2"), (EventEnded, "2"),
    ]  # fmt: skip
    assert receiver.heard(0xFFFFFFF0, payload, 0.0) == []
    assert receiver.heard(0xFFFFFFF0 + 400 & 0xFFFFFFFF, payload[4:], 0.0) == []  # again
    assert receiver.heard(0xFFFFFFF0 + 800 & 0xFFFFFFFF, payload[4:], 0.0) != []
    receiver = EventReceiver()
    assert len(receiver.heard(1000, payload, 0.0)) == 4
    assert receiver.heard(1400, payload[4:], 0.0) == []  # again
    assert receiver.heard(1800, payload[4:], 0.0) != []


def captured(datagrams, payload_type):
    """The digits that begin in a capture, and how many seconds each lasts at 8000 Hz."""
    packets = []
    for datagram in datagrams:
        packet = RtpPacket.parse(datagram.data)
        if packet.payload_type == payload_type:
            packets.append((datagram.time, packet.timestamp, packet.marker, packet.payload))
    told = hear(packets)
    return "".join(each.digit for each in told[::2]), [each.complete for each in told[1::2]]


@pytest.mark.parametrize(
    ("name", "digits"),
    [(f"dtmf_2833_{digit}", str(digit)) for digit in range(6)]
    + [(f"asterisk_{codec}_dtmf", "2013785496") for codec in ("ulaw", "opus")],
)
def test_captured_digits(capture, name, digits):
    """Covers RFC 4733 §2.5.2.2."""
    heard, complete = captured(capture(f"rtp/{name}.pcap"), 101)
    assert heard == digits and all(complete)


def test_a_digit_in_a_captured_call(capture):
    """Covers RFC 4733 §2.5.2.2, in a SIPp call that echoes the digit."""
    datagrams = [each for each in capture("sip/sipp_call_g711a_dtmf.pcap") if each.port == 21000]
    assert captured(datagrams, 101)[0] == "1"
