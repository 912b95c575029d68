"""Histograms count every value once in the highest bucket."""

from hypothesis import given
from hypothesis import strategies as st

from siprtmp.edge.metrics import Histogram


@given(st.lists(st.floats(-10, 10)))
def test_buckets_are_what_was_not_above(values):
    seen, bounds = Histogram((-1.0, 0.0, 2.5)), (-1.0, 0.0, 2.5, 11)
    for value in values:
        seen.add(value)
    counts = [count for _, count in seen.buckets()]
    assert counts == [sum(value <= bound for value in values) for bound in bounds]
    assert seen.count == len(values)
