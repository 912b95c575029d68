"""One timer for one machine, in real time."""

import socket

import gevent
from support.sockets import until

from p2psip.net.alarm import Alarm
from p2psip.net.clock import monotonic


class Machine:
    """Ticks are written down; `plan` holds the deadlines to come."""

    def __init__(self, *plan):
        self.plan, self.ticks = list(plan), []

    @property
    def deadline(self):
        return self.plan[0] if self.plan else None

    def tick(self, now):
        self.ticks.append(now)
        if self.plan.pop(0) < 0:
            raise ValueError("a bug in the machine")


class Together(Machine):
    """A tick meets all deadlines that have passed."""

    def tick(self, now):
        self.ticks.append(now)
        self.plan = [at for at in self.plan if at > now]


def test_a_machine_is_woken_at_each_deadline_and_after_a_bug():
    now = monotonic()
    machine = Machine(-1.0, now + 0.02, now + 0.03)
    alarm = Alarm(machine)
    alarm.set()
    alarm.set()
    assert until(lambda: len(machine.ticks) == 3) and machine.ticks[1] >= now + 0.019
    alarm.set()  # there is nothing to come
    alarm.cancel()


def test_deadlines_that_are_close_are_met_together():
    """Own design: with a grain it is late by that much, and then serves all that is due."""
    now = monotonic()
    machine = Together(now + 0.001, now + 0.002, now + 0.003, now + 600.0)
    alarm = Alarm(machine, grain=0.2)
    alarm.set()
    assert until(lambda: len(machine.plan) == 1)
    assert len(machine.ticks) == 1
    alarm.cancel()


def test_a_nearer_deadline_is_met_and_a_cancelled_one_is_not():
    machine = Machine(monotonic() + 60.0)
    alarm = Alarm(machine)
    alarm.set()
    machine.plan.insert(0, monotonic() + 0.01)
    alarm.set()
    assert until(lambda: len(machine.ticks) == 1)
    machine.plan.insert(0, monotonic() + 0.01)
    alarm.set()
    alarm.cancel()
    alarm.cancel()
    alarm.set()
    later = Machine(machine.deadline + 0.01)
    Alarm(later).set()
    assert until(lambda: later.ticks)
    assert len(machine.ticks) == 1


def test_what_has_arrived_is_read_before_a_deadline_is_met():
    ours, theirs = socket.socketpair()
    order = []
    watcher = gevent.get_hub().loop.io(ours.fileno(), 1)
    watcher.start(lambda: (order.append("input"), watcher.stop()))
    machine = Machine(monotonic())
    machine.tick = lambda now: (machine.plan.pop(), order.append("deadline"))
    theirs.send(b"a packet")
    Alarm(machine).set()
    assert until(lambda: len(order) == 2)
    assert order == ["input", "deadline"]
    watcher.close()
    ours.close()
    theirs.close()
