"""Orders to the edge, and messages to ourselves.

Own design: a message to one of our own listeners needs no socket.  It waits here until the stack
receives it from itself.  So a user of this process reaches a service of this process by the same
machinery as others do (RFC 3261 §18).  Where the listeners are those of another process, such a
message is an order like any other.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from p2psip.sip.uri import Uri
from p2psip.transaction.flow import LOCAL, Flow


@dataclass(frozen=True, slots=True, init=False)
class Send:
    """Order: write `data`, one whole message, to where `flow` leads (RFC 3261 §18)."""

    data: bytes
    flow: Flow

    def __init__(
        self,
        data: bytes,
        flow: Flow,
    ) -> None:
        object.__setattr__(self, "data", data)
        object.__setattr__(self, "flow", flow)


@dataclass(frozen=True, slots=True)
class Locate:
    """Order: find the servers of `uri` by RFC 3263 §4, and call `Stack.located` with `token`."""

    token: int
    uri: Uri


Order = Send | Locate


class Outbox:
    """The messages and look-ups to be carried out, in order.

    `sent` is told of each message.  With `is_apart` the listeners are those of another process.
    """

    def __init__(
        self,
        sent: Callable[[bytes, Flow], object] = lambda data, flow: None,
        *,
        is_apart: bool = False,
    ) -> None:
        self._sent, self._is_apart = sent, is_apart
        self.orders: list[Order] = []
        self.local: deque[tuple[bytes, Flow]] = deque()
        self.on_first: Callable[[], None] | None = None

    def send(self, data: bytes, flow: Flow) -> None:
        """Send one message, to a peer or to ourselves."""
        self._note()
        self._sent(data, flow)
        if flow.transport == LOCAL and not self._is_apart:
            self.local.append((data, flow))
        else:
            self.orders.append(Send(data, flow))

    def locate(self, token: int, uri: Uri) -> None:
        """Ask for the servers of `uri` (RFC 3263 §4)."""
        self._note()
        self.orders.append(Locate(token, uri))

    def take(self) -> list[Order]:
        """Take the orders out."""
        orders, self.orders = self.orders, []
        return orders

    def _note(self) -> None:
        """Tell the edge that orders wait, once until it has taken them."""
        if self.on_first is not None and not self.orders and not self.local:
            self.on_first()
