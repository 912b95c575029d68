"""The server's side of a NetConnection over the chunk stream.

Implements RTMP 1.0 §7.2.1; what commands mean is in `netconnection`, for every transport.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rtmplite.limits.memory_budget import Account, MemoryBudget
from rtmplite.rtmp.connection import ChunkTransport
from rtmplite.rtmp.handshake import ServerHandshake
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS, NetConnection
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_reader import MAX_STREAMS
from rtmplite.rtmp.wire.chunk_writer import CHUNK_SIZE
from rtmplite.rtmp.wire.message import Message

if TYPE_CHECKING:
    from rtmplite.live.streams import Registry
    from rtmplite.rtmp.netconnection import Application

USUAL_CONNECT: Final = 2048  # bytes; tools and players need a third of that
VALUES: Final = 32  # bytes of memory for each byte of AMF, at most: `amf.cursor`
CHUNK_STREAMS_OF_STRANGERS: Final = 64  # before connect is accepted; one is enough


class ServerChunkTransport(ChunkTransport):
    """The server's end of a chunk stream: RTMP 1.0 §7.2.1.

    Own design: a client is a stranger until `welcome`, and may use less memory before it.
    """

    def __init__(
        self,
        random: Callable[[int], bytes],
        now: float,
        limits: ConnectionLimits,
        budget: MemoryBudget,
    ) -> None:
        account = Account(budget, is_trusted=False)
        super().__init__(ServerHandshake(random, now), now, limits, account)
        self._is_stranger = True
        self._reader.max_message = min(limits.stranger, limits.message)
        self._reader.max_streams = CHUNK_STREAMS_OF_STRANGERS

    def _on_message(self, message: Message, now: float) -> None:
        """Let the client pay for a long connect command, as it is kept: RTMP 1.0 §7.2.1.1."""
        if self._is_stranger and len(message.payload) > USUAL_CONNECT:
            self._account.take(VALUES * len(message.payload))
        super()._on_message(message, now)

    def welcome(self) -> None:
        """Send the messages that precede the result of connect (RTMP 1.0 §7.2.1.1)."""
        self._is_stranger = False
        self._account.trust()
        self._reader.max_message, self._reader.max_streams = self.limits.message, MAX_STREAMS
        self.send_window(self.limits.window)  # RTMP 1.0 §7.2.1.1 [window-first]
        # RTMP 1.0 §7.2.1.1 [then-bandwidth]
        self.send_control(control.SetPeerBandwidth(self.limits.window, control.LimitType.DYNAMIC))
        self.send_chunk_size(CHUNK_SIZE)  # RTMP 1.0 §6.2 [fits-a-chunk], §5.4.1 [size-at-least-128]
        self.send_control(control.StreamBegin(0))  # RTMP 1.0 §7.2.1.1 [then-begin]


class ServerConnection(NetConnection):
    """One client, from its first byte to its last: RTMP 1.0 §7.2.1."""

    transport: ServerChunkTransport

    def __init__(
        self,
        application_for: "Callable[[str], Application | None]",
        registry: "Registry",
        random: Callable[[int], bytes],
        now: float,
        *,
        limits: ConnectionLimits = DEFAULT_LIMITS,
    ) -> None:
        transport = ServerChunkTransport(random, now, limits, registry.budget)
        super().__init__(transport, application_for, registry, random, now)
