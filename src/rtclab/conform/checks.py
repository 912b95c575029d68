"""Checks and waits that the cases of all protocols share.

Own design: a check raises `Unmet`, in words for the report.
"""

from collections.abc import Sequence

import gevent

from rtclab.conform.case import Unmet


def at_most(seconds: float) -> gevent.Timeout:
    """A block that ends after this time, without an error.

    Own design: False is how gevent says so, which its types leave out.
    """
    return gevent.Timeout(seconds, False)  # type: ignore[arg-type]


def expect_equal(what: str, wanted: object, got: object) -> None:
    """Unmet unless both are equal."""
    if wanted != got:
        raise Unmet(f"{what} {wanted!r}", repr(got))


def expect_status(status: int, answer: str, wanted: Sequence[int]) -> None:
    """Unmet unless a status is one of these, or one of the class that a digit stands for."""
    if not {status, status // 100} & set(wanted):
        raise Unmet(" or ".join(f"{e}xx" if e < 10 else str(e) for e in wanted), answer)
