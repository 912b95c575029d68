"""Where the messages of a live stream go for one player over RTMFP.

Implements RFC 7425 §5.1.1 [many-flows].  The bytes of a message are the same for all such players;
which flow they go into, and whether they are worth sending at all, is decided here for each.
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from rtmplite.rtmfp.netconnection.media_flows import Lifetimes, medium_of

if TYPE_CHECKING:
    from rtmplite.rtmfp.netconnection.connection import FlowConnection

# Own design: what a TCP socket would take without a word; only what is more counts as slowness.
ROOM: Final = 128 * 1024


class FlowOutlet:
    """What `LiveStream.join` is given for a player: RTMP 1.0 §7.2.2.1.

    Own design: it counts what waits by itself, so that one stream of a client that is too slow
    does not stop another.
    """

    def __init__(self, connection: "FlowConnection", stream_id: int, lifetimes: Lifetimes) -> None:
        self.output_size = 0
        self._connection, self._stream_id, self._lifetimes = connection, stream_id, lifetimes

    def put(self, data: bytes) -> None:
        """Queue one message, as `flash.encode_message` gives it: §5.1.2."""
        if self.output_size:
            self.output_size += len(data)
        self._connection.enqueue(partial(self._send, data), len(data))

    def abort(self, reason: str, now: float) -> None:
        """End the connection: it is too slow.  Own design."""
        self._connection.abort(reason, now)

    def recount(self, queued: int) -> None:
        """Hear how many bytes of this stream are under way.  Own design: see `ROOM`."""
        self.output_size = max(0, queued - ROOM)

    def _send(self, data: bytes, now: float) -> None:
        lane = self._connection.lane(self._stream_id, medium_of(data[0]))
        lane.send_live(data, now, self._lifetimes)
