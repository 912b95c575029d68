"""What mutants.toml accepts: survivors that may live, each with its reason."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


class Unusable(Exception):  # noqa: N818
    """The mutants cannot be judged: the evidence is stale, or tests fail without any mutant."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A mutant that may live: it changes nothing that anybody could notice, and `why`."""

    file: str
    was: str
    now: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.was}  ->  {self.now}"


def accepted(path: Path) -> list[Accepted]:
    """Read mutants.toml; raise Unusable when an entry gives no reason."""
    entries = tomllib.loads(path.read_text()).get("accepted", []) if path.is_file() else []
    found = [Accepted(e["file"], e["was"], e["now"], e.get("why", "")) for e in entries]
    for entry in found:
        if not entry.why:
            raise Unusable(f"{path.name} accepts without a why: {entry}")
    return found
