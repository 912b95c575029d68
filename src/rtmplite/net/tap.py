"""A way in for captures: whoever looks for faults sees what goes through the sockets.

Own design: sockets are opened in many places, each far below the program that knows whether a
capture is wanted; so a process has one tap, set before anything listens.  The one that is there at
first gives each socket back as it is, so that nothing is lost where nobody captures.
"""

import socket

from rtmplite.net.tls import Tls
from rtmplite.rtmfp.crypto.profile import CryptoProfile


class SocketTap:
    """Looks at nothing.  Own design: see the module; a capture overrides its methods."""

    def datagrams(self, opened: socket.socket) -> socket.socket:
        """Give the UDP socket to use instead of a bound one."""
        return opened

    def connection(
        self, opened: socket.socket, tls: Tls | None
    ) -> tuple[socket.socket, Tls | None]:
        """Give the TCP socket and the TLS to use instead; with TLS what is said is seen there."""
        return opened, tls

    def tunnelled(
        self,
        listening: tuple[str, int],
        far: tuple[str, int],
        request: tuple[str, bytes],
        answer: tuple[str, bytes],
    ) -> None:
        """Take note of a POST of a tunnel, its path and body, and of the status and body back."""

    def profile(self, profile: CryptoProfile) -> CryptoProfile:
        """Give the profile to use instead, by which the keys of RTMFP sessions are made."""
        return profile


class Tapping:
    """The tap of this process.  Own design: see the module."""

    current = SocketTap()
