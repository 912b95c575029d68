"""A process ends in time, whatever its loop does."""

import subprocess
import sys

from rtmplite.net.last_resort import UNFINISHED

PROGRAM = """
from rtmplite.net.last_resort import ended_within
with ended_within({seconds}):
    while {goes_on}:
        pass
print("done")
"""


def run(seconds, goes_on):
    program = PROGRAM.format(seconds=seconds, goes_on=goes_on)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout


def test_an_end_that_takes_too_long_is_cut_short():
    """Own design: also while the loop is busy and takes no signal."""
    assert run(0.1, True) == (UNFINISHED, "")


def test_an_orderly_end_is_left_alone():
    """Own design: nothing ends a process that has done its work."""
    assert run(60, False) == (0, "done\n")
