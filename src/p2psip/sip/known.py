"""Remembers what short texts mean: the values of a dialog's headers come with each message of it.

Own design: From, To, Contact, Route and each Via of a call are read some ten times, by this element
alone.  What a text means depends on nothing else, and the values are frozen, so none can be stale.
Long texts are not kept, so that a stranger fills a few megabytes at most.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

_T = TypeVar("_T")

SHORT: Final = 256  # characters
MOST: Final = 2048  # texts


def known(read: Callable[[str], _T], text: str) -> _T:
    """The value that `read` makes of a text; a text that it raises for is read each time."""
    value: _T = _kept(read, text) if len(text) <= SHORT else read(text)
    return value


def forget() -> None:
    """Remember nothing, as after the start: for tests that watch a reader work."""
    _kept.cache_clear()


@lru_cache(maxsize=MOST)
def _kept(read: Callable[[str], Any], text: str) -> Any:
    return read(text)
