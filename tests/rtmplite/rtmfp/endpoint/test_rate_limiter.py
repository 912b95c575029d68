"""Rates that are kept, in memory that does not grow."""

from rtmplite.rtmfp.endpoint.rate_limiter import KEY_BYTES, TURN, Limiter

SECRET = bytes(range(KEY_BYTES))


def test_so_much_in_each_interval():
    """Own design: an interval begins with the first use."""
    limiter = Limiter(SECRET, 3, 1.0)
    assert [limiter.allows("a", 10.0) for _ in range(4)] == [True, True, True, False]
    assert not limiter.allows("a", 10.99)
    assert limiter.allows("a", 11.0)


def test_one_name_does_not_pay_for_another():
    """Own design: names share counters only by accident."""
    limiter = Limiter(SECRET, 1, 1.0)
    assert limiter.allows("a", 0.0)
    assert limiter.allows("b", 0.0)
    assert limiter.allows(b"\xff\x00", 0.0)
    assert not limiter.allows("a", 0.5)


def test_costs_add_up():
    """Own design: a large packet counts as several small ones."""
    limiter = Limiter(SECRET, 1.0, 0.2)
    assert limiter.allows("a", 0.0, 0.5)
    assert not limiter.allows("a", 0.1, 0.6)
    assert limiter.allows("a", 0.1, 0.5)
    assert not limiter.allows("a", 0.1, 0.01)


def test_what_is_more_than_an_interval_allows_is_paid_off_later():
    """Own design: otherwise it could never be sent at all."""
    limiter = Limiter(SECRET, 1.0, 1.0)
    assert limiter.allows("a", 0.0, 2.5)
    assert not limiter.allows("a", 1.0, 0.1)
    assert not limiter.allows("a", 2.0, 0.6)
    assert limiter.allows("a", 2.0, 0.5)


def test_names_share_a_fixed_number_of_counters():
    """Own design: whatever is asked, nothing grows; the secret decides who shares."""
    names = [str(number) for number in range(1000)]

    def allowed(secret):
        limiter = Limiter(secret, 1, 1.0, slots=64)
        return [name for name in names if limiter.allows(name, 0.0)]

    assert 32 < len(allowed(SECRET)) <= 64
    assert allowed(SECRET) == allowed(SECRET) != allowed(bytes(KEY_BYTES))


def test_nobody_shares_with_a_flood_for_long():
    """Own design: the counters are dealt anew after some intervals."""
    limiter = Limiter(SECRET, 10, 1.0, slots=4)
    names = [str(number) for number in range(100)]
    shut_out = dict.fromkeys(names, 0)
    for turn in range(20):
        now = turn * TURN * 1.0
        for _ in range(20):
            limiter.allows("flood", now)
        assert not limiter.allows("flood", now + 0.5)
        for name in names:
            shut_out[name] += not limiter.allows(name, now, 0.01)
    assert max(shut_out.values()) < 14
    assert 20 * 10 < sum(shut_out.values()) < 20 * 50
