"""A conference: each hears the sum of all others, in time, whatever the jitter."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from siprtmp.media.mixer import BLOCK, LIMIT, PREFILL, SECONDS, SILENCE, Mixer


class Table:
    """A mixer and what each of its seats has heard."""

    def __init__(self, seats=0):
        self.mixer, self.now, self.heard, self.seats = Mixer(), 0.0, [], []
        for _ in range(seats):
            self.sit()

    def sit(self):
        heard = []
        self.heard.append(heard)
        hear = lambda sound, at, now: heard.append((at, sound))  # noqa: E731
        self.seats.append(self.mixer.sit(hear, self.now))
        return self.seats[-1]

    def say(self, *levels, blocks=1):
        """Each seat says a level for some blocks; None is nothing at all."""
        for seat, level in zip(self.seats, levels, strict=True):
            if level is not None:
                seat.put(array("h", [level] * (BLOCK * blocks)))

    def run(self, blocks=1):
        for _ in range(blocks):
            self.now = self.mixer.deadline
            self.mixer.tick(self.now)

    def levels(self, seat):
        return [sound.samples[0] for _, sound in self.heard[seat]]


@given(st.lists(st.integers(-32768, 32767), min_size=2, max_size=9))
def test_each_hears_the_others_and_not_itself(levels):
    """Own design: silence is not added, and what is too loud is cut off."""
    table = Table(len(levels))
    table.say(*levels, blocks=3)
    table.run()
    said = [level if abs(level) >= 64 else 0 for level in levels]
    for seat, own in enumerate(said):
        assert table.levels(seat) == [max(-32768, min(32767, sum(said) - own))]


def test_listeners_share_one_block_that_is_encoded_once():
    table = Table(4)
    table.say(1000, None, None, None, blocks=3)
    table.run()
    (own,), *others = [[sound for _, sound in heard] for heard in table.heard]
    assert own is SILENCE
    assert len({id(sound) for (sound,) in others}) == 1
    assert others[0][0].ulaw is others[1][0].ulaw and len(others[0][0].ulaw) == BLOCK


def test_sound_waits_a_little_and_then_jitter_is_not_heard():
    table = Table(2)
    for number in range(1, 41):
        if number % 4 == 0:
            table.say(number * 100, None, blocks=4)  # what is late comes together
        table.run()
    heard = table.levels(1)
    first = next(at for at, level in enumerate(heard) if level)
    assert first <= 4 and 0 not in heard[first:]
    assert [at for at, _ in table.heard[1]] == [20 * number for number in range(40)]


def test_a_silent_talker_makes_no_noise_and_its_lag_goes():
    """Own design: a clock that is fast is caught up in pauses."""
    table = Table(2)
    table.say(1, None, blocks=20)
    table.run(3)
    assert table.levels(1) == [0, 0, 0]
    assert len(table.seats[0]._queue) < 10 * BLOCK


def test_a_flood_is_bounded():
    table = Table(2)
    for _ in range(100):
        table.say(500, None, blocks=10)
    assert len(table.seats[0]._queue) <= LIMIT * BLOCK
    table.run(2)
    assert table.levels(1) == [500, 500]


def test_a_stall_is_left_out_and_short_ones_are_caught_up():
    table = Table(1)
    table.mixer.tick(0.1)
    assert [at for at, _ in table.heard[0]] == [0, 20, 40, 60, 80]
    table.mixer.tick(10.0)
    assert [at for at, _ in table.heard[0]][5:] == [9980]
    assert table.mixer.deadline == pytest.approx(10.02)
    assert table.mixer.clock(10.01) == pytest.approx(9990, abs=1)


def test_a_seat_that_is_left_hears_no_more_and_the_last_one_stops_the_clock():
    table = Table(2)
    table.run()
    for seat in (*table.seats, table.seats[0]):
        seat.leave()
    assert table.mixer.deadline is None
    table.mixer.tick(5.0)
    assert [len(heard) for heard in table.heard] == [1, 1]
    assert table.sit() and table.mixer.deadline == pytest.approx(table.now + SECONDS)


def test_the_speaker_is_who_is_the_loudest_for_a_while():
    table = Table(3)
    assert table.mixer.speaker is None
    for first, second in ((500, 2000), (8000, 2000)):
        for _ in range(60):
            table.say(first, second, None)
            table.run()
    assert table.mixer.speaker is table.seats[0]
    table.say(8000, 30000, None)
    table.run()
    assert table.mixer.speaker is table.seats[0]  # one loud noise changes nothing
    table.run(400)
    assert table.mixer.speaker is None


def test_who_leaves_while_the_others_are_told_disturbs_nobody():
    table = Table(2)
    table.mixer.seats[0].hear = lambda *_: table.seats[1].leave()
    table.say(500, 600, blocks=3)
    table.run()
    assert table.mixer.seats == [table.seats[0]] and PREFILL
