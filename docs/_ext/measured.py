"""Tables and plots of the measurements that perf/results keeps, so that no figure is typed twice.

```{measured} founding
```
"""

import json
from typing import Any

from definitions import REPO
from docutils import nodes
from docutils.parsers.rst import Directive
from from_code import table
from sphinx.application import Sphinx

RESULTS = REPO / "perf" / "results"
PLOT = "_static/perf/{}.svg"


class Measured(Directive):
    """A kept table, in which `~` marks a line that is void; where it was measured; its plot."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The page shows what the last run has kept."""
        (name,) = self.arguments
        path = RESULTS / f"{name}.json"
        if not path.exists():
            return [nodes.paragraph("", f"Not measured yet: make bench ARGS={name}")]
        kept = json.loads(path.read_text(encoding="utf-8"))
        rows = kept["rows"]
        heads = ["subject", "load", "count", *rows[0]["figures"]]
        found: list[nodes.Node] = [table(heads, [cells(row) for row in rows])]
        found.append(nodes.paragraph("", where(kept)))
        plot = PLOT.format(name)
        if (REPO / "docs" / plot).exists():
            found.append(nodes.image(uri=f"/{plot}", alt=f"The table {name} as a plot"))
        return found


def cells(row: dict[str, Any]) -> list[str]:
    """The texts of a line."""
    mark = "~" if row["void"] else ""
    texts = [brief(value) for value in row["figures"].values()]
    return [row["subject"], mark + row["load"], str(row["count"]), *texts]


def brief(value: float | None) -> str:
    """A figure in three digits, as perf/results.py prints it."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


def where(kept: dict[str, Any]) -> str:
    """The machine, its load and the form of the measurement, in a sentence or two."""
    machine = kept["machine"]
    place = f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}"
    built = f"siprtmp as {machine['build']}, load {machine['load']:.1f} at the end"
    built += f", {machine['priority']} priority"
    return f"{kept['when'][:10]}, {kept['form']} form: {place}; {built}."


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
