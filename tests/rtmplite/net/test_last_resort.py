"""A process ends in time, whatever its loop does."""

import subprocess
import sys

import pytest

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


INTERRUPTED = """
import os
import signal
import gevent
from rtmplite.net.last_resort import interrupted_quietly
interrupted_quietly()
gevent.{begin}(lambda: os.kill(os.getpid(), signal.SIGINT) or sum(range(1000)))
try:
    gevent.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("begin", ["spawn", "get_hub().loop.run_callback"])
def test_an_interruption_is_no_error_where_it_came(begin):
    """Own design: gevent prints it with a traceback, though the main greenlet gets it."""
    program = INTERRUPTED.format(begin=begin)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
