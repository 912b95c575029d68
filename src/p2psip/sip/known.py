"""Remembers what short texts mean: the values of a dialog's headers come with each message of it.

Own design: From, To, Contact, Route and each Via of a call are read some ten times, by this element
alone.  What a text means depends on nothing else, and the values are frozen, so none can be stale.
Long texts are not kept, so that a stranger fills some megabytes at most.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

_T = TypeVar("_T")

SHORT: Final = 256  # characters
MOST: Final = 1024  # texts of one kind that came lately; as many before them are still known


class Known(Generic[_T]):
    """The texts of one kind that came lately, and what `read` made of them, which is never None.

    A text that `read` raises for is read each time.
    """

    def __init__(self, read: Callable[[str], _T]) -> None:
        self._read = read
        self._late: dict[str, _T] = {}
        self._early: dict[str, _T] = {}
        _ALL.append(self)

    def __len__(self) -> int:
        return len(self._late) + len(self._early)

    def of(self, text: str) -> _T:
        """The value of a text."""
        value = self._late.get(text)
        return self._find(text) if value is None else value

    def keep(self, text: str, value: _T) -> None:
        """Note what `read` would make of a text that was written here."""
        if len(text) <= SHORT:
            if len(self._late) >= MOST:
                self._early, self._late = self._late, {}
            self._late[text] = value

    def forget(self) -> None:
        self._late, self._early = {}, {}

    def _find(self, text: str) -> _T:
        value = self._early.get(text)
        if value is None:
            value = self._read(text)
        self.keep(text, value)
        return value


_ALL: Final[list[Known[Any]]] = []


def forget() -> None:
    """Remember nothing, as after the start: for tests that watch a reader work."""
    for each in _ALL:
        each.forget()
