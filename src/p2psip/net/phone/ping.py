"""Asks a peer again and again whether it is there.

Implements RFC 3261 §11: an OPTIONS as a ping, which trunks and load balancers use.
"""

from collections.abc import Callable
from typing import Final

import gevent

from p2psip.errors import RemoteError

# Answers that come from a proxy on the way, or from nobody: time-out, and no way to the peer.  Any
# other is the peer's: Field §"Answers to OPTIONS".
GONE: Final = (408, 503)


class Ping:
    """Pings one peer until `close`: §11.

    `ask()` sends one request, and raises RemoteError for a refusal and TimeoutError for silence.
    A refusal also proves that the peer is there.  `alive` is None before the first result, and
    `on_alive(alive)` is told of that and of every change, in the greenlet of the pings.
    """

    def __init__(
        self,
        ask: Callable[[], object],
        every: float,
        on_alive: Callable[[bool], object] = lambda alive: None,
    ) -> None:
        self.alive: bool | None = None
        self._ask, self._every, self._on_alive = ask, every, on_alive
        self._greenlet = gevent.spawn(self._run)

    def close(self) -> None:
        self._greenlet.kill(block=False)

    def _run(self) -> None:
        while True:
            alive = self._is_alive()
            if alive != self.alive:
                self.alive = alive
                self._on_alive(alive)
            gevent.sleep(self._every)

    def _is_alive(self) -> bool:
        try:
            self._ask()
        except RemoteError as error:
            return error.status not in GONE
        except TimeoutError:
            return False
        return True
