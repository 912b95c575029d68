"""`python perf/profiled.py FILE ARGUMENTS...`: the gateway under cProfile, its profile in FILE.

The profiler makes calls look dearer than they are. Read the order of things here, and take the
figures from a run without it.
"""

import cProfile
import sys

from siprtmp.__main__ import main

if __name__ == "__main__":
    profiler = cProfile.Profile()
    code = profiler.runcall(main, sys.argv[2:])
    profiler.dump_stats(sys.argv[1])
    sys.exit(code)
