"""The E-model gives the values that its recommendation tabulates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psip.rtp.e_model import BEST, CODECS, mos, r_factor

losses, delays = st.floats(0, 1), st.floats(0, 20)


@pytest.mark.parametrize(
    ("r", "score"),
    [
        (-1, 1),
        (0, 1),
        (50, 2.58),
        (60, 3.1),
        (70, 3.6),
        (80, 4.03),
        (90, 4.34),
        (93.2, 4.41),
        (100, 4.5),
        (101, 4.5),
    ],
)
def test_the_scores_of_annex_b(r, score):
    """ITU-T G.107, Table B.1, and its default value."""
    assert mos(r) == pytest.approx(score, abs=0.01)


@pytest.mark.parametrize(
    ("seconds", "cost"), [(0, 0), (0.1, 0), (0.15, 0.16), (0.2, 3.0), (0.3, 14.6), (0.4, 24.1)]
)
def test_delay_costs_little_below_a_seventh_of_a_second_and_much_beyond(seconds, cost):
    """ITU-T G.107, equation 7-27."""
    assert BEST - r_factor(one_way_delay=seconds) == pytest.approx(cost, abs=0.6)


@pytest.mark.parametrize(
    ("codec", "loss", "cost"),
    [
        ("PCMU", 0, 0),
        ("pcma", 0.01, 3.64),
        ("pcmu", 0.05, 15.8),
        ("pcmu", 1, 75.9),
        ("g729", 0, 11),
        ("g729", 0.19, 53),
        ("g723", 0.161, 55),
        ("speex", 0.01, 3.64),
    ],
)
def test_loss_costs_as_much_as_the_codec_conceals_badly(codec, loss, cost):
    """ITU-T G.107, equation 7-29, and ITU-T G.113, Appendix I."""
    assert BEST - r_factor(codec, loss=loss) == pytest.approx(cost, abs=0.1)


@given(st.sampled_from([*CODECS, "opus"]), losses, losses, delays, delays, st.floats(1, 16))
def test_more_loss_and_more_delay_never_help(codec, loss, more, delay, longer, bursts):
    """Covers RFC 3611 §4.7.5: R is 0 to 100, a score 1 to 5."""
    some = r_factor(
        codec, loss=min(loss, more), one_way_delay=min(delay, longer), burst_ratio=bursts
    )
    worse = r_factor(
        codec, loss=max(loss, more), one_way_delay=max(delay, longer), burst_ratio=bursts
    )
    assert 0 <= worse <= some + 1e-9 and some <= 100
    assert 1 <= mos(worse) <= mos(some) + 0.05 and mos(some) <= 4.5
