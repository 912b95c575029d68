"""What a strategy draws, and the parser that reads it; a family of parsers with all its readings.

Own design: the codecs of `rtclab oracle` are most of the readings.  The others are strategies
without a codec, each with the function that our own tests give its values to.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import GetSetDescriptorType, ModuleType
from typing import Any

from hypothesis.strategies import SearchStrategy

from rtclab.oracle import catalogue
from rtclab.oracle.codec import REFUSALS
from rtclab.oracle.search import drawn

# Hypothesis likes to vary an input that it has drawn: 300 broken messages of SIP have 24 faults
# with one seed, and 57 with a seed for every ten.
AT_ONCE = 10


@dataclass(frozen=True)
class Reading:
    """A strategy, and the function that reads what it draws."""

    name: str
    inputs: SearchStrategy[Any]
    read: Callable[[Any], object]

    def draw(self, count: int, seed: int) -> list[Any]:
        """As many inputs or a few more, by seeds of their own for every `AT_ONCE`."""
        found: list[Any] = []
        for number in range(seed, seed + count, AT_ONCE):
            drawn(self.inputs, lambda each: found.append(each) or False, AT_ONCE, number)
        return found

    def feed(self, inputs: list[Any]) -> None:
        """Read them all; what is broken is refused."""
        for each in inputs:
            with suppress(REFUSALS):
                self.read(each)


@dataclass(frozen=True)
class Family:
    """Parsers that are measured together.

    `excused` has a reason for each branch that no input can reach, by the name that the report
    gives it.
    """

    parsers: Sequence[ModuleType]
    readings: Sequence[Reading]
    excused: Mapping[str, str] = field(default_factory=dict)


def of_oracle(*names: str) -> list[Reading]:
    """The readings of these codecs of the oracle: their cases of every class."""
    codecs = map(catalogue.find, names)
    return [
        Reading(f"{codec.name} {kind}", cases, lambda case, codec=codec: codec.decode(case.octets))
        for codec in codecs
        for kind, cases in catalogue.cases_of(codec).items()
    ]


def first(drawn_: SearchStrategy[tuple[Any, Any]]) -> SearchStrategy[Any]:
    """The input of a pair that has the meaning behind it."""
    return drawn_.map(lambda pair: pair[0])


def second(drawn_: SearchStrategy[tuple[Any, Any]]) -> SearchStrategy[Any]:
    """The input of a pair that has a fault before it."""
    return drawn_.map(lambda pair: pair[1])


def octets(drawn_: SearchStrategy[Any]) -> SearchStrategy[bytes]:
    """The octets of a value."""
    return drawn_.map(bytes)


def texts(drawn_: SearchStrategy[Any]) -> SearchStrategy[str]:
    """The text of a value."""
    return drawn_.map(str)


def asked(value: Any) -> Any:
    """Read all that a value says of itself; returns the value."""
    kind = type(value)
    for name in dir(kind):
        if isinstance(getattr(kind, name), property | GetSetDescriptorType):  # compiled: any field
            getattr(value, name)
    return value
