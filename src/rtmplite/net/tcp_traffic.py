"""How many bytes a TCP connection has carried, by the kernel's own count.

Own design: asked for once when somebody begins and once when he ends, so nothing is counted for
each message.
"""

import socket
import struct
from typing import Final

# Source: struct tcp_info of Linux 4.1: tcpi_bytes_acked and tcpi_bytes_received.
_COUNTERS: Final = struct.Struct("=QQ")
_AT: Final = 120


def traffic(connected: socket.socket) -> tuple[int, int] | None:
    """Bytes received from the peer and bytes it has acknowledged; None where nobody counts them.

    TLS and HTTP count as well: it is what the network has carried.
    """
    try:
        said = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _AT + _COUNTERS.size)
    except OSError:  # closed, or no TCP
        return None
    if len(said) < _AT + _COUNTERS.size:
        return None
    acknowledged, received = _COUNTERS.unpack_from(said, _AT)
    return received, acknowledged
