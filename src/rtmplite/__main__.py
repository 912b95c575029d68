"""RTMP from the command line: a server, a publisher, a player, and a look at what passes."""

import sys

from rtmplite.cli.tool import main

if __name__ == "__main__":
    sys.exit(main())
