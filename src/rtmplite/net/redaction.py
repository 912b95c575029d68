"""URLs as a log may have them: without passwords, keys and tokens."""

import re
from typing import Final

_USER: Final = re.compile(r"(\w://)[^/@\s]*@")
_QUERY: Final = re.compile(r"\?[^\s]+")


def public(text: str) -> str:
    """Whatever `text` says, leave out what a URL has before an at sign and after a question mark.

    >>> public("rtmp://ann:secret@example.net/live/demo?key=abc is busy")
    'rtmp://example.net/live/demo?... is busy'
    """
    return _QUERY.sub("?...", _USER.sub(r"\1", text))
