"""What the doctor says of one step.

Own design: `fault` names what is wrong for programs; the texts are for people.
"""

from dataclasses import dataclass
from typing import Final

GOOD: Final = "ok"
NOTE: Final = "note"  # it may be meant so
FAULT: Final = "FAULT"


@dataclass(frozen=True, slots=True)
class StepFound:
    """One step, what came of it, and what to do; `ms` is how long it took."""

    step: str
    verdict: str
    what: str
    fault: str = ""
    cure: str = ""
    ms: float | None = None

    def as_json(self) -> dict[str, object]:
        """The same for a program."""
        return {name: getattr(self, name) for name in self.__slots__}


def good(step: str, what: str, ms: float | None = None) -> StepFound:
    """A step that is in order."""
    return StepFound(step, GOOD, what, ms=ms)


def faulty(step: str, fault: str, what: str, cure: str, ms: float | None = None) -> StepFound:
    """A step that fails."""
    return StepFound(step, FAULT, what, fault, cure, ms)
