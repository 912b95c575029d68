"""Reads the kernel's count of the bytes that a TCP connection has carried.

Own design: it is asked for when a stream begins and when it ends, so that nothing is counted for
each message.
"""

import socket
import struct
from typing import Final

# Source: struct tcp_info of Linux 4.1: tcpi_bytes_acked and tcpi_bytes_received.
_COUNTERS: Final = struct.Struct("=QQ")
_AT: Final = 120


def traffic(connected: socket.socket) -> tuple[int, int] | None:
    """Bytes received from the peer and bytes it has acknowledged; None if they are not counted.

    What TLS and HTTP add is counted as well.
    """
    try:
        said = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _AT + _COUNTERS.size)
    except OSError:  # closed, or no TCP
        return None
    if len(said) < _AT + _COUNTERS.size:
        return None
    acknowledged, received = _COUNTERS.unpack_from(said, _AT)
    return received, acknowledged
