"""The tables of a session's and its flows' states: RFC 7016, Figures 8, 19 and 22."""

import pytest

from rtmplite.rtmfp.session.closing import ALARMS, FIGURE_8, Closing, Do, Event, State
from rtmplite.rtmfp.session.flow_states import FIGURE_19, FIGURE_22, RecvState, SendState


@pytest.mark.parametrize(
    ("figure", "states"), [(FIGURE_8, State), (FIGURE_19, SendState), (FIGURE_22, RecvState)]
)
def test_every_state_has_a_row_and_a_way_to_the_last(figure, states):
    assert list(figure) == list(states)
    *others, last = states
    for state in others:
        assert last in [target for target, _ in figure[state].values()]
    assert figure[last] == {}


@pytest.mark.parametrize("state", [State.OPEN, State.NEARCLOSE, State.FARCLOSE_LINGER])
def test_a_session_takes_every_close_until_it_is_closed(state):
    """Covers RFC 7016 §3.5.5 [close-acknowledged] [close-ack-closes] [abrupt-close]."""
    lingers = State.FARCLOSE_LINGER if state is State.OPEN else state
    told = {
        Event.CLOSE_REQUEST: (lingers, (Do.ACKNOWLEDGE,)),
        Event.CLOSE_ACK: (State.CLOSED, ()),
        Event.ABRUPT_CLOSE: (State.CLOSED, (Do.ACKNOWLEDGE,)),
    }
    for event, wanted in told.items():
        closing = Closing()
        closing.state = state
        todo = closing.on(event, 0.0)
        assert (closing.state, todo) == wanted


def test_every_alarm_has_an_arrow():
    for state, alarms in ALARMS.items():
        assert alarms.keys() <= FIGURE_8[state].keys()
    timed = {Event.ASK_AGAIN, Event.NEARCLOSE_ENDS, Event.LINGER_ENDS}
    assert {alarm for alarms in ALARMS.values() for alarm in alarms} == timed


def test_an_alarm_of_a_state_that_was_left_rings_no_more():
    """RFC 7016 §3.5.5: and a late `tick` asks once, not once for every five seconds."""
    closing = Closing()
    assert closing.tick(1000.0) == () and closing.deadline is None
    closing.on(Event.ORDERLY_CLOSE, 0.0)
    assert closing.tick(17.0) == (Do.ASK,)
    assert closing.deadline == 22.0
    assert closing.on(Event.CLOSE_REQUEST, 18.0) == (Do.ACKNOWLEDGE,)
    assert closing.deadline == 22.0
    assert closing.on(Event.CLOSE_ACK, 19.0) == ()
    assert (closing.state, closing.deadline, closing.tick(1000.0)) == (State.CLOSED, None, ())
    assert closing.on(Event.ORDERLY_CLOSE, 1001.0) == ()
