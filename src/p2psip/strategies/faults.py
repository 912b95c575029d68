"""A fault of media or of their description: one rule, and input that breaks it and no other.

Own design: a fault names the clause that it breaks, so that a reader's answer can be judged by it.
A list has at most some sixteen, and a few hundred draws reach all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Octets: TypeAlias = SearchStrategy[bytes]


@dataclass(frozen=True, slots=True)
class MediaFault:
    """A way to break a rule: its name, the `clause` that has the rule, and what breaks it."""

    name: str
    clause: str
    inputs: Octets


Drawn: TypeAlias = tuple[MediaFault, bytes]


def broken(faults: Sequence[MediaFault]) -> SearchStrategy[Drawn]:
    """Draw a fault of `faults`, and octets with it."""
    return st.sampled_from(faults).flatmap(
        lambda fault: fault.inputs.map(lambda octets: (fault, octets))
    )


def by_clause(table: Mapping[str, Mapping[str, Octets]]) -> tuple[MediaFault, ...]:
    """The faults of a table: for each clause the names, and what has the fault."""
    return tuple(
        MediaFault(name, clause, inputs)
        for clause, faults in table.items()
        for name, inputs in faults.items()
    )


def written(name: str, clause: str, *texts: str) -> MediaFault:
    """A fault that these texts have."""
    return MediaFault(name, clause, st.sampled_from([text.encode() for text in texts]))
