"""Slow work of a startup, which is done beside the loop: Diffie-Hellman.

Own design: RFC 7016 leaves open who computes; here nobody's media waits for a stranger's keys.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from rtmplite.errors import RemoteError

_T = TypeVar("_T")


class Job(Generic[_T]):
    """Slow work without side effects, and the function that takes its result.

    `run` it anywhere, in any thread, then hand it to `Endpoint.finish`.  That must be done even if
    `run` raised something, or never ran: then the work counts as refused.
    """

    def __init__(
        self, work: Callable[[], _T], done: Callable[[_T | RemoteError, float], None]
    ) -> None:
        self._work, self._done = work, done
        self._result: _T | RemoteError = RemoteError("the computation did not end")

    def run(self) -> None:
        """Do the work; a RemoteError is a result like others."""
        try:
            self._result = self._work()
        except RemoteError as error:
            self._result = error

    def finish(self, now: float) -> None:
        """Go on with the result, where machines are called: `Endpoint.finish` does."""
        self._done(self._result, now)
