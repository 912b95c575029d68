"""The outcome of offer and answer: what one end sends and receives on each line.

Implements RFC 3264 §6.1 and §7.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from p2psip.sdp.attributes import DEFAULT_PTIME
from p2psip.sdp.codec import Codec
from p2psip.sdp.crypto import AgreedKeys
from p2psip.sdp.local_media import REPORT_INTERVAL

# A direction as (its author sends, its author receives): RFC 8866 §6.7.
FLOWS: Final = {
    "sendrecv": (True, True),
    "sendonly": (True, False),
    "recvonly": (False, True),
    "inactive": (False, False),
}
WORDS: Final = {flows: word for word, flows in FLOWS.items()}


@dataclass(frozen=True, slots=True)
class AgreedMedia:
    """The outcome of one line for our end: §6.1, §7.

    `codecs` are those in common, the one to send first in front, without telephone-event;
    their numbers and `fmtp` are the peer's, that is what to send (`send_payload_types`).
    `receive_payload_types` stand in the same order and are what will arrive.  `remote` and
    `remote_rtcp` are None where nothing may be sent; `rtcp_mux` says that RTCP shares the ports of
    RTP, at both ends.  `direction` is ours; `held` says that the peer wants no media for now
    (§8.4).  `event_clock` is the clock of telephone events, in ticks a second: RFC 4733 §2.1.
    `ptime` is the packet time to send with, in ms.  `port` is our own; `mid` names the
    line, `feedback` are the RTCP messages that both understand for the first codec, and `bits` is
    how many a second the peer takes at most, 0 where it does not say (RFC 8866 §5.8); `avpf` says
    that the profile has early feedback (RFC 4585 §4.1); `keys` are those of SRTP, None for plain
    RTP (RFC 4568 §5.1.3); `repairs` and `arriving_repairs` map the number of a codec to that of its
    RTX, as we send it, and the number of RTX that arrives to that of its codec (RFC 4588 §8.1).
    A refused line has `accepted` False and the other fields empty.
    """

    kind: str
    accepted: bool = False
    port: int = 0
    remote: tuple[str, int] | None = None
    remote_rtcp: tuple[str, int] | None = None
    codecs: tuple[Codec, ...] = ()
    send_payload_types: tuple[int, ...] = ()
    receive_payload_types: tuple[int, ...] = ()
    telephone_event: int | None = None
    receive_telephone_events: tuple[int, ...] = ()
    event_clock: int = 8000
    events: frozenset[int] = frozenset()
    direction: str = "inactive"
    held: bool = False
    ptime: int = DEFAULT_PTIME
    mid: str | None = None
    feedback: frozenset[str] = frozenset()
    rtcp_mux: bool = False
    bits: int = 0
    avpf: bool = False
    keys: AgreedKeys | None = None
    repairs: Mapping[int, int] = field(default_factory=dict)
    arriving_repairs: Mapping[int, int] = field(default_factory=dict)

    @property
    def sends(self) -> bool:
        """Say whether we may send media: §6.1, and §8.4 for an address of 0.0.0.0."""
        return self.remote is not None and FLOWS[self.direction][0]  # §6 [refused-is-silent]

    @property
    def receives(self) -> bool:
        """Say whether media may arrive: §6.1."""
        return FLOWS[self.direction][1]

    @property
    def report_interval(self) -> float:
        """The least time between regular reports in s, T_rr_interval: RFC 4585 §4.2."""
        found = (REPORT_INTERVAL.fullmatch(each) for each in self.feedback)
        times = (int(each[1]) for each in found if each)
        return max(times, default=0) / 1000  # RFC 4585 §4.2 [no-interval-by-default]

    def received_codec(self, payload_type: int) -> Codec | None:
        """The codec of an arriving number, ours first: Field §"Numbers of an answer's own"."""
        for numbers in (self.receive_payload_types, self.send_payload_types):
            for number, codec in zip(numbers, self.codecs, strict=True):
                if number == payload_type:
                    return codec
        return None


Agreed = tuple[AgreedMedia, ...]


def accepted(agreed: Agreed, kind: str) -> AgreedMedia | None:
    """Give the first accepted line of this kind, or None: §6."""
    return next((media for media in agreed if media.accepted and media.kind == kind), None)
