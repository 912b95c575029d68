"""What a call needs around it: ports, wake-ups, somebody to tell, and a log.

Own design: the seams between the gateway's machines and its edge, as the machines see them.
RFC 3261 §13 is behind most of what a `CallUser` hears.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from p2psip.sip.uri import Uri
from p2psip.ua.ua import UserAgent
from siprtmp.calls.toll_guard import Tolls
from siprtmp.media.leg import Leg
from siprtmp.media.sdp_map import AudioPlan
from siprtmp.operation.logs import Log

if TYPE_CHECKING:
    from siprtmp.calls.call import AudioCall


class Reserved(Protocol):
    """A pair of ports on which nobody listens: RFC 3550 §11."""

    rtp_port: int

    def close(self) -> None:
        """Give the ports back.  Own design."""


class Timed(Protocol):
    """Anything with a deadline.  Own design: the house's machines all are."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None for never.  Own design."""

    def tick(self, now: float) -> None:
        """Do what is due.  Own design."""


class Waker(Protocol):
    """Wakes one machine at its deadline.  Own design."""

    def set(self) -> None:
        """The deadline may have come nearer.  Own design."""

    def cancel(self) -> None:
        """The machine is gone.  Own design."""


class MediaEdge(Protocol):
    """Where legs get their ports and their wake-ups.  Own design: the gateway is the real one."""

    media_host: str

    def host_for(self, peers: Collection[str]) -> str:
        """The address to write into descriptions for peers at these hosts: RFC 8866 §5.7."""

    def open_leg(self, listener: "AudioCall", now: float) -> tuple[Leg, int]:
        """A leg and its RTP port (RFC 3550 §11); LocalError when no port is left."""

    def phone_hosts(self, user: Uri, now: float) -> Collection[str]:
        """Where the phones of a user of ours registered from: RFC 3261 §10.2."""

    def close_leg(self, leg: Leg) -> None:
        """Stop waking a leg that is closed.  Own design."""

    def reserve(self) -> Reserved:
        """Ports whose traffic is dropped (RFC 3550 §11); LocalError when no port is left."""

    def waker(self, machine: Timed) -> Waker:
        """Something to wake a machine.  Own design."""


class CallUser(Protocol):
    """Who makes or takes the call: a client's line, or a stock tool's stream.  Own design."""

    log_id: str

    @property
    def host(self) -> str:
        """Where its client connects from; empty without one.  Own design."""

    @property
    def payer(self) -> str:
        """Whose limits its calls count against: see `tolls`.  Own design."""

    def on_call_ringing(self, status: int, reason: str, now: float) -> None:
        """A provisional response other than 100: RFC 3261 §13.2.2.1."""

    def on_call_up(self, plan: AudioPlan, now: float) -> None:
        """The 200 was received, or sent and acknowledged: RFC 3261 §13.2.2.4, §13.3.1.4."""

    def on_call_failed(self, status: int, reason: str, now: float) -> None:
        """It never came up: RFC 3261 §13.2.2.3."""

    def on_call_cancelled(self, now: float) -> None:
        """The caller gave up before an answer: RFC 3261 §9.2."""

    def on_call_over(self, reason: str, now: float) -> None:
        """It was up, and is over: RFC 3261 §15."""

    def on_call_held(self, held: bool, now: float) -> None:
        """The phone put the call on hold, or took it off: RFC 3264 §8.4."""

    def on_tag(self, type_id: int, timestamp: int, payload: bytes, now: float) -> None:
        """Sound from the phone as an RTMP message: RTMP 1.0 §7.1.4."""

    def on_hold_back(self, hold: bool) -> None:
        """The publisher is too far ahead, or no longer.  Own design."""

    def on_drained(self, now: float) -> None:
        """All that was published has been sent.  Own design."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who began a call, whom for, from where, and when: for the operator.  Own design.

    `source` is transport and host of the phone, or RTMP and the host of the client.
    """

    direction: str
    caller: str
    callee: str
    source: str
    at: float


@dataclass(slots=True)
class CallContext:
    """What every call of the gateway shares.  Own design."""

    agent: UserAgent
    media: MediaEdge
    random: Callable[[int], bytes]
    log: Log
    tolls: Tolls
    calls: "set[AudioCall]" = field(default_factory=set)
