"""Reliable provisional responses: when they are sent again, and which are in order."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.dialog.prack import Do, Event, ProvisionalOrder, RAck, ReliableProvisional, State
from p2psip.errors import RemoteError


def at(state):
    machine, todo = ReliableProvisional.start(0.0)
    assert todo == (Do.SEND_1XX,)
    if state is State.ACKNOWLEDGED:
        machine.acknowledge(0.1)
    elif state is State.ABANDONED:
        machine.finish(0.1)
    assert machine.state is state
    return machine


@pytest.mark.parametrize(
    ("state", "event", "todo", "target"),
    [
        (State.WAITING, Event.PRACK, (Do.CONFIRMED,), State.ACKNOWLEDGED),
        (State.WAITING, Event.FINAL, (), State.ABANDONED),
        (State.ACKNOWLEDGED, Event.PRACK, (), State.ACKNOWLEDGED),
        (State.ACKNOWLEDGED, Event.FINAL, (), State.ACKNOWLEDGED),
        (State.ABANDONED, Event.PRACK, (), State.ACKNOWLEDGED),
        (State.ABANDONED, Event.FINAL, (), State.ABANDONED),
    ],
)
def test_what_ends_the_repetitions(state, event, todo, target):
    """Covers RFC 3262 §3 [prack-ends-repeats] [final-ends-repeats] [none-after-the-final]."""
    machine = at(state)
    act = machine.acknowledge if event is Event.PRACK else machine.finish
    assert act(0.2) == todo and machine.state is target
    assert machine.deadline is None


def test_the_gaps_double_until_it_is_given_up():
    """Covers RFC 3262 §3 [5xx-without-prack]."""
    machine, _ = ReliableProvisional.start(0.0, t1=1.0)
    times = []
    while machine.deadline is not None and len(times) < 9:
        now = machine.deadline
        times.append((now, *machine.tick(now)))
    sent = [(at, Do.SEND_1XX) for at in (1.0, 3.0, 7.0, 15.0, 31.0, 63.0)]
    assert times == [*sent, (64.0, Do.UNHEARD)]


@given(st.lists(st.integers(1, 6), max_size=30), st.integers(1, 2**31 - 1))
def test_responses_are_taken_once_each_and_in_order(numbers, first):
    """Covers RFC 3262 §4 [keeps-the-number] [begins-with-the-first] [repeats-discarded]
    [gaps-ignored].
    """
    order, taken = ProvisionalOrder(), []
    for number in numbers:
        if order.take(first + number):
            taken.append(number)
    expected = numbers[:1]
    for number in numbers[1:]:
        if number == expected[-1] + 1:
            expected.append(number)
    assert taken == expected


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_rack_is_read_as_it_is_written(rseq, cseq):
    assert RAck.parse(str(RAck(rseq, cseq, "INVITE"))) == (rseq, cseq, "INVITE")


@pytest.mark.parametrize("text", ["", "1", "1 2", "a 1 INVITE", "4294967296 1 INVITE", "-1 1 X"])
def test_a_rack_that_is_none(text):
    with pytest.raises(RemoteError):
        RAck.parse(text)


@given(st.text(max_size=40))
def test_a_rack_of_any_text_is_read_or_refused(text):
    with suppress(RemoteError):
        assert RAck.parse(text).method
