"""A codec of the oracle, and a case: octets with the value or error a reader must give.

Own design: the table that `list` prints, and what vectors and comparisons are made of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from p2psip.errors import SipError
from rtclab.oracle.neutral import Json, from_neutral, has_types, to_neutral
from rtclab.oracle.shapes import shapes
from rtmplite.errors import RtmpError

Kind: TypeAlias = Literal["valid", "odd", "broken"]
KINDS: Final[tuple[Kind, ...]] = ("valid", "odd", "broken")
VERSION: Final = 1  # of the protocol, the neutral JSON and the vectors
REFUSALS: Final = (SipError, RtmpError)


@dataclass(frozen=True, slots=True)
class Codec:
    """One format: how its octets are read and written, and how its values look in JSON.

    `clauses` names the section of a field or of a type of record, for the report of a comparison;
    for all others it is `citation`.  `shape` describes JSON that `write` makes.
    """

    name: str
    citation: str
    about: str
    hint: Any
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes] | None = bytes
    write: Callable[[Any], Json] | None = None
    read: Callable[[Json], Any] | None = None
    clauses: Mapping[str, str] = field(default_factory=dict)
    shape: tuple[str, ...] = ()

    def to_neutral(self, value: Any) -> Json:
        """Write a value as neutral JSON."""
        if self.write is not None:
            return self.write(value)
        return to_neutral(value, typed=has_types(self.hint))

    def from_neutral(self, written: Json) -> Any:
        """Read neutral JSON.  Raises NeutralError."""
        return from_neutral(written, self.hint) if self.read is None else self.read(written)

    def fields(self) -> tuple[str, ...]:
        """The records of its JSON with their fields, a line for each."""
        return self.shape or tuple(shapes(self.hint))

    def clause_of(self, names: tuple[str, ...]) -> str:
        """The section of the innermost of these fields and types that has one of its own."""
        return next((self.clauses[n] for n in reversed(names) if n in self.clauses), self.citation)


@dataclass(frozen=True, slots=True)
class Case:
    """Octets, and what a reader must make of them.

    `value` is what they mean; or else `fault` is what is wrong with them, and `status` the SIP
    response that they deserve.  `allowed` names other answers that the specification leaves open.
    """

    kind: Kind
    clause: str
    octets: bytes
    value: Json = None
    fault: str | None = None
    status: int | None = None
    allowed: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether a reader has to refuse the octets."""
        return self.fault is not None

    def written(self) -> dict[str, Json]:
        """The case as a line of vectors."""
        line: dict[str, Json] = {
            "class": self.kind,
            "clause": self.clause,
            "octets": self.octets.hex(),
        }
        if self.fault is None:
            line["value"] = self.value
        else:
            status = {} if self.status is None else {"status": self.status}
            line["error"] = {"fault": self.fault, **status}
        return line | {"allowed": list(self.allowed)}
