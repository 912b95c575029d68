"""The rows of the settings page: every key, its default and its meaning.

Apart from the directives, so that its test needs no Sphinx.
"""

from collections.abc import Iterator

from siprtmp.operation.config import Settings
from siprtmp.operation.options import build_parser


def settings() -> Iterator[tuple[str, list[list[str]]]]:
    """The title of each group, and key, default and meaning of its settings."""
    defaults = Settings()
    for group in build_parser()._action_groups:
        rows = []
        for action in group._group_actions:
            key = action.option_strings[-1].removeprefix("--")
            if hasattr(defaults, key.replace("-", "_")):
                value = shown(getattr(defaults, key.replace("-", "_")))
                rows.append([key, value, (action.help or "").replace("%%", "%")])
        if rows:
            yield group.title or "", rows


def shown(value: object) -> str:
    """A default as the file would have it."""
    if value is None or value in ((), (0, 0)):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ":".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
