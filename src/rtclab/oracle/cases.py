"""Strategies of cases, from strategies of values, of spellings and of faults.

Own design: the strategies of both families draw pairs of different kinds; a case is the same for
all codecs.  Needs Hypothesis.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from rtclab.oracle.codec import Case, Codec, Kind

Cases: TypeAlias = Mapping[Kind, SearchStrategy[Case]]


class DrawnFault(Protocol):
    """What all faults of the strategies have; those of SIP also have a `status`."""

    @property
    def name(self) -> str:
        """What is wrong."""

    @property
    def clause(self) -> str:
        """The section that it breaks."""


def valid(codec: Codec, values: SearchStrategy[Any]) -> SearchStrategy[Case]:
    """Cases of valid octets: values as our writer writes them."""
    encode = codec.encode
    assert encode is not None, f"{codec.name} is read only"
    return values.map(
        lambda value: Case("valid", codec.citation, encode(value), codec.to_neutral(value))
    )


def odd(
    codec: Codec, pairs: SearchStrategy[tuple[bytes, Any]], clause: str, *allowed: str
) -> SearchStrategy[Case]:
    """Octets that our writer never chooses, with the value that they mean."""
    return pairs.map(
        lambda pair: Case("odd", clause, pair[0], codec.to_neutral(pair[1]), allowed=allowed)
    )


def broken(pairs: SearchStrategy[tuple[Any, bytes]]) -> SearchStrategy[Case]:
    """Cases of broken octets, each with the fault for which a reader must refuse it."""
    return pairs.map(lambda pair: _refused(*pair))


def excessive(pairs: SearchStrategy[tuple[Any, bytes]]) -> SearchStrategy[Case]:
    """Octets beyond a limit of ours, which a reader may read or refuse, and has to answer."""
    return broken(pairs).map(lambda case: replace(case, allowed=("value",)))


def rarely(large: SearchStrategy[Case], others: SearchStrategy[Case]) -> SearchStrategy[Case]:
    """One large case among twelve, so that a comparison stays quick."""
    return st.sampled_from([*[others] * 11, large]).flatmap(lambda drawn: drawn)


def _refused(fault: DrawnFault, octets: bytes) -> Case:
    status = getattr(fault, "status", None)
    return Case("broken", fault.clause, octets, fault=fault.name, status=status)
