"""The timer of a machine's deadline."""

from types import SimpleNamespace

import gevent
from support.limits import patience

from rtmplite.net.clock import now
from rtmplite.net.deadline_timer import DeadlineTimer


def test_it_is_set_anew_only_for_a_nearer_deadline(monkeypatch):
    """A deadline that moves away leaves it as it is: the machine is asked too early, once."""
    made, make = [], gevent.get_hub().loop.timer

    def timer_of_loop(*args, **more):
        made.append(make(*args, **more))
        return made[-1]

    monkeypatch.setattr(gevent.get_hub(), "loop", SimpleNamespace(timer=timer_of_loop))
    timer = DeadlineTimer(lambda: None)
    for deadline in (None, 100.0, 200.0, 100.0, 50.0):
        timer.set(deadline, 0.0)
    timer.cancel()
    assert len(made) == 2 and not any(each.active for each in made)


def test_it_rings_once_and_can_be_set_again():
    """At once for a deadline that has passed; not at all when cancelled."""
    rung = []

    def ring():
        rung.append(now())
        if len(rung) == 1:
            timer.set(now() - 1, now())

    timer, other = DeadlineTimer(ring), DeadlineTimer(lambda: rung.append("never"))
    timer.set(now() - 1, now())
    other.set(now() - 1, now())
    other.cancel()
    with patience(20):
        while len(rung) < 2:
            gevent.sleep(0.001)
    assert "never" not in rung and rung == sorted(rung)
