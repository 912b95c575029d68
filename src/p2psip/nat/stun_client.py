"""The client side of STUN: a request until its response, and the question which address we have.

Implements RFC 8489 §6.2.1 and §6.3, over UDP: `BindingClient` for the Binding method,
`ClientTransaction` for any, and over TCP too (§6.2.2).

    >>> request = StunMessage.write(StunClass.REQUEST, BINDING, bytes(12))
    >>> asked, times = ClientTransaction(request, now=0.0), []
    >>> while asked.tick(asked.deadline):
    ...     times.append(asked.deadline)
    >>> times, asked.failed
    ([1.5, 3.5, 7.5, 15.5, 31.5, 39.5], True)
"""

from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.nat.stun import BINDING, StunClass, StunMessage, StunType, TransportAddress

RTO: Final = 0.5  # s, the first gap: §6.2.1 [rto-500-ms]
REQUESTS: Final = 7  # Rc, the number of requests in all: §6.2.1 [rc-7]
TI: Final = 39.5  # s for the answer to a request by TCP: §6.2.2 [ti-39-5-s]
LAST_GAP: Final = 16  # Rm, the RTOs of waiting after the last one: §6.2.1 [rm-16]
# s between questions.  Own design: shorter than the 30 s after which the most impatient address
# translators forget a silent port, so that asking also keeps the port open.
INTERVAL: Final = 25.0


class ClientTransaction:
    """One request, which the owner sends now and whenever `tick` is true: §6.2.1.

    By TCP it is sent once, and has `ti` seconds for its answer.
    """

    def __init__(
        self, request: StunMessage, now: float, rto: float = RTO, *, ti: float | None = None
    ) -> None:
        self.request, self.failed = request, False
        self._left, self._gap, self._last = REQUESTS - 1, rto, LAST_GAP * rto
        self.deadline = now + rto
        if ti is not None:
            self._left, self.deadline = 0, now + ti  # §6.2.2 [once-by-tcp]

    def tick(self, now: float) -> bool:
        """Take the time; tell whether to send the request again: §6.2.1."""
        if self.failed or now < self.deadline:
            return False
        if not self._left:
            self.failed = True  # §6.2.1 [gives-up]
            return False
        self._left -= 1
        self._gap *= 2  # §6.2.1 [gap-doubles]
        self.deadline = now + (self._gap if self._left else self._last)
        return True

    def answers(self, response: StunMessage) -> bool:
        """Tell whether a message is a response to this request: §6.3."""
        return (
            response.kind in (StunClass.SUCCESS, StunClass.ERROR)
            and response.method == self.request.method
            and response.transaction_id == self.request.transaction_id
        )


class BindingClient:
    """Asks one server for the address that it sees us at, now and every `INTERVAL` seconds: §2.

    `mapped` is that address, None before the first answer; `silent` tells that the last question
    had none.  `random(n)` gives n octets.  The owner sends the result of `tick`, and passes on
    datagrams that come from the server's own address.
    """

    def __init__(self, random: Callable[[int], bytes], now: float) -> None:
        self.mapped: TransportAddress | None = None
        self.silent = False
        self._random, self._ask_at = random, now
        self._asked: ClientTransaction | None = None

    @property
    def deadline(self) -> float:
        """When to call `tick`.  §6.2.1."""
        return self._ask_at if self._asked is None else self._asked.deadline

    def tick(self, now: float) -> bytes | None:
        """Take the time; return the request if it is to be sent, first or again: §6.2.1."""
        if self._asked is None:
            if now < self._ask_at:
                return None
            # §5 [random-transaction-id] [new-id-for-new-transaction]
            request = StunMessage.write(StunClass.REQUEST, BINDING, self._random(12))
            self._asked = ClientTransaction(request, now)
            return request.data
        if self._asked.tick(now):
            return self._asked.request.data
        if self._asked.failed:
            self._ended(now, silent=True)
        return None

    def receive(self, data: bytes, now: float) -> bool:
        """Take a datagram of the server; whether it was the answer, of use or not: §6.3, §6.3.3."""
        try:
            response = StunMessage.parse(data)
            if self._asked is None or not self._asked.answers(response):
                return False  # §6.3: of another transaction, or forged
            is_usable = response.kind is StunClass.SUCCESS and not response.unknown(StunType)
            # §6.3.3 [other-families-ignored]
            mapped = response.mapped_address() if is_usable else None
        except RemoteError:
            return False
        self.mapped = mapped or self.mapped
        self._ended(now, silent=mapped is None)
        return True

    def _ended(self, now: float, *, silent: bool) -> None:
        # §6.3.4 [redirections-are-failures] [few-resends]
        self._asked, self.silent, self._ask_at = None, silent, now + INTERVAL
