"""One requirement as a test of a running program, and the suite of a protocol.

Own design: a case is a function that talks to a target through a peer.  It returns where the target
did as it should, raises `Unmet` where it did not, and `NotApplicable` where the target lacks what
the case is about.  Any other exception is a bug of the case.  Its name is its title, its docstring
its explanation:

    >>> cases: Cases[None] = Cases()
    >>> @cases.case("RFC 3261 §11.2", level="MUST", role="uas")
    ... def options_is_answered(peer: None) -> None:
    ...     '''OPTIONS outside of a dialog has a final response.'''
    >>> found = cases.all[0]
    >>> found.name, found.spec, found.section, found.title
    ('options_is_answered', 'RFC 3261', '11.2', 'options is answered')
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

P = TypeVar("P")

LEVELS: Final = ("MUST", "SHOULD", "MAY")


class Unmet(Exception):  # noqa: N818
    """The target did something else than the requirement asks for."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected {expected}, got {got}")
        self.expected = expected
        self.got = got


class NotApplicable(Exception):  # noqa: N818
    """The target lacks the feature that a case is about; the reason is the text."""


class Unreachable(Exception):  # noqa: N818
    """Nobody answers at the target, so that no case can say anything."""


@dataclass(frozen=True, slots=True)
class ConformCase:
    """One requirement; `run` takes the peer of its protocol."""

    name: str
    citation: str  # "RFC 3261 §8.2.2.3"
    slug: str  # of the catalogue's requirement, or ""
    level: str
    role: str  # what the target must be: "uas", "proxy", "server"
    summary: str
    run: Callable[[Any], None]
    alone: bool = False  # never at the same time as others of the kind: a phone has one line

    @property
    def spec(self) -> str:
        """The specification alone."""
        return self.citation.partition(" §")[0]

    @property
    def section(self) -> str:
        """The section alone, without its mark; a heading without its quotation marks."""
        return self.citation.partition(" §")[2].strip('"')

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")


@dataclass(slots=True)
class Cases(Generic[P]):
    """Collects the cases of a protocol, in the order of the source."""

    all: list[ConformCase] = field(default_factory=list)

    def case(
        self, citation: str, slug: str = "", *, level: str = "MUST", role: str, alone: bool = False
    ) -> Callable[[Callable[[P], None]], Callable[[P], None]]:
        """Make a case of the function below; its docstring's first line is the summary."""
        assert level in LEVELS and " §" in citation

        def keep(run: Callable[[P], None]) -> Callable[[P], None]:
            summary = (run.__doc__ or "").strip().partition("\n")[0]
            self.all.append(
                ConformCase(run.__name__, citation, slug, level, role, summary, run, alone)
            )
            return run

        return keep


def _leave_nothing(target: str, run: Sequence[ConformCase]) -> None:
    """Own design: most cases clear up themselves."""


@dataclass(frozen=True, slots=True)
class Suite:
    """What `conform PROTOCOL` runs; a protocol's package exports one as `SUITE`.

    `connect(target)` is entered anew for each case and gives its peer; it raises Unreachable where
    nobody is, and ValueError, with the reason, where the target is written wrongly.  No more than
    `at_once` cases run at the same time.  `reach(target)`, called once before, raises the same.
    `alive(target)` is called behind each case, and raises Unreachable where nobody is any more;
    None stands for `reach`.  `leave(target, cases)` is called once behind these cases, and
    removes what they left.  `with_users(proofs)` is the suite whose cases have these users, each a
    value of Authorization; None takes none.  `with_webhook(place)` is the suite with a web service
    of its own at this host and port, to which a target may post; None has none.
    """

    cases: tuple[ConformCase, ...]
    connect: Callable[[str], AbstractContextManager[Any]]
    reach: Callable[[str], None]
    target: str  # what TARGET is, for the help
    at_once: int = 8
    timeout: float = 5.0  # s for one case, unless the user says otherwise
    leave: Callable[[str, Sequence[ConformCase]], None] = _leave_nothing
    alive: Callable[[str], None] | None = None
    with_users: "Callable[[Sequence[str]], Suite] | None" = None
    with_webhook: "Callable[[tuple[str, int]], Suite] | None" = None

    def look(self, target: str) -> None:
        """Raise Unreachable unless the target is still there."""
        (self.alive or self.reach)(target)

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that a target may have, in the order of the cases."""
        return tuple(dict.fromkeys(case.role for case in self.cases))
