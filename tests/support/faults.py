"""Common to tests of a list of faults: draw until each was there, and judge each refusal.

Own design: what a seed draws depends on the modules that are loaded (Hypothesis takes constants
from them), so that no fixed count of draws reaches every fault in every order of the tests.
"""

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

AT_ONCE = 10  # in one example: Hypothesis likes to vary an example, and then keeps its faults
EXAMPLES = 5  # with one seed
SEEDS = range(40)


def batches(drawn):
    """Lists of what the strategy `drawn` gives, 50 a list, 2,000 in all."""
    return (_batch(drawn, number) for number in SEEDS)


def _batch(drawn, number):
    found = []

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(st.lists(drawn, min_size=AT_ONCE, max_size=AT_ONCE))
    def draw(values):
        found.extend(values)

    draw()
    return found


def drawn_until_all(broken, names):
    """Faults with their inputs, until each of `names` was among them; else the test fails."""
    reached = set()
    for batch in batches(broken):
        for fault, data in batch:
            reached.add(fault.name)
            yield fault, data
        if reached >= set(names):
            break
    assert reached == set(names)


def refused(broken, read, error, reasons):
    """Each fault of `broken` is drawn, and refused by `read` for its reason.

    `reasons` has, by the name of each fault, the pattern that the error's text must match.
    """
    for fault, data in drawn_until_all(broken, reasons):
        with pytest.raises(error, match=reasons[fault.name]):
            read(data)
