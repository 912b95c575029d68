"""The claims behind each requirement, in code and in tests, and the state they put it in."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rfc_annotations.catalogue import Key, Requirement
from rfc_annotations.grammar import DEPARTS, NOT_DONE
from rfc_annotations.project import Project
from rfc_annotations.scan import Cited

OPEN: Final = ("open", "no test", "no code")  # states that rule 4 does not accept

REASONED: Final = ("excused", "departs", "not done")  # states that need no claim, or no test


@dataclass(slots=True)
class Claims:
    """The claims on one requirement."""

    code: list[Cited] = field(default_factory=list)
    tests: list[Cited] = field(default_factory=list)
    declined: list[Cited] = field(default_factory=list)  # `Departs from` and `Not done`

    def state(self, requirement: Requirement) -> str:
        """Put the state into one or two words; those of `OPEN` are not good enough."""
        if requirement.replaced_by:
            return "replaced"
        if self.declined:
            return "departs" if self.declined[0].verb == DEPARTS else "not done"
        lacks_code = not self.code and "code" not in requirement.excused
        lacks_test = not self.tests and "test" not in requirement.excused
        if not requirement.binding and not self.code:
            return "permitted"
        if lacks_code or lacks_test:
            return "open" if lacks_code and lacks_test else "no code" if lacks_code else "no test"
        return "excused" if not (self.code and self.tests) else "met"


def collect(project: Project) -> dict[Key, Claims]:
    """Gather the claims of the whole project by requirement, catalogued or not."""
    claims: dict[Key, Claims] = defaultdict(Claims)
    for cited in project.cited:
        kind = project.kind(cited.file)
        for slug in cited.slugs:
            found = claims[cited.spec, cited.section, slug]
            if kind == "test":
                found.tests.append(cited)
            elif kind == "code" and cited.verb in (DEPARTS, NOT_DONE):
                found.declined.append(cited)
            elif kind == "code":
                found.code.append(cited)
    return claims


def traceable(project: Project) -> Iterator[Cited]:
    """Give the code claims whose lines a test run has to reach."""
    return (c for c in project.cited if c.slugs and c.is_traced and project.kind(c.file) == "code")
