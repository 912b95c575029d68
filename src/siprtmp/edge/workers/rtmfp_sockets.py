"""A UDP socket of RTMFP for each worker at one address, and who gets which datagram.

Own design: the session IDs of a worker have its number as the remainder by the count of workers,
so Linux itself can steer: a classic BPF program unscrambles the ID (RFC 7016 §2.2.2) and names the
socket, wherever the datagram comes from.  A session stays in its worker when its client's address
changes, nothing is kept, and no datagram passes another worker.  The startup has no session yet;
its datagrams are divided by a hash of both addresses, so that all of one startup reach one worker,
which alone knows its cookies.
"""

import ctypes
import socket
import struct
from contextlib import suppress
from typing import Final

from rtmplite.net.addresses import not_had, written
from rtmplite.net.rtmfp_port import datagram_socket
from siprtmp.operation.arguments import ConfigError

ATTACH: Final = 51  # Source: SO_ATTACH_REUSEPORT_CBPF of Linux
BY_HASH: Final = 0xFFFFFFFF  # the number of no socket: Linux divides by its hash then
_STEP: Final = struct.Struct("=HBBI")  # Source: struct sock_filter of Linux
_PROGRAM: Final = struct.Struct("@HP")  # Source: struct sock_fprog of Linux

_LOAD, _TO_X, _XOR_X = 0x20, 0x07, 0xAC  # Source: linux/bpf_common.h; A is loaded, X kept
_IF_EQUAL, _REMAINDER, _RETURN, _RETURN_A = 0x15, 0x94, 0x06, 0x16


def ids_of(index: int, count: int) -> range:
    """The session IDs of worker `index` among `count`: RFC 7016 §2.2.2 has 32 bits for them."""
    return range(index, 1 << 32, count)


def rtmfp_sockets(at: tuple[str, int], count: int) -> list[socket.socket]:
    """A socket for each worker; none if this system cannot steer, as one worker serves all then.

    Raises ConfigError for an address that can't be had.  The first attempt is without SO_REUSEPORT,
    since that would share the port of another gateway.
    """
    host, port = at
    opened: list[socket.socket] = []
    try:
        with datagram_socket(host, port) as trial:
            port = trial.getsockname()[1]
        for _ in range(count):
            opened.append(datagram_socket(host, port, socket.SO_REUSEPORT))
    except OSError as error:
        raise ConfigError(f"--rtmfp {written(*at)}: {not_had(error, at[1])}") from None
    with suppress(OSError):
        _steer(opened[0], count)
        return opened
    for each in opened:
        each.close()
    return []


def _steer(opened: socket.socket, count: int) -> None:
    """Have all sockets at this address get the sessions of their number."""
    steps = [
        *((_LOAD, 0, 0, 0), (_TO_X, 0, 0, 0)),
        *((_LOAD, 0, 0, 4), (_XOR_X, 0, 0, 0), (_TO_X, 0, 0, 0)),
        *((_LOAD, 0, 0, 8), (_XOR_X, 0, 0, 0)),  # RFC 7016 §2.2.2 [scrambled]
        (_IF_EQUAL, 2, 0, 0),  # RFC 7016 §3.3 [zero-is-startup]
        *((_REMAINDER, 0, 0, count), (_RETURN_A, 0, 0, 0)),
        (_RETURN, 0, 0, BY_HASH),
    ]
    code = ctypes.create_string_buffer(b"".join(_STEP.pack(*each) for each in steps))
    program = _PROGRAM.pack(len(steps), ctypes.addressof(code))
    opened.setsockopt(socket.SOL_SOCKET, ATTACH, program)
