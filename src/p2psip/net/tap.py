"""A way in for captures: whoever looks for faults sees what goes through the sockets.

Own design: sockets are opened in many places, each far below the program that knows whether a
capture is wanted; so a process has one tap, set before anything listens.  The one that is there at
first gives each socket back as it is, so that nothing is lost where nobody captures.
"""

import socket

from p2psip.net.tls import Tls


class SocketTap:
    """Ignores what it is shown; a capture overrides all methods.  Own design: see the module."""

    def datagrams(self, opened: socket.socket) -> socket.socket:
        """Give the UDP socket to use instead of a bound one."""
        return opened

    def connection(
        self, opened: socket.socket, tls: Tls | None
    ) -> tuple[socket.socket, Tls | None]:
        """Give the TCP socket and the TLS to use instead; with TLS what is said is seen there."""
        return opened, tls

    def secret(self, line: bytes) -> None:
        """Take a secret of DTLS, as a line of a key log."""


class Tapping:
    """The tap of this process.  Own design: see the module."""

    current = SocketTap()
