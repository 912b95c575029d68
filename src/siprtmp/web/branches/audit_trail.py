"""The changes that clients have made, or tried to make, by the tree.

Own design: an entry is written for each request that changes state of the gateway, once it has been
answered.  A request that was refused for want of a user is left out, since anybody can send any
number of those.  An entry has the names of a request's members, and the values of a few that hold
no secrets: pressed keys may be a PIN.  Of a URL it has the host.
"""

import re
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from siprtmp.web.branches.sip_step import masked
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JsonValue
from siprtmp.web.resources.path import Path, write_path

Row = dict[str, object]
MAX_ENTRIES: Final = 200
MAX_LETTERS: Final = 100  # of a value
HIDDEN: Final = "..."
AUDITED: Final = frozenset(
    (
        *("call", "capture", "gateway", "mix", "push", "recording", "registration"),
        *("room", "stream", "subscription", "trunk"),
    )
)
_SHOWN: Final = frozenset(
    ("from", "to", "transfer", "held", "muted", "log_level", "stream", "call")
)
URL: Final = "url"  # whose rest may have a key
_HOST: Final = re.compile(r"(\w+://)(?:[^/?#\s]*@)?([^/?#@\s]+)")
_NO_USER: Final = 401


class AuditTrail:
    """The latest entries; `keep` is given each of them, and so are `followers`.

    `offset` plus `now` is the time since 1970.
    """

    def __init__(self, offset: float, keep: Callable[[Row], object] = lambda entry: None) -> None:
        self._offset, self.keep = offset, keep
        self._entries: deque[Row] = deque(maxlen=MAX_ENTRIES)
        self.followers: list[Callable[[Row], object]] = []

    def note(
        self, method: str, path: Path, said: JsonValue, asker: Asker, status: int, now: float
    ) -> None:
        """Note a request that was answered with this status."""
        if not path or path[0] not in AUDITED or status == _NO_USER:
            return
        at = datetime.fromtimestamp(self._offset + now, UTC).isoformat(timespec="milliseconds")
        entry: Row = {
            "at": at,
            "user": asker.user or asker.host,
            "method": method,
            "resource": write_path(path),
            "entity": _summary(said),
            "status": status,
        }
        self._entries.append(entry)
        self.keep(entry)
        for follow in self.followers:
            follow(entry)

    def read(self) -> Row:
        """The entries, the latest first."""
        return {"entries": [*reversed(self._entries)]}


def _summary(said: JsonValue) -> Row:
    """The names in what was said, with the values that may be shown."""
    if not isinstance(said, dict):
        return {}
    return {str(name)[:MAX_LETTERS]: _told(name, each) for name, each in [*said.items()][:10]}


def _told(name: str, value: JsonValue) -> JsonValue:
    if name == URL:
        return _host(value)
    return _shown(value) if name in _SHOWN else HIDDEN


def _host(value: JsonValue) -> str:
    """The scheme and the host of a URL, unless a password with a slash may be there."""
    found = _HOST.match(value) if isinstance(value, str) else None
    if found is None or "@" in found.string[found.end() :]:
        return HIDDEN
    return (found[1] + found[2])[:MAX_LETTERS]


def _shown(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return masked(value)[:MAX_LETTERS]
    return value if isinstance(value, bool) else HIDDEN
