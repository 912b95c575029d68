"""Limits of users: calls at once, calls an hour, whom to call; in bounded memory."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.errors import RemoteError
from p2psip.server import call_allowance as module
from p2psip.server.call_allowance import (
    BEGINS,
    ENDS,
    GOES_ON,
    HOUR,
    LONGEST,
    WRITES,
    Allowance,
)


def test_calls_at_once_are_limited_for_each_user_and_given_back():
    allowance = Allowance(at_once=2)
    first, _ = (allowance.begin("alice", 0.0) for _ in range(2))
    for _ in range(3):
        with pytest.raises(RemoteError, match="403 Too Many Calls at Once"):
            allowance.begin("alice", 1.0)
    allowance.begin("bob", 1.0)
    allowance.end(first)
    allowance.end(first)  # twice is as good as once
    allowance.begin("alice", 2.0)
    with pytest.raises(RemoteError):
        allowance.begin("alice", 2.0)


def test_a_call_that_nobody_ends_counts_for_some_hours_only():
    allowance = Allowance(at_once=1)
    allowance.begin("alice", 0.0)
    with pytest.raises(RemoteError):
        allowance.begin("alice", LONGEST - 1)
    allowance.begin("alice", LONGEST)


def test_calls_an_hour_are_limited_and_refused_ones_are_none():
    allowance = Allowance(an_hour=3)
    for at in (0.0, 10.0, 1200.0):
        allowance.end(allowance.begin("alice", at))
    for at in (1300.0, 2000.0, HOUR - 1):
        with pytest.raises(RemoteError, match="403 Too Many Calls an Hour"):
            allowance.begin("alice", at)
    for _ in range(2):
        allowance.begin("alice", HOUR + HOUR / 12)  # the first two are an hour ago
    with pytest.raises(RemoteError):
        allowance.begin("alice", HOUR + HOUR / 12)
    assert allowance.begin("alice", 9 * HOUR)  # after long silence


@given(st.lists(st.floats(0, 900), max_size=60), st.integers(1, 5))
def test_no_hour_has_more_than_is_allowed_and_no_user_waits_much_longer(gaps, limit):
    allowance, now, taken = Allowance(an_hour=limit), 1e5, []
    for gap in gaps:
        now += gap
        lately = [at for at in taken if at > now - HOUR]
        try:
            allowance.begin("alice", now)
        except RemoteError:
            assert len([at for at in taken if at > now - HOUR - HOUR / 12]) >= limit
        else:
            assert len(lately) < limit
            taken.append(now)


def test_without_limits_nothing_is_kept():
    allowance = Allowance()
    for number in range(100):
        allowance.begin(f"user{number}", 0.0)
    assert len(allowance) == 0 and allowance.may_reach("+1900", ["anywhere"])


@pytest.mark.sources
def test_users_are_bounded_and_those_in_calls_are_not_forgotten(monkeypatch):
    monkeypatch.setattr(module, "MAX_USERS", 3)
    monkeypatch.setattr(module, "LOOKS", 3)
    allowance = Allowance(at_once=1)
    allowance.begin("busy", 0.0)
    for number in range(50):
        allowance.end(allowance.begin(f"user{number}", 1.0))
        assert len(allowance) <= 3
    with pytest.raises(RemoteError, match="at Once"):
        allowance.begin("busy", 2.0)
    for name in ("a", "b"):
        allowance.begin(name, 2.0)
    with pytest.raises(RemoteError, match="403 Too Many Callers"):
        allowance.begin("c", 2.0)


@pytest.mark.parametrize(
    ("user", "hosts", "allowed"),
    [
        ("+491234", ["trunk.example"], True),
        ("+491234", ["TRUNK.example"], True),
        ("+491234", [], True),  # nowhere else
        ("+1900", ["trunk.example"], False),
        ("+491234", ["evil.example"], False),
        ("+491234", ["trunk.example", "evil.example"], False),
        ("+491234@trunk.example", ["evil.example"], False),
        ("anybody", ["friends.example"], True),
        ("", ["friends.example"], True),
        ("x", ["friends.example.evil.example"], False),
    ],
)
def test_targets_elsewhere_are_allowed_by_pattern_at_every_host(user, hosts, allowed):
    patterns = ["+49*@trunk.example", "*@friends.example"]
    assert Allowance(targets=patterns).may_reach(user, hosts) is allowed


def test_no_pattern_allows_nothing_elsewhere():
    assert not Allowance(targets=[]).may_reach("bob", ["away"])
    assert Allowance(targets=[]).may_reach("bob", [])


class Processes:
    """Two that count together."""

    def __init__(self, **limits):
        self.both = [Allowance(**limits), Allowance(**limits)]
        for number, (one, other) in enumerate(zip(self.both, self.both[::-1], strict=True)):
            one.tell = partial(self.give, other, number)

    @staticmethod
    def give(to, number, what, user):
        to.count_elsewhere(number, what, user, 0.0)


def test_two_processes_limit_a_user_together():
    one, other = Processes(at_once=2).both
    first, second = one.begin("alice", 0.0), other.begin("alice", 0.0)
    for each in (one, other):
        with pytest.raises(RemoteError, match="at Once"):
            each.begin("alice", 0.0)
        each.begin("bob", 0.0)
    other.end(second)
    other.end(second)
    third = one.begin("alice", 0.0)
    with pytest.raises(RemoteError, match="at Once"):
        other.begin("alice", 0.0)
    one.end(first)
    one.end(third)
    assert other.begin("alice", 0.0) and other.begin("alice", 0.0)


def test_two_processes_count_hours_together():
    one, other = Processes(an_hour=2, messages=1).both
    one.end(one.begin("alice", 0.0))
    other.end(other.begin("alice", 0.0))
    one.message("alice", 0.0)
    for each in (one, other):
        with pytest.raises(RemoteError, match="Calls an Hour"):
            each.begin("alice", 0.0)
        with pytest.raises(RemoteError, match="Messages an Hour"):
            each.message("alice", 0.0)


def test_the_calls_of_a_process_that_has_ended_are_not_counted():
    """One that begins is told those that go on, of which it counts none for this hour."""
    one, other = Processes(at_once=1, an_hour=1).both
    one.begin("alice", 0.0)
    assert [*one.open_calls()] == ["alice"] and not [*other.open_calls()]
    other.lost(0)
    with pytest.raises(RemoteError, match="an Hour"):
        other.begin("alice", 0.0)
    anew = Allowance(at_once=1, an_hour=1)
    for user in one.open_calls():
        anew.count_elsewhere(0, GOES_ON, user, 0.0)
    with pytest.raises(RemoteError, match="at Once"):
        anew.begin("alice", 0.0)
    anew.lost(0)
    assert anew.begin("alice", 0.0)


def test_without_limits_nothing_is_kept_of_another_process():
    alone = Allowance()
    for what in (BEGINS, WRITES, ENDS, GOES_ON):
        alone.count_elsewhere(1, what, "alice", 0.0)
    assert not len(alone)
