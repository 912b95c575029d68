"""The totals of all specs and the bars of their requirements.

```{book-totals}
"""

from collections import Counter

from book import EVIDENCE, MUTANTS, book
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from rfc_annotations.plot import bar, dashboard
from rfc_annotations.record import STATUS


class BookTotals(Directive):
    """Sentences with the sums, then a row for each spec."""

    def run(self) -> list[nodes.Node]:
        """Written for one page, `6-conformance/index`."""
        return totals()


def totals() -> list[nodes.Node]:
    """What the whole book has, and how the last test run ended."""
    states: Counter[str] = sum((part.states for part in book().parts), Counter())
    all_ = sum(states.values())
    told = ", ".join(f"{states[key]} {STATUS[key]}" for key in STATUS if states[key])
    told = f"{all_} requirements of {len(book().parts)} specifications: {told}."
    drawn = bar(states, all_) + dashboard(book().parts, "specs/{slug}.html")
    plot = nodes.raw("", drawn, format="html", classes=["no-search"])
    paragraphs = (nodes.paragraph("", text) for text in (told, _run(), _mutants()))
    return [*paragraphs, plot]


def _run() -> str:
    proof = book().proof
    if proof is None:
        return (
            "No test run was recorded where these pages were built: a test is listed because it"
            " says that it covers the requirement. After make test its outcome stands beside it."
        )
    outcomes = Counter(run.outcome for run in proof.runs.values())
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    return f"The last test run, as {EVIDENCE.name} has it: {told}."


def _mutants() -> str:
    """How many claims were put to the test by changing their lines."""
    rules = (rule for part in book().parts for rule in part.rules)
    held = (rule for rule in rules if rule.state not in ("departs", "not done"))
    scores = {(spot.file, spot.line): spot.score for rule in held for spot in rule.code}
    tried = [score for score in scores.values() if score]
    whole = sum(not score.survived for score in tried)
    return (
        f"Of {len(scores)} lines that make a claim, {len(tried)} were tried by mutants, as"
        f" {MUTANTS.name} has them, and {whole} of these let none live. The others were not tried,"
        " or not since they changed."
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_directive("book-totals", BookTotals)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
