"""Path MTU discovery: finds how large a datagram may be, by sending larger ones.

Implements RFC 7016 §3.5.4.3.  A probe is padding and a Ping behind it; a reply to the Ping says
that the datagram has arrived whole.  This proves something only if the network may not fragment
datagrams, so a socket has to forbid fragmentation before it enables this.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from rtmplite.rtmfp.wire.chunks import HEADER_LENGTH, encode_chunk
from rtmplite.rtmfp.wire.control_chunks import Ping

MARKING: Final = b"S"
TRIES: Final = 3
PAUSE_SECONDS: Final = 1.0
_PADDING: Final = 0x00
_NONCE_BYTES: Final = 8


class PathMtu:
    """The datagram `size` known to pass, and the `sizes` to try next: §3.5.4.3."""

    __slots__ = ("_due", "_message", "_probed", "_random", "_sizes", "_tries", "size")

    def __init__(
        self, size: int, sizes: tuple[int, ...], random: Callable[[int], bytes], now: float
    ) -> None:
        self.size = size
        self._sizes, self._random = list(sizes), random
        self._tries = self._probed = 0
        self._message = b""
        self._due = now if sizes else inf

    @property
    def deadline(self) -> float:
        """When to call `tick`, infinite for never: §3.5.4.3."""
        return self._due

    def tick(self, now: float, pause: float) -> int:
        """Return a size to try now, 0 for none; `pause` s to wait for a reply: §3.5.4.3."""
        if now < self._due:
            return 0
        if self._tries == TRIES:  # neither this size nor any larger one passes
            self._due = inf
            return 0
        self._tries += 1
        self._due = now + max(pause, PAUSE_SECONDS)
        self._message = MARKING + self._random(_NONCE_BYTES)
        return self._sizes[0]  # §3.5.4.3 [discovers]

    def probe(self, room: int) -> bytes:
        """Return the chunks of a probe, `room` bytes together: §3.5.4.3 [ping-after-padding]."""
        ping = encode_chunk(Ping(self._message))
        padding = room - len(ping) - HEADER_LENGTH
        return b"%c%c%c" % (_PADDING, padding >> 8, padding & 0xFF) + bytes(padding) + ping

    def sent(self, size: int) -> None:
        """Note the exact `size` of the datagram that carries the probe: §3.5.4.3."""
        self._probed = size

    def on_reply(self, message: bytes, now: float) -> None:
        """Take a Ping Reply; the right one says that the size passes: §3.5.4.3."""
        if message == self._message and self._sizes and self._due != inf:
            self._sizes.pop(0)  # §3.5.4.3 [discovers]
            self.size = self._probed  # §3.5.4.3 [discovers]
            self._tries = 0
            self._due = now if self._sizes else inf
