"""The pacer: no burst leaves, nothing of a file is lost, a live call does not stay late."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siprtmp.media.pacing import MAX_GAP, Pacer
from siprtmp.media.sink import DiscardPacer

PTIME = 0.02


def drain(pacer, until, now=0.0):
    """Everything sent by ticking at each deadline up to `until`, as (time, item)."""
    sent = []
    while pacer.deadline is not None and pacer.deadline <= until:
        now = max(now, pacer.deadline)
        sent += [(now, item) for item in pacer.tick(now)]
    return sent


def test_a_file_sent_at_once_leaves_at_the_packet_time():
    """Covers RFC 3551 §4.2."""
    pacer = Pacer()
    sent = [(0.0, item) for i in range(500) for item in pacer.put(i * PTIME, i, 0.0)]
    assert pacer.is_ahead
    sent += drain(pacer, until=11.0)
    assert [item for _, item in sent] == list(range(500)) and not pacer.dropped
    assert all(abs(b - a - PTIME) < 1e-6 for (a, _), (b, _) in pairwise(sent))


@given(st.lists(st.floats(0.0, 0.009), min_size=50, max_size=50))
def test_punctual_packets_meet_no_timer(jitter):
    """Own design: jitter below half a packet costs nothing."""
    pacer = Pacer()
    for i, late in enumerate(jitter):
        now = i * PTIME + late
        assert pacer.put(i * PTIME, i, now) == [i] and pacer.deadline is None


@given(st.lists(st.floats(0.0, 0.3), min_size=2, max_size=60), st.booleans())
def test_packets_leave_in_order_and_never_two_at_once(gaps, file_like):
    """RFC 3551 §4.2: whatever the arrival, the phone sees packets a packet time apart."""
    pacer, now, sent, taken = Pacer(), 0.0, [], 0
    for i, gap in enumerate(gaps):
        until = now + (0.0 if file_like else gap)
        sent += drain(pacer, until, now)
        now = until
        sent += [(now, item) for item in pacer.put(i * PTIME, i, now)]
        taken += 1
    sent += drain(pacer, now + 60.0, now)
    assert [item for _, item in sent] == sorted(item for _, item in sent)
    assert len(sent) + pacer.dropped == taken
    if file_like:
        assert not pacer.dropped
    assert all(b - a >= PTIME - pacer.early - 1e-6 for (a, _), (b, _) in pairwise(sent))


def play(pacer, arrivals):
    """Everything sent, as (time, item), when item i of media time i * PTIME comes at its time."""
    sent, now = [], 0.0
    for i, at in enumerate(arrivals):
        sent += drain(pacer, at, now)
        now = at
        sent += [(now, item) for item in pacer.put(i * PTIME, i, now)]
    return sent


@pytest.mark.parametrize("stall", [0.3, 1.0, 3.0])
def test_a_live_publisher_is_not_late_for_good_after_a_stall(stall):
    """Own design: what cannot be caught up with in a second is history."""
    pacer, missed = Pacer(), round(stall / PTIME)
    arrivals = [i * PTIME for i in range(100)]
    arrivals += [(100 + missed) * PTIME] * missed
    arrivals += [i * PTIME for i in range(100 + missed, 250 + missed)]
    sent = play(pacer, arrivals)
    assert bool(pacer.dropped) == (stall >= 1.0) and pacer.backlog <= 0.25
    late = [at - item * PTIME for at, item in sent]
    assert max(late[-50:]) <= 0.25 and not pacer.is_ahead
    assert [item for _, item in sent] == sorted(item for _, item in sent)


@pytest.mark.parametrize("stall", [0.1, 0.5, 2.0, 4.0])
@pytest.mark.parametrize("first", [1, 3])
def test_nothing_is_lost_of_a_file_whose_beginning_came_early(first, stall):
    """RFC 3551 §4.2: on a busy machine a file's second packet may come long after its first."""
    pacer, count = Pacer(), 500
    arrivals = [0.0] * first + [stall + 0.001 * i for i in range(count - first)]
    sent = play(pacer, arrivals)
    sent += drain(pacer, 60.0, arrivals[-1])
    assert [item for _, item in sent] == list(range(count)) and not pacer.dropped
    assert all(b - a >= PTIME - pacer.early - 1e-6 for (a, _), (b, _) in pairwise(sent))


def late_by(pacer, arrivals):
    """Play (media time, arrival) pairs; how long each packet waited."""
    came, waits = {}, []
    for i, (at, now) in enumerate(arrivals):
        waits += [due - came[item] for due, item in drain(pacer, now)]
        came[i] = now
        waits += [now - came[item] for item in pacer.put(at, i, now)]
    return waits


@pytest.mark.parametrize("late", [0.015, 0.05, 0.15])
def test_a_first_packet_that_was_late_makes_no_late_call(late):
    """Own design: nothing tells it from a punctual one but those that follow."""
    pacer = Pacer()
    waits = late_by(pacer, [(0.0, late), *((i * PTIME, i * PTIME) for i in range(1, 600))])
    assert not pacer.dropped and max(waits) < late + 1e-6
    assert max(waits[-20:]) <= pacer.early


def test_a_clock_that_is_a_little_fast_is_followed():
    """Own design: 100 ppm are 0.36 s in an hour, which would be heard, and then be waited for."""
    pacer = Pacer()
    waits = late_by(pacer, ((i * PTIME, i * PTIME * (1 - 100e-6)) for i in range(3 * 180_000)))
    assert not pacer.dropped and not pacer.is_ahead and max(waits) <= 2 * pacer.early


def test_a_clock_that_leaps_is_not_waited_for():
    """Own design: RTMP 1.0 §5.3.1.3 lets a publisher say any time, even next month."""
    pacer, leap = Pacer(), 2_000_000.0
    assert [pacer.put(i * PTIME, i, i * PTIME) for i in range(3)] == [[0], [1], [2]]
    sent = [(3 * PTIME, item) for item in pacer.put(leap, 3, 3 * PTIME)]
    sent += drain(pacer, 1.0, 3 * PTIME)
    assert [item for _, item in sent] == [3] and sent[0][0] <= 4 * PTIME
    assert pacer.put(leap + PTIME, 4, 4 * PTIME) + pacer.tick(5 * PTIME) == [4]


def test_a_real_silence_is_waited_for():
    """RFC 3551 §4.1: media time goes on while nothing is said."""
    pacer = Pacer()
    assert pacer.put(0.0, "before", 0.0) == ["before"]
    assert pacer.put(60.0, "after", 60.0) == ["after"]  # nobody's clock leapt
    assert pacer.put(65.0, "a file's", 60.0) == [] and pacer.deadline == pytest.approx(65.0)


def stalled(at, stalls):
    """When what is due at `at` is done by a loop that does nothing during `stalls`."""
    return next((end for begin, end in stalls if begin <= at < end), at)


def keep_up(stalls, seconds=60.0):
    """A live publisher at a loop with stalls: the pacer, and when each packet left."""
    pacer, sent, now = Pacer(), [], 0.0
    for i in range(int(seconds / PTIME)):
        arrival = stalled(i * PTIME, stalls)
        while pacer.deadline is not None and stalled(max(now, pacer.deadline), stalls) < arrival:
            now = stalled(max(now, pacer.deadline), stalls)
            sent += [(now, item) for item in pacer.tick(now)]
        now = max(now, arrival)
        sent += [(now, item) for item in pacer.put(i * PTIME, i, now)]
    sent += drain(pacer, now + 1.0, now)
    return pacer, sent


@pytest.mark.parametrize(
    ("stall", "gap"),
    [(stall, gap) for stall in (0.03, 0.05) for gap in (0.4, 0.55, 0.733, 1.0, 1.9)]
    + [(0.1, gap) for gap in (0.55, 0.733, 1.0, 1.9)],
)
@pytest.mark.parametrize("together", [1, 3])
def test_many_stalls_of_the_loop_do_not_add_up(stall, gap, together):
    """RFC 3551 §4.2: within a minute, evenly or several at once; nothing is dropped."""
    begins = [
        turn * gap * together + 0.2 * k + 0.0131
        for turn in range(int(55.0 / gap / together))
        for k in range(together)
    ]
    pacer, sent = keep_up([(begin, begin + stall) for begin in begins])
    assert pacer.dropped == 0 and [item for _, item in sent] == list(range(3000))
    assert all(a < b for (a, _), (b, _) in pairwise(sent))
    assert max(at - item * PTIME for at, item in sent) < 0.4
    assert max(at - item * PTIME for at, item in sent[-50:]) < 0.15


@pytest.mark.parametrize("stall", [0.05, 0.1])
def test_a_stall_is_caught_up_with_within_seconds(stall):
    """Own design: by a twentieth of the time that passes."""
    pacer, sent = keep_up([(1.0131, 1.0131 + stall)], seconds=10.0)
    late = [at - item * PTIME for at, item in sent]
    assert pacer.dropped == 0 and max(late) < stall + 2 * PTIME
    recovered = next(at for at, item in sent if at > 1.2 and at - item * PTIME <= pacer.early)
    assert recovered < 1.2 + 20 * stall + 0.5


class Held:
    """A publisher that can be told to wait, and the void it plays into."""

    def __init__(self):
        self.waits, self.woken = False, 0
        self.void = DiscardPacer(self.hold, lambda pacer: self)

    def hold(self, waits):
        assert waits != self.waits
        self.waits = waits

    def set(self):
        self.woken += 1

    def cancel(self):
        """Nothing waits here by itself."""


@given(st.lists(st.tuples(st.floats(0.0, 0.2), st.integers(0, (1 << 32) - 1)), max_size=60))
def test_the_void_never_holds_anybody_for_long(messages):
    """Own design: whatever times a publisher says, it is read again within MAX_GAP."""
    held, now = Held(), 0.0
    for gap, at in messages:
        now += gap
        held.void.tick(now)
        if not held.waits:
            held.void.put(at / 1000, now)
        assert held.waits == (held.void.deadline is not None)
        assert held.void.deadline is None or held.void.deadline <= now + MAX_GAP
    held.void.stop()
    assert not held.waits and held.void.deadline is None


def test_a_file_takes_its_time_in_the_void_and_a_live_source_no_timer():
    """Own design: ten seconds of a file last about ten, ten seconds live are never held."""
    file, live, now = Held(), Held(), 0.0
    for i in range(500):
        while file.waits:
            now = file.void.deadline
            file.void.tick(now)
        file.void.put(i * PTIME, now)
        live.void.put(i * PTIME, i * PTIME + (i % 7) * 0.005)
    assert 9.0 < now < 10.0 and file.woken < 60
    assert not live.woken


def test_a_stall_does_not_make_a_call_late_for_good():
    """Nothing is lost of what came late, and a few seconds on nothing has to wait any more."""
    pacer, sent, now = Pacer(), [], 0.0
    waits = []
    for number in range(600):
        now = 0.02 * number
        if 100 <= number < 105:
            continue  # the network holds back five packets ...
        late = range(100, 106) if number == 105 else (number,)  # ... and then brings them all
        for each in late:
            sent += pacer.put(0.02 * each, each, now)
        while pacer.deadline is not None and pacer.deadline < now + 0.02:
            sent += pacer.tick(pacer.deadline)
        waits.append(pacer.deadline is not None)
    assert sent == list(range(600)) and pacer.dropped == 0
    assert any(waits[100:200]) and not any(waits[-100:])
