"""What is on either side of a call's media: the ports, and the call.

Own design: the seams of `leg`, so that it can be tried without either.
"""

from collections.abc import Collection
from typing import Protocol


class Wire(Protocol):
    """A pair of UDP ports with a remote to send to.  Own design: `net.media` is the real one."""

    remote: tuple[str, int] | None
    remote_rtcp: tuple[str, int] | None
    hosts: Collection[str]

    def send_rtp(self, data: bytes) -> None:
        """Send one RTP datagram: RFC 3550 §11."""

    def send_rtcp(self, data: bytes) -> None:
        """Send one RTCP datagram: RFC 3550 §11."""

    def close(self) -> None:
        """Give the ports back.  Own design."""


class Listener(Protocol):
    """Hears from a leg.  Own design: the call it belongs to."""

    def on_hold_back(self, hold: bool) -> None:
        """The publisher is too far ahead (or no longer).  Own design: see `pacing`."""

    def on_quiet(self, now: float) -> None:
        """The phone is silent and the media time-out is near: ask it.  Own design."""

    def on_silence(self, now: float) -> None:
        """Nothing came from the phone for the media time-out, nor an answer.  Own design."""

    def on_drained(self, now: float) -> None:
        """After `publish_ended`: the last packet has left.  Own design."""
