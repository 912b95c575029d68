"""Instant messages, each a request of its own.

Implements RFC 3428 §4, §7 and §8.

Not done: RFC 3428 §11 [end-to-end]: it takes S/MIME, and certificates of all users for that.
Not done: RFC 3428 §11.3 [smime]: for the same reason.
Not done: RFC 3428 §11.4 [400-for-stale]: an unsigned Date proves nothing, as whoever sends an old
message again can write a new one.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from p2psip.errors import LocalError, RemoteError
from p2psip.sip.address import Address
from p2psip.sip.message import Request, Response
from p2psip.stack.stack import ServerHandle
from p2psip.ua.core import SharedDialog, UserAgentCore
from p2psip.ua.requests.authenticated_request import AuthenticatedRequest, AuthenticatedRequestUser
from p2psip.ua.requests.digest_client import DigestClient
from p2psip.ua.requests.extensions import Extensions
from p2psip.ua.requests.request_validation import RefusalError, is_encoded, refuse_encoding

TEXT: Final = "text/plain"
MAX_SIZE: Final = 1300  # octets of a request.  Source: RFC 3428 §8
ROOM: Final = 200  # octets that a Via and credentials may add on the way
MAX_WAITING: Final = 100  # messages that wait for the one before, to one user or in one call

Heard = Callable[[Response, float], object]


@dataclass(frozen=True, slots=True)
class InstantMessage:
    """A message that was received (RFC 3428 §7): its sender, and its body of `content_type`."""

    sender: Address
    content_type: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text; octets other than UTF-8 are replaced (RFC 3428 §7)."""
        return self.body.decode(errors="replace")


def received(request: Request) -> InstantMessage:
    """Read a MESSAGE (RFC 3428 §7).  RefusalError with 415 for no text, or compressed text."""
    if request.content_type != TEXT:  # RFC 3428 §7 [takes-plain-text]
        raise RefusalError(415, "Unsupported Media Type", [("Accept", TEXT)])
    if is_encoded(request.headers):
        refuse_encoding()
    return InstantMessage(request.from_, request.content_type, request.body)


def answer(
    server: ServerHandle,
    request: Request,
    on_message: Callable[[InstantMessage], object],
    extensions: Extensions,
    now: float,
) -> None:
    """Answer a MESSAGE outside of a dialog, as `on_message` accepts it (RFC 3428 §7)."""
    try:
        extensions.refuse_unknown(request)
        on_message(received(request))
    except RefusalError as refusal:
        server.reply(refusal.status, now, refusal.reason, refusal.headers)
    except RemoteError as error:
        # RFC 3261 §8.2.1 [405-says-allow]
        allow = [("Allow", extensions.allow_but("MESSAGE"))] if error.status == 405 else []
        server.reply(error.status, now, error.reason, allow)
    else:
        server.reply(200, now)  # RFC 3428 §7 [answers-at-once] [no-body] [no-contact]


def refuse_large(request: Request) -> None:
    """Refuse a MESSAGE that is too large for a datagram (RFC 3428 §8).  Raises LocalError."""
    is_stream = (request.uri.param("transport") or "").lower() == "tcp"
    if len(bytes(request)) + ROOM > MAX_SIZE and not is_stream:
        # RFC 3428 §8 [no-more-than-1300]
        raise LocalError(f"a message has at most {MAX_SIZE} octets with its headers")


class Messages:
    """The messages that a user agent sends, one at a time to each user (RFC 3428 §8)."""

    def __init__(self, core: UserAgentCore) -> None:
        self._core = core
        self._waiting: dict[str, deque[tuple[Request, DigestClient | None, Heard]]] = {}

    @property
    def pending(self) -> int:
        """The number of messages without a final response (RFC 3428 §8)."""
        return sum(len(queue) for queue in self._waiting.values())

    def send(
        self, request: Request, heard: Heard, now: float, digest_client: DigestClient | None = None
    ) -> None:
        """Send a MESSAGE, after those before it to one user (RFC 3428 §8).  LocalError."""
        refuse_large(request)
        key = str(request.to.uri)
        queue = self._waiting.setdefault(key, deque())
        if len(queue) == MAX_WAITING:
            raise LocalError(f"{MAX_WAITING} messages to {key} wait already")
        queue.append((request, digest_client, heard))
        if len(queue) == 1:  # RFC 3428 §8 [one-at-a-time]
            self._send(key, now)

    def _send(self, key: str, now: float) -> None:
        request, digest_client, _ = self._waiting[key][0]
        numbers = iter(range(2, 100))
        exchange = AuthenticatedRequest(
            self._core.stack,
            self,
            numbers.__next__,
            digest_client,
            max_redirects=self._core.max_redirects,
        )
        exchange.send(request, now)

    def on_response(self, exchange: AuthenticatedRequest, response: Response, now: float) -> None:
        """Take an answer, and send the next message to the same user (RFC 3428 §8)."""
        if response.status < 200:
            return
        key = str(exchange.request.to.uri)  # which stays when the request goes elsewhere
        queue = self._waiting[key]
        _, _, heard = queue.popleft()
        if queue:
            self._send(key, now)
        else:
            del self._waiting[key]
        heard(response, now)


class DialogMessages:
    """The messages of ours within one call, one at a time (RFC 3428 §8); `user` is the call."""

    def __init__(self, user: AuthenticatedRequestUser) -> None:
        self._user = user
        self._sent: Request | None = None  # that has no final response yet
        self._exchange: AuthenticatedRequest | None = None
        self._waiting: deque[bytes] = deque()

    def send(self, body: bytes, dialog: SharedDialog, now: float) -> None:
        """Send a message, once those before have an answer (RFC 3428 §8).  LocalError."""
        if self._sent is None:
            refuse_large(request := dialog.new_request("MESSAGE", body, TEXT))
            self._send(request, dialog, now)
            return
        refuse_large(self._sent.replace(body=body))  # which has the same headers
        if len(self._waiting) == MAX_WAITING:
            raise LocalError(f"{MAX_WAITING} messages wait already")
        self._waiting.append(body)  # RFC 3428 §8 [one-at-a-time-within]

    def _send(self, request: Request, dialog: SharedDialog, now: float) -> None:
        self._sent, self._exchange = request, dialog.exchange(self._user, request, now)

    def on_response(self, exchange: AuthenticatedRequest, dialog: SharedDialog, now: float) -> None:
        """Send the next message after the final answer to one (RFC 3428 §8)."""
        if exchange is self._exchange:
            self._sent = None
            if self._waiting:
                request = dialog.new_request("MESSAGE", self._waiting.popleft(), TEXT)
                self._send(request, dialog, now)
