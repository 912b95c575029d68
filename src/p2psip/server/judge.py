"""The last word on what an element may do for a user.

Own design: RFC 3261 §16.3 lets a proxy have checks of its own; limits on calls are such checks.
"""

from collections.abc import Sequence

from p2psip.server.registrar import Binding
from p2psip.sip.message import Request
from p2psip.stack.stack import ServerHandle


class Lenient:
    """Decides what a user may do whose password is proved: anything.  A subclass may be strict."""

    def judge(self, server: ServerHandle, request: Request, now: float) -> None:
        """Allow a request outside of dialogs, or raise RemoteError: RFC 3261 §16.3."""

    def choose(
        self, server: ServerHandle, bindings: Sequence[Binding], now: float
    ) -> list[Binding]:
        """The bindings that may be called; raises RemoteError if none may: RFC 3261 §16.5."""
        return list(bindings)

    def may_follow(self, request: Request) -> bool:
        """Whether a request within a dialog may go to this target and route: RFC 3261 §12.2."""
        return True
