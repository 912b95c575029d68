"""The two sides of a media leg: its ports, and the call it belongs to.

Own design: protocols of `leg`, so that tests replace either side.
"""

from collections.abc import Collection
from typing import Protocol


class Wire(Protocol):
    """A pair of UDP ports with a remote address; `p2psip.net.rtp_ports` has the real one."""

    remote: tuple[str, int] | None
    remote_rtcp: tuple[str, int] | None
    rtcp_mux: bool
    hosts: Collection[str]

    def send_rtp(self, data: bytes) -> None:
        """Send one RTP datagram: RFC 3550 §11."""

    def send_rtcp(self, data: bytes) -> None:
        """Send one RTCP datagram: RFC 3550 §11."""

    def close(self) -> None:
        """Close the ports."""


class Listener(Protocol):
    """The call that a leg belongs to, and reports to."""

    def on_hold_back(self, hold: bool) -> None:
        """Hold the publisher back if `hold`, else let it go on: see `pacing`."""

    def on_unsuitable(self, sound_format: int) -> None:
        """The publisher's codec cannot be sent to the phone: FLV 10.1 §E.4.2.1."""

    def on_quiet(self, now: float) -> None:
        """The phone is silent and the media time-out is near: ask the phone."""

    def on_silence(self, now: float) -> None:
        """The phone has sent nothing for the media time-out, and no answer."""

    def on_drained(self, now: float) -> None:
        """After `publish_ended`: the last packet has been sent."""
