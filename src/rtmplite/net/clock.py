"""The clock of the edge: seconds that never run backwards, the `now` of every machine.

Own design: slices of a turn of the loop are measured by it too.  The processor time of the thread
would leave out what other processes take, but reading it is a system call, and costs a packet more
than its parsing.
"""

from time import monotonic as now

__all__ = ["now"]
