"""RangeSet against a plain set of numbers."""

import doctest
import itertools

from hypothesis import given
from hypothesis import strategies as st

from rtmplite.rtmfp.session import closing, flight, keepalive, range_set, rtt
from rtmplite.rtmfp.session.range_set import RangeSet

steps = st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=60)


def test_the_examples():
    for module in (range_set, flight, rtt, keepalive, closing):
        assert doctest.testmod(module).failed == 0


@given(steps)
def test_it_is_a_set(steps):
    """RFC 7016 §3.6.3.2: numbers are added one by one, or all up to one."""
    seen, model = RangeSet(), {0}
    for is_forward, number in steps:
        if is_forward:
            seen.forward(number)
            model |= set(range(number + 1))
        else:
            alone = not {number - 1, number, number + 1} & model
            assert seen.would_part(number) == alone
            seen.add(number)
            model.add(number)
        listed = [at for first, last in seen.ranges() for at in range(first, last + 1)]
        assert listed == sorted(model)
        assert [number in seen for number in range(43)] == [at in model for at in range(43)]
        ranges = list(seen.ranges())
        assert seen.gaps == len(ranges) - 1
        assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ranges))
        assert ranges[0] == (0, seen.csn)
        first, last = max(0, number - 7), number + 7
        missing = [at for hole in seen.holes(first, last) for at in hole]
        assert missing == [at for at in range(first, last + 1) if at not in model]
        assert all(seen.holes(first, last))
