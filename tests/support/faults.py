"""Common to tests of a list of faults: draw a hundred inputs, and judge each refusal."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

DRAWS = 100
AT_ONCE = 10  # in one example: Hypothesis likes to vary an example, and then keeps its faults


def refused(broken, read, error, reasons):
    """Each of a hundred draws of `broken` is refused by `read` for its reason; all are reached.

    `reasons` has, by the name of each fault, the pattern that the error's text must match.
    """
    reached = Counter()

    @settings(
        max_examples=DRAWS // AT_ONCE,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.lists(broken, min_size=AT_ONCE, max_size=AT_ONCE))
    def each(drawn):
        for fault, data in drawn:
            reached[fault.name] += 1
            with pytest.raises(error, match=reasons[fault.name]):
                read(data)

    each()
    assert sorted(reached) == sorted(reasons)
