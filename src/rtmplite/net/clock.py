"""The clocks of the edge.

`now` are seconds that never run backwards, the `now` of every machine; `busy_seconds` are those in
which this thread had a core.  Own design: to read the second is a system call, and costs a packet
more than its parsing; so it is asked once for many packets, and where `now` says that it is time.
"""

from time import monotonic as now
from time import thread_time as busy_seconds

__all__ = ["busy_seconds", "now"]
