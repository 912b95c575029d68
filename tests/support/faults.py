"""Common to tests of a list of faults: draw a hundred inputs, and judge each refusal."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

DRAWS = 100
AT_ONCE = 10  # in one example: Hypothesis likes to vary an example, and then keeps its faults


def hundred(broken):
    """A hundred draws of `broken`, always the same ones."""
    found = []

    @settings(
        max_examples=DRAWS // AT_ONCE,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.lists(broken, min_size=AT_ONCE, max_size=AT_ONCE))
    def draw(drawn):
        found.extend(drawn)

    draw()
    return found


def refused(broken, read, error, reasons):
    """Each of a hundred draws of `broken` is refused by `read` for its reason; all are reached.

    `reasons` has, by the name of each fault, the pattern that the error's text must match.
    """
    reached = Counter()
    for fault, data in hundred(broken):
        reached[fault.name] += 1
        with pytest.raises(error, match=reasons[fault.name]):
            read(data)
    assert sorted(reached) == sorted(reasons)
