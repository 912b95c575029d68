"""The clock that drives all SIP machines.

Own design: seconds that never run backwards, whatever the wall clock does; the offset of the wall
clock is needed once a call, for the NTP time in RTCP reports (RFC 3550 §4).
"""

import time

monotonic = time.monotonic
"""Now, in the seconds that all machines here are told."""


def wallclock() -> float:
    """The offset from `monotonic()` to Unix time, in seconds: RFC 3550 §4."""
    return time.time() - time.monotonic()
