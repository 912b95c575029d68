"""Marks the classes of this room that users derive from.

Own design: the room is compiled, and a class that mypyc has compiled cannot be the base of one that
is not.  It leaves a class with a decorator that it does not know to Python.
"""

from typing import TypeVar

_Class = TypeVar("_Class", bound=type)


def open_to_heirs(cls: _Class) -> _Class:
    """Let users derive from a class, and from several such; it is not changed."""
    return cls
