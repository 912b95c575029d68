"""The clock all SIP machines are driven by.

Own design: seconds that never run backwards, whatever the wall clock does; the wall clock's
offset is needed once a call, for the NTP time in RTCP reports (RFC 3550 §4).
"""

import time

monotonic = time.monotonic
"""Now, in the seconds that all machines here are told."""


def wallclock() -> float:
    """What to add to `monotonic()` for Unix time, in seconds.  RFC 3550 §4."""
    return time.time() - time.monotonic()
