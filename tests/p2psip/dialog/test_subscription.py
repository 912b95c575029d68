"""Subscriptions: the figure at the subscriber, the states of the notifier, and their headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.dialog.subscription import (
    Do,
    Event,
    EventName,
    Notifier,
    State,
    Subscriber,
    SubscriptionState,
)
from p2psip.errors import RemoteError

TOLD = {
    Event.IS_ACTIVE: SubscriptionState("active", 600),
    Event.IS_PENDING: SubscriptionState("pending", 600),
    Event.IS_TERMINATED: SubscriptionState("terminated", reason="noresource"),
}
WORDS = st.from_regex(r"[a-z][a-z-]{0,10}", fullmatch=True)


def at(state):
    machine = Subscriber(0.0)
    if state is State.PENDING:
        machine.heard(TOLD[Event.IS_PENDING], 0.0)
    elif state is State.ACTIVE:
        machine.heard(TOLD[Event.IS_ACTIVE], 0.0)
    elif state is State.TERMINATED:
        machine.refused(0.0)
    assert machine.state is state
    return machine


def tell(machine, event):
    return machine.refused(1.0) if event is Event.REFUSED else machine.heard(TOLD[event], 1.0)


@pytest.mark.parametrize("state", [State.NOTIFY_WAIT, State.PENDING, State.ACTIVE])
@pytest.mark.parametrize(
    ("event", "todo", "target"),
    [
        (Event.IS_ACTIVE, (), State.ACTIVE),
        (Event.IS_PENDING, (), State.PENDING),
        (Event.IS_TERMINATED, (Do.OVER,), State.TERMINATED),
        (Event.REFUSED, (Do.OVER,), State.TERMINATED),
    ],
)
def test_the_figure_is_kept(state, event, todo, target):
    """Covers RFC 6665 §4.1.3 [terminated-is-the-end] and §4.1.2.2 [refusals-that-end]."""
    machine = at(state)
    assert tell(machine, event) == todo and machine.state is target
    assert machine.is_up == (not todo)


@pytest.mark.parametrize("event", [*TOLD, Event.REFUSED])
def test_nothing_follows_the_end(event):
    machine = at(State.TERMINATED)
    assert tell(machine, event) == () and machine.state is State.TERMINATED and not machine.is_up


def test_a_subscription_is_refreshed_in_time_and_its_time_is_the_notifiers():
    """Covers RFC 6665 §4.1.3 [expires-counts]."""
    machine, found = at(State.ACTIVE), []
    while machine.deadline is not None:
        now = machine.deadline
        found += [(now, do) for do in machine.tick(now)]
    assert found == [(480.0, Do.REFRESH), (600.0, Do.OVER)]
    machine = at(State.ACTIVE)
    machine.heard(SubscriptionState("active", 100), 10.0)
    assert machine.deadline == 90.0
    machine.heard(SubscriptionState("active"), 20.0)  # no time of its own: the same again
    assert machine.deadline == 100.0


def test_without_a_notify_it_is_given_up():
    machine = Subscriber(0.0)
    assert machine.deadline == 32.0 and machine.tick(32.0) == (Do.OVER,)
    machine = at(State.ACTIVE)
    machine.tick(480.0)
    machine.asked(480.0)
    assert machine.deadline == 512.0 and machine.tick(512.0) == (Do.OVER,)


def test_the_notifier_says_its_state_and_what_is_left():
    """Covers RFC 6665 §4.2.2 [one-of-three] [says-what-is-left] [ends-with-a-reason],
    §4.1.3 [no-expires-at-the-end] and §4.2.1.4 [reason-timeout].
    """
    notifier = Notifier(60, 0.0)
    assert str(notifier.header(10.0)) == "pending;expires=50"
    notifier.accept()
    assert str(notifier.header(59.5)) == "active;expires=0"
    notifier.refresh(100, 50.0)
    assert notifier.deadline == 150.0 and not notifier.tick(149.0) and notifier.tick(150.0)
    assert str(notifier.header(150.0)) == "terminated;reason=timeout" and notifier.deadline is None
    assert not notifier.tick(999.0)
    other = Notifier(60, 0.0)
    other.end("noresource")
    other.end("timeout")
    assert str(other.header(0.0)) == "terminated;reason=noresource"
    other = Notifier(60, 0.0)
    other.refresh(0, 1.0)
    assert other.state is State.TERMINATED


@given(WORDS, WORDS | st.just(""))
def test_event_names_are_read_as_they_are_written(package, id):
    assert EventName.parse(str(EventName(package, id))) == (package, id)


@given(WORDS, st.none() | st.integers(0, 2**31), WORDS | st.just(""), st.none() | st.integers(0, 9))
def test_states_are_read_as_they_are_written(value, expires, reason, retry):
    state = SubscriptionState(value, expires, reason, retry)
    assert SubscriptionState.parse(str(state)) == state


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    for parse in (EventName.parse, SubscriptionState.parse):
        try:
            assert parse(text)
        except RemoteError as error:
            assert error.status in (400, 489, 513)
