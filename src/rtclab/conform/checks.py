"""Checks and waits that the cases of all protocols share.

Own design: a check raises `Unmet`, in words for the report.
"""

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
