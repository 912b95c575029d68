"""The tables of rooms in the page of the house: `python docs/_ext/house.py` writes them.

They stand in the page itself, so that it is whole without a build; `tests/test_docs.py` fails
where they are not those of `tests/rooms.txt`.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
PAGE = REPO / "docs/1-start/house.md"
TABLE = re.compile(r"(<!-- rooms: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
HEAD = "| room | level | what is in it | may import |\n|---|---|---|---|\n"


def written(page: str) -> str:
    """Give the page with its tables as the code has them now."""
    return TABLE.sub(lambda found: found[1] + HEAD + "".join(_rows(found[2])), page)


def _rows(family: str) -> Iterator[str]:
    """Room, level, first line of the package's docstring, and the rooms that it may import."""
    from api import room_table

    for level, room, others in room_table():
        if room.partition(".")[0] == family:
            source = REPO / "src" / room.replace(".", "/") / "__init__.py"
            doc = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
            arrows = ", ".join(f"`{other.removeprefix(f'{family}.')}`" for other in others)
            yield f"| `{room}` | {level} | {doc.splitlines()[0]} | {arrows} |\n"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
