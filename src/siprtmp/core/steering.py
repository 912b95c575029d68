"""Which worker of a gateway a SIP message is for.

Own design: the first worker has the listeners, and reads each message first.  A response is for the
worker whose mark its branch has (RFC 3261 §17.1.3).  A request to a Contact is for the one that the
Contact names, and so is every request within a dialog of that worker (RFC 3261 §12.2.1.1).  A call
from elsewhere is decided once; what repeats, cancels or acknowledges the INVITE goes the same way,
by the key of its transaction (RFC 3261 §17.2.3).  So nothing is kept for a call that is up, and a
first worker that is started again knows the way to each call of the others.
"""

from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip.message import Request, Response
from p2psip.sip.uri import Uri
from p2psip.transaction.flow import Flow, rate_limit_key
from p2psip.transaction.key import COOKIE, Key, server_key
from siprtmp.calls.neighbours import Neighbours

MAX_DECIDED: Final = 8_000  # of all hosts; for more, the one with most loses its oldest
HERE: Final = 0  # the first worker, which decides
DECIDED: Final = ("INVITE", "MESSAGE")  # what a name or a line may take


class Steering:
    """Decides for the first worker, with its `neighbours`; `is_ours(uri)` is that of the stack.

    `passes(request, flow)` tells whether a request has to pass our proxy first.  `decide(request,
    flow)` gives the worker for an INVITE or a MESSAGE outside a dialog.
    """

    def __init__(
        self,
        neighbours: Neighbours,
        is_ours: Callable[[Uri], bool],
        passes: Callable[[Request, Flow], bool],
        decide: Callable[[Request, Flow], int],
    ) -> None:
        self._neighbours, self._is_ours, self._passes = neighbours, is_ours, passes
        self._decide = decide
        self._decided: dict[str, dict[Key, int]] = {}  # by host, the oldest first
        self._count = 0

    def worker_of(self, message: Request | Response, flow: Flow) -> int:
        """The worker that a message is for; a malformed one is for the first."""
        try:
            if isinstance(message, Response):
                return self._neighbours.worker_called(_marked(message.via.branch or "")) or HERE
            return HERE if self._passes(message, flow) else self._worker_of(message, flow)
        except RemoteError:
            return HERE

    def lost(self, worker: int) -> None:
        """Decide anew what went to a worker that has ended."""
        for host, decided in list(self._decided.items()):
            for key in [key for key, known in decided.items() if known == worker]:
                self._forget(host, key)

    def _worker_of(self, request: Request, flow: Flow) -> int:
        named = self._neighbours.worker_in(request.uri) if request.method != "REGISTER" else None
        if named is not None and self._is_ours(request.uri):
            return named
        is_about = request.method in ("ACK", "CANCEL")
        if not (is_about or request.method in DECIDED):
            return HERE
        key = server_key(request, "INVITE" if is_about else "")
        host = rate_limit_key(flow.remote[0])
        decided = self._decided.get(host, {})
        if is_about or key in decided:
            return decided.get(key, HERE)
        if request.to.tag is not None:
            return HERE
        worker = self._decide(request, flow)
        self._decided.setdefault(host, decided)[key] = worker
        self._count += 1
        if self._count > MAX_DECIDED:
            fullest = max(self._decided, key=lambda each: len(self._decided[each]))
            self._forget(fullest, next(iter(self._decided[fullest])))
        return worker

    def _forget(self, host: str, key: Key) -> None:
        del self._decided[host][key]
        self._count -= 1
        if not self._decided[host]:
            del self._decided[host]


def _marked(branch: str) -> str:
    """The number of a worker in a branch, see `Neighbours.mark`; empty without one."""
    mark, dot, _ = branch.removeprefix(COOKIE).partition(".")
    return mark[1:] if dot and mark.startswith("w") else ""
