"""Cookies: ours are known again, others are not, and nothing is remembered of either."""

from random import Random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.mutations import mutations, peak

from rtmplite.rtmfp.endpoint.cookie import LIFETIME, Cookie, CookieJar

HERE, THERE = ("192.0.2.1", 1935), ("192.0.2.1", 1936)


def jar(seed=1):
    return CookieJar(Random(seed).randbytes)


def test_a_cookie_is_known_again_where_it_was_issued():
    """Covers RFC 7016 §3.5.1.1.2 [cookie-recognized] [cookie-of-address]."""
    cookies = jar()
    cookie = cookies.issue(HERE, 10.0)
    assert cookies.check(cookie, HERE, 10.0) == Cookie(10.0, is_here=True)
    assert cookies.check(cookie, THERE, 10.0) == Cookie(10.0, is_here=False)
    assert cookies.check(cookie, ("192.0.2.2", 1935), 10.0) == Cookie(10.0, is_here=False)
    assert cookies.issue(HERE, 10.0) == cookie  # which is to say that nothing is kept
    assert cookies.issue(THERE, 10.0) != cookie != cookies.issue(HERE, 10.1)


def test_an_address_and_a_port_are_not_run_together():
    """Covers RFC 7016 §3.5.1.1.2 [cookie-of-address]."""
    cookies = jar()
    cookie = cookies.issue(("192.0.2.1", 123), 0.0)
    assert not cookies.check(cookie, ("192.0.2.11", 23), 0.0).is_here


@pytest.mark.parametrize("begin", [0.0, 1.0, 60.0, 119.9, 1000.0])
def test_a_cookie_is_good_for_two_minutes(begin):
    """Covers RFC 7016 §3.5.1.1.2 [cookie-lifetime] [cookie-95-seconds].

    That is longer than an opening takes, whenever the secret of the cookie came into use.
    """
    assert LIFETIME == 120.0
    cookies = jar()
    cookies.issue(HERE, 0.0)  # the first secret begins its life
    cookie = cookies.issue(HERE, begin)
    assert cookies.check(cookie, HERE, begin + 95.0)
    assert cookies.check(cookie, HERE, begin + LIFETIME)
    assert cookies.check(cookie, HERE, begin + LIFETIME + 0.01) is None


def test_a_cookie_of_an_old_secret_stays_good_while_others_are_issued():
    """Covers RFC 7016 §3.5.1.1.2 [cookie-lifetime]."""
    cookies = jar()
    cookies.issue(HERE, 0.0)
    cookie = cookies.issue(HERE, 119.0)
    for at in range(120, 239):
        cookies.issue(THERE, float(at))
        assert cookies.check(cookie, HERE, float(at)).is_here
    assert cookies.check(cookie, HERE, 240.0) is None


def test_secrets_are_exchanged():
    """Own design: who finds a secret has two lifetimes to use it, and cannot make newer ones."""
    one, other = jar(), jar()
    late = [cookies.issue(HERE, 1000.0) for cookies in (one, other)]
    assert late[0] == late[1]  # the same randomness
    one.issue(HERE, 1200.0)
    assert one.issue(HERE, 1250.0) != other.issue(HERE, 1250.0)  # other took its second only now


def test_a_generation_that_comes_round_again_is_another_secret():
    """Own design: the number in a cookie only says which of two secrets to try."""
    cookies = jar()
    old = cookies.issue(HERE, 0.0)
    for turn in range(1, 257):
        cookies.issue(HERE, turn * LIFETIME)
    assert cookies.issue(HERE, 256 * LIFETIME)[0] == old[0]
    assert cookies.check(old, HERE, 256 * LIFETIME) is None


def test_another_jars_cookies_are_forged():
    """Covers RFC 7016 §3.5.1.1.2 [cookie-recognized]."""
    assert jar(2).check(jar(1).issue(HERE, 1.0), HERE, 1.0) is None


def test_a_late_time_cannot_be_written_into_a_cookie():
    """Covers RFC 7016 §3.5.1.1.2 [cookie-recognized]: who signs the time decides on it."""
    cookies = jar()
    old, new = cookies.issue(HERE, 0.0), cookies.issue(HERE, 100.0)
    mixed = {old[:cut] + new[cut:] for cut in range(1, len(old))} - {old, new}
    known = [cookies.check(each, HERE, 130.0) for each in mixed]
    assert len(known) > 10
    assert not any(each is not None and each.is_here for each in known)


def issued():
    addresses = st.tuples(st.sampled_from(["192.0.2.1", "2001:db8::1"]), st.integers(0, 65535))
    return addresses.map(lambda address: jar().issue(address, 5.0))


@given(mutations(issued()))
def test_nothing_crashes_a_check(cookie):
    """Own design: what strangers send is true or false, and never an error."""
    cookies = jar()
    good = cookies.issue(HERE, 5.0)
    known = cookies.check(cookie, HERE, 5.0)
    event("ours" if known else "not ours")
    assert known is None or known.issued == 5.0
    assert cookie == good or known is None or not known.is_here
    assert peak(lambda: cookies.check(cookie, HERE, 5.0)) <= 32 * len(cookie) + 65536
