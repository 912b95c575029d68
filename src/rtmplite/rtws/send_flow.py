"""A sending flow of RTWebSocket: messages in parts, while the receiver has room for them.

Implements Field §"RTWebSocket flows".  Nothing is lost below, so nothing is sent twice; a message
that is late is abandoned as long as any part of it waits here.

Own design: the names are those of RTMFP's flows, whose users can then be the same.
"""

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from rtmplite.errors import LocalError, RemoteError
from rtmplite.rtmfp.session.flow_states import SendState
from rtmplite.rtmfp.session.send_queue import Outgoing
from rtmplite.rtws.frames import Abandon, Data, FlowClose, FlowOpen

if TYPE_CHECKING:
    from rtmplite.rtmfp.session.send_flow import Priority

FIRST_WINDOW: Final = 65536  # bytes, before the receiver says otherwise
PART: Final = 1400  # bytes of a message in one frame, so that what is urgent waits little


class RtwsSender(Protocol):
    """The user of a sending flow: Field §"RTWebSocket flows"."""

    def on_exception(self, flow: "RtwsSendFlow", code: int, now: float) -> None:
        """The far end rejects the flow, which closes it."""

    def on_writable(self, flow: "RtwsSendFlow", now: float) -> None:
        """More has arrived."""

    def on_complete(self, flow: "RtwsSendFlow", now: float) -> None:
        """The flow was closed, and all of it has arrived or been abandoned."""


class _Waiting:
    """A message that is not sent, or in part; `at` bytes of it are."""

    __slots__ = ("at", "data", "message")

    def __init__(self, message: Outgoing, data: bytes) -> None:
        self.message, self.data, self.at = message, data, 0


class RtwsSendFlow:
    """One sending flow of a session: Field §"RTWebSocket flows".  `RtwsSession.open_flow` makes it.

    `queued` counts the bytes that have neither arrived nor been given up, `refused` those that
    waited when the receiver rejected the flow.  `answers` is the receiving flow that it returns to.
    """

    def __init__(
        self,
        flow_id: int,
        metadata: bytes,
        answers: int | None,
        sender: RtwsSender,
        priority: "Priority",
    ) -> None:
        self.flow_id, self.metadata = flow_id, metadata
        self.sender, self.priority = sender, priority
        self.state = SendState.OPEN
        self.refused = 0
        self._hello = bytes(FlowOpen(flow_id, metadata, answers))
        self._waiting: deque[_Waiting] = deque()
        self._held = 0  # bytes of messages that wait here, sent parts of them left out
        self._number = self._sent = self._arrived = 0
        self._allowed = FIRST_WINDOW
        self._has_ended = False  # the far end was told that it is closed

    @property
    def queued(self) -> int:
        """Bytes that have neither arrived nor been given up: Field §"RTWebSocket flows"."""
        return self._held + self._sent - self._arrived

    @property
    def has_entries(self) -> bool:
        """Whether any message has yet to be acknowledged: Field §"RTWebSocket acknowledgements"."""
        return bool(self._waiting) or self._sent > self._arrived

    def send(self, message: bytes, now: float, *, lifetime: float | None = None) -> Outgoing:
        """Queue a message, to be abandoned after `lifetime` seconds: Field §"RTWebSocket flows".

        LocalError unless the flow is open.
        """
        if self.state is not SendState.OPEN:
            raise LocalError(f"a message on a flow that is {self.state}")
        self._number += 1
        forever = float("inf")
        expires = forever if lifetime is None else now + lifetime
        outgoing = Outgoing(self._number, self._number, expires, forever)
        self._waiting.append(_Waiting(outgoing, bytes(message)))
        self._held += len(message)
        return outgoing

    def close(self, now: float) -> None:
        """Accept no more messages; those queued are still sent.  Idempotent."""
        if self.state is SendState.OPEN:
            self.state = SendState.CLOSING

    def end(self) -> None:
        """Stop, because the session has ended."""
        self.state = SendState.CLOSED
        self._waiting.clear()
        self._held = 0

    @property
    def sent(self) -> int:
        """Bytes of data frames so far: Field §"RTWebSocket acknowledgements"."""
        return self._sent

    def next_frame(self, now: float) -> bytes | None:
        """Give the next frame to send, None if there is none now: Field §"RTWebSocket flows"."""
        if self._has_ended:
            return None
        if self._hello:
            hello, self._hello = self._hello, b""
            return hello
        if gone := self._give_up_late(now):
            return bytes(Abandon(self.flow_id, gone))  # Field §"RTWebSocket flows" [abandons]
        if self._waiting:
            return self._next_part()
        if self.state is SendState.CLOSING:
            self._has_ended = True
            return bytes(FlowClose(self.flow_id))  # Field §"RTWebSocket flows" [closes-behind-all]
        return None

    def acknowledge(self, count: int, window: int, now: float) -> None:
        """Take an acknowledgement.  RemoteError for more than was sent."""
        if count > self._sent - self._arrived:
            raise RemoteError(f"{count} bytes acknowledged of {self._sent - self._arrived}")
        self._arrived += count
        # Field §"RTWebSocket acknowledgements" [window-beyond-the-acknowledged]
        self._allowed = self._arrived + window
        if count:
            self.sender.on_writable(self, now)

    def excepted(self, code: int, now: float) -> None:
        """Give up all that waits, and close: Field §"RTWebSocket flows" [exception-closes]."""
        self.refused += self._held
        for each in self._waiting:
            each.message.expires = float("-inf")
        if self.state is SendState.OPEN:
            self.state = SendState.CLOSING
            self.sender.on_exception(self, code, now)

    def closed(self, now: float) -> int:
        """The far end knows the end: give the bytes that had no acknowledgement of their own.

        RemoteError if it was not told of an end.
        """
        if not self._has_ended:
            raise RemoteError(f"flow {self.flow_id} is acknowledged as closed, and is open")
        self.state = SendState.CLOSED
        left, self._arrived = self._sent - self._arrived, self._sent
        self.sender.on_complete(self, now)
        return left

    def _next_part(self) -> bytes | None:
        first = self._waiting[0]
        room = self._allowed - self._sent
        if room <= 0:  # Field §"RTWebSocket acknowledgements" [window-obeyed]
            return None
        end = min(first.at + min(PART, room), len(first.data))
        more = end < len(first.data)
        frame = bytes(Data(self.flow_id, first.data[first.at : end], more))
        self._held -= end - first.at
        self._sent += len(frame)
        first.at, first.message.begun = end, True
        if not more:
            self._waiting.popleft()
        return frame

    def _give_up_late(self, now: float) -> int:
        """Drop the messages at the front that are late, and count them."""
        count = 0
        while self._waiting and self._waiting[0].message.is_late(now):
            gone = self._waiting.popleft()
            gone.message.abandoned = True
            self._held -= len(gone.data) - gone.at
            count += 1
        return count
