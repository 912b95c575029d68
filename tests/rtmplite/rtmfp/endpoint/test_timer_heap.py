"""Alarms: each machine is called when it is due, however its deadline has moved."""

from hypothesis import given
from hypothesis import strategies as st

from rtmplite.rtmfp.endpoint.session_table import TimerHeap


class Machine:
    def __init__(self, deadline=None):
        self.deadline = deadline
        self.ticks = []

    def tick(self, now):
        self.ticks.append(now)
        self.deadline = None


def test_the_earliest_comes_first():
    """Own design: a machine without a deadline is not called."""
    schedule, machines = TimerHeap(), [Machine(3.0), Machine(1.0), Machine(), Machine(2.0)]
    for machine in machines:
        schedule.plan(machine)
    assert schedule.deadline == 1.0
    assert list(schedule.due(2.0)) == [machines[1], machines[3]]
    assert schedule.deadline == 3.0
    assert len(schedule) == 1


def test_a_deadline_that_moves_away_is_noticed_when_it_comes():
    """Own design: until then nothing need be told."""
    schedule, machine = TimerHeap(), Machine(1.0)
    schedule.plan(machine)
    machine.deadline = 5.0
    assert schedule.deadline == 1.0
    assert list(schedule.due(1.0)) == []
    assert schedule.deadline == 5.0


def test_a_deadline_that_comes_nearer_must_be_told():
    """Own design: and the old time means nothing then."""
    schedule, machine = TimerHeap(), Machine(5.0)
    schedule.plan(machine)
    machine.deadline = 1.0
    schedule.plan(machine)
    assert list(schedule.due(1.0)) == [machine]
    machine.deadline = 9.0
    schedule.plan(machine)
    assert list(schedule.due(5.0)) == []
    assert schedule.deadline == 9.0


def test_who_is_forgotten_is_not_called():
    """Own design: its entry goes unheard."""
    schedule, gone, other = TimerHeap(), Machine(1.0), Machine(2.0)
    schedule.plan(gone)
    schedule.plan(other)
    schedule.forget(gone)
    schedule.forget(Machine(3.0))
    assert schedule.deadline == 2.0
    assert list(schedule.due(3.0)) == [other]
    assert schedule.deadline is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 20)), max_size=60))
def test_nobody_is_late(steps):
    """Own design: whatever is planned and moved, who is due is called."""
    schedule, machines = TimerHeap(), [Machine() for _ in range(5)]
    now = 0.0
    for number, ahead in steps:
        machines[number].deadline = now + ahead
        schedule.plan(machines[number])
        now += 1.0
        for machine in schedule.due(now):
            assert machine.deadline <= now
            machine.tick(now)
            schedule.plan(machine)
        assert all(machine.deadline is None or machine.deadline > now for machine in machines)


def test_old_entries_do_not_pile_up():
    """Own design: a session is planned with every packet, its keep-alive lies far ahead."""
    schedule, machine = TimerHeap(), Machine(1e9)
    for number in range(10_000):
        machine.deadline = 1e9 - number
        schedule.plan(machine)
    assert len(schedule._heap) < 200
    assert schedule.deadline == 1e9 - 9999
