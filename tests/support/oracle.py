"""How much the strategies draw when they are held against a grammar or a foreign parser.

`ORACLE_DRAWS` says how many examples each strategy is held to; `make oracle` says 10,000.
`ORACLE_SEED` draws others for foreign parsers, as pytest's `--hypothesis-seed` for the grammars.
"""

import os

from hypothesis import HealthCheck, Phase, given, seed, settings

WANTED = int(os.environ.get("ORACLE_DRAWS", "0"))  # by somebody who has the time
DRAWS = WANTED or 40
SEED = int(os.environ.get("ORACLE_SEED", "2543"))
MANY = settings(
    max_examples=DRAWS,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)


def section(text, first, last):
    """The text of a specification from one heading to another."""
    start = text.index(f"\n{first}")
    return text[start : text.index(f"\n{last}", start)]


def drawn(strategy):
    """A list of values, the same ones for a seed: a tenth of `DRAWS`, and at least forty."""
    found = []

    @seed(SEED)
    @settings(
        MANY,
        max_examples=max(40, DRAWS // 10),
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(strategy)
    def keep(value):
        found.append(value)

    keep()
    return found
