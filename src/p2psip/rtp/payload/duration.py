"""How long a payload is, on the RTP clock of its format.

Implements RFC 3551 §4.5 and RFC 7587 §4.2, where they tell a payload's length from its octets.

    >>> ticks("PCMU", bytes(160), 8000), ticks("L16", bytes(1764), 44100, 2)
    (160, 441)

G.722 has a clock of 8000 Hz by an old mistake that all keep to (RFC 3551 §4.5.2): an octet is one
tick, though it holds two samples of 16000 Hz.
"""

from typing import Final

from p2psip.errors import RemoteError
from p2psip.rtp.payload import opus, speex

# Source: RFC 3551 §4.5 Table 1, encodings of which each octet is a tick of the clock
_OCTETS_ARE_TICKS: Final = frozenset({"PCMU", "PCMA", "G722"})
_FRAMES_A_SECOND: Final = 50  # of encodings whose payload does not tell: §4.2, 20 ms is usual


def ticks(encoding: str, payload: bytes | memoryview, clock_rate: int, channels: int = 1) -> int:
    """Count the ticks of one payload, 20 ms where that cannot be told: RFC 3551 §4.5."""
    name = encoding.upper()
    if name in _OCTETS_ARE_TICKS:
        return len(payload)  # §4.5.2 [g722-clock]
    if name == "L16":
        return len(payload) // (2 * channels)
    usual = clock_rate // _FRAMES_A_SECOND
    if name == "OPUS":
        return opus.total_ticks(payload) or usual
    if name == "SPEEX":
        try:
            return usual * speex.count(payload)
        except RemoteError:
            return usual
    return usual
