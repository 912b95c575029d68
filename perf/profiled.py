"""`python perf/profiled.py FILE [SCRIPT.py] ARGUMENTS...`: under cProfile, its profile in FILE.

Without a script it is the gateway that is run.

The profiler makes calls look dearer than they are. Read the order of things here, and take the
figures from a run without it.
"""

import cProfile
import runpy
import sys

from siprtmp.__main__ import main


def script(arguments: list[str]) -> None:
    """Run a script as Python does."""
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    profiler = cProfile.Profile()
    _, file, *given = sys.argv
    run = script if given and given[0].endswith(".py") else main
    code = profiler.runcall(run, given)
    profiler.dump_stats(file)
    sys.exit(code)
