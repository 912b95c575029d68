"""The transports of media: what a stream sends by, and where a session gets one.

Own design: a stream neither opens a socket nor knows of which kind it is.  Today these are UDP
ports and relays (`p2psip.net.media.rtp_ports`); a transport with encryption, or one that carries
several streams, needs no change of streams.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from siprtmp.media.offload import Flow, Outlet

Receiver = Callable[[bytes, float], object]


class MediaAddress(NamedTuple):
    """Where a peer sends the media of one line to: RFC 8866 §5.7, and §5.14 for the ports."""

    host: str
    port: int
    rtcp_port: int


class MediaWay(Protocol):
    """Where the datagrams of a stream leave by: a transport, or what protects them before."""

    def send_rtp(self, data: bytes) -> None:
        """Send one RTP datagram: RFC 3550 §11."""

    def send_run(self, run: Sequence[bytes]) -> None:
        """Send RTP datagrams in a row, such as those of one frame: RFC 3550 §11."""

    def send_rtcp(self, data: bytes) -> None:
        """Send one RTCP datagram: RFC 3550 §11."""


class MediaTransport(MediaWay, Protocol):
    """A way to one peer and back, for RTP and RTCP.

    `remote` and `remote_rtcp` are where to send to, and `rtcp_mux` says that they are one (RFC 5761
    §5.1); `hosts` are those of the signalling.  All are set when a description settles them.
    `on_rtp` and `on_rtcp` take each datagram and its time, and return False for one that is not
    the peer's, which must not move `remote`.
    """

    remote: tuple[str, int] | None
    remote_rtcp: tuple[str, int] | None
    rtcp_mux: bool
    hosts: Collection[str]
    on_ready: Callable[[], object]
    on_rtp: Receiver
    on_rtcp: Receiver

    @property
    def is_ready(self) -> bool:
        """Whether packets sent now get through, which `on_ready` tells: RFC 8656 §11.1."""

    def offload(self, *terms: Any) -> Flow | None:
        """Have a pump handle packets that meet these terms, see `Offloading`; None if it won't."""

    def gather(self, *terms: Any) -> Flow | None:
        """Have a pump gather packets, see `Gathering`; None if it won't."""

    def outlet(self, take: Callable[[int, int, bytes, float], None]) -> Outlet | None:
        """A pump's way for published audio, which gives `take` what it won't send; None without."""

    def watch(
        self, watch: Callable[[tuple[str, int], tuple[str, int], bytes], object] | None
    ) -> None:
        """Tell each datagram as source, target and octets from now on; None ends that."""

    def close(self) -> None:
        """Close the transport; nothing arrives afterwards."""


class Timed(Protocol):
    """A machine with a deadline."""

    @property
    def deadline(self) -> float | None:
        """The time to call `tick`, None for never."""

    def tick(self, now: float) -> None:
        """Act on the deadlines that have passed."""


class Waker(Protocol):
    """Wakes one machine at its deadline."""

    def set(self) -> None:
        """Reset the timer if the deadline is earlier than before."""

    def cancel(self) -> None:
        """Stop waking the machine."""


class Transports(Protocol):
    """Opens the transports of one session, and wakes it."""

    def open(self) -> tuple[MediaTransport, MediaAddress]:
        """A transport, and where peers send to: RFC 3550 §11.  LocalError when none is left."""

    def release(self, transport: MediaTransport) -> None:
        """Take back a transport that is closed."""

    def waker(self, machine: Timed) -> Waker:
        """A timer for the session."""
