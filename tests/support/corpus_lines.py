"""The lines of the corpus's tables, as parameters of tests."""

import os
import re
from pathlib import Path

CORPUS = Path(os.environ.get("TEST_CORPUS") or Path(__file__).parents[3] / "shared/corpus")


def readme_lines(title):
    """The rows (file name and other columns) of the first table under a heading of the README.

    Without a corpus there is one empty row, so that the test is still collected and the `corpus`
    fixture says what is missing.
    """
    readme = CORPUS / "README.md"
    if not readme.is_file():
        return [[""]]
    section = readme.read_text().partition(f"\n## {title}")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines()]
    return [row for row in rows if row and re.fullmatch(r"[\w.-]+\.\w+", row[0])]
