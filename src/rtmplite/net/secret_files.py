"""Files of passwords and keys, which no other user of the machine should read.

Own design: the group may read them, since a service may run as another user than their owner.
"""

import os
import stat
from pathlib import Path
from typing import TextIO


def keep_private(output: TextIO) -> None:
    """Give mode 0600 to an empty file that is our output; others keep theirs."""
    try:
        number = output.fileno()
        now = os.fstat(number)
        if stat.S_ISREG(now.st_mode) and not now.st_size:
            os.fchmod(number, 0o600)
    except OSError:  # an output without a descriptor, or a file system without modes
        return


def is_open_to_all(path: Path) -> bool:
    """Whether every user of this machine may read a file; false if there is none."""
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False
