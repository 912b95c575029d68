"""A position in a message, with the budget for reading on.

Own design: AMF's counts and references let a few bytes ask for much memory, so that both versions
draw from one budget.  Every value is charged its size in CPython; a message whose values would take
more than 32 times its own size, and 64 KiB, is refused.  Only thousands of tiny objects come near
that.
"""

from sys import getsizeof
from typing import Final

from rtmplite.amf import u29
from rtmplite.errors import RemoteError

MAX_DEPTH: Final = 64  # far deeper than any command, far from Python's own limit

# Bytes, measured with tracemalloc; a slot is one place in a growing list.
SLOT: Final = 10
INT: Final = 32
FLOAT: Final = 24
RECORD: Final = 72  # an instance of any class of `rtmplite.amf.values` but containers
LIST: Final = 88
DICT: Final = 72
FIRST_MEMBER: Final = 120  # the table of a dict with up to five
MORE_MEMBERS: Final = 66  # each further one, with the table that is outgrown still alive
PAIR: Final = 64
_PER_BYTE: Final = 31
_FIXED: Final = 48 * 1024
_DECODING: Final = 9  # for each byte of a text whose characters turn out wider and wider


class Cursor:
    """One pass over `data` from `at`.  Own design: see the module."""

    def __init__(self, data: bytes | memoryview, at: int = 0) -> None:
        self.data = bytes(data)
        self.at = at
        self.depth = 0
        self.budget = _FIXED + _PER_BYTE * len(self.data)

    @property
    def left(self) -> int:
        """Return the number of bytes that remain."""
        return len(self.data) - self.at

    def take(self, count: int) -> bytes:
        """The next `count` bytes; raises RemoteError where there are fewer."""
        start, end = self.at, self.at + count
        if end > len(self.data):
            raise RemoteError(f"an AMF value needs {end - len(self.data)} bytes more")
        self.at = end
        return self.data[start:end]

    def u8(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def u29(self) -> int:
        """The next integer of variable length."""
        found = u29.unpack(self.data, self.at)
        if found is None:
            raise RemoteError("an AMF value needs more bytes for an integer")
        value, self.at = found
        return value

    def text(self, length: int) -> str:
        """The next `length` bytes as UTF-8, bad ones as U+FFFD: AMF0 §1.3.1, AMF3 §1.3.2."""
        if not length:
            return ""
        raw = self.take(length)
        self.spend(_DECODING * length)
        text = raw.decode("utf-8", "replace")  # AMF0 §1.3.1 [utf8], AMF3 §1.3.2 [utf8]
        self.spend(getsizeof(text) - _DECODING * length)
        return text

    def spend(self, memory: int) -> None:
        """Charge `memory` bytes; raises RemoteError if the budget does not have them."""
        self.budget -= memory
        if self.budget < 0:
            raise RemoteError("AMF values that take far more memory than their message")

    def expect(self, count: int, size: int = 1) -> None:
        """Raise RemoteError if the rest is too short for `count` items of `size` bytes."""
        if count * size > self.left:
            raise RemoteError(f"an AMF value of {count} items in {self.left} bytes")

    def enter(self) -> None:
        """Enter a container; raises RemoteError beyond `MAX_DEPTH`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RemoteError(f"AMF values nested more than {MAX_DEPTH} deep")

    def leave(self) -> None:
        """Leave the container."""
        self.depth -= 1
