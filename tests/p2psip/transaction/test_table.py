"""The timer queue gives what is due, in order, and holds nothing that was taken off."""

from hypothesis import given
from hypothesis import strategies as st

from p2psip.transaction.flow import Flow
from p2psip.transaction.table import Table, TimerQueue

times = st.integers(0, 20).map(float)
steps = st.lists(st.tuples(st.integers(0, 5), st.none() | times))


@given(steps, st.lists(times))
def test_an_agenda_is_a_sorted_dictionary(changes, moments):
    timer_queue, model = TimerQueue(), {}
    for item, at in changes:
        timer_queue.set(item, at)
        model.pop(item, None)
        if at is not None:
            model[item] = at
        assert timer_queue.deadline == min(model.values(), default=None)
    for now in sorted(moments):
        due = timer_queue.due(now)
        assert [model[item] for item in due] == sorted(at for at in model.values() if at <= now)
        assert set(due) == {item for item, at in model.items() if at <= now}
        model = {item: at for item, at in model.items() if at > now}
    assert len(timer_queue) == len(model)


def test_a_deadline_that_moves_for_ever_leaves_no_heap_behind():
    timer_queue = TimerQueue()
    for at in range(10_000):
        timer_queue.set("restless", float(at))
    assert len(timer_queue._heap) < 100 and timer_queue.due(9999.0) == ["restless"]


def test_a_table_follows_what_moves():
    table, flow, other = Table(), *(Flow("TCP", ("10.0.0.1", port)) for port in (40000, 5060))
    table.add("a", ("key",), flow)
    table.move("a", other)
    assert table.at(flow) == [] and table.at(other) == ["a"] and table.get(("key",)) == "a"
    table.remove("a")
    assert not table._by_peer


def test_a_table_forgets_all_of_what_is_removed():
    table, flow = Table(), Flow("TCP", ("10.0.0.1", 5060))
    table.add("a", ("key",), flow)
    table.alias("a", ("other key",))
    table.alias("a", ("key",))  # its own first name: nothing new
    table.schedule("a", 1.0)
    assert table.get(("other key",)) == "a" and table.at(flow) == ["a"] and table.deadline == 1.0
    table.remove("a")
    table.remove("a")
    table.schedule("a", 1.0)
    table.alias("a", ("third key",))
    assert len(table) == 0 and table.deadline is None and table.at(flow) == []
    assert not table._by_key and not table._by_peer
