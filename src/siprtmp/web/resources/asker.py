"""The client behind a request for a resource.

Own design: a tree judges by this alone, so that the same rules hold by HTTP and by WebSocket.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asker:
    """A client: `user` is None for an anonymous one, and `connection` is empty by plain HTTP.

    `groups` are those that a token, or the web service that knows the users, names; `by_token` says
    that one of these named the user.  `host` is what its limits are counted by.
    """

    user: str | None = None
    groups: frozenset[str] = frozenset()
    connection: str = ""
    host: str = ""
    by_token: bool = False
