"""The client behind a request for a resource.

Own design: a tree judges by this alone, so that the same rules hold by HTTP and by WebSocket.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asker:
    """A client: `user` is None for an anonymous one, and `connection` is empty by plain HTTP.

    `groups` are those that a token names, or the web service that knows the users.  `by_token` says
    that one of these two named the user.  Limits are counted for each `host`.
    """

    user: str | None = None
    groups: frozenset[str] = frozenset()
    connection: str = ""
    host: str = ""
    by_token: bool = False
