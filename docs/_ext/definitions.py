"""The lines of the definitions in a source file, for links that lead to a line."""

import ast
import functools
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent


@functools.cache
def definitions(file: str) -> dict[str, int]:
    """The line of every class, function and value of a file, by its qualified name."""
    found: dict[str, int] = {}

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(prefix + node.name, node.lineno)
                look(node.body, f"{prefix}{node.name}.")
            targets = node.targets if isinstance(node, ast.Assign) else ()
            for target in (*targets, getattr(node, "target", None)):
                if isinstance(target, ast.Name):
                    found.setdefault(prefix + target.id, node.lineno)

    look(ast.parse((REPO / file).read_text(encoding="utf-8")).body, "")
    return found
