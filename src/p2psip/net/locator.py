"""Where to send a request for a URI, when DNS has to be asked.

Implements RFC 3263 §4 at the edge.
"""

import socket

from p2psip.core.stack import Flow
from p2psip.sip.uri import Uri


class Locations:
    """Finds servers."""

    def __init__(self, outbound_proxy: str | None = None) -> None:
        self._proxy = outbound_proxy

    def flows(self, uri: Uri) -> list[Flow]:
        """The flows for a URI."""
        try:
            return [Flow("UDP", (socket.gethostbyname(uri.host), uri.port or 5060))]
        except OSError:
            return []
