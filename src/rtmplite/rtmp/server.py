"""The server's side of a NetConnection over the chunk stream.

Implements RTMP 1.0 §7.2.1; what commands mean is in `netconnection`, for every carrier.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rtmplite.limits.memory_budget import Account
from rtmplite.rtmp.connection import Connection
from rtmplite.rtmp.handshake import ServerHandshake
from rtmplite.rtmp.message_transport import ConnectionLimits
from rtmplite.rtmp.netconnection import DEFAULT_LIMITS, NetConnection, State
from rtmplite.rtmp.wire import control
from rtmplite.rtmp.wire.chunk_reader import MAX_STREAMS
from rtmplite.rtmp.wire.framing import CHUNK_SIZE
from rtmplite.rtmp.wire.message import Message

if TYPE_CHECKING:
    from rtmplite.live.streams import Registry
    from rtmplite.rtmp.application import Application

USUAL_CONNECT: Final = 2048  # bytes; tools and players need a third of that
VALUES: Final = 32  # bytes of memory for each byte of AMF, at most: `amf.cursor`
CHUNK_STREAMS_OF_STRANGERS: Final = 64  # before connect is accepted; one is enough


class ServerConnection(NetConnection, Connection):
    """One client, from its first byte to its last: RTMP 1.0 §7.2.1."""

    def __init__(
        self,
        application_for: "Callable[[str], Application | None]",
        registry: "Registry",
        random: Callable[[int], bytes],
        now: float,
        *,
        limits: ConnectionLimits = DEFAULT_LIMITS,
    ) -> None:
        account = Account(registry.budget, is_trusted=False)
        Connection.__init__(self, ServerHandshake(random, now), now, limits, account)
        NetConnection.__init__(self, application_for, registry, random, now)
        self._reader.max_message = min(limits.stranger, limits.message)
        self._reader.max_streams = CHUNK_STREAMS_OF_STRANGERS

    def _on_message(self, message: Message, now: float) -> None:
        """Let who says much of himself at connect pay for it, as it is kept: RTMP 1.0 §7.2.1.1."""
        if self.state is State.NEW and len(message.payload) > USUAL_CONNECT:
            self._account.take(VALUES * len(message.payload))
        super()._on_message(message, now)

    def _welcome(self) -> None:
        """Say what goes before the result of connect, to who is no stranger any more.

        RTMP 1.0 §7.2.1.1 [window-first] [then-bandwidth] [then-begin].
        """
        self._account.trust()
        self._reader.max_message, self._reader.max_streams = self.limits.message, MAX_STREAMS
        self.send_window(self.limits.window)
        self.send_control(control.SetPeerBandwidth(self.limits.window, control.LimitType.DYNAMIC))
        self.send_chunk_size(CHUNK_SIZE)  # RTMP 1.0 §6.2 [fits-a-chunk]
        self.send_control(control.StreamBegin(0))
