"""Processes that get a part of a core each, by the bandwidth control of Linux (cgroup).

So several workers fit on one core of a machine with two, and the load has the other one.  What is
held has a high weight as well, so that other programs take little of that part.  Needs the right to
make a control group, which root has.
"""

import os
from pathlib import Path
from typing import Self

PERIOD_US = 5_000  # short, since a process that has used its part waits for the next period
FIRST, SECOND = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")  # of both versions of cgroup
_WEIGHTS = {FIRST: ("cpu.shares", 262_144), SECOND: ("cpu.weight", 10_000)}  # the highest


class Held:
    """Control groups that are removed in the end, when their processes have ended."""

    def __init__(self) -> None:
        self._base = FIRST if (FIRST / "cpu.cfs_quota_us").exists() else SECOND
        self._made: list[Path] = []

    def __enter__(self) -> Self:
        """Nothing is held yet."""
        return self

    def hold(self, pid: int, share: float | None = None) -> None:
        """Give a process `share` of a core at most, or without it, all that it wants."""
        group = self._base / f"siprtmp-{pid}"
        group.mkdir()
        self._made.append(group)
        name, weight = _WEIGHTS[self._base]
        (group / name).write_text(str(weight))
        if share is not None:
            quota = int(share * PERIOD_US)
            if self._base is FIRST:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        (group / "cgroup.procs").write_text(str(pid))

    def __exit__(self, *_: object) -> None:
        """Let go of this process, and remove the groups."""
        (self._base / "cgroup.procs").write_text(str(os.getpid()))
        for group in self._made:
            group.rmdir()
