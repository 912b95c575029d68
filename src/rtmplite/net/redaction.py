"""Removes passwords, keys and tokens from URLs, for logs and messages."""

import re
from typing import Final

# A user ends at the last at sign of the authority; where a password has a slash, which makes the
# URL wrong, at an at sign behind that.  Digits alone after the colon are a port.
_USER: Final = re.compile(r"(\w://)(?:[^/\s]*@|[^/@\s:]+:(?!\d*(?:[/?\s]|$))[^@\s]*@)")
_QUERY: Final = re.compile(r"\?[^\s]+")


def public(text: str) -> str:
    """Remove the user and the query from every URL in a text.

    >>> public("rtmp://ann:secret@example.net/live/demo?key=abc is busy")
    'rtmp://example.net/live/demo?... is busy'
    """
    return _QUERY.sub("?...", _USER.sub(r"\1", text))
