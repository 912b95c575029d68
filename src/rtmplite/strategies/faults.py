"""A fault: one rule of a specification, and input that breaks it and no other.

Own design: a reader is tested with one fault at a time, so that its answer can be judged by the
clause that is broken.  `broken` draws each fault of a list equally often; a list has at most some
sixteen, and a few hundred draws reach all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

_T = TypeVar("_T")
Octets: TypeAlias = SearchStrategy[bytes]


@dataclass(frozen=True)
class Fault(Generic[_T]):
    """A way to break a rule: its name, the `clause` that has the rule, and inputs that break it."""

    name: str
    clause: str
    inputs: SearchStrategy[_T]


Drawn: TypeAlias = tuple[Fault[_T], _T]


def broken(faults: Sequence[Fault[_T]]) -> SearchStrategy[Drawn[_T]]:
    """Draw a fault of `faults`, and an input with it."""
    return st.sampled_from(faults).flatmap(
        lambda fault: fault.inputs.map(lambda drawn: (fault, drawn))
    )


def cut(whole: SearchStrategy[bytes], least: int = 0) -> SearchStrategy[bytes]:
    """Draw from `whole`, and leave out one byte or more at the end; `least` bytes stay."""
    return whole.flatmap(
        lambda data: st.integers(least, len(data) - 1).map(lambda size: data[:size])
    )
