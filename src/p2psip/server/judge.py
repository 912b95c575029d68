"""The last word on what an element may do for a user.

Own design: RFC 3261 §16.3 lets a proxy have checks of its own; limits on calls are such checks.
"""

from collections.abc import Sequence
from typing import Protocol

from p2psip.server.registrar import Binding
from p2psip.sip.message import Request
from p2psip.stack.stack import ServerHandle


class Judge(Protocol):
    """Decides whether a user may send a request, after the user's password is proved."""

    def judge(self, server: ServerHandle, request: Request, now: float) -> None:
        """Judge a request outside of dialogs; raises RemoteError to refuse it: RFC 3261 §16.3."""

    def choose(
        self, server: ServerHandle, bindings: Sequence[Binding], now: float
    ) -> list[Binding]:
        """The bindings that may be called; raises RemoteError if none may: RFC 3261 §16.5."""

    def may_follow(self, request: Request) -> bool:
        """Whether a request within a dialog may go to this target and route: RFC 3261 §12.2."""


class Lenient:
    """A judge who allows everything: the default."""

    def judge(self, server: ServerHandle, request: Request, now: float) -> None:
        """Let it pass: RFC 3261 §16.3."""

    def choose(
        self, server: ServerHandle, bindings: Sequence[Binding], now: float
    ) -> list[Binding]:
        """All of them: RFC 3261 §16.5."""
        return list(bindings)

    def may_follow(self, request: Request) -> bool:
        """Let it pass: RFC 3261 §12.2."""
        return True
