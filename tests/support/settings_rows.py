"""The rows of the gateway's settings, and their values, by the names of the options."""

from rtmplite.net.settings import groups, rows, sections
from siprtmp.settings.table import TABLES, Settings

ROWS = {row.name: row for group in groups(Settings).values() for row in group}


def values(settings):
    """All values of settings by the names of their rows and tables."""
    found = {name: getattr(settings, name) for name in TABLES}
    for name, _, owner in sections(Settings):
        found |= {row.name: getattr(getattr(settings, name), row.name) for row in rows(owner)}
    return found
