"""The keep-alives of a registered flow: when they are sent, and whether they are answered.

Implements RFC 5626 §4.4, and §4.5: when a failed flow may be formed again.
"""

from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, TransportAddress
from p2psip.nat.stun_client import ClientTransaction
from p2psip.sip.message import Response
from p2psip.transaction.flow import Flow

STREAM_SECONDS: Final = (95.0, 120.0)  # Source: §4.4.1
DATAGRAM_SECONDS: Final = (24.0, 29.0)  # Source: §4.4.2
PONG_SECONDS: Final = 10.0  # Source: §4.4.1
PING: Final = b"\r\n\r\n"  # Source: §4.4.1
BASE_SECONDS: Final = 30.0  # Source: §4.5, where all flows have failed
BASE_BESIDE: Final = 90.0  # Source: §4.5, where another one stands
MAX_SECONDS: Final = 1800.0  # Source: §4.5
# The refusals that are passing: silence, a phone or a server that is not there now.
RECOVERABLE: Final = frozenset({408, 480, 500, 502, 503, 504})

Random = Callable[[int], bytes]


class StreamPing:
    """A double CRLF that waits for its CRLF: §4.4.1."""

    def __init__(self, now: float) -> None:
        self.deadline, self.failed = now + PONG_SECONDS, False

    def tick(self, now: float) -> bool:
        """Take the time; it is never sent again: §4.4.1."""
        self.failed = now >= self.deadline  # §4.4.1 [no-pong-is-a-failure]
        return False


class KeepAlives:
    """The keep-alives of one flow, until it `has_failed`: §4.4."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.flow: Flow | None = None
        self.is_answered = self.has_failed = False
        self._next = 0.0
        self._bounds = STREAM_SECONDS
        self._asked: StreamPing | ClientTransaction | None = None
        self._mapped: TransportAddress | None = None

    @property
    def at(self) -> float | None:
        """When to call `tick`: §4.4."""
        if self.flow is None:
            return None
        return self._next if self._asked is None else min(self._next, self._asked.deadline)

    def begin(self, flow: Flow, flow_timer: int, now: float) -> None:
        """Keep a flow alive; `flow_timer` is the registrar's wish in seconds, 0 for none: §4.4."""
        self.stop()
        # §4.4.1 [stream-interval], §4.4.2 [datagram-interval]
        bounds = STREAM_SECONDS if flow.reliable else DATAGRAM_SECONDS
        if flow_timer:
            bounds = 0.8 * flow_timer, float(flow_timer)  # §4.4 [within-flow-timer] [jitter]
        self.flow, self._bounds = flow, bounds
        self._schedule(now)

    def tick(self, now: float) -> bytes | None:
        """Take the time; return what is to be sent by the flow, if anything: §4.4."""
        asked = self._asked
        is_due = asked is not None and asked.tick(now)
        if asked is not None and asked.failed:
            self.has_failed = True
            return None
        if self._next <= now:
            is_due = True
            self._asked = asked = asked or self._ask(now)
            self._schedule(now)
        if not is_due:
            return None
        return asked.request.data if isinstance(asked, ClientTransaction) else PING

    def hear(self, data: bytes) -> bool:
        """Take what came by the flow, b"" for a CRLF; tell whether it was waited for: §4.4."""
        asked = self._asked
        if isinstance(asked, ClientTransaction):
            try:
                response = StunMessage.parse(data)
                if not asked.answers(response):
                    return False
                is_usable = response.kind is StunClass.SUCCESS and not response.unknown(StunType)
                mapped = response.mapped_address() if is_usable else None
            except RemoteError:
                return False
            # §4.4.2 [new-address-is-a-failure]
            self.has_failed = mapped is None or mapped != (self._mapped or mapped)
            self._mapped = mapped
        elif asked is None or data:
            return False
        self._asked, self.is_answered = None, True
        return True

    def stop(self) -> None:
        """Send no more: §4.4."""
        self.flow = self._asked = self._mapped = None
        self.is_answered = self.has_failed = False

    def _ask(self, now: float) -> StreamPing | ClientTransaction:
        assert self.flow is not None
        if self.flow.reliable:
            return StreamPing(now)  # §4.4.1 [crlf-by-streams]
        # §4.4.2 [stun-by-datagrams]
        request = StunMessage.write(StunClass.REQUEST, BINDING, self._random(12))
        return ClientTransaction(request, now)

    def _schedule(self, now: float) -> None:
        self._next = now + between(*self._bounds, self._random)  # §4.4.1 [new-number-each-time]


def is_recoverable(response: Response) -> bool:
    """Whether a refused REGISTER may be accepted later: by its status, or by its Retry-After.

    Then the flow is kept, for the proxy that refuses may have the binding still: §4.2.2.
    """
    return response.status in RECOVERABLE or "Retry-After" in response.headers


def retry_delay(failures: int, random: Random, *, others_stand: bool = False) -> float:
    """How long to wait after so many failures in a row, in seconds: §4.5."""
    base = BASE_BESIDE if others_stand else BASE_SECONDS
    most = min(MAX_SECONDS, base * 2 ** min(failures, 10))
    return between(most / 2, most, random)  # §4.5 [waits-for-the-delay]


def between(least: float, most: float, random: Random) -> float:
    """Draw a number between two bounds: §4.4."""
    return least + (most - least) * int.from_bytes(random(4), "big") / 2**32
