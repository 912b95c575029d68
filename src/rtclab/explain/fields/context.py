"""What one part of a conversation tells about another one.

Own design: payload types of RTP are named by a session description, chunk sizes by the messages
before, keys of RTMFP by the operator, those of SRTP by both.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from p2psip.sdp.attributes import STATIC, RtpMap
from rtclab.explain.fields.field import Field, Span
from rtclab.unwrap.srtp import SrtpSessions


class RtmfpKey(NamedTuple):
    """The keys of one direction of a session: of AES, and of the HMAC if there is one."""

    key: bytes
    hmac_key: bytes = b""


@dataclass(slots=True)
class Context:
    """What is known so far; describers read it and add to it.

    `rtpmaps` are the formats by payload type, `keys` those of RTMFP sessions, `srtp` what opens
    SRTP, `length_size` the octets before each NAL unit of AVC in FLV.
    `way` is where a datagram went, `rtmfp_ways` those that RTMFP took, and `parts` the fragments of
    messages by way and flow.
    """

    rtpmaps: dict[int, RtpMap] = field(default_factory=lambda: dict(STATIC))
    keys: tuple[RtmfpKey, ...] = ()
    length_size: int = 4
    srtp: SrtpSessions = field(default_factory=SrtpSessions)
    way: str = ""
    rtmfp_ways: set[str] = field(default_factory=set)
    parts: dict[tuple[str, int], list[tuple[int, bytes]]] = field(default_factory=dict)

    @property
    def ends(self) -> tuple[str, ...]:
        """Where a datagram came from, and where it went."""
        return tuple(self.way.split(" > "))


Describer: TypeAlias = Callable[[Span, Context], Field]
