"""URLs as a log may have them: without passwords, keys and tokens."""

import re
from typing import Final

# Up to the last at sign of the authority, or, in a URL that is wrong because of a slash in the
# password, behind it; what looks like a port is none.
_USER: Final = re.compile(r"(\w://)(?:[^/\s]*@|[^/@\s:]+:(?!\d*(?:[/?\s]|$))[^@\s]*@)")
_QUERY: Final = re.compile(r"\?[^\s]+")


def public(text: str) -> str:
    """Whatever `text` says, leave out what a URL has before an at sign and after a question mark.

    >>> public("rtmp://ann:secret@example.net/live/demo?key=abc is busy")
    'rtmp://example.net/live/demo?... is busy'
    """
    return _QUERY.sub("?...", _USER.sub(r"\1", text))
