"""One connection of a client to the tree: its requests, its answers, and its notifications.

Implements Resources §6.4 and §9.
"""

from collections.abc import Callable
from typing import Final

from p2psip.errors import RemoteError
from p2psip.sip import strict_json
from siprtmp.web.resources.asker import Asker
from siprtmp.web.resources.entity import JsonValue, read_json
from siprtmp.web.resources.messages import MAX_ID, Request, answer, refusal
from siprtmp.web.resources.tree import Tree

MAX_MESSAGE: Final = 128 << 10  # octets of a request; an entity may have half of that
QUEUE: Final = 256 << 10  # octets of notifications that wait for a slow client
ANSWERS: Final = 1 << 20  # octets that wait, before no more requests are read
BURST: Final = 400  # requests at once, and then
RATE: Final = 200.0  # a second


class ResourceSession:
    """From the start to `end`; the edge calls `receive`, and sends what `take` gives.

    `wake` is called when there is something to take.
    """

    def __init__(
        self, tree: Tree, asker: Asker, now: float, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._tree, self._asker, self._wake = tree, asker, wake
        self._output: list[str] = []
        self._waiting = 0  # octets of output
        self._missed = False
        self._tokens, self._counted = float(BURST), now
        tree.connect(asker.connection, self)

    def receive(self, text: str, now: float) -> None:
        """Answer a request."""
        identifier: JsonValue = None
        events: tuple[str, ...] = ()
        try:
            self._count(now)
            said = read_json(text.encode(errors="surrogatepass"))
            if not isinstance(said, dict):
                raise RemoteError("A request is an object")
            identifier = _short(said.get("id"))
            reply = answer(self._tree, Request.read(said), self._asker)
            message, events = reply.message(), reply.events
        except RemoteError as error:
            message = refusal(error)
        if identifier is not None:  # Resources §2.2 [id-is-repeated]
            message["id"] = identifier
        self._add(strict_json.dumps(message))
        for event in events:  # Resources §6.3 [events-follow-the-answer]
            self.put(event)

    def put(self, text: str) -> None:
        """Send a notification, unless too many wait: Resources §6.4."""
        if self._missed or self._waiting + len(text) > QUEUE:
            self._missed = True
        else:
            self._add(text)

    def take(self) -> list[str]:
        """The messages to send now; the queue is empty then."""
        out, self._output, self._waiting = self._output, [], 0
        if self._missed:  # Resources §6.4 [missed-is-said]
            self._missed = False
            last = {"notify": "MISSED", "seq": self._tree.sequence, "epoch": self._tree.epoch}
            out.append(strict_json.dumps(last))
        return out

    @property
    def waiting(self) -> int:
        """The octets that wait to be sent."""
        return self._waiting

    @property
    def is_reading(self) -> bool:
        """Whether more requests may be read."""
        return self._waiting < ANSWERS

    def end(self) -> None:
        """The connection has ended."""
        self._tree.gone(self._asker.connection)

    def _add(self, text: str) -> None:
        self._output.append(text)
        self._waiting += len(text)
        self._wake()

    def _count(self, now: float) -> None:
        """Raise RemoteError for a client that sends too much: Resources §8 [too-fast-is-429]."""
        self._tokens = min(BURST, self._tokens + (now - self._counted) * RATE)
        self._counted = now
        if self._tokens < 1:
            raise RemoteError("Too many requests", 429)
        self._tokens -= 1


def _short(identifier: JsonValue) -> JsonValue:
    """The `id` of a request, if an answer may repeat it."""
    is_short = isinstance(identifier, int | str) and len(str(identifier)) <= MAX_ID
    return identifier if is_short else None
