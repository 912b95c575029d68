"""Limits on the head of a message: above all values seen in use, yet quick to read.

Implements RFC 3261 §21.5.7.

Own design: a reader's work is in pieces, not in octets: a separator, an escape or a line takes
as long to read as a hundred letters.  So they are counted before anything is read, which takes
microseconds.  The fullest heads seen in use have 4 KiB, 50 lines and 50 marks; a request
that went 70 hops, each of which recorded itself, some 12 KiB, 160 lines and 600 marks.
"""

from typing import Final

from p2psip.errors import RemoteError

MAX_HEAD: Final = 32_768  # octets
MAX_LINES: Final = 512  # continued ones count each: §7.3.1
MAX_MARKS: Final = 1_500
MARKS: Final = (b";", b",", b'"', b"<", b"\\", b"%")


def check_head(head: bytes) -> None:
    """Raise RemoteError (513, §21.5.7) for a head that would take too long to read."""
    if (
        len(head) > MAX_HEAD
        or head.count(b"\n") > MAX_LINES
        or (len(head) > MAX_MARKS and sum([head.count(mark) for mark in MARKS]) > MAX_MARKS)
    ):
        raise RemoteError("Message Too Large", 513)
