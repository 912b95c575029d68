"""The clock of the edge: seconds that never run backwards, the `now` of every machine."""

from time import monotonic as now

__all__ = ["now"]
