"""`python -m rtmplite`: the command line."""

import sys

from rtmplite.cli.tool import main

if __name__ == "__main__":
    sys.exit(main())
