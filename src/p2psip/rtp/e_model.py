"""The E-model: how good a call is to talk over, from its codec, loss and delay.

Own design: the formulas are those of ITU-T G.107 (clauses 7.1, 7.4, 7.5 and Annex B) with its
default values for all that a gateway cannot measure, such as levels, noise and echo; that
recommendation is not in the catalogue.  RFC 3611 §4.7.5 says what the results are called in
reports, and that R is 0 to 100 and a MOS 1 to 5.

    >>> perfect, lossy = r_factor(), r_factor(loss=0.05, one_way_delay=0.25)
    >>> round(perfect, 1), round(mos(perfect), 2)
    (93.2, 4.41)
    >>> round(lossy, 1), round(mos(lossy), 1)
    (68.5, 3.5)
"""

from collections.abc import Mapping
from math import log2
from typing import Final, NamedTuple

BEST: Final = 93.2  # Own design: R0 - Is of ITU-T G.107 with its default values
MOST_DELAY: Final = 10.0  # s: a delay beyond it makes no call worse than impossible
_IMPAIRED: Final = 95.0  # R of a loss without end: ITU-T G.107, equation 7-29


class Impairment(NamedTuple):
    """What a codec costs, and how it bears loss: Ie and Bpl of ITU-T G.113, Appendix I."""

    equipment: float
    robustness: float


G711: Final = Impairment(0, 25.1)  # with concealment of lost packets
CODECS: Final[Mapping[str, Impairment]] = {
    "pcmu": G711,
    "pcma": G711,
    "g729": Impairment(11, 19),
    "g723": Impairment(15, 16.1),
}
"""Codecs with published values, by encoding names in small letters."""


def r_factor(
    codec: str = "pcmu", *, loss: float = 0.0, one_way_delay: float = 0.0, burst_ratio: float = 1.0
) -> float:
    """The transmission rating R, 0 to 100: RFC 3611 §4.7.5.

    `loss` is the share of packets that are not played, 0 to 1, `one_way_delay` in seconds from
    mouth to ear.  `burst_ratio` is 1 for loss at random, more where it comes in bursts.  A codec
    without published values is taken for G.711: R is then that of the transport alone.
    """
    equipment, robustness = CODECS.get(codec.lower(), G711)
    percent = 100 * min(max(loss, 0.0), 1.0)
    spread = percent / burst_ratio + robustness
    impairment = equipment + (_IMPAIRED - equipment) * percent / spread
    return min(max(BEST - _delay_impairment(one_way_delay) - impairment, 0.0), 100.0)


def mos(r: float) -> float:
    """The mean opinion score of a conversation, 1 to 4.5, from R: RFC 3611 §4.7.5."""
    if r <= 0:
        return 1.0
    if r >= 100:
        return 4.5
    return max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6)


def _delay_impairment(seconds: float) -> float:
    """Idd: what delay costs beyond a tenth of a second, without echo."""
    milliseconds = 1000 * min(seconds, MOST_DELAY)
    if milliseconds <= 100:
        return 0.0
    x = log2(milliseconds / 100)
    return 25 * (_root(1 + x**6) - 3 * _root(1 + (x / 3) ** 6) + 2)


def _root(value: float) -> float:
    return float(value ** (1 / 6))
